"""Features that were computed once: a store that several runs share.

A feature vector is found by its key, a hash of the image's pixels; the store belongs to one
backbone with one preprocessing, whose hash is the name of its folder.

    <backbone>/<digest>.chunk     keys (32 bytes each), then vectors (float32), of `ROWS` items

A chunk is written under a temporary name and renamed. Its name is the hash of its content: one with
other bits, or with rows in another order, is deleted when the store is opened, and its items are
computed again. Nothing is ever changed in a chunk, so any number of processes may read and add.
"""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from onesided.core.errors import OnesidedError
from onesided.storage.atomic import half_written, replacing
from onesided.storage.names import shown_path
from onesided.storage.own_file import open_own

KEY_BYTES = 32
ROWS = 2048
"""Most items of a chunk: ten megabytes of vectors with 1280 numbers."""
SECONDS = 30.0
"""A chunk is written at the latest so many seconds after the one before: a kill costs no more."""
FORGOTTEN = 3600.0
"""Age in seconds from which a half-written chunk belongs to nobody."""
SUFFIX = ".chunk"
README = """\
Features that onesided computed, so that the next start need not do it again.
This folder may be deleted at any time when no training runs; nothing else is lost.
"""
_READ = 2**22


def key_of(pixels: np.ndarray) -> bytes:
    """Return the key of an image or vector: a hash of its type, shape and values."""
    digest = hashlib.sha256(f"{pixels.dtype.str} {pixels.shape} ".encode())
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.digest()


class StoredRows:
    """Vectors of the store as the rows of one array; only rows that are asked for are in memory."""

    def __init__(self, chunks: Sequence[np.ndarray], places: np.ndarray, width: int) -> None:
        self._chunks, self._places = chunks, places  # a chunk and a row in it, for each item
        self.shape, self.dtype = (len(places), width), np.dtype(np.float32)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: np.ndarray | slice) -> np.ndarray:
        places = self._places[index]
        out = np.empty((len(places), self.shape[1]), np.float32)
        for number in np.unique(places[:, 0]):
            here = places[:, 0] == number
            out[here] = self._chunks[number][places[here, 1]]
        return out


class RowsWithViews(StoredRows):
    """Rows of which some also have views: further vectors, equally many of each row.

    Args:
        rows: The rows themselves.
        of_rows: All views: those of one row are side by side.
        first: Place of a row's first view, or -1 where it has none.
        count: How many views of one strength a row has.
    """

    def __init__(
        self, rows: StoredRows, of_rows: StoredRows, first: np.ndarray, count: int
    ) -> None:
        super().__init__(rows._chunks, rows._places, rows.shape[1])
        self._views, self._first, self.count = of_rows, first, count

    def has(self, index: np.ndarray) -> bool:
        """Return whether all of these rows have views."""
        return bool((self._first[index] >= 0).all())

    def views(self, index: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return one view of each of these rows, by its number among the row's views."""
        return self._views[self._first[index] + numbers]


class FeatureStore:
    """Vectors by key, in a folder, or in memory where there is none.

    Args:
        folder: Of all stores; several commands may use it at once.
        backbone: Hash of all that decides features.
        width: Numbers of a vector.
    """

    def __init__(self, folder: Path | None, backbone: str, width: int) -> None:
        self.folder = None if folder is None else folder / backbone[:32]
        self.width = width
        self._chunks: list[np.ndarray] = []
        self._places: dict[bytes, tuple[int, int]] = {}
        if self.folder is not None and self.folder.is_dir():
            self._remove_half_written(self.folder)
            for path in sorted(self.folder.glob(f"*{SUFFIX}")):
                self._open(path)

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def rows(self, keys: Sequence[bytes]) -> StoredRows:
        """Return the vectors of these keys, in this order; all of them must be there."""
        places = np.array([self._places[key] for key in keys], np.int64).reshape(-1, 2)
        return StoredRows(list(self._chunks), places, self.width)

    def fill(self, rows: Iterable[tuple[bytes, np.ndarray]]) -> None:
        """Take vectors with their keys; those of complete chunks outlive a kill."""
        keys: list[bytes] = []
        vectors: list[np.ndarray] = []
        saved = time.monotonic()
        for key, vector in rows:
            keys.append(key)
            vectors.append(vector)
            if len(keys) == ROWS or time.monotonic() - saved > SECONDS:
                self._add(keys, np.stack(vectors))
                keys, vectors, saved = [], [], time.monotonic()
        if keys:
            self._add(keys, np.stack(vectors))

    def _remove_half_written(self, folder: Path) -> None:
        """Remove what killed processes left; a younger file may be another process's work."""
        for part in half_written(folder, ["*"]):
            with suppress(OSError):  # another process may have removed it
                if time.time() - part.stat().st_mtime > FORGOTTEN:
                    part.unlink()

    def _add(self, keys: list[bytes], vectors: np.ndarray) -> None:
        vectors = np.ascontiguousarray(vectors, dtype="<f4")
        if self.folder is None:
            self._enter(keys, vectors)
            return
        content = b"".join(keys) + vectors.tobytes()
        path = self.folder / f"{hashlib.sha256(content).hexdigest()}{SUFFIX}"
        with _explaining_refusals(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder.parent / "README.txt").write_text(README, encoding="utf-8")
        with replacing(path) as file:
            file.write(content)
        self._enter(keys, self._mapped(path, len(keys)))

    def _open(self, path: Path) -> None:
        """Enter a chunk of an earlier process, or delete it where it is damaged."""
        row = KEY_BYTES + 4 * self.width
        try:
            with open_own(path) as file:
                size = os.fstat(file.fileno()).st_size
                keys = file.read(size // row * KEY_BYTES)
                digest = hashlib.sha256(keys)
                while block := file.read(_READ):
                    digest.update(block)
            if digest.hexdigest() == path.stem and size and size % row == 0:
                starts = range(0, len(keys), KEY_BYTES)
                each = [keys[start : start + KEY_BYTES] for start in starts]
                self._enter(each, self._mapped(path, len(each)))
                return
            path.unlink(missing_ok=True)
        except FileNotFoundError:
            return  # another process found it damaged, and removed it
        except OSError as error:
            raise OnesidedError(
                f"Stored features {shown_path(path)} cannot be read ({error.strerror}). Delete "
                "the file, and give the same command again: they are then computed again."
            ) from None

    def _enter(self, keys: list[bytes], vectors: np.ndarray) -> None:
        number = len(self._chunks)
        self._chunks.append(vectors)
        for row, key in enumerate(keys):
            self._places.setdefault(key, (number, row))

    def _mapped(self, path: Path, rows: int) -> np.ndarray:
        shape, offset = (rows, self.width), rows * KEY_BYTES
        return np.memmap(path, "<f4", "r", offset=offset, shape=shape).view(np.ndarray)


@contextmanager
def _explaining_refusals(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OnesidedError(
            f"Cannot write features to {shown_path(folder)}: {error.strerror}. Make room, or "
            "choose another folder with --cache; the same command resumes."
        ) from None
