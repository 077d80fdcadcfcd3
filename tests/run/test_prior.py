"""The prior: given, estimated, true, or from the scores that it helps to evaluate."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from onesided.core.errors import ConfigError
from onesided.data.problem.dataset import PUSplit
from onesided.data.problem.split import SplitRecipe, split_source
from onesided.data.sources import SOURCES
from onesided.metrics.figure import PUEvaluation
from onesided.metrics.pu import evaluate_pu
from onesided.metrics.registry import ASSUMPTIONS, OWN_SCORES, OWN_SCORES_MEDIAN, assumption
from onesided.priors import bbe, binormal, elkan_noto
from onesided.run.config import Prior
from onesided.run.load import LoadedData
from onesided.run.prior import (
    FEWEST_SCORES,
    NoPrior,
    PriorUsed,
    bbe_prior,
    find_prior,
    own_prior,
    own_prior_of_three,
)
from onesided.run.scored import evaluate_by

DERIVED = ("precision", "f1", "proxy_accuracy", "auc")


@pytest.fixture(scope="module")
def split() -> PUSplit:
    """A problem in which the kernel means are right: two clouds, forty in a hundred positive."""
    entry = SOURCES["toy-vectors"]
    recipe = SplitRecipe(
        positive_classes=entry.positive_classes,
        positives=200,
        unlabelled=600,
        prior=0.4,
        held_out_positives=100,
        held_out_unlabelled=400,
    )
    return split_source(entry.load(None), recipe)


@pytest.mark.parametrize("wrong", [0.2, 0.6])
@pytest.mark.slow
def test_a_wrong_prior_gives_a_warning(split: PUSplit, wrong: float) -> None:
    used = find_prior(wrong, split, seed=0)
    assert used.value == wrong, "the user decides"
    assert used.origin == "given"
    assert any("The number given" in note and "KM2" in note for note in used.notes)


@pytest.mark.slow
def test_a_right_prior_gives_no_warning(split: PUSplit) -> None:
    assert find_prior(0.4, split, seed=0).notes == ()


@pytest.mark.parametrize("way", ["auto", "km2", "km1"])
@pytest.mark.slow
def test_an_estimate_comes_with_its_origin_and_interval(split: PUSplit, way: Prior) -> None:
    used = find_prior(way, split, seed=0)
    assert used.origin == ("KM1" if way == "km1" else "KM2")
    assert used.low is not None
    assert used.high is not None
    assert used.low <= used.value <= used.high
    assert used.value == pytest.approx(0.4, abs=0.07)


def test_the_truth_is_an_oracle_and_says_so(split: PUSplit) -> None:
    used = find_prior("truth", split, seed=0)
    assert used.value == pytest.approx(0.4)
    assert used.origin == "truth"
    assert "oracle" in assumption(used.origin).text


def test_the_truth_is_refused_where_it_is_unknown(split: PUSplit) -> None:
    unknown = replace(split.train, truth=np.full(len(split.train), -1))
    with pytest.raises(ConfigError, match="are unknown here"):
        find_prior("truth", replace(split, train=unknown), seed=0)


def test_bbe_reads_held_out_scores_of_a_short_classifier(split: PUSplit) -> None:
    entry = SOURCES["toy-vectors"]
    estimate = bbe_prior(LoadedData(split, entry.mean, entry.std), seed=0)
    assert (estimate.n_positive, estimate.n_unlabelled) == (100, 400)
    assert estimate.value == pytest.approx(0.4, abs=0.12)


def overlapping(separation: float, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return scores of P and of U, of which three in ten are positive."""
    random = np.random.default_rng(seed)
    positive = random.normal(separation, 1, 400)
    unlabelled = random.normal(np.where(np.arange(2000) < 600, separation, 0), 1)
    return tuple(1 / (1 + np.exp(-part)) for part in (positive, unlabelled))  # type: ignore[return-value]


def no_prior(positive: np.ndarray, unlabelled: np.ndarray) -> str:
    found = own_prior(positive, unlabelled)
    assert isinstance(found, NoPrior)
    return found.reason


def test_the_own_prior_is_bbe_where_the_scores_separate() -> None:
    pair = overlapping(4)
    found, expected = own_prior(*pair), bbe(*pair)
    assert isinstance(found, PriorUsed)
    low = min(expected.low, binormal(*pair).low)
    assert (found.value, found.interval) == (expected.value, (low, expected.high))
    assert expected.low - low < 0.05, "the model of overlap adds little where nothing overlaps"
    assert found.origin == OWN_SCORES
    assert found.value == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("estimate", [own_prior, own_prior_of_three])
