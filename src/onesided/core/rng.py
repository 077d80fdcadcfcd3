"""Randomness as a pure function of coordinates.

No generator keeps a state. Code that needs random numbers names its coordinates (seed,
purpose, epoch, batch, view), and the same coordinates always give the same numbers. So a
resumed run draws the numbers of an uninterrupted one, and two processes those of one.
"""

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # an exported model is ranked without torch
    import torch

Coordinate = int | str


def fingerprint(*coordinates: Coordinate) -> int:
    """Return 63 bits that depend on every coordinate and its position."""
    text = "\x1f".join(map(_tagged, coordinates))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(seed: int, *coordinates: Coordinate) -> "torch.Generator":
    """Return a new torch generator for these coordinates; costs about 20 microseconds."""
    import torch

    return torch.Generator().manual_seed(fingerprint(seed, *coordinates))


def numpy_generator(seed: int, *coordinates: Coordinate) -> np.random.Generator:
    """Return a new numpy generator for these coordinates."""
    return np.random.default_rng(fingerprint(seed, *coordinates))


def _tagged(value: Coordinate) -> str:
    # By kind and not by class: numpy's 3 equals 3, and an enumeration's "weak" equals "weak".
    # The separator is doubled inside a word, so that no word equals two.
    is_word = isinstance(value, str)
    return "str:" + str(value).replace("\x1f", "\x1f\x1f") if is_word else f"int:{int(value)}"
