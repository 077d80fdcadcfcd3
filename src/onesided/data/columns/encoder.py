"""From the raw rows of a table to vectors, by what training rows alone have shown.

| kind | becomes |
|---|---|
| number, boolean, date | itself, the median for a gap; and 1 for a gap, if training rows had some |
| category | 1 for its value; rare and unknown values share a place; and 1 for a gap |
| text | TF-IDF of its words, projected on the directions that vary most (LSA); or the vector of a
pretrained encoder (`nets.sentences`) |

Numbers are not standardised here: networks and linear models do that themselves. A fitted
encoder is words and arrays, so a model file can hold it without executing anything.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from jaxtyping import Float32, Int64, Shaped
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from onesided.core.config import Config
from onesided.core.errors import CheckpointError, DataError
from onesided.data.columns.cells import NUMERIC, Column
from onesided.data.columns.texts import TextVectors, fit_texts
from onesided.nets.sentences import SentenceEncoder, load_sentence_encoder

FEWEST_ROWS = 3
"""Training rows that a value of a category needs for a place of its own."""
MOST_VALUES = 50
"""Places of their own in one category: the commonest values have them."""
FILL = "fill"
PRETRAINED = ("encoder", "content")
"""Settings of a column whose texts a pretrained encoder reads."""


class EncodedColumn(Column):
    """A column, and what training rows have shown of it."""

    gaps: bool = False
    """Whether a gap has a place."""
    values: tuple[str, ...] = ()
    """Values of a category that have a place each."""
    others: bool = False
    """Whether all other values share a place."""
    words: tuple[str, ...] = ()
    """Words of a text that count."""
    directions: int = Field(default=0, ge=0)
    """Numbers that a text becomes."""
    encoder: str = ""
    """The pretrained encoder of a text, such as hf:FOLDER; empty where its words are counted."""
    content: str = ""
    """Hash of that encoder."""

    @model_serializer(mode="wrap")
    def _without_what_is_not_used(
        self, serialise: SerializerFunctionWrapHandler
    ) -> dict[str, object]:
        fields: dict[str, object] = serialise(self)
        return {name: value for name, value in fields.items() if value or name not in PRETRAINED}

    @model_validator(mode="after")
    def _check_words(self) -> Self:
        if len(set(self.values)) < len(self.values) or len(set(self.words)) < len(self.words):
            raise ValueError(f"the column '{self.name}' has a value twice")
        return self

    @property
    def width(self) -> int:
        """How many numbers the column becomes."""
        if self.kind in NUMERIC:
            return 1 + self.gaps
        return self.directions if self.kind == "text" else self._places

    @property
    def _places(self) -> int:
        return len(self.values) + self.others + self.gaps

    def names(self) -> list[str]:
        """Return what the numbers are called."""
        if self.kind == "text":
            return [f"{self.name} (direction {number + 1})" for number in range(self.directions)]
        names = [f"{self.name} = {value}" for value in self.values]
        names += [f"{self.name} = another"] if self.others else []
        gap = [f"{self.name} is missing"] if self.gaps else []
        return ([self.name] if self.kind in NUMERIC else names) + gap


class EncoderDescription(Config):
    """The words of a fitted encoder; its numbers are in the file of weights."""

    columns: tuple[EncodedColumn, ...] = Field(min_length=1)
    """In the order of the cells of a raw row."""

    @property
    def width(self) -> int:
        """How many numbers a row becomes."""
        return sum(column.width for column in self.columns)


@dataclass(frozen=True)
class Encoder:
    """A fitted encoder of raw rows.

    Attributes:
        description: The columns.
        arrays: `fill`, what stands for a gap in each numeric column (0 in others); and for the
            text in column i `idf.i` and `components.i`.
        sentences: The pretrained encoder of texts, where one reads them; None loads it by name.
    """

    description: EncoderDescription
    arrays: Mapping[str, np.ndarray]
    sentences: SentenceEncoder | None = None

    def __post_init__(self) -> None:
        expected: dict[str, tuple[int, ...]] = {FILL: (len(self.description.columns),)}
        for index, column in self._texts():
            expected[f"idf.{index}"] = (len(column.words),)
            expected[f"components.{index}"] = (column.directions, len(column.words))
        for name in sorted(expected.keys() | self.arrays.keys()):
            array = self.arrays.get(name)
            if array is None or array.dtype.kind != "f" or array.shape != expected.get(name):
                raise CheckpointError(
                    f"The numbers of the encoder do not fit its columns: see '{name}'. Restore the "
                    "model's files, or train again."
                )

    @property
    def columns(self) -> tuple[EncodedColumn, ...]:
        """The columns of a raw row."""
        return self.description.columns

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers of a vector are called."""
        return tuple(name for column in self.columns for name in column.names())

    @property
    def column_of(self) -> Int64[np.ndarray, "width"]:
        """The raw column that each number of a vector comes from."""
        return np.repeat(np.arange(len(self.columns)), [column.width for column in self.columns])

    def transform(self, rows: Shaped[np.ndarray, "n columns"]) -> Float32[np.ndarray, "n width"]:
        """Return vectors of raw rows."""
        parts = [self._part(index, rows[:, index]) for index in range(len(self.columns))]
        return np.concatenate(parts, axis=1, dtype=np.float32)

    def unknown(self, rows: Shaped[np.ndarray, "n columns"]) -> Counter[str]:
        """Count, by column, cells whose value has no place of its own: unknown, or rare."""
        found = Counter[str]()
        for index, column in enumerate(self.columns):
            if column.kind == "category":
                known = {None, *column.values}
                found[column.name] += sum(cell not in known for cell in rows[:, index])
        return +found

    @cached_property
    def _vectors(self) -> dict[int, TextVectors]:
        return {
            index: TextVectors(
                column.words, self.arrays[f"idf.{index}"], self.arrays[f"components.{index}"]
            )
            for index, column in self._texts()
        }

    def _texts(self) -> list[tuple[int, EncodedColumn]]:
        return [
            (index, column)
            for index, column in enumerate(self.description.columns)
            if column.kind == "text" and column.directions and not column.encoder
        ]

    def _sentences(self, column: EncodedColumn) -> SentenceEncoder:
        return self.sentences or load_sentence_encoder(column.encoder, column.content)

    def _part(self, index: int, cells: np.ndarray) -> Float32[np.ndarray, "n part"]:
        column = self.columns[index]
        if column.kind == "text":
            texts = [cell or "" for cell in cells]
            if column.encoder:
                return self._sentences(column).vectors(texts)
            if not column.directions:
                return np.empty((len(cells), 0), np.float32)
            return self._vectors[index].transform(texts)
        if column.kind == "category":
            return _one_hot(column, cells)
        numbers = cells.astype(np.float64)
        gap = np.isnan(numbers)
        filled = np.where(gap, self.arrays[FILL][index], numbers)
        both = np.stack([filled, gap], axis=1)[:, : column.width]
        return both.astype(np.float32)


