"""Which items show the same thing: copies, and images that look nearly alike.

A copy of a training item tests nothing, and ten copies are one item. So what is held out is
divided by content, and figures count contents. The content of an item is what the model sees:
decoded pixels, the values of a row, a text; never the bytes of a file.

Images that were encoded again, resized, turned, cropped or brightened show the same thing too; see
`looks`.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from onesided.core.folds import Groups
from onesided.data.problem.dataset import PUDataset, Selection, bytes_of
from onesided.data.problem.looks import near_pairs
from onesided.data.problem.rows import equal_by_chance, near_rows
from onesided.data.problem.samples import chunk_length


@dataclass(frozen=True)
class Contents:
    """The content of each item.

    Attributes:
        number: Items with the same number show the same thing.
        copies: Items whose content is exactly that of an earlier one.
        near: Further items that are only nearly like another.
        of_images: Whether the items are images, not rows of a table.
        coarse: Rows that equal an earlier one by chance; each then has a number of its own.
    """

    number: Groups
    copies: int
    near: int
    of_images: bool = True
    coarse: int = 0

    @property
    def repeated(self) -> bool:
        """Whether any two items show the same thing."""
        return self.copies + self.near > 0


def copies_of(parts: Sequence[Selection]) -> Contents:
    """Return the content of all items of several parts, in their order; only copies share it."""
    digests = [digest for part in parts for digest in digests_of(part)]
    found, number = np.unique(np.array(digests), return_inverse=True)
    return Contents(number.astype(np.int64), len(number) - len(found), 0)


def contents_of(parts: Sequence[Selection]) -> Contents:
    """Return the content of all items, where those that are nearly the same share it too.

    Half a minute of one core for 40 000 images of 32 x 32 pixels (`benchmarks/copies.py`).
    """
    return _with_near(parts, copies_of(parts))


def _with_near(parts: Sequence[Selection], exact: Contents) -> Contents:
    distinct = np.sort(np.unique(exact.number, return_index=True)[1])
    if len(distinct) < 3:
        return exact
    rows = _Rows(parts)
    if len(parts[0].sample_shape) == 3:
        pairs = near_pairs(rows.chunks, distinct)
    else:
        pairs = distinct[near_rows(np.concatenate(list(rows.chunks(distinct))))]
    number = _connected(len(distinct), exact.number[pairs])[exact.number]
    near = len(distinct) - len(np.unique(number))
    return Contents(number, exact.copies, near, of_images=len(parts[0].sample_shape) == 3)


def own_contents(part: Selection) -> Contents:
    """Return the content of people's own items, where equal rows of a coarse table are no copies.

    Where they were, a fold would hold out every passenger of a class, sex and age group, and
    figures would count fourteen passengers. Parts that share rows by design are compared with
    `contents_of`.
    """
    exact = copies_of([part])
    if exact.copies and len(part.sample_shape) == 1:
        rows, times = np.unique(exact.number, return_index=True, return_counts=True)[1:]
        order = np.argsort(rows)
        values = np.concatenate(list(_Rows([part]).chunks(rows[order])))
        if len(rows) >= 3 and equal_by_chance(values, times[order]):
            return Contents(np.arange(len(part)), 0, 0, of_images=False, coarse=exact.copies)
    return _with_near([part], exact)


def first_of_each(content: Groups, among: Bool[np.ndarray, "n"]) -> Bool[np.ndarray, "n"]:
    """Return which of these rows are the first of their content."""
    rows = np.flatnonzero(among)
    first = np.zeros(len(content), bool)
    first[rows[np.unique(content[rows], return_index=True)[1]]] = True
    return first


def counted(data: PUDataset, trained: PUDataset | None = None) -> Bool[np.ndarray, "n"] | None:
    """Return which rows figures count: one of P and one of U for each content; None for all.

    None of those that show what another set was trained on, and none that a review found.
    """
    if data.content is None:
        return None if data.found is None or not data.found.any() else ~data.found
    seen = np.zeros(len(data), bool)
    if trained is not None and trained.content is not None:
        seen = np.isin(data.content, trained.content)
    if data.found is not None:
        seen |= data.found
    rows = first_of_each(data.content, data.labelled & ~seen)
    rows |= first_of_each(data.content, ~data.labelled & ~seen)
    return None if rows.all() else rows


def repetition_notice(contents: Contents) -> tuple[str, ...]:
    """Return one sentence about repeated content, none where all items differ."""
    if contents.coarse:
        return (
            f"Rows that equal another one: {contents.coarse}, about as many as chance makes where "
            "columns hold few values. So they count as items of their own, not as copies. What "
            "belongs together can be said with --group.",
        )
    found = []
    if contents.copies:
        found.append(f"{contents.copies} items have exactly the content of another")
    if contents.near and contents.of_images:
        found.append(
            f"{contents.near} images look nearly like another (encoded again, resized, turned, "
            "mirrored, cropped, brightened, or the next frame)"
        )
    elif contents.near:
        found.append(
            f"{contents.near} rows are nearly the same as another (numbers with a little noise, "
            "or texts that differ only in case, spaces and punctuation)"
        )
    if not found:
        return ()
    sentence = " and ".join(found)
    return (
        f"{sentence}. Items that show the same thing are trained on or held out together, and "
        "every figure counts them once. What else belongs together can be said with --group.",
    )


class _Rows:
    """Rows of several parts under one index."""

    def __init__(self, parts: Sequence[Selection]) -> None:
        self.parts, self.ends = parts, np.cumsum([len(part) for part in parts])

    def chunks(self, rows: Int64[np.ndarray, "n"]) -> Iterator[np.ndarray]:
        """Yield the values of these rows, which ascend, in chunks that fit into memory."""
        length, start = chunk_length(self.parts[0].sample_shape), 0
        for part, end in zip(self.parts, self.ends, strict=True):
            inside = rows[(rows >= end - len(part)) & (rows < end)] - (end - len(part))
            for start in range(0, len(inside), length):
                yield part.take(inside[start : start + length])


def digests_of(part: Selection) -> Iterator[bytes]:
    """Yield a hash of the values of each row."""
    length = chunk_length(part.sample_shape)
    for start in range(0, len(part), length):
        chunk = part.take(slice(start, start + length))
        if chunk.dtype.kind == "f":
            chunk = chunk + 0.0  # -0.0 is 0.0 in other bytes
        yield from (hashlib.blake2b(bytes_of(row), digest_size=16).digest() for row in chunk)


def _connected(count: int, links: Int64[np.ndarray, "pairs 2"]) -> Groups:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(count, count))
    return connected_components(graph, directed=False)[1].astype(np.int64)
