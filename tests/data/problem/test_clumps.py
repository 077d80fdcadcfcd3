"""Positives that are a few things seen many times are told; clouds and kinds are not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from onesided.data.problem.clumps import clumps, clumps_told

RANDOM = np.random.default_rng(0)


def seen_often(things: int, times: int, *, noise: float, columns: int = 10) -> np.ndarray:
    centres = np.repeat(RANDOM.normal(size=(things, columns)), times, axis=0)
    return centres + noise * RANDOM.normal(size=centres.shape)


@pytest.mark.parametrize(("things", "times"), [(8, 10), (30, 2), (5, 40)])
@pytest.mark.parametrize("noise", [1e-3, 0.05])
def test_things_seen_many_times_are_counted(things: int, times: int, noise: float) -> None:
    assert clumps(pdist(seen_often(things, times, noise=noise))) == things
    (sentence,) = clumps_told(seen_often(things, times, noise=noise))
    assert f"lie in {things} clumps" in sentence
    assert "--group" in sentence


@pytest.mark.parametrize("columns", [2, 3, 8, 100])
@pytest.mark.parametrize("count", [12, 40, 300])
def test_clouds_have_no_clumps(count: int, columns: int) -> None:
    for draw in (
        RANDOM.normal(size=(count, columns)),
        RANDOM.standard_t(2, size=(count, columns)),
        RANDOM.lognormal(0, 1.5, size=(count, columns)),
        np.round(RANDOM.normal(size=(count, columns)), 1),
    ):
        assert clumps(pdist(draw)) is None


@pytest.mark.parametrize("load", [load_digits, load_breast_cancer, load_wine])
def test_positives_of_real_tables_have_none(load: Callable[[], Any]) -> None:
    found = load()
    for label in np.unique(found.target):
        assert clumps_told(found.data[found.target == label]) == ()
        assert clumps_told(found.data[found.target != label][::3]) == ()


def test_categories_are_no_clumps() -> None:
    values = np.empty((60, 4), object)
    values[:, 0] = np.array(list("abcdef") * 10)
    for column in (1, 2, 3):
        values[:, column] = RANDOM.normal(size=60).tolist()
    assert clumps_told(values) == ()


def texts(things: int, times: int, changed: int) -> np.ndarray:
    words = np.array([f"word{number}" for number in range(900)])
    rows = []
    for _ in range(things):
        said = RANDOM.choice(words, 25)
        for _ in range(times):
            again = said.copy()
            again[RANDOM.integers(0, 25, changed)] = RANDOM.choice(words, changed)
            rows.append([" ".join(again)])
    return np.array(rows, object)


def test_texts_with_a_few_changes_are_told_and_others_are_not() -> None:
    assert "lie in 10 clumps" in clumps_told(texts(10, 8, 2))[0]
    assert clumps_told(texts(80, 1, 0)) == ()
