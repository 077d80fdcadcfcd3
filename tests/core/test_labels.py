"""What labels mean: positive is 1, unlabelled is not negative, ambiguity is refused."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from onesided.core.errors import DataError
from onesided.core.labels import (
    NEGATIVE,
    POSITIVE,
    UNKNOWN,
    Label,
    LabelScheme,
    normalise_pu_labels,
)


def test_positive_is_one_and_negative_zero() -> None:
    assert (POSITIVE, NEGATIVE, UNKNOWN) == (1, 0, -1)
    assert Label.POSITIVE == POSITIVE


@pytest.mark.parametrize(
    "labels",
    [
        [1, 0, 0, 1],
        [1, -1, -1, 1],
        [True, False, False, True],
        np.array([1, 0, 0, 1], dtype=np.uint8),
        np.array([1.0, 0.0, 0.0, 1.0]),
        np.array([1.0, -1.0, -1.0, 1.0], dtype=np.float32),
        torch.tensor([1, 0, 0, 1]),
    ],
    ids=["1/0", "1/-1", "bool", "uint8", "float", "float 1/-1", "tensor"],
)
def test_the_ways_people_write_pu_labels_mean_the_same(labels: ArrayLike) -> None:
    labelled, known = normalise_pu_labels(labels)
    assert labelled.dtype == np.bool_
    assert labelled.tolist() == [True, False, False, True]
    assert known.tolist() == [POSITIVE, UNKNOWN, UNKNOWN, POSITIVE]


def test_known_negatives_are_kept_apart_from_unlabelled_with_labels_mean_pnu() -> None:
    labelled, known = normalise_pu_labels([0, -1, 1, 0], labels_mean="pnu")
    assert labelled.tolist() == [False, False, True, False]
    assert known.tolist() == [UNKNOWN, NEGATIVE, POSITIVE, UNKNOWN]


def test_pnu_labels_need_not_hold_a_negative() -> None:
    assert normalise_pu_labels([1, 0], labels_mean="pnu")[1].tolist() == [POSITIVE, UNKNOWN]


@given(
    st.lists(st.sampled_from([1, 0]), min_size=2).filter(lambda labels: len(set(labels)) == 2),
    st.sampled_from([0, -1]),
)
def test_unlabelled_is_never_negative(labels: list[int], unlabelled: int) -> None:
    written = [label or unlabelled for label in labels]
    labelled, known = normalise_pu_labels(written)
    assert labelled.tolist() == [label == 1 for label in labels]
    assert known.tolist() == [POSITIVE if label == 1 else UNKNOWN for label in labels]


@pytest.mark.parametrize(
    ("labels", "scheme", "sentence"),
    [
        ([1, 0, -1], "pu", r"two values.*got -1, 0, 1\..*say labels_mean=\"pnu\""),
        ([1, 2], "pu", r"two values, 1 positive and 0 \(or -1\) unlabelled; got 1, 2"),
        ([1, 0.5], "pu", "two values.*got 0.5, 1.0"),
        (np.array([1, 255], dtype=np.uint8), "pu", "two values.*got 1, 255"),
        (list(range(20)), "pu", r"got 0, 1, 2, 3, 4, 5\. "),
        ([1, 0, -1, 2], "pnu", r"1 positive, 0 unlabelled, -1 negative; got \[-1, 0, 1, 2\]"),
        ([1, 0, math.nan], "pu", "NaN or infinity; use 1 for positive and 0 for unlabelled"),
        ([1, 0, math.nan], "pnu", "NaN or infinity"),
        ([1, 0, -math.inf], "pu", "NaN or infinity"),
        ([0, 0, 0], "pu", "No label is 1"),
        ([-1, -1], "pu", "No label is 1"),
        ([False, False], "pu", "No label is 1"),
        ([0, -1], "pnu", "No label is 1"),
        ([], "pu", "No label is 1"),
        ([1, 1], "pu", r"No sample is unlabelled.*\(0\) are needed"),
        ([True], "pu", "No sample is unlabelled"),
        ([1, -1], "pnu", "No sample is unlabelled"),
        ([[1, 0], [0, 1]], "pu", r"one number per sample; got an array of shape \(2, 2\)"),
        ([[1], [0]], "pu", r"one number per sample; got an array of shape \(2, 1\)"),
        (1, "pu", r"one number per sample; got an array of shape \(\)"),
        ([[1], [0, 1]], "pu", "one number per sample; got a list of lists of unequal length"),
        (["positive", "unlabelled"], "pu", "numbers or booleans.*got <U10"),
        (["1", "0"], "pu", "numbers or booleans"),
        (np.array([1, None], dtype=object), "pu", "numbers or booleans.*got object"),
        ([1 + 0j, 0j], "pu", "numbers or booleans.*got complex128"),
    ],
)
def test_ambiguous_labels_are_refused_with_a_sentence(
    labels: ArrayLike, scheme: LabelScheme, sentence: str
) -> None:
    with pytest.raises(DataError, match=sentence):
        normalise_pu_labels(labels, labels_mean=scheme)
