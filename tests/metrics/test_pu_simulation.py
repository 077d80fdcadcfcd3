"""Two hundred synthetic problems with known truth, in both scenarios."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from onesided.metrics.figure import PUEvaluation, Scenario
from onesided.metrics.intervals import clopper_pearson
from onesided.metrics.pu import (
    FORMULAS,
    evaluate_pu,
    population_prior,
    proxy_accuracy_case_control,
    proxy_accuracy_single_set,
)

PROBLEMS = 200
MEASURED = ("recall", "share_positive", "proxy_auc")
Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Gaussian scores whose true figures are known: positives around `distance`."""

    distance: float
    threshold: float
    prior: float
    positives: Scores
    unlabelled: Scores
    accuracy: float

    @property
    def truth(self) -> dict[str, float]:
        recall, fallout = rates(self.distance, self.threshold)
        share = self.prior * recall + (1 - self.prior) * fallout
        precision = self.prior * recall / share
        auc = float(ndtr(self.distance / np.sqrt(2)))
        return {
            "recall": recall,
            "share_positive": share,
            "precision": precision,
            "f1": 2 * precision * recall / (precision + recall),
            "proxy_accuracy": self.accuracy,
            "proxy_auc": self.prior / 2 + (1 - self.prior) * auc,
            "auc": auc,
            "lee_liu": recall**2 / share,
        }


def rates(distance: float, threshold: float) -> tuple[float, float]:
    """True recall and false positive rate."""
    return float(ndtr(distance - threshold)), float(ndtr(-threshold))


def accuracy(prior: float, distance: float, threshold: float) -> float:
    recall, fallout = rates(distance, threshold)
    return prior * recall + (1 - prior) * (1 - fallout)


def two_samples(rng: np.random.Generator, *, too_easy: float = 0.0) -> Problem:
    """Draw P apart from U; `too_easy` moves labelled positives away from typical ones."""
    distance, prior = rng.uniform(1, 3), rng.uniform(0.1, 0.7)
    threshold = distance / 2 + rng.uniform(-0.5, 0.5)
    n_positive, n_unlabelled = rng.integers(20, 300), rng.integers(200, 3000)
    unlabelled = rng.normal(0, 1, n_unlabelled)
    unlabelled += distance * (rng.random(n_unlabelled) < prior)
    positives = rng.normal(distance + too_easy, 1, n_positive)
    true_accuracy = accuracy(prior, distance, threshold)
    return Problem(distance, threshold, prior, positives, unlabelled, true_accuracy)


def one_set(rng: np.random.Generator) -> Problem:
    """Draw one set and label some of its positives; U is the rest, with fewer positives."""
    distance, whole_prior, labelled = (
        rng.uniform(1, 3),
        rng.uniform(0.2, 0.7),
        rng.uniform(0.1, 0.7),
    )
    threshold = distance / 2 + rng.uniform(-0.5, 0.5)
    size = rng.integers(400, 3000)
    positive = rng.random(size) < whole_prior
    observed = positive & (rng.random(size) < labelled)
    scores = rng.normal(0, 1, size) + distance * positive
    prior = whole_prior * (1 - labelled) / (1 - whole_prior * labelled)
    true_accuracy = accuracy(whole_prior, distance, threshold)
    return Problem(distance, threshold, prior, scores[observed], scores[~observed], true_accuracy)


DRAW: Mapping[Scenario, Callable[[np.random.Generator], Problem]] = {
    "case-control": two_samples,
    "single-set": one_set,
}
SCENARIOS: list[Scenario] = ["case-control", "single-set"]


def evaluate(problem: Problem, scenario: Scenario, prior: float | None = None) -> PUEvaluation:
    return evaluate_pu(
        problem.positives,
        problem.unlabelled,
        threshold=problem.threshold,
        scenario=scenario,
        prior=problem.prior if prior is None else prior,
    )


def evaluate_audited(
    problem: Problem, scenario: Scenario, rng: np.random.Generator
) -> PUEvaluation:
    """Evaluate with a prior that somebody estimated by looking at 200 items of U."""
    seen = int(rng.binomial(200, problem.prior))
    return evaluate_pu(
        problem.positives,
        problem.unlabelled,
        threshold=problem.threshold,
        scenario=scenario,
        prior=seen / 200,
        prior_interval=clopper_pearson(seen, 200),
    )


