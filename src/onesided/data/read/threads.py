"""Many files read side by side, in order: Pillow decodes outside Python's lock."""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from PIL import Image

from onesided.data.read.files import Found, Unreadable
from onesided.storage.progress import Progress

# Decoded images that may wait for their turn: enough to keep the threads busy.
CHUNK = 128
_Result = TypeVar("_Result")


class Each:
    """Applies a function to files by a pool, in order, and tells the progress."""

    def __init__(self, pool: Executor, progress: Progress | None, total: int) -> None:
        self.pool, self.progress, self.total, self.done = pool, progress, total, 0

    def __call__(
        self, found: Sequence[Found], rows: Sequence[int], function: Callable[[Found], _Result]
    ) -> Iterator[tuple[int, _Result | Unreadable]]:
        """Yield each of these rows with what the function returned, or why it could not."""

        def attempt(file: Found) -> _Result | Unreadable:
            try:
                return function(file)
            except Unreadable as error:
                return error

        # Executor.map alone would take all files at once and pile up what they decode to.
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            yield from zip(
                chunk, self.pool.map(attempt, [found[row] for row in chunk]), strict=True
            )
            self.done += len(chunk)
            if self.progress is not None:
                self.progress(self.done, self.total)


@contextmanager
def reading_each(
    total: int, progress: Progress | None = None, workers: int | None = None
) -> Iterator[Each]:
    """Give what applies functions to files by threads, the usual number unless told."""
    usual = min(8, os.cpu_count() or 1)
    with _strict_about_bombs(), ThreadPoolExecutor(workers or usual) as pool:
        yield Each(pool, progress, total)


@contextmanager
def _strict_about_bombs() -> Iterator[None]:
    # Filters belong to the process, so they are set before threads start, not in them.
    with warnings.catch_warnings():
        # What Pillow grumbles about (odd EXIF) is no news, and what it refuses is listed.
        warnings.filterwarnings("ignore", module=r"PIL\.")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield
