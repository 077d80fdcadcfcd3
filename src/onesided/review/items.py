"""Items of a run as people see them: pictures, texts, or rows of a table.

An item is asked for by its name as in `scores.csv`. Which file that is was decided when the run's
folders and tables were listed; a name that is not there shows nothing, whatever it looks like.
"""

import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from onesided.core.errors import OnesidedError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.columns.cells import shown_cell
from onesided.data.problem.dataset import Selection
from onesided.data.read.files import Unreadable, holds_only, list_images, listed_file, stream_files
from onesided.data.read.folder import distinct_names
from onesided.data.read.picture import decode, read_header, shown_channels
from onesided.data.read.texts import TEXT_ENDING, read_text
from onesided.data.read.vectors import is_vector_file
from onesided.engine.model_file import DESCRIPTION, ModelDescription
from onesided.geo.scene.chips import stored_chips
from onesided.geo.scene.cutting import read_cutting
from onesided.run.config import ChipsConfig, DataConfig, OwnConfig
from onesided.run.folder import CACHE, CHIPS
from onesided.run.load import LoadedData, load_data, stored_path
from onesided.storage.atomic import read_json
from onesided.storage.names import printable
from onesided.storage.table import open_table

LARGEST_SIDE = 1600
"""Pixels of the longer side of a picture: more than a screen shows at once, and room to zoom."""
MOST_LETTERS = 200_000
SMALL = 300
"""Pictures no larger than this are sent without loss: their pixels are looked at one by one."""
PAIR = ("Before", "After")


@dataclass(frozen=True)
class Picture:
    """An encoded picture."""

    content: bytes
    media_type: str


@dataclass(frozen=True)
class Shown:
    """What the page shows of an item.

    Attributes:
        pictures: Captions of its pictures, "" where there is only one.
        text: Its text.
        cells: Name and value of each column.
        missing: Why it cannot be shown, "" if it can.
    """

    pictures: tuple[str, ...] = ()
    text: str = ""
    cells: tuple[tuple[str, str], ...] = ()
    missing: str = ""


class ShownItems(Protocol):
    """The items of a run, by name."""

    def show(self, item: str) -> Shown:
        """Return what the page shows of an item."""

    def picture(self, item: str, which: int) -> Picture | None:
        """Return a picture of an item by its place among its pictures; None if there is none."""


def open_items(run: Path, data: DataConfig) -> ShownItems:
    """Return the items of a run; whatever hinders is said of each item, so that work can go on."""
    try:
        return _open(run, data)
    except OnesidedError as error:
        return _Nothing(str(error))


def _open(run: Path, data: DataConfig) -> ShownItems:
    if isinstance(data, ChipsConfig):
        return _chips(run)
    if isinstance(data, OwnConfig):
        files = _files(data)
        if files is not None:
            return files
    # The pool with its answered items: an answer may be looked at again.
    loaded = load_data(data.model_copy(update={"answers": None}), cache=run / CACHE)
    return _Rows(loaded)


def _files(data: OwnConfig) -> ShownItems | None:
    """Return items that are files, found without decoding any; None for other data."""
    if table := stored_path(data.table):
        if is_vector_file(table):
            return None
        content = open_table(table, needed="label")
        if "path" not in content.columns:
            return None
        listed = (listed_file(content, row)[0] for row in content.rows())
        return _Files({printable(file.name): file.path for file in listed})
    given = {
        label: path
        for label, path in (
            (POSITIVE, stored_path(data.positive_folder)),
            (UNKNOWN, stored_path(data.unlabelled_folder)),
            (NEGATIVE, stored_path(data.negative_folder)),
        )
        if path is not None
    }
    pool = given.get(UNKNOWN)
    if pool is None or pool.is_file():
        return None
    start = f"{distinct_names(given)[UNKNOWN]}/"
    if holds_only(pool, TEXT_ENDING):
        found = stream_files(pool, Counter(), start, accepted=(TEXT_ENDING,), noun="text")
        return _Texts({printable(file.name): file.path for file in found})
    return _Files({printable(file.name): file.path for file in list_images(pool, start).images})


def _chips(run: Path) -> ShownItems:
    description = ModelDescription.from_settings(read_json(run / DESCRIPTION), DESCRIPTION)
    rows, values = stored_chips(run / CHIPS, description.sample_shape)
    cutting = read_cutting(run)
    # Two images make a pair; the bands of the first come first.
    first = len(cutting.images[0].low) if cutting and len(cutting.images) == 2 else 0
    return _Chips(rows, values, first)


@dataclass(frozen=True)
class _Nothing:
    """Items that cannot be shown, and the reason."""

    reason: str

    def show(self, item: str) -> Shown:
        return Shown(missing=self.reason)

    def picture(self, item: str, which: int) -> Picture | None:
        return None