@cache
def simulated(scenario: Scenario) -> list[tuple[Problem, PUEvaluation]]:
    """Problems whose assumptions hold; every other prior is known only by an interval."""
    rng = np.random.default_rng(len(scenario))
    pairs = []
    for number in range(PROBLEMS):
        problem = DRAW[scenario](rng)
        known = number % 2 == 0
        pairs.append(
            (
                problem,
                evaluate(problem, scenario) if known else evaluate_audited(problem, scenario, rng),
            )
        )
    return pairs


def covered(pairs: list[tuple[Problem, PUEvaluation]], name: str) -> float:
    hits = []
    for problem, evaluation in pairs:
        figure = evaluation.figures[name]
        assert figure.low is not None
        assert figure.high is not None
        hits.append(figure.low <= problem.truth[name] <= figure.high)
    return float(np.mean(hits))


# What the intervals promise


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", [*MEASURED, *FORMULAS])
def test_intervals_cover_the_truth_where_their_assumption_holds(
    scenario: Scenario, name: str
) -> None:
    assert covered(simulated(scenario), name) >= 0.9


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_intervals_are_narrow_enough_to_be_useful(scenario: Scenario) -> None:
    widths = [
        (evaluation.figures["precision"].high or 0) - (evaluation.figures["precision"].low or 0)
        for _, evaluation in simulated(scenario)
    ]
    assert np.median(widths) < 0.3


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_values_lie_inside_their_intervals(scenario: Scenario) -> None:
    for _, evaluation in simulated(scenario):
        for name in (*MEASURED, *FORMULAS):
            figure = evaluation.figures[name]
            assert figure.value is not None
            assert figure.low is not None
            assert figure.high is not None
            assert figure.low <= figure.value <= figure.high


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_sound_problems_are_seldom_accused_of_a_broken_assumption(scenario: Scenario) -> None:
    accused = [
        any("more than noise" in text or "Too few" in text for text in evaluation.warnings)
        for _, evaluation in simulated(scenario)
    ]
    assert np.mean(accused) <= 0.05


def test_ignoring_the_error_of_the_prior_would_break_the_promise() -> None:
    rng = np.random.default_rng(5)
    pairs = []
    for _ in range(PROBLEMS):
        problem = two_samples(rng)
        guessed = float(rng.binomial(200, problem.prior)) / 200
        pairs.append((problem, evaluate(problem, "case-control", prior=guessed)))
    assert covered(pairs, "precision") < 0.9


# What happens where an assumption is broken


def test_without_scar_recall_is_wrong_and_the_report_says_so() -> None:
    rng = np.random.default_rng(6)
    problems = [two_samples(rng, too_easy=2.0) for _ in range(PROBLEMS)]
    pairs = [(problem, evaluate(problem, "case-control")) for problem in problems]
    assert covered(pairs, "recall") < 0.5
    assert covered(pairs, "precision") < 0.5
    assert np.mean(["SCAR is broken" in " ".join(e.warnings) for _, e in pairs]) > 0.9


def test_a_prior_twice_too_high_is_wrong_and_the_report_says_so() -> None:
    rng = np.random.default_rng(7)
    problems = [two_samples(rng) for _ in range(PROBLEMS)]
    sharp = [p for p in problems if p.distance > 2 and p.prior < 0.45 and len(p.positives) > 50]
    pairs = [(p, evaluate(p, "case-control", prior=2 * p.prior)) for p in sharp]
    assert len(pairs) > 20
    errors = [(e.figures["precision"].value or 0) - p.truth["precision"] for p, e in pairs]
    assert np.mean(errors) > 0.1
    assert np.mean(["prior is too high" in " ".join(e.warnings) for _, e in pairs]) > 0.9


