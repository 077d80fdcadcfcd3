"""A prior from the scores that it evaluates: refused where they tell none, biased otherwise."""

import numpy as np
import pytest

from onesided.metrics.figure import PUEvaluation
from onesided.metrics.pu import evaluate_pu
from onesided.metrics.registry import ASSUMPTIONS, OWN_SCORES
from onesided.priors import bbe
from onesided.run.own_scores import FEWEST, NoPrior, own_prior
from onesided.run.prior import PriorUsed
from onesided.run.scored import evaluate_by

DERIVED = ("precision", "f1", "proxy_accuracy", "auc")


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


def test_it_is_bbe_where_the_scores_separate() -> None:
    pair = overlapping(4)
    found, expected = own_prior(*pair), bbe(*pair)
    assert isinstance(found, PriorUsed)
    assert (found.value, found.interval) == (expected.value, (expected.low, expected.high))
    assert found.origin == OWN_SCORES
    assert found.value == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("seed", range(5))
def test_scores_that_separate_nothing_tell_no_share(seed: int) -> None:
    said = no_prior(*overlapping(0, seed=seed))
    assert said == "they separate so little that every unlabelled item could be positive"


def test_nobody_among_the_positives_is_no_estimate_of_zero() -> None:
    said = no_prior(np.linspace(0.6, 0.9, 40), np.linspace(0.1, 0.4, 90))
    assert said == "no unlabelled item scores as high as the positives do"


def test_few_items_tell_no_share() -> None:
    positive, unlabelled = overlapping(4)
    few = FEWEST - 1
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


def test_a_figure_that_may_be_too_high_or_too_low_says_so_and_is() -> None:
    """A weak model: its prior is too high, and the figures err to the side they say."""
    pair = overlapping(1.2)
    for threshold in (0.55, 0.9):
        told = figures(pair, threshold).figures
        known = evaluate_pu(*pair, threshold=threshold, scenario="case-control", prior=0.3).figures
        for name in DERIVED:
            value, true = told[name].value, known[name].value
            assert value is not None
            assert true is not None
            assert told[name].bias == ("high" if value > true else "low"), (name, threshold)
            assert OWN_SCORES in told[name].assumes
            assert "estimated" not in told[name].assumes
        recall = told["recall"].value
        assert recall is not None
        assert told["proxy_accuracy"].bias == ("high" if recall > 0.5 else "low")
        assert told["prior"].bias == ASSUMPTIONS[OWN_SCORES].prior_bias == "high"


def test_figures_without_a_prior_of_their_own_are_not_biased() -> None:
    told = figures(overlapping(4), 0.5)
    for name in ("recall", "share_positive", "proxy_auc", "lee_liu"):
        assert told.figures[name].bias is None


def test_another_prior_biases_nothing() -> None:
    pair = overlapping(4)
    used = PriorUsed(0.3, 0.25, 0.35, "KM2")
    told = evaluate_by(used, *pair, threshold=0.5, scenario="case-control", labelled_share=None)
    assert not any(figure.bias for figure in told.figures.values())
    assert all("KM2" in told.figures[name].assumes for name in (*DERIVED, "prior"))


def test_a_missing_figure_tells_why_the_share_is_missing() -> None:
    why = NoPrior("they are shy")
    told = evaluate_by(
        why, *overlapping(0), threshold=0.5, scenario="case-control", labelled_share=None
    )
    for name in (*DERIVED, "prior"):
        assert told.figures[name].value is None
        assert told.figures[name].missing == str(why)
