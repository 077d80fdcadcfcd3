"""Over two hundred problems, how often the interval of a prior holds the truth."""

import numpy as np
import pytest

from onesided.priors import bbe

PROBLEMS = 200


def problem(random: np.random.Generator, distance: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Return a prior and held-out scores of P and U; the farther apart, the purer the top."""
    prior = random.uniform(0.2, 0.7)
    positives, unlabelled = random.integers(300, 1000), random.integers(1000, 4000)
    hidden = random.random(unlabelled) < prior
    scores = random.standard_normal(unlabelled) + np.where(hidden, distance, -distance)
    return prior, random.standard_normal(positives) + distance, scores


def coverage(distance: float, problems: int = PROBLEMS) -> float:
    random = np.random.default_rng(20)
    held = 0
    for number in range(problems):
        prior, positive, unlabelled = problem(random, distance)
        estimate = bbe(positive, unlabelled, resamples=200, seed=number)
        held += estimate.low <= prior <= estimate.high
    return held / problems


@pytest.mark.slow
def test_the_interval_of_bbe_holds_the_truth_where_its_assumption_holds() -> None:
    # BBE assumes scores above which there are only positives; three deviations give them.
    assert coverage(distance=3.0) >= 0.90


def test_where_the_classes_overlap_the_interval_misses_and_the_docs_say_so() -> None:
    # With half a deviation between the classes no score is pure, and the estimate is too high.
    # A fifth of the problems is enough to see that.
    assert coverage(distance=0.5, problems=40) < 0.5
    assert bbe.__doc__ is not None
    assert "pure" in bbe.__doc__ or "only positives" in bbe.__doc__


@pytest.mark.parametrize("seed", [0, 1])
def test_the_interval_is_repeatable(seed: int) -> None:
    _, positive, unlabelled = problem(np.random.default_rng(1), 2.0)
    first, second = (bbe(positive, unlabelled, seed=seed) for _ in range(2))
    assert (first.low, first.high) == (second.low, second.high)