def test_the_naive_single_set_formula_is_biased_and_ours_is_not() -> None:
    """The naive one takes P(negative) on U alone, with the prior of the whole set."""
    rng = np.random.default_rng(10)
    whole_prior, labelling, distance, threshold = 0.5, 0.4, 2.0, 1.0
    truth = accuracy(whole_prior, distance, threshold)
    naive, ours = [], []
    for _ in range(PROBLEMS):
        positive = rng.random(2000) < whole_prior
        observed = positive & (rng.random(2000) < labelling)
        called = rng.normal(0, 1, 2000) + distance * positive > threshold
        recall, share = float(called[observed].mean()), float(called[~observed].mean())
        prior_of_u, labelled = float(positive[~observed].mean()), float(observed.mean())
        whole = population_prior(prior_of_u, labelled)
        naive.append(proxy_accuracy_case_control(recall, share, whole))
        ours.append(proxy_accuracy_single_set(recall, share, prior_of_u, labelled))
    noise = np.std(ours) / np.sqrt(PROBLEMS)
    assert abs(np.mean(ours) - truth) < 3 * noise
    recall, fallout = rates(distance, threshold)
    prior_of_u = whole_prior * (1 - labelling) / (1 - whole_prior * labelling)
    share = prior_of_u * recall + (1 - prior_of_u) * fallout
    predicted_bias = whole_prior * labelling * (recall - share)
    assert np.mean(naive) - truth == pytest.approx(predicted_bias, abs=3 * noise)
    assert predicted_bias > 20 * noise


def test_intervals_cover_where_items_come_in_groups_only_if_they_know_them() -> None:
    """Some photographs of a house resemble each other, in P and in U."""
    rng = np.random.default_rng(11)
    known, ignored = [], []
    for _ in range(PROBLEMS):
        prior, threshold = 0.3, 1.0
        houses = (rng.normal(0, 0.9, 40), rng.normal(0, 0.9, 300))
        group = (np.repeat(np.arange(40), 3), 40 + np.repeat(np.arange(300), 3))
        hidden = np.repeat(rng.random(300) < prior, 3)
        positives = rng.normal(2 + np.repeat(houses[0], 3), 0.4)
        unlabelled = rng.normal(2 * hidden + np.repeat(houses[1], 3), 0.4)
        problem = Problem(2, threshold, prior, positives, unlabelled, accuracy(prior, 2, threshold))
        known.append(
            (
                problem,
                evaluate_pu(
                    positives,
                    unlabelled,
                    threshold=threshold,
                    scenario="case-control",
                    prior=prior,
                    groups=group,
                ),
            )
        )
        ignored.append((problem, evaluate(problem, "case-control")))
    for name in ("recall", "share_positive", "precision", "f1", "proxy_auc", "auc"):
        assert covered(known, name) >= 0.9, name
    assert covered(ignored, "recall") < 0.85


def test_the_recall_of_a_pool_covers_only_if_the_luck_of_its_own_positives_counts() -> None:
    """Thirty hidden positives are a small sample themselves, however many are labelled."""
    rng, held = np.random.default_rng(12), {True: 0, False: 0}
    for _ in range(PROBLEMS):
        hidden = rng.random(150) < 0.2
        positives, unlabelled = rng.normal(1, 1, 300), rng.normal(hidden * 1.0, 1)
        truth = float((unlabelled[hidden] > 1).mean())
        for of_pool in held:
            found = evaluate_pu(
                positives,
                unlabelled,
                threshold=1.0,
                scenario="case-control",
                prior=0.2,
                of_pool=of_pool,
            ).figures["recall"]
            assert found.low is not None
            assert found.high is not None
            held[of_pool] += found.low <= truth <= found.high
    assert held[True] >= 0.93 * PROBLEMS
    assert held[False] < 0.7 * PROBLEMS


def test_the_recall_of_a_pool_is_not_surer_where_the_prior_is_unknown() -> None:
    rng = np.random.default_rng(13)
    positives, unlabelled = rng.normal(1, 1, 600), rng.normal(size=100)
    widths = {}
    for prior, of_pool in ((None, True), (None, False), (0.999, True)):
        recall = evaluate_pu(
            positives,
            unlabelled,
            threshold=0.5,
            scenario="case-control",
            prior=prior,
            of_pool=of_pool,
        ).figures["recall"]
        assert recall.low is not None
        assert recall.high is not None
        widths[prior, of_pool] = recall.high - recall.low
    assert widths[None, True] == pytest.approx(widths[0.999, True], rel=0.01)
    assert widths[None, True] > 1.5 * widths[None, False]