def test_the_interval_holds_the_prior_also_where_classes_overlap(
    estimate: Callable[[np.ndarray, np.ndarray], PriorUsed | NoPrior],
) -> None:
    """BBE alone missed it in most of these; the truth was below."""
    held, alone, cases = 0, 0, 6
    for seed in range(cases):
        pair = overlapping(1.3, seed=seed)
        found = estimate(*pair)
        assert isinstance(found, PriorUsed)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.3 <= found.high
        alone += bbe(*pair).low <= 0.3
    assert held >= cases - 1
    assert alone <= cases // 2


@pytest.mark.parametrize("seed", range(5))
def test_scores_that_separate_nothing_give_no_prior(seed: int) -> None:
    said = no_prior(*overlapping(0, seed=seed))
    assert said == "they separate so little that every unlabelled item could be positive"


def test_no_item_among_the_positives_is_no_estimate_of_zero() -> None:
    said = no_prior(np.linspace(0.6, 0.9, 40), np.linspace(0.1, 0.4, 90))
    assert said == "no unlabelled item scores as high as the positives do"


def test_few_items_give_no_prior() -> None:
    positive, unlabelled = overlapping(4)
    few = FEWEST_SCORES - 1
    said = (
        f"they are of 9 positives and {len(unlabelled)} unlabelled items, and it takes 10 of each"
    )
    assert no_prior(positive[:few], unlabelled) == said
    assert isinstance(own_prior(positive, unlabelled[:few]), NoPrior)
    assert isinstance(own_prior(positive[: few + 1], unlabelled), PriorUsed)


def figures(pair: tuple[np.ndarray, np.ndarray], threshold: float) -> PUEvaluation:
    """Return the figures of these scores by their own prior."""
    return evaluate_by(
        own_prior(*pair), *pair, threshold=threshold, scenario="case-control", labelled_share=None
    )


def test_a_biased_figure_says_in_which_direction() -> None:
    """A weak model: its prior is biased high, and the figures as they say."""
    pair = overlapping(1.2)
    for threshold in (0.55, 0.9):
        found = figures(pair, threshold).figures
        known = evaluate_pu(*pair, threshold=threshold, scenario="case-control", prior=0.3).figures
        for name in DERIVED:
            value, true = found[name].value, known[name].value
            assert value is not None
            assert true is not None
            assert found[name].bias == ("high" if value > true else "low"), (name, threshold)
            assert OWN_SCORES in found[name].assumes
            assert "estimated" not in found[name].assumes
        recall = found["recall"].value
        assert recall is not None
        assert found["proxy_accuracy"].bias == ("high" if recall > 0.5 else "low")
        assert found["prior"].bias == ASSUMPTIONS[OWN_SCORES].prior_bias == "high"


def test_figures_without_a_prior_of_their_own_are_not_biased() -> None:
    found = figures(overlapping(4), 0.5)
    for name in ("recall", "share_positive", "proxy_auc", "lee_liu"):
        assert found.figures[name].bias is None


def test_another_prior_biases_nothing() -> None:
    pair = overlapping(4)
    used = PriorUsed(0.3, 0.25, 0.35, "KM2")
    found = evaluate_by(used, *pair, threshold=0.5, scenario="case-control", labelled_share=None)
    assert not any(figure.bias for figure in found.figures.values())
    assert all("KM2" in found.figures[name].assumes for name in (*DERIVED, "prior"))


def test_a_missing_figure_says_why_the_prior_is_missing() -> None:
    why = NoPrior("they are shy")
    found = evaluate_by(
        why, *overlapping(0), threshold=0.5, scenario="case-control", labelled_share=None
    )
    for name in (*DERIVED, "prior"):
        assert found.figures[name].value is None
        assert found.figures[name].missing == str(why)


@pytest.mark.parametrize("distance", [1.3, 2.0, 3.0])
def test_the_prior_of_a_search_is_the_middle_one_of_three_estimates(distance: float) -> None:
    pair = overlapping(distance)
    three = [bbe(*pair), elkan_noto(*pair), binormal(*pair)]
    found = own_prior_of_three(*pair)
    assert isinstance(found, PriorUsed)
    assert found.value == sorted(estimate.value for estimate in three)[1]
    assert found.low == min(estimate.low for estimate in three)
    assert found.origin == OWN_SCORES_MEDIAN
