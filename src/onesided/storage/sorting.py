"""More records than fit into memory, in the order of their bytes."""

import heapq
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

MOST_BYTES = 16 * 2**20
"""Bytes of records in memory at a time; the rest lies on disk."""

_LENGTH = struct.Struct("<I")
# Bytes that Python needs for a short bytes object and its entry in a list.
_OVERHEAD = 41


def sorted_on_disk(records: Iterable[bytes], folder: Path) -> Iterator[bytes]:
    """Yield the records in order, in memory that does not depend on their number.

    Sorted runs go to files in `folder`, which are then merged and deleted. The next sort there
    uses the same names.
    """
    runs: list[Path] = []
    held: list[bytes] = []
    size = 0
    for record in records:
        held.append(record)
        size += len(record) + _OVERHEAD
        if size >= MOST_BYTES:
            runs.append(folder / f"run-{len(runs)}")
            write_records(runs[-1], sorted(held))
            held, size = [], 0
    held.sort()
    yield from heapq.merge(held, *map(read_records, runs))
    for run in runs:
        run.unlink()


def write_records(path: Path, records: Iterable[bytes]) -> None:
    """Write records to a file, each with its length in front."""
    with path.open("wb") as file:
        for record in records:
            file.write(_LENGTH.pack(len(record)))
            file.write(record)


def read_records(path: Path, offset: int = 0) -> Iterator[bytes]:
    """Yield the records that `write_records` wrote, from this place in the file on."""
    with path.open("rb") as file:
        file.seek(offset)
        while length := file.read(_LENGTH.size):
            yield file.read(_LENGTH.unpack(length)[0])


def record_offsets(path: Path, every: int) -> Iterator[int]:
    """Yield the places in the file of the first record, and of every so many behind it."""
    with path.open("rb") as file:
        number, place = 0, 0
        while length := file.read(_LENGTH.size):
            if number % every == 0:
                yield place
            place += _LENGTH.size + _LENGTH.unpack(length)[0]
            file.seek(place)
            number += 1
