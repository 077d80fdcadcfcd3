"""Random numbers are a function of their coordinates: equal coordinates, equal numbers."""

import hashlib
import random
from enum import StrEnum

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from onesided.core.rng import Coordinate, fingerprint, generator, numpy_generator

# Few characters, so that neighbours collide often, and among them the separator.
words = st.text(alphabet="a1:\x1fstrin", max_size=8)
coordinates = st.lists(st.integers(-3, 12) | words, max_size=5)


def torch_numbers(*place: Coordinate, seed: int = 0) -> list[float]:
    numbers: list[float] = torch.rand(4, generator=generator(seed, *place)).tolist()
    return numbers


def numpy_numbers(*place: Coordinate, seed: int = 0) -> list[float]:
    numbers: list[float] = numpy_generator(seed, *place).random(4).tolist()
    return numbers


@given(st.integers(0, 2**32), coordinates)
def test_the_same_place_gives_the_same_numbers(seed: int, place: list[Coordinate]) -> None:
    assert torch_numbers(*place, seed=seed) == torch_numbers(*place, seed=seed)
    assert numpy_numbers(*place, seed=seed) == numpy_numbers(*place, seed=seed)


@given(coordinates, coordinates)
def test_two_places_never_share_their_numbers(
    one: list[Coordinate], other: list[Coordinate]
) -> None:
    assume(one != other)
    assert fingerprint(*one) != fingerprint(*other)


@pytest.mark.parametrize("changed", range(5))
def test_a_change_of_any_coordinate_changes_the_numbers(changed: int) -> None:
    place: list[Coordinate] = [0, "view", "train", 3, "query"]
    moved: list[Coordinate] = [1, "order", "warmup", 4, "key"]
    other = [*place[:changed], moved[changed], *place[changed + 1 :]]
    assert fingerprint(*place) != fingerprint(*other)


def test_the_seed_is_a_coordinate_too() -> None:
    assert torch_numbers("view", 3, seed=0) != torch_numbers("view", 3, seed=1)
    assert numpy_numbers("view", 3, seed=0) != numpy_numbers("view", 3, seed=1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, 2), (2, 1)),
        (("a", "b"), ("b", "a")),
        ((1, 23), (12, 3)),
        (("ab", "c"), ("a", "bc")),
        (("a",), ("a", "")),
        (("a\x1fstr:b",), ("a", "b")),
        (("a\x1f", "b"), ("a", "\x1fb")),
    ],
)
def test_position_matters(one: tuple[Coordinate, ...], other: tuple[Coordinate, ...]) -> None:
    assert fingerprint(*one) != fingerprint(*other)


def test_the_number_one_is_not_the_word_one() -> None:
    assert fingerprint(1) != fingerprint("1")


class _Word(StrEnum):
    WEAK = "weak"


@pytest.mark.parametrize(
    ("one", "same"), [(3, np.int64(3)), (3, np.uint8(3)), ("weak", _Word.WEAK)]
)
def test_equal_coordinates_of_another_class_are_the_same_place(
    one: Coordinate, same: Coordinate
) -> None:
    assert fingerprint(one) == fingerprint(same)


def test_the_numbers_of_a_place_are_the_same_in_every_version() -> None:
    text = b"int:57\x1fstr:order\x1fstr:train\x1fint:3"
    digest = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
    assert fingerprint(57, "order", "train", 3) == digest // 2
    assert digest // 2 == 2471973545777822994


def test_a_fingerprint_fits_into_a_signed_64_bit_seed() -> None:
    numbers = [fingerprint(epoch) for epoch in range(200)]
    assert min(numbers) >= 0
    assert 2**62 < max(numbers) < 2**63


def test_neighbouring_places_are_unrelated() -> None:
    draws = np.stack([numpy_generator(0, "order", epoch).random(1000) for epoch in range(20)])
    between = np.asarray(np.corrcoef(draws))[~np.eye(20, dtype=bool)]
    assert abs(between).max() < 5 / np.sqrt(1000)


def global_states() -> tuple[list[int], list[int], int, object]:
    numpy_state = np.random.get_state(legacy=False)["state"]
    torch_state: list[int] = torch.get_rng_state().tolist()
    return torch_state, numpy_state["key"].tolist(), numpy_state["pos"], random.getstate()


def test_the_global_generators_are_left_alone() -> None:
    before = global_states()
    torch_numbers("view", 1)
    numpy_numbers("view", 1)
    assert global_states() == before


def test_the_global_generators_have_no_say() -> None:
    numbers = torch_numbers("view", 1), numpy_numbers("view", 1)
    torch.rand(1), np.random.random(), random.random()
    assert (torch_numbers("view", 1), numpy_numbers("view", 1)) == numbers
