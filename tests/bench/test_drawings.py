"""Formulas that are drawn are those of the paper."""

import numpy as np
import pytest

from onesided.bench.drawings import averaged, chosen_pairs, gradient_lines, pair_similarity


def test_gradients_are_those_of_equations_6_and_8() -> None:
    plain, robust = gradient_lines()
    cosines = np.array(plain.x)
    assert plain.y == pytest.approx(4 * (1 - cosines**2))
    assert robust.y == pytest.approx(1 + cosines)


def test_at_one_half_a_pair_has_one_predicted_class() -> None:
    for one in (0.1, 0.4, 0.6, 0.9):
        for other in (0.2, 0.45, 0.55, 0.8):
            same = (one > 0.5) == (other > 0.5)
            assert (pair_similarity(np.array(one), np.array(other)) >= 0.5) == same


def test_the_drawing_of_pairs_tells_itself_in_words() -> None:
    assert "same predicted class" in chosen_pairs(name="x")


def test_curves_of_several_seeds_are_averaged_where_all_have_a_point() -> None:
    one: dict[str, list[float]] = {"epoch": [10, 20, 30], "test_oa": [0.5, 0.6, 0.7]}
    other: dict[str, list[float]] = {"epoch": [10, 20], "test_oa": [0.7, 0.8]}
    epochs, heights = averaged([one, other], "test_oa")
    assert epochs == [10, 20]
    assert heights == pytest.approx([60, 70])
