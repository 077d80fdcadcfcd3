"""JSON files, whoever wrote them: one reader, whose every failure is a ValueError."""

import json
import stat
from pathlib import Path
from typing import NoReturn

LARGEST = 2**28
"""Bytes; a quarter of a gigabyte of JSON takes some gigabytes of memory."""


def json_in(path: Path, *, may_hold_nan: bool = False) -> object:
    """Return the content of a JSON file, with or without a byte order mark.

    NaN and infinity, which are no JSON but which many programs write, are accepted on request.

    Raises:
        OSError: The file is missing or cannot be opened.
        ValueError: It is no JSON; the message continues a sentence about it.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):  # a pipe would wait for ever
        raise ValueError("it is not a file")
    if status.st_size > LARGEST:
        raise ValueError(f"its {status.st_size} bytes are more than the {LARGEST} allowed")
    return parsed(path.read_bytes(), may_hold_nan=may_hold_nan)


def parsed(content: bytes, *, may_hold_nan: bool = False) -> object:
    """Return what JSON says; otherwise as `json_in`."""
    text = content.decode("utf-8-sig")
    try:
        found: object = json.loads(text, parse_constant=None if may_hold_nan else _refuse)
    except (RecursionError, OverflowError, MemoryError):
        raise ValueError("it is nested too deeply or holds absurd numbers") from None
    return found


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"it holds {word}, which is no number")
