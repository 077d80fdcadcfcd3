"""Rows with a little noise and texts that were typed again are copies; other rows are not."""

import numpy as np
import pytest

from onesided.data.problem.content import contents_of, own_contents, repetition_notice
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


def passengers(count: int, seed: int = 0) -> np.ndarray:
    """Return rows of class, sex and age group, unevenly frequent."""
    random = np.random.default_rng(seed)
    shares = ((0.4, 0.3, 0.2, 0.1), (0.8, 0.2), (0.95, 0.05))
    columns = [random.choice(len(share), count, p=share) for share in shares]
    return np.stack(columns, axis=1).astype(np.float32)


@pytest.mark.parametrize("raw", [False, True])
def test_two_people_of_one_age_group_and_sex_are_two_people(raw: bool) -> None:
    rows: np.ndarray = passengers(500)
    if raw:
        rows = np.array([[f"class {a:g}", float(b), None if c else "adult"] for a, b, c in rows])
    found = own_contents(everything(rows))
    assert np.array_equal(found.number, np.arange(500))
    assert not found.repeated
    assert f"Rows that equal another one: {found.coarse}," in repetition_notice(found)[0]
    assert found.coarse > 480


def test_categories_as_columns_of_zeros_and_ones_are_as_coarse_as_before() -> None:
    columns = [column[:, None] == np.unique(column) for column in passengers(500).T]
    found = own_contents(everything(np.concatenate(columns, axis=1).astype(np.float32)))
    assert not found.repeated


def test_copied_rows_of_many_columns_are_copies_though_each_holds_few_values() -> None:
    rows = np.random.default_rng(0).integers(0, 4, (600, 12)).astype(np.float32)
    found = own_contents(everything(np.concatenate([rows, rows[:60]])))
    assert (found.copies, found.coarse) == (60, 0)


def test_texts_that_were_copied_are_copies_beside_any_category() -> None:
    words = np.array([[f"house {row} was hit", "Ulm" if row % 2 else "Bonn"] for row in range(40)])
    for columns in (1, 2):
        rows = words.astype(object)[:, :columns].repeat(5, axis=0)
        found = own_contents(everything(rows))
        assert (found.copies, found.coarse) == (160, 0)


def test_images_of_few_values_are_compared_as_ever() -> None:
    random = np.random.default_rng(0)
    images = random.integers(0, 2, (200, 1, 2, 2), dtype=np.uint8) * 255
    assert own_contents(everything(images)).copies >= 184
