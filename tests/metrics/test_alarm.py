import numpy as np
import pytest

from onesided.core.errors import DataError
from onesided.metrics.alarm import (
    Evidence,
    degenerate,
    fallen,
    falling_curve,
    outside_unit_interval,
    prior_consistency,
    suspicions,
    weak_separation,
)
from onesided.metrics.figure import Raw
from onesided.metrics.pu import evaluate_pu


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
    sentence = degenerate(Evidence(share, recall))
    assert sentence is not None
    assert word in sentence


@pytest.mark.parametrize(
    ("share", "recall"), [(0.4, 0.41), (0.99, 1.0), (0.001, 0.5), (0.4, None), (0.4, 1.0)]
)
def test_useful_decisions_raise_no_alarm(share: float, recall: float | None) -> None:
    assert degenerate(Evidence(share, recall)) is None


def test_the_share_alone_can_raise_the_alarm() -> None:
    assert degenerate(Evidence(0.999)) is not None
    assert degenerate(Evidence(0.0)) is not None


@pytest.mark.parametrize(("share", "recall"), [(np.nan, 0.5), (1.2, 0.5), (0.5, np.nan)])
def test_an_impossible_share_is_refused(share: float, recall: float) -> None:
    with pytest.raises(DataError, match="between 0 and 1"):
        Evidence(share, recall)


SEPARATES, NOTHING_LEARNED, BACKWARDS = (0.8, 0.7, 0.9), (0.51, 0.4, 0.6), (0.3, 0.2, 0.4)
APART = (0.999, 0.99, 1.0)


@pytest.mark.parametrize(
    ("evidence", "cause"),
    [
        (Evidence(0.0, 0.0, APART, 60, 300), "differ in something else"),
        (Evidence(0.0, 0.0, SEPARATES, 60, 300), "threshold is too high"),
        (Evidence(0.85, 0.8, SEPARATES, 60, 300), "already where about 80% of the positives"),
        (Evidence(0.9, 6 / 7, SEPARATES, 7, 300), "already where about 80% of the positives"),
        (Evidence(0.6, 4 / 7, SEPARATES, 7, 300), "threshold is too high"),
        (Evidence(1.0, 1.0, SEPARATES, 60, 300), "threshold is too low"),
        (Evidence(0.5, 0.5, NOTHING_LEARNED, 60, 300), "nothing was learned"),
        (Evidence(0.5, 0.5, NOTHING_LEARNED, 12, 300), "too few"),
        (Evidence(0.5, 0.5, NOTHING_LEARNED, 240, 48), "probably swapped"),
        (Evidence(0.5, 0.3, BACKWARDS, 60, 300), "probably swapped"),
        (Evidence(0.5, 0.6, BACKWARDS, 60, 300), "probably swapped"),
    ],
)
def test_the_alarm_names_one_cause_and_what_to_do(evidence: Evidence, cause: str) -> None:
    sentence = degenerate(evidence)
    assert sentence is not None
    assert cause in sentence
    causes = ("something else", "threshold is", "nothing was learned", "too few", "swapped")
    assert sum(each in sentence for each in causes) == 1
    assert "epochs" not in sentence, "more or fewer: nothing here tells which"


def test_a_few_held_out_items_are_no_swap() -> None:
    sentence = degenerate(Evidence(0.0, 0.0, NOTHING_LEARNED, 3, 2))
    assert sentence is not None
    assert "swapped" not in sentence
    assert "3 held-out positives are too few" in sentence


def test_the_alarm_says_of_how_many_items_it_speaks() -> None:
    sentence = degenerate(Evidence(0.0, 0.0, SEPARATES, 12, 60))
    assert sentence is not None
    assert "Of the 60 unlabelled items that it was not trained on, the model calls 0" in sentence


def test_useful_decisions_may_still_be_suspicious() -> None:
    (differs,) = suspicions(Evidence(0.02, 0.9, APART, 60, 300))
    assert "differ in something else" in differs
    assert suspicions(Evidence(0.2, 0.6, SEPARATES, 60, 300)) == ()
    # Of 12 positives an interval proves little, but a leak in few items looks like this.
    (few,) = suspicions(Evidence(0.03, 1.0, (1.0, 0.77, 1.0), 12, 60))
    assert few == differs
    assert suspicions(Evidence(0.2)) == ()


def test_an_alarm_leaves_no_other_advice_beside_it() -> None:
    random = np.random.default_rng(0)
    found = evaluate_pu(
        random.random(20), random.random(100) * 0.4, scenario="case-control", prior=0.9
    )
    assert found.degenerate is not None
    assert found.warnings == ()


def test_a_curve_that_falls_gives_a_warning_with_its_best_epoch() -> None:
    curve = list(np.linspace(0.763, 0.646, 100))
    sentence = falling_curve(curve, positives=30)
    assert sentence is not None
    assert "about epoch 5 of 100" in sentence
    assert "train.keep=best" in sentence
    assert fallen([0.8, 0.7], positives=100) == (1, 0.8, 0.7)


@pytest.mark.parametrize("positives", [10, 30, 300])
def test_noise_and_rising_curves_give_none(positives: int) -> None:
    random = np.random.default_rng(positives)
    noise = 0.05 / positives**0.5
    assert falling_curve([0.7 + noise * random.normal() for _ in range(200)], positives) is None
    assert falling_curve(list(np.linspace(0.5, 0.8, 50)), positives) is None
    assert falling_curve([0.7], positives) is None
    assert falling_curve([], positives) is None


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


@pytest.mark.parametrize("groups", range(50, 60))
def test_a_contradiction_is_told_whatever_the_number_of_groups(groups: int) -> None:
    """All of U lies above the lowest threshold; rounding there must not silence the rest."""
    random = np.random.default_rng(0)
    positives, unlabelled = random.uniform(0.6, 1, 100), random.uniform(0, 0.4, 200)
    of_both = (1000 + np.arange(100), np.arange(200) % groups)
    assert prior_consistency(positives, unlabelled, prior=0.5, groups=of_both)
