"""A PU problem, as rows of larger sets."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped

from onesided.core.labels import POSITIVE, UNKNOWN
from onesided.data.problem.samples import ImageKind, Samples
from onesided.storage.features import StoredRows

Scenario = Literal["case-control", "single-set"]


@dataclass(frozen=True)
class Selection:
    """Rows of a larger set, without a copy: the set may be a file larger than memory."""

    pool: "np.ndarray | Joined | StoredRows"
    index: Int64[np.ndarray, "n"]

    def __len__(self) -> int:
        return len(self.index)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(C, H, W) of an image or (D,) of a vector."""
        return tuple(self.pool.shape[1:])

    def take(self, rows: np.ndarray | slice) -> np.ndarray:
        """Return the values of these rows, as a contiguous array of their own."""
        return np.ascontiguousarray(self.pool[self.index[rows]])


class Joined:
    """Two sets addressed by one index; only the rows asked for are copied."""

    def __init__(self, first: Samples, second: Samples) -> None:
        self.first, self.second = first.values, second.values
        self.names = first.names + second.names
        self.shape = (len(first) + len(second), *first.sample_shape)

    def __getitem__(self, index: np.ndarray) -> np.ndarray:
        out = np.empty((len(index), *self.shape[1:]), self.first.dtype)
        cut = len(self.first)
        out[index < cut] = self.first[index[index < cut]]
        out[index >= cut] = self.second[index[index >= cut] - cut]
        return out


@dataclass(frozen=True)
class PUDataset:
    """Rows of a PU problem; row i is the identity of sample i for the whole run.

    `truth` is for evaluation and for methods that declare the need; it may be UNKNOWN.
    `negative` marks rows known to be negative; None where there are none. `groups` says which
    rows belong together, so that no fold may separate them; None where nobody said. `weights` says
    how much each row counts in training; None where all count the same. `content` has one number
    for all rows that show the same thing, also in the other parts of a problem; None where all
    differ. `found` marks labelled rows that a review found: they teach, but figures do not count
    them, because a model chose which items people looked at; None where there are none.
    """

    values: Selection
    labelled: Bool[np.ndarray, "n"]
    truth: Int64[np.ndarray, "n"]
    names: tuple[str, ...]
    negative: Bool[np.ndarray, "n"] | None = None
    groups: Shaped[np.ndarray, "n"] | None = None
    weights: Float64[np.ndarray, "n"] | None = None
    content: Int64[np.ndarray, "n"] | None = None
    found: Bool[np.ndarray, "n"] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def unlabelled(self) -> Bool[np.ndarray, "n"]:
        """Rows without any label: neither positive nor known to be negative."""
        return ~self.labelled if self.negative is None else ~(self.labelled | self.negative)

    def some(self, rows: Int64[np.ndarray, "m"]) -> "PUDataset":
        """Return these rows alone."""
        return PUDataset(
            values=Selection(self.values.pool, self.values.index[rows]),
            labelled=self.labelled[rows],
            truth=self.truth[rows],
            names=tuple(self.names[row] for row in rows),
            negative=at_rows(self.negative, rows),
            groups=at_rows(self.groups, rows),
            weights=at_rows(self.weights, rows),
            content=at_rows(self.content, rows),
            found=at_rows(self.found, rows),
        )


@dataclass(frozen=True)
class LabelledDataset:
    """Samples whose class is known: for reporting, or as a clean set. See `PUDataset`."""

    values: Selection
    truth: Int64[np.ndarray, "n"]
    names: tuple[str, ...]
    groups: Shaped[np.ndarray, "n"] | None = None
    weights: Float64[np.ndarray, "n"] | None = None
    content: Int64[np.ndarray, "n"] | None = None

    def __len__(self) -> int:
        return len(self.values)


def at_rows(values: np.ndarray | None, rows: np.ndarray | slice) -> np.ndarray | None:
    """Return the values of these rows, where there are any."""
    return None if values is None else values[rows]


def _hash_of(selections: Iterable[Selection], *others: np.ndarray | None) -> str:
    """Return a hash of all values, read in chunks of at most 4096 rows and 64 MiB.

    `others` are further arrays that count; one that is None leaves the hash as it is.
    """
    digest = hashlib.sha256()
    for values in selections:
        # Four bytes for each number, as vectors have; images have one.
        rows = max(1, min(4096, 2**26 // max(1, 4 * prod(values.sample_shape))))
        for start in range(0, len(values), rows):
            digest.update(bytes_of(values.take(slice(start, start + rows))))
    for array in others:
        if array is not None:
            digest.update(bytes_of(array))
    return digest.hexdigest()


def bytes_of(values: np.ndarray) -> bytes:
    """Return the content of an array, also of raw rows, whose own bytes are addresses."""
    if values.dtype != object:
        return values.tobytes()
    return json.dumps(values.tolist(), ensure_ascii=True).encode()


@dataclass(frozen=True)
class PUSplit:
    """A PU problem, ready to be trained on.

    Attributes:
        train: P and U, and known negatives for a method that declared `uses_negatives`.
        test: For reporting only; None where no truth was given.
        held_out: P and U that are not trained on.
        clean: A few samples of known class, for methods that declare the need.
        kind: Which augmentation suits the samples.
        scenario: How P and U were drawn.
    """

    train: PUDataset
    test: LabelledDataset | None
    held_out: PUDataset | None
    clean: LabelledDataset | None
    kind: ImageKind
    scenario: Scenario

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """(C, H, W) or (D,)."""
        return self.train.values.sample_shape

    @property
    def true_prior(self) -> float | None:
        """Share of positives in U where the truth is known; for reports and oracles only."""
        truth = self.train.truth[self.train.unlabelled]
        return None if (truth == UNKNOWN).any() else float((truth == POSITIVE).mean())

    def fingerprint(self) -> str:
        """Return a hash of every name and role: it proves that two splits are equal."""
        digest = hashlib.sha256()
        for role, name in self.roles():
            # By their first names, so that a run keeps its identity when words change.
            role = role.replace("held-out", "validation", 1)
            # Doubled inside a name, so that no hostile file name can look like two rows.
            unambiguous = name.replace("\x1e", "\x1e\x1e")
            digest.update(f"{role}\x1f{unambiguous}\x1e".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()

    def content_hash(self) -> str:
        """Return a hash of all values and weights trained on: the same names may hold other images.

        It takes about a second for each gigabyte.
        """
        return _hash_of([self.train.values], self.train.weights)

    def held_out_hash(self, negatives: LabelledDataset | None = None) -> str:
        """Return a hash of all other values: held-out P and U, the clean set, the test part.

        It is separate from `content_hash`: other evaluation images change the figures of a
        run, but not the trained model. `negatives` are those that only evaluation uses; they
        are in no split.
        """
        parts = (self.held_out, self.clean, self.test, negatives)
        return _hash_of([part.values for part in parts if part is not None])

    def roles(self) -> list[tuple[str, str]]:
        """Return (role, name) of every sample, in row order: the content of split.csv."""
        rows: list[tuple[str, str]] = []
        for part, data in (("train", self.train), ("held-out", self.held_out)):
            if data is not None:
                kinds = [data.labelled, data.unlabelled]
                words = np.select(kinds, ["positive", "unlabelled"], "negative")
                rows += [
                    (f"{part}-{word}", name) for word, name in zip(words, data.names, strict=True)
                ]
        for part, labelled in (("clean", self.clean), ("test", self.test)):
            if labelled is not None:
                rows += [(part, name) for name in labelled.names]
        return rows
