"""Shapes are checked for each new combination of arguments and result, and refused as before."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from beartype import beartype
from jaxtyping import Float, TypeCheckError

from tests.shapes import once

Values = Float[np.ndarray, "n"]


def added(x: Float[np.ndarray, "n"], y: "Float[np.ndarray, 'n']", *, cut: int = 0) -> Values:
    found: np.ndarray = (x + y)[: len(x) - cut]
    return found


def checked(function: object) -> Callable[..., Any]:
    found: Callable[..., Any] = once(function, typechecker=beartype)
    return found


def test_other_shapes_and_numbers_are_refused_after_right_ones() -> None:
    add = checked(added)
    three = np.ones(3)
    assert add(three, three).tolist() == [2, 2, 2]
    for wrong in (np.ones(1), np.ones((3, 1)), np.ones(3, dtype=int), [1.0, 1.0, 1.0]):
        with pytest.raises(TypeCheckError):
            add(three, wrong)


def test_another_result_of_the_same_arguments_is_refused() -> None:
    add = checked(added)
    three = np.ones(3)
    for _ in range(3):
        add(three, three, cut=0)
    with pytest.raises(TypeCheckError):
        add(three, three, cut=1)
    add(three, three, cut=0)


def test_a_dataclass_is_checked_too() -> None:
    @dataclass(frozen=True)
    class Pair:
        first: Float[np.ndarray, "n"]
        second: Float[np.ndarray, "n"]

    checked(Pair)
    for count in (2, 2, 3):
        Pair(np.ones(count), np.ones(count))
    with pytest.raises(TypeCheckError):
        Pair(np.ones(2), np.ones(3))


def test_a_call_like_an_earlier_one_is_not_looked_at_again() -> None:
    looked = []

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        def look(*args: object, **kwargs: object) -> object:
            looked.append(function.__name__)
            return beartype(function)(*args, **kwargs)

        return look

    add = once(added, typechecker=noting)
    for size in (3, 3, 3, 4, 3):
        add(np.ones(size), np.ones(size))
    few = len(looked)
    for _ in range(5):
        add(np.zeros(3), np.ones(3))
    assert few == len(looked) > 0
