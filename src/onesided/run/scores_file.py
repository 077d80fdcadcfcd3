"""Scores on their way to a ranking: on disk, restartable, sorted without being in memory.

Beside the output lies a folder, `ranked.csv.partial`, until the ranking is written:

    listing     a record for each item, in the order in which they are scored
    scores      a journal, one entry for each piece; its header binds it to model and items
"""

import hashlib
import shutil
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onesided.core.errors import OnesidedError
from onesided.data.read.items import ItemChunk, Items
from onesided.storage.journal import Journal
from onesided.storage.lock import alone
from onesided.storage.names import printable
from onesided.storage.sorting import read_records, sorted_on_disk, write_records

_LISTING, _SCORES = "listing", "scores"
_ALL_BITS = 2**64 - 1


@dataclass(frozen=True)
class ScoredItem:
    """One item: its record, and either a score or the reason why there is none."""

    record: bytes
    score: float | None
    reason: str = ""


@dataclass(frozen=True)
class PartialScores:
    """The scores so far, in the order of the listing.

    Attributes:
        folder: Where they lie.
        count: How many items there are.
        piece: How many are scored at a time.
        journal: What was scored.
    """

    folder: Path
    count: int
    piece: int
    journal: Journal

    def pieces(self) -> Iterator[list[bytes]]:
        """Yield the records of all items, a piece of them at a time."""
        piece: list[bytes] = []
        for record in read_records(self.folder / _LISTING):
            piece.append(record)
            if len(piece) == self.piece:
                yield piece
                piece = []
        if piece:
            yield piece

    def done(self) -> int:
        """Return how many pieces are scored."""
        return sum(1 for _ in self.journal.entries())

    def scored(self) -> Iterator[ScoredItem]:
        """Yield every item; all pieces must be scored."""
        entries = self.journal.entries()
        for records in self.pieces():
            entry: Any = next(entries, None)
            if not _is_whole(entry, len(records)):
                raise self.journal.damaged("an entry is not what a piece of items gave")
            scores = iter(entry["scores"])
            for place, record in enumerate(records):
                reason = entry["reasons"].get(str(place))
                yield (
                    ScoredItem(record, None, reason) if reason else ScoredItem(record, next(scores))
                )
        if next(entries, None) is not None:
            raise self.journal.damaged("it has more entries than there are pieces of items")

    def ranked(self) -> Iterator[ScoredItem]:
        """Yield the items that have a score, best first, equal scores in the order of names."""
        keys = (
            _descending(item.score) + item.record
            for item in self.scored()
            if item.score is not None
        )
        for key in sorted_on_disk(keys, self.folder):
            yield ScoredItem(key[8:], _from_descending(key[:8]))


def entry(piece: ItemChunk, scores: np.ndarray) -> dict[str, object]:
    """Return what the journal says about a piece; numbers come back to the last bit."""
    reasons = {str(place): reason for place, reason in piece.reasons.items()}
    return {"scores": scores.tolist(), "reasons": reasons}


def _is_whole(found: object, items: int) -> bool:
    """Whether an entry has a score, or a reason why there is none, for each item of its piece."""
    if not isinstance(found, dict) or found.keys() != {"scores", "reasons"}:
        return False
    scores, reasons = found["scores"], found["reasons"]
    if not isinstance(scores, list) or not isinstance(reasons, dict):
        return False
    return (
        len(scores) + len(reasons) == items
        and all(isinstance(score, float) and 0 <= score <= 1 for score in scores)
        and all(isinstance(reason, str) and reason for reason in reasons.values())
        and reasons.keys() <= set(map(str, range(items)))
    )


@contextmanager
def partial_scores(
    output: Path, model: str, items: Items, *, piece: int
) -> Iterator[PartialScores]:
    """Give the scores that a killed command left for this output, or an empty beginning.

    Scores of another model, or of items that changed since, are thrown away. The folder is
    deleted at the end, and also after an error if nothing was scored.

    Args:
        output: File of the ranking; the folder lies beside it.
        model: Hash of all that decides about scores.
        items: What is scored.
        piece: How many items are scored at a time, see `chunk_length`.
    """
    folder = output.with_name(f"{output.name}.partial")
    shown = printable(folder.as_posix())
    busy = OnesidedError(f"Another command is ranking into {shown}. Wait for it to end.")
    # Beside the folder: it is deleted while the lock is held, and Windows deletes no open file.
    with alone(folder.with_name(f"{folder.name}.lock"), otherwise=busy):
        _make(folder)
        journal = Journal(folder / _SCORES, {})
        finished = False
        try:
            listing = _Listing()
            write_records(folder / _LISTING, listing.through(items.records(folder)))
            journal = Journal(
                folder / _SCORES,
                {"format": 1, "piece": piece, "model": model, "items": listing.hash.hexdigest()},
            )
            yield PartialScores(folder, listing.count, piece, journal)
            finished = True
        finally:
            if finished or next(journal.entries(), None) is None:
                shutil.rmtree(folder)


class _Listing:
    """Counts and hashes records that pass."""

    def __init__(self) -> None:
        self.hash, self.count = hashlib.sha256(), 0

    def through(self, records: Iterable[bytes]) -> Iterator[bytes]:
        for record in records:
            self.count += 1
            self.hash.update(len(record).to_bytes(4, "little") + record)
            yield record


def _make(folder: Path) -> None:
    """Make the folder, unless something of somebody else is there."""
    if folder.is_dir():
        ours = (_LISTING, _SCORES)
        strange = [
            path for path in folder.iterdir() if path.name not in ours and path.stem[:4] != "run-"
        ]
        if not strange:
            return
    elif not folder.exists():
        folder.mkdir()
        return
    raise OnesidedError(
        f"{printable(folder.as_posix())} is in the way: scores are kept there until the ranking is "
        "written, but what is there is not ours. Move it, or choose another output with -o."
    )


def _descending(score: float) -> bytes:
    """Return bytes that sort before those of every smaller number."""
    bits = int.from_bytes(struct.pack(">d", score + 0.0), "big")
    ascending = bits ^ _ALL_BITS if bits >> 63 else bits | 1 << 63
    return (ascending ^ _ALL_BITS).to_bytes(8, "big")


def _from_descending(key: bytes) -> float:
    ascending = int.from_bytes(key, "big") ^ _ALL_BITS
    bits = ascending ^ 1 << 63 if ascending >> 63 else ascending ^ _ALL_BITS
    return float(struct.unpack(">d", bits.to_bytes(8, "big"))[0])