def fit_encoder(
    columns: Sequence[Column],
    rows: Shaped[np.ndarray, "n columns"],
    *,
    seed: int,
    sentences: SentenceEncoder | None = None,
) -> Encoder:
    """Return an encoder fitted to these rows.

    Args:
        columns: In the order of the cells of a row.
        rows: Those that are trained on.
        seed: For the directions of texts.
        sentences: The pretrained encoder that reads texts instead; it is not fitted to anything.
    """
    encoded: list[EncodedColumn] = []
    arrays = {FILL: np.zeros(len(columns))}
    for index, column in enumerate(columns):
        cells, plain = rows[:, index], column.model_dump()
        if column.kind in NUMERIC:
            numbers = cells.astype(np.float64)
            gaps = bool(np.isnan(numbers).any())
            if not np.isnan(numbers).all():
                arrays[FILL][index] = np.nanmedian(numbers)
            encoded.append(EncodedColumn(**plain, gaps=gaps))
        elif column.kind == "category":
            encoded.append(_fit_category(plain, cells))
        elif sentences is not None:
            what = {"encoder": sentences.name, "content": sentences.content}
            encoded.append(EncodedColumn(**plain, directions=sentences.width, **what))
        else:
            fitted = fit_texts([cell or "" for cell in cells], seed=seed, name=column.name)
            directions = len(fitted.components)
            encoded.append(EncodedColumn(**plain, words=fitted.words, directions=directions))
            if directions:
                arrays[f"idf.{index}"] = fitted.idf
                arrays[f"components.{index}"] = fitted.components
    description = EncoderDescription(columns=tuple(encoded))
    if not description.width:
        raise DataError(
            "The texts share no words, so there is nothing to learn from them. Give more of them, "
            "or columns of another kind."
        )
    return Encoder(description, arrays, sentences)


def _fit_category(plain: dict[str, object], cells: np.ndarray) -> EncodedColumn:
    counts = Counter(cell for cell in cells if cell is not None)
    # By count and then by name, so that the order of the rows decides nothing.
    ordered = sorted(counts, key=lambda value: (-counts[value], value))
    kept = [value for value in ordered if counts[value] >= FEWEST_ROWS][:MOST_VALUES]
    return EncodedColumn.model_validate(
        {
            **plain,
            "values": kept,
            "others": len(kept) < len(counts),
            "gaps": sum(counts.values()) < len(cells),
        }
    )


def _one_hot(column: EncodedColumn, cells: np.ndarray) -> Float32[np.ndarray, "n places"]:
    """Return 1 in the place of each cell's value; a value without any place is all zeros."""
    places: dict[str | None, int] = {value: place for place, value in enumerate(column.values)}
    other = len(column.values) if column.others else -1
    places[None] = column.width - 1 if column.gaps else -1
    found = np.array([places.get(cell, other) for cell in cells], np.int64)
    hot = np.zeros((len(cells), column.width), np.float32)
    rows = np.flatnonzero(found >= 0)
    hot[rows, found[rows]] = 1
    return hot