@dataclass(frozen=True)
class _Files:
    """Image files."""

    paths: Mapping[str, Path] = field(repr=False)

    def show(self, item: str) -> Shown:
        def shown(path: Path) -> Shown:
            return Shown(pictures=PAIR if read_header(path).channels == 6 else ("",))

        return _of_file(self.paths.get(item), shown)

    def picture(self, item: str, which: int) -> Picture | None:
        path = self.paths.get(item)
        if path is None:
            return None
        try:
            header = read_header(path)
            scale = min(1.0, LARGEST_SIDE / max(header.height, header.width))
            size = max(1, round(scale * header.height)), max(1, round(scale * header.width))
            pixels = decode(path, size=None if scale == 1 else size)
        except Unreadable:
            return None
        return _one_of(pixels, which, first=3 if len(pixels) == 6 else 0)


@dataclass(frozen=True)
class _Texts:
    """Text files."""

    paths: Mapping[str, Path] = field(repr=False)

    def show(self, item: str) -> Shown:
        return _of_file(
            self.paths.get(item), lambda path: Shown(text=read_text(path)[:MOST_LETTERS])
        )

    def picture(self, item: str, which: int) -> Picture | None:
        return None


def _of_file(path: Path | None, read: Callable[[Path], Shown]) -> Shown:
    """Return what a file shows, or why it shows nothing."""
    if path is None:
        return Shown(missing="It is not where it was when the model was trained.")
    try:
        return read(path)
    except Unreadable as error:
        return Shown(missing=f"The file {error.reason}.")


class _Rows:
    """Samples of a data set or a table, as they were read: images, numbers, or cells."""

    def __init__(self, loaded: LoadedData) -> None:
        self.loaded = loaded
        self.rows: dict[str, tuple[Selection, int]] = {}
        for part in (loaded.split.train, loaded.split.held_out):
            if part is not None:
                for row, name in enumerate(part.names):
                    self.rows[printable(name)] = (part.values, row)

    def _value(self, item: str) -> np.ndarray | None:
        if item not in self.rows:
            return None
        values, row = self.rows[item]
        taken: np.ndarray = values.take(np.array([row]))[0]
        return taken

    def show(self, item: str) -> Shown:
        value = self._value(item)
        if value is None:
            return Shown(missing="It is no longer in the data that the model was trained on.")
        if value.ndim == 3:
            return Shown(pictures=PAIR if len(value) == 6 else ("",))
        columns = self.loaded.columns
        if not columns:
            names = self.loaded.feature_names or [f"{place + 1}" for place in range(len(value))]
            numbers = (f"{number:.6g}" for number in value.tolist())
            return Shown(cells=tuple(zip(names, numbers, strict=True)))
        cells = value.tolist()
        texts = [
            str(cell or "")
            for column, cell in zip(columns, cells, strict=True)
            if column.kind == "text"
        ]
        others = tuple(
            (column.name, shown_cell(column, cell))
            for column, cell in zip(columns, cells, strict=True)
            if column.kind != "text"
        )
        return Shown(text="\n\n".join(texts)[:MOST_LETTERS], cells=others)

    def picture(self, item: str, which: int) -> Picture | None:
        value = self._value(item)
        if value is None or value.ndim != 3:
            return None
        return _one_of(value, which, first=3 if len(value) == 6 else 0)


@dataclass(frozen=True)
class _Chips:
    """Buildings that were cut out of images; `first` is the number of bands before the event."""

    rows: Mapping[str, int] = field(repr=False)
    values: UInt8[np.ndarray, "n channels height width"] = field(repr=False)
    first: int

    def show(self, item: str) -> Shown:
        if item not in self.rows:
            return Shown(missing="It is not among the buildings that were cut out for this run.")
        return Shown(pictures=PAIR if self.first else ("",))

    def picture(self, item: str, which: int) -> Picture | None:
        if item not in self.rows:
            return None
        return _one_of(np.asarray(self.values[self.rows[item]]), which, first=self.first)


def _one_of(
    pixels: UInt8[np.ndarray, "channels height width"], which: int, *, first: int
) -> Picture | None:
    """Return one of the pictures in an array: of a pair, the bands before or after `first`."""
    parts: Sequence[np.ndarray] = [pixels[:first], pixels[first:]] if first else [pixels]
    if not 0 <= which < len(parts):
        return None
    bands = parts[which]
    shown = bands[shown_channels(len(bands))] if len(bands) != 6 else bands[:3]
    return encoded(np.ascontiguousarray(shown))


def encoded(pixels: UInt8[np.ndarray, "channels height width"]) -> Picture:
    """Return a picture as browsers take it, without anything of the file that it came from."""
    rows = pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)
    image, file = Image.fromarray(rows), io.BytesIO()
    if max(image.size) <= SMALL:
        image.save(file, "PNG")
        return Picture(file.getvalue(), "image/png")
    image.save(file, "JPEG", quality=92)
    return Picture(file.getvalue(), "image/jpeg")
