"""Views of embedded images: from a bank that was computed once, or of the vectors themselves.

What a crop does to an image, no noise on its features does. So views of images may go through the
frozen backbone once, a few of each strength, and training takes one of them at each step.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from onesided.core.batch import Augment
from onesided.core.rng import generator as random_of
from onesided.data.problem.dataset import Selection
from onesided.data.problem.samples import ImageKind
from onesided.data.views.augment import AS_PUBLISHED, GENTLER, augment
from onesided.storage.features import RowsWithViews

FORMAT = 1
"""Version of the mathematics from images to views; another one makes stored views unknown."""


@dataclass(frozen=True)
class BankOfViews:
    """Which views of an image are embedded.

    Attributes:
        kind: Decides what may be done to an image.
        count: How many of each strength.
        gentle: Whether gentle views stand in for the published ones.
    """

    kind: ImageKind
    count: int
    gentle: bool

    def coordinates(self) -> list[tuple[Augment, int]]:
        """Return strength and number of the views of an image, in their order in the bank."""
        return [(strength, number) for strength in GENTLER for number in range(self.count)]

    def key(self, image: bytes, strength: Augment, number: int) -> bytes:
        """Return the key of a view: a hash of the image's key and of all that decides the view."""
        words = f" {FORMAT} {self.kind} {self._drawn(strength)} {number}"
        return hashlib.sha256(image + words.encode()).digest()

    def draw(self, image: np.ndarray, key: bytes, strength: Augment, number: int) -> np.ndarray:
        """Return a view of an image in [0, 1]; it depends on pixels and coordinates alone.

        Not on a run's seed: then other runs find the view in the store.
        """
        drawn, values = self._drawn(strength), torch.from_numpy(image[None])
        random = random_of(0, "bank", key.hex(), drawn, number)
        return augment(values, self.kind, drawn, random)[0].numpy()

    def _drawn(self, strength: Augment) -> Augment:
        return GENTLER[strength] if self.gentle else strength


def view_of(
    data: Selection,
    rows: np.ndarray,
    kind: ImageKind,
    strength: Augment,
    generator: torch.Generator,
    *,
    values: Tensor,
    part: slice | None = None,
) -> Tensor:
    """Return one view of a batch: drawn from the bank where it holds these rows, else made.

    Numbers are drawn for the whole batch, as in `augment`.

    Args:
        data: The rows are of these.
        rows: The whole batch.
        kind: Decides what may be done to the items.
        strength: Decides how much is done.
        generator: A CPU generator.
        values: The items of the batch themselves.
        part: Rows of the batch to return.
    """
    pool, index = data.pool, data.index[rows]
    if strength == Augment.PLAIN or not isinstance(pool, RowsWithViews) or not pool.has(index):
        return augment(values, kind, strength, generator, part=part)
    numbers = torch.randint(pool.count, (len(index),), generator=generator).numpy()
    mine = slice(None) if part is None else part
    order = list(GENTLER).index(AS_PUBLISHED.get(strength, strength))
    return torch.from_numpy(pool.views(index[mine], order * pool.count + numbers[mine]))
