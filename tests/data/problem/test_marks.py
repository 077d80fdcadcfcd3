"""A mark that many positives have and hardly any unlabelled item has is told; others are not."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onesided.data.problem.marks import Shares, marks_of_files, marks_of_rows
from onesided.data.read.folder import read_folders

POSITIVES, UNLABELLED = 60, 240
LABELLED = np.arange(POSITIVES + UNLABELLED) < POSITIVES


def table(*columns: object) -> np.ndarray:
    values = np.empty((len(LABELLED), len(columns)), object)
    for number, column in enumerate(columns):
        values[:, number] = np.array(column, object)
    return values


def noise(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=len(LABELLED))


def test_numbers_that_follow_the_order_of_collection_are_told() -> None:
    values = np.stack([noise(), np.arange(len(LABELLED))], axis=1)
    (sentence,) = marks_of_rows(values, LABELLED, ["weight", "number"])
    assert "'number' (positives are lower in 100.0%)" in sentence
    assert "weight" not in sentence


@pytest.mark.parametrize(
    ("marked", "told"),
    [
        (lambda row: "a" if row < 40 else "b", "40 of 60 positives hold 'a', and 0 of 240"),
        (lambda row: None if row < 40 else 1.5, "40 of 60 positives have a gap, and 0 of 240"),
        (lambda row: f"some words {'REF7' if row < 60 else row}", "hold 'ref7'"),
    ],
)
def test_a_value_a_gap_or_a_word_that_only_positives_have_is_told(
    marked: Callable[[int], object], told: str
) -> None:
    (sentence,) = marks_of_rows(table([marked(row) for row in range(300)]), LABELLED, ["column"])
    assert told in sentence


def test_columns_that_differ_as_classes_do_are_not_told() -> None:
    random = np.random.default_rng(1)
    positive = LABELLED | (random.random(len(LABELLED)) < 0.3)
    columns = (
        noise() + 3.0 * positive,
        np.where(positive & (noise(2) > 0), "red", "blue").tolist(),
        [None if each else 1.0 for each in positive],
    )
    assert marks_of_rows(table(*columns), LABELLED, "abc") == ()


def test_few_positives_prove_no_mark() -> None:
    assert not Shares(3, 4, 0, 240).is_mark_of_rows
    assert not Shares(4, 4, 0, 3).is_mark_of_files


def write(folder: Path, count: int, *, seed: int, ending: str = "png", side: int = 16) -> Path:
    folder.mkdir()
    random = np.random.default_rng(seed)
    for number in range(count):
        pixels = random.integers(0, 255, (side, side, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.{ending}")
    return folder


@pytest.mark.parametrize(
    ("how", "told"),
    [
        (("bmp", 16), "20 of 20 positives are .bmp files, and 0 of 40 unlabelled items"),
        (("png", 24), "20 of 20 positives have 24 x 24 pixels, and 0 of 40 unlabelled items"),
    ],
)
def test_files_of_another_format_or_size_are_told(
    tmp_path: Path, how: tuple[str, int], told: str
) -> None:
    positives = write(tmp_path / "P", 20, seed=0, ending=how[0], side=how[1])
    read = read_folders(positives, write(tmp_path / "U", 40, seed=1))
    assert told in read.doubts[0]


def test_files_of_one_kind_are_not_told(tmp_path: Path) -> None:
    read = read_folders(write(tmp_path / "P", 20, seed=0), write(tmp_path / "U", 40, seed=1))
    assert read.doubts == ()
    assert marks_of_files([], [{"format": "are .png files"}]) == ()
