"""One vocabulary: a word means one class in every file, or is refused there."""

import itertools

import pytest

from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.storage.labels import ANSWERS, NAMES, WORDS, NotALabel, label_in

CHOICES = [
    {"among": among, "answers": answers}
    for among in (NAMES, (POSITIVE, NEGATIVE), (POSITIVE, UNKNOWN))
    for answers in (True, False)
]


@pytest.mark.parametrize(
    ("word", "label"),
    [
        *[("positive", POSITIVE), (" Positive ", POSITIVE), ("pos", POSITIVE)],
        *[("unlabelled", UNKNOWN), ("UNLABELED", UNKNOWN)],
        *[("negative", NEGATIVE), ("neg", NEGATIVE)],
    ],
)
def test_the_usual_spellings_are_understood_everywhere(word: str, label: int) -> None:
    for answers in (True, False):
        assert label_in(word, among=NAMES, answers=answers) == label


def test_no_word_means_one_class_here_and_another_there() -> None:
    for word in ("positive", "-1", "", "perhaps", *WORDS, *ANSWERS):
        meanings = set()
        for choice in CHOICES:
            try:
                meanings.add(label_in(word, **choice))  # type: ignore[arg-type]
            except NotALabel:
                continue
        assert len(meanings) <= 1, word


def test_answers_are_labels_only_where_the_column_asks() -> None:
    for word, label in ANSWERS.items():
        assert label_in(word, among=NAMES, answers=True) == label
        with pytest.raises(NotALabel):
            label_in(word, among=NAMES, answers=False)


@pytest.mark.parametrize("number", ["0", "1", "-1", "2", "0.5"])
def test_numbers_are_refused_with_the_reason_where_0_could_be_either(number: str) -> None:
    with pytest.raises(NotALabel, match="Numbers are refused because 0"):
        label_in(number, among=NAMES, answers=False)


@pytest.mark.parametrize("number", ["-1", "2"])
def test_other_numbers_than_1_and_0_are_refused_everywhere(number: str) -> None:
    with pytest.raises(NotALabel, match="1 is positive and 0 is negative"):
        label_in(number, among=(POSITIVE, NEGATIVE), answers=True)


def test_a_class_that_makes_no_sense_here_is_refused_and_the_others_are_named() -> None:
    with pytest.raises(NotALabel, match=r"'unlabeled' is none of positive or negative\."):
        label_in("unlabeled", among=(POSITIVE, NEGATIVE), answers=True)


def test_what_we_write_is_read() -> None:
    for label, answers in itertools.product(NAMES, (True, False)):
        assert label_in(NAMES[label], among=NAMES, answers=answers) == label
