"""Rows with a little noise and texts that were typed again are copies; other rows are not."""

import numpy as np
import pytest

from onesided.data.problem.content import contents_of, repetition_notice
from onesided.data.problem.dataset import Selection
from onesided.data.problem.rows import plain_words


def everything(values: np.ndarray) -> Selection:
    return Selection(values, np.arange(len(values)))


def texts(*cells: str) -> Selection:
    values = np.empty((len(cells), 1), object)
    values[:, 0] = cells
    return everything(values)


@pytest.mark.parametrize("offset", [0.0, 10.0])
def test_rows_with_a_little_noise_are_one_row(offset: float) -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 6)) + offset
    again = rows[:50].repeat(4, axis=0) * (1 + 1e-6 * random.normal(size=(200, 6)))
    found = contents_of([everything(np.concatenate([rows, again]).astype(np.float32))])
    assert np.array_equal(found.number[:50].repeat(4), found.number[300:])
    assert len(np.unique(found.number)) == 300
    assert "rows are nearly the same as another" in repetition_notice(found)[0]


def test_rows_that_share_few_numbers_stay_apart() -> None:
    random = np.random.default_rng(0)
    assert contents_of([everything(random.normal(size=(3000, 8)).astype(np.float32))]).near == 0
    close = random.random((3000, 2)).astype(np.float32)
    counted = random.integers(0, 9, (3000, 3)).astype(np.float32)
    assert contents_of([everything(np.concatenate([close, counted], axis=1))]).near == 0


def test_texts_that_differ_in_case_spaces_and_stops_are_one_text() -> None:
    found = contents_of(
        [
            texts(
                "The engine stops in the rain.",
                "the engine  stops in the rain",
                "THE ENGINE STOPS, in the rain!",
                "The engine starts in the rain.",
                "+",
                "-",
            )
        ]
    )
    assert len(set(found.number[:3])) == 1
    assert len(set(found.number)) == 4
    assert found.near == 2


def test_words_and_numbers_of_a_raw_row_must_both_agree() -> None:
    random = np.random.default_rng(0)
    values = np.empty((60, 4), object)
    values[:, :3] = random.normal(size=(60, 3)).tolist()
    values[:, 3] = [f"report number {row} of many" for row in range(60)]
    same, other = values.copy(), values.copy()
    same[:, 0] = [cell * (1 + 1e-6) for cell in values[:, 0]]
    same[:, 3] = [cell.upper() for cell in values[:, 3]]
    other[:, 3] = [f"letter {row} of many" for row in range(60)]
    found = contents_of([everything(values), everything(same), everything(other)])
    assert np.array_equal(found.number[:60], found.number[60:120])
    assert len(np.unique(found.number)) == 120


def test_few_words_are_a_name_and_stay_as_they_are() -> None:
    assert plain_words("<=50K") != plain_words(">50K")
    assert plain_words("A b, c.") == plain_words("a  B C")
