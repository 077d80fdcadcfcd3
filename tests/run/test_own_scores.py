"""A prior read off the scores that it judges: refused where they tell none, told as leaning."""

from dataclasses import replace

import numpy as np
import pytest

from onesided.core.leaning import OWN_SCORES, leaning_of
from onesided.metrics.figure import PUEvaluation
from onesided.metrics.pu import evaluate_pu
from onesided.priors import bbe
from onesided.run.own_scores import FEWEST_TO_JUDGE_BY, Untold, own_prior, told_by
from onesided.run.prior import PriorUsed

CANNOT = "was not given and cannot be told from this model's held-out scores: "
DERIVED = ("precision", "f1", "proxy_accuracy", "auc")


def overlapping(separation: float, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return scores of P and of U, of which three in ten are positive."""
    random = np.random.default_rng(seed)
    positive = random.normal(separation, 1, 400)
    unlabelled = random.normal(np.where(np.arange(2000) < 600, separation, 0), 1)
    return tuple(1 / (1 + np.exp(-part)) for part in (positive, unlabelled))  # type: ignore[return-value]


def untold(positive: np.ndarray, unlabelled: np.ndarray) -> str:
    found = own_prior(positive, unlabelled)
    assert isinstance(found, Untold)
    return found.words


def test_it_is_bbe_where_the_scores_separate() -> None:
    pair = overlapping(4)
    found, expected = own_prior(*pair), bbe(*pair)
    assert isinstance(found, PriorUsed)
    assert (found.value, found.interval) == (expected.value, (expected.low, expected.high))
    assert found.origin == OWN_SCORES
    assert found.value == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("seed", range(5))
def test_scores_that_separate_nothing_tell_no_share(seed: int) -> None:
    said = untold(*overlapping(0, seed=seed))
    assert said == CANNOT + (
        "they separate so little that every unlabelled item could be positive."
    )


def test_nobody_among_the_positives_is_no_estimate_of_zero() -> None:
    said = untold(np.linspace(0.6, 0.9, 40), np.linspace(0.1, 0.4, 90))
    assert said == CANNOT + "no unlabelled item scores as high as the positives do."


def test_few_items_tell_no_share() -> None:
    positive, unlabelled = overlapping(4)
    few = FEWEST_TO_JUDGE_BY - 1
    said = f"of 9 positives and {len(unlabelled)} unlabelled items, and it takes 10 of each."
    assert untold(positive[:few], unlabelled) == CANNOT + said
    assert isinstance(own_prior(positive, unlabelled[:few]), Untold)
    assert isinstance(own_prior(positive[: few + 1], unlabelled), PriorUsed)


def figures(pair: tuple[np.ndarray, np.ndarray], threshold: float) -> PUEvaluation:
    """Return the figures of these scores by their own prior, in the words that fit it."""
    prior = own_prior(*pair)
    assert isinstance(prior, PriorUsed)
    evaluation = evaluate_pu(
        *pair,
        threshold=threshold,
        scenario="case-control",
        prior=prior.value,
        prior_interval=prior.interval,
    )
    return told_by(evaluation, prior)


def test_a_bound_is_called_one_and_the_truth_keeps_to_it() -> None:
    """A weak model: its prior is too high, and the figures lean to the side they say."""
    pair = overlapping(1.2)
    for threshold in (0.55, 0.9):
        told = figures(pair, threshold)
        known = evaluate_pu(*pair, threshold=threshold, scenario="case-control", prior=0.3)
        for name in DERIVED:
            leaning, true = leaning_of(told.figures[name].label), known.figures[name].value
            value, assumes = told.figures[name].value, told.figures[name].assumes
            assert value is not None
            assert true is not None
            assert (value > true) if leaning == "optimistically" else (value < true), (
                name,
                threshold,
            )
            assert "the truth may also lie" in assumes
            assert "independent" not in assumes
        recall = told.figures["recall"].value
        assert recall is not None
        side = "optimistically" if recall > 0.5 else "pessimistically"
        assert leaning_of(told.figures["proxy_accuracy"].label) == side
    assert (
        figures(pair, 0.55)
        .figures["precision"]
        .label.startswith("Precision, optimistically: share")
    )


def test_figures_without_a_prior_of_their_own_are_no_leanings() -> None:
    told = figures(overlapping(4), 0.5)
    for name in ("recall", "share_positive", "proxy_auc", "lee_liu"):
        assert leaning_of(told.figures[name].label) == ""


def test_words_about_another_prior_stay_as_they_are() -> None:
    pair = overlapping(4)
    evaluation = evaluate_pu(*pair, scenario="case-control", prior=0.3, prior_interval=(0.25, 0.35))
    used = PriorUsed(0.3, 0.25, 0.35, "KM2")
    assert told_by(evaluation, used) == evaluation
    assert told_by(evaluation, replace(used, origin=OWN_SCORES)) != evaluation


def test_a_missing_figure_tells_why_the_share_is_missing() -> None:
    pair = overlapping(0)
    evaluation = told_by(evaluate_pu(*pair, scenario="case-control"), Untold("they are shy"))
    for name in DERIVED:
        assert evaluation.figures[name].value is None
        assert evaluation.figures[name].assumes.count(f"(the prior), which {CANNOT}they are") == 1
