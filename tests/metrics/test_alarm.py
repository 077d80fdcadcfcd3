import numpy as np
import pytest

from onesided.core.errors import DataError
from onesided.metrics.alarm import (
    degenerate,
    outside_unit_interval,
    prior_consistency,
    weak_separation,
)
from onesided.metrics.figure import Raw


@pytest.mark.parametrize(
    ("share", "recall", "word"),
    [
        (1.0, 1.0, "everything"),
        (0.9901, 0.999, "everything"),
        (0.0, 0.0, "nothing"),
        (0.0009, 0.4, "nothing"),
        (0.4, 0.4, "does not separate"),
        (0.4, 0.3, "does not separate"),
        (0.4, 0.0, "does not separate"),
    ],
)
def test_worthless_decisions_raise_the_alarm(share: float, recall: float, word: str) -> None:
    sentence = degenerate(share, recall)
    assert sentence is not None
    assert word in sentence


@pytest.mark.parametrize(
    ("share", "recall"), [(0.4, 0.41), (0.99, 1.0), (0.001, 0.5), (0.4, None), (0.4, 1.0)]
)
def test_useful_decisions_raise_no_alarm(share: float, recall: float | None) -> None:
    assert degenerate(share, recall) is None


def test_the_share_alone_can_raise_the_alarm() -> None:
    assert degenerate(0.999) is not None
    assert degenerate(0.0) is not None


@pytest.mark.parametrize(("share", "recall"), [(np.nan, 0.5), (1.2, 0.5), (0.5, np.nan)])
def test_an_impossible_share_is_refused(share: float, recall: float) -> None:
    with pytest.raises(DataError, match="between 0 and 1"):
        degenerate(share, recall)


def pool(
    rng: np.random.Generator, prior: float, size: int, distance: float = 2.5
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Scores of an unlabelled pool: positives around `distance`, negatives around 0."""
    return rng.normal(0, 1, size) + distance * (rng.random(size) < prior)


def test_a_true_prior_seldom_gives_a_warning() -> None:
    rng = np.random.default_rng(0)
    warned = 0
    for _ in range(300):
        prior, n_positive = rng.uniform(0.05, 0.9), int(rng.integers(10, 300))
        positives = rng.normal(2.5, 1, n_positive)
        warned += bool(
            prior_consistency(positives, pool(rng, prior, 1000), prior=prior, threshold=1.2)
        )
    assert warned <= 0.05 * 300


def test_a_prior_far_too_high_gives_a_warning_with_its_upper_bound() -> None:
    rng = np.random.default_rng(1)
    (sentence,) = prior_consistency(
        rng.normal(2.5, 1, 100), pool(rng, 0.2, 2000), prior=0.5, threshold=1.2
    )
    assert "prior is too high" in sentence
    ceiling = float(sentence.split("at most ")[1].split(". ")[0])
    assert 0.2 <= ceiling < 0.5


def test_labelled_positives_easier_than_typical_give_a_warning_about_scar() -> None:
    rng = np.random.default_rng(2)
    (sentence,) = prior_consistency(
        rng.normal(4.5, 1, 100), pool(rng, 0.4, 2000), prior=0.4, threshold=1.2
    )
    assert "easier than typical" in sentence
    assert "SCAR" in sentence


def test_labelled_positives_harder_than_typical_give_a_warning_at_a_high_prior() -> None:
    rng = np.random.default_rng(3)
    (sentence,) = prior_consistency(
        rng.normal(-1.5, 1, 100), pool(rng, 0.8, 2000), prior=0.8, threshold=1.2
    )
    assert "harder than typical" in sentence


def test_easy_positives_give_a_warning_even_where_the_decision_threshold_shows_nothing() -> None:
    rng = np.random.default_rng(4)
    positives, unlabelled = rng.normal(4.5, 1, 100), pool(rng, 0.4, 2000)
    threshold = 0.5  # low enough that negatives hide what is missing
    raw_precision = 0.4 * np.mean(positives > threshold) / np.mean(unlabelled > threshold)
    assert raw_precision < 1
    assert prior_consistency(positives, unlabelled, prior=0.4, threshold=threshold)


def test_constant_scores_give_no_warning() -> None:
    assert prior_consistency(np.full(20, 0.5), np.full(100, 0.5), prior=0.9) == ()


def test_a_share_above_one_is_reported_with_its_name_and_value() -> None:
    sentence = outside_unit_interval(
        {"precision": Raw(1.21, (0.9, 1.5)), "f1": Raw(0.9, (0.8, 1.2))}
    )
    assert sentence is not None
    assert "precision 1.210" in sentence
    assert "f1" not in sentence
    assert "by chance" in sentence


@pytest.mark.parametrize(("value", "interval"), [(1.4, (1.1, 1.7)), (-0.4, (-0.7, -0.1))])
def test_a_share_beyond_noise_is_called_so(value: float, interval: tuple[float, float]) -> None:
    sentence = outside_unit_interval({"auc": Raw(value, interval)})
    assert sentence is not None
    assert "more than noise" in sentence
    assert "SCAR is broken" in sentence


def test_shares_within_bounds_are_not_worth_a_sentence() -> None:
    edges = {"precision": Raw(1.0, (0.9, 1.1)), "f1": Raw(0.0, (0.0, 0.1))}
    undefined = {"auc": Raw(np.nan, (0.0, 1.0))}
    assert outside_unit_interval(edges | undefined) is None


def test_weak_separation_says_how_many_positives_there_were() -> None:
    assert "12 held-out positives" in weak_separation(0.5, 0.4, 12)
