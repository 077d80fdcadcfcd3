"""The answers that people gave about the items of a run, in a file that only grows.

`answers.jsonl` holds one line for each answer, and one for each that was undone. A line is on the
disk before `append` returns. Any number of processes may append: each does so under a lock, and
nobody's line is ever changed. A kill can damage the last line only, which nobody was told to be
saved; the next writer cuts it off. Any other damage is refused and never repaired by guessing:
answers are work of people.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from onesided.core.errors import DataError, OnesidedError
from onesided.storage.answers import ANSWERS, Answer, moment
from onesided.storage.atomic import flush_folder
from onesided.storage.journal import entry_in, line_of
from onesided.storage.lock import alone
from onesided.storage.names import shown_path
from onesided.storage.own_file import open_own, why

FILE = "answers.jsonl"
UNDONE = "undone"
"""The entry that takes back the last answer of a reviewer on an item."""
_HEADER = line_of({"answers": 1})
_BLOCK = 4096


class AnswerJournal:
    """All answers about a run, those of other processes too."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._entries: list[Answer] = []
        self._read = 0  # bytes

    def entries(self) -> Sequence[Answer]:
        """Return every answer in the order in which it was given; reads only what is new."""
        try:
            with open_own(self.path) as file:
                if self._read == 0 and self._starts_wrong(file.read(len(_HEADER))):
                    raise self._damaged("its first line is not that of a file of answers")
                self._read = max(self._read, len(_HEADER))
                file.seek(self._read)
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # somebody writes it now, or was killed while writing it
                    self._entries.append(self._answer(line))
                    self._read += len(line)
        except FileNotFoundError:
            return self._entries
        except OSError as error:
            raise self._damaged(why(error)) from None
        return self._entries

    def append(self, answers: Iterable[Answer]) -> None:
        """Add answers; they are on the disk when this returns."""
        lines = b"".join(line_of(asdict(each)) for each in answers)
        try:
            with alone(self.path.with_name(f".{FILE}.lock")):
                is_new = not self.path.exists()
                with self.path.open("w+b" if is_new else "r+b") as file:
                    end = _end_of_lines(file)
                    file.truncate(end)
                    file.seek(end)
                    file.write(lines if end else _HEADER + lines)
                    file.flush()
                    os.fsync(file.fileno())
                if is_new:
                    flush_folder(self.path.parent)
        except OSError as error:
            raise OnesidedError(
                f"The answer was not saved: cannot write {shown_path(self.path)} ({why(error)}). "
                "Earlier answers are intact; make room, and answer again."
            ) from None

    def _starts_wrong(self, start: bytes) -> bool:
        return start != _HEADER and not (_HEADER.startswith(start) and len(start) < len(_HEADER))

    def _answer(self, line: bytes) -> Answer:
        try:
            content = entry_in(line)
            answer = Answer(**content)
        except (ValueError, TypeError):
            raise self._damaged(f"line {len(self._entries) + 2} was changed") from None
        sound = all(
            type(getattr(answer, field.name)) is field.type for field in fields(answer)
        ) and answer.answer in (*ANSWERS, UNDONE)
        if not sound or not answer.item or moment(answer.time) is None:
            raise self._damaged(f"line {len(self._entries) + 2} holds no answer")
        return answer

    def _damaged(self, reason: str) -> DataError:
        return DataError(
            f"{shown_path(self.path)} is damaged ({reason}). Restore it from a copy, or remove "
            "the damaged line; all other answers are still in it."
        )


def _end_of_lines(file: BinaryIO) -> int:
    """Return where the last whole line of a file ends; 0 where there is none."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = file.seek(max(0, end - _BLOCK))
        place = file.read(end - start).rfind(b"\n")
        if place >= 0:
            return start + place + 1
        end = start
    return 0


def now() -> str:
    """Return the time as answers have it: UTC, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def standing(entries: Iterable[Answer]) -> list[Answer]:
    """Return the answers that hold: the last of each reviewer on each item, in their order.

    An answer that was undone gives way to the one before it.
    """
    given: dict[tuple[str, str], list[tuple[int, Answer]]] = {}
    for place, each in enumerate(entries):
        own = given.setdefault((each.item, each.reviewer), [])
        if each.answer != UNDONE:
            own.append((place, each))
        elif own:
            own.pop()
    last = sorted((own[-1] for own in given.values() if own), key=lambda pair: pair[0])
    return [each for _, each in last]
