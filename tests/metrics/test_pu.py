import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from jaxtyping import TypeCheckError
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from onesided.core.errors import ConfigError, DataError
from onesided.metrics.figure import LABELS, Scenario
from onesided.metrics.intervals import clopper_pearson
from onesided.metrics.pu import (
    PUEvaluation,
    evaluate_pu,
    population_prior,
    proxy_accuracy_case_control,
    proxy_accuracy_single_set,
    proxy_auc,
)

PROBLEMS = 200
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
@pytest.mark.parametrize("name", LABELS)
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
        for figure in evaluation.figures.values():
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


@pytest.mark.parametrize("name", ["recall", "precision", "f1", "proxy_accuracy", "auc", "lee_liu"])
def test_figures_that_rest_on_scar_say_so(name: str) -> None:
    problem = two_samples(np.random.default_rng(8))
    assumes = evaluate(problem, "case-control").figures[name].assumes
    assert "SCAR" in assumes
    assert "typical" in assumes


@pytest.mark.parametrize("name", ["share_positive", "proxy_auc"])
def test_figures_that_do_not_rest_on_scar_do_not_claim_it(name: str) -> None:
    problem = two_samples(np.random.default_rng(8))
    assert "SCAR" not in evaluate(problem, "case-control").figures[name].assumes


@pytest.mark.parametrize("name", ["precision", "f1", "proxy_accuracy", "auc"])
def test_figures_that_rest_on_a_prior_tell_which(name: str) -> None:
    problem = two_samples(np.random.default_rng(8))
    exact = evaluate(problem, "case-control", prior=0.25).figures[name].assumes
    assert "Exactly 0.25" in exact
    rng = np.random.default_rng(9)
    assert "Between" in evaluate_audited(problem, "case-control", rng).figures[name].assumes


def test_raw_precision_above_one_is_cut_reported_and_not_called_certain() -> None:
    positives, unlabelled = np.full(200, 0.9), np.repeat([0.9, 0.1], [200, 800])
    evaluation = evaluate_pu(positives, unlabelled, scenario="case-control", prior=0.5)
    precision = evaluation.figures["precision"]  # raw value 0.5 * 1 / 0.2 = 2.5
    assert (precision.value, precision.low, precision.high) == (1.0, 0.0, 1.0)
    text = " ".join(evaluation.warnings)
    assert "precision 2.500" in text
    assert "more than noise" in text
    assert "SCAR is broken" in text
    assert "it could be at most" in text


def test_few_positives_that_may_separate_by_luck_are_reported() -> None:
    positives = np.repeat([0.9, 0.1], [4, 4])
    unlabelled = np.repeat([0.9, 0.1], [400, 600])
    evaluation = evaluate_pu(positives, unlabelled, scenario="case-control")
    assert evaluation.degenerate is None
    assert any("not clearly above" in warning for warning in evaluation.warnings)


# Proxy accuracy


def test_zero_one_risk_of_the_worked_example() -> None:
    missed, called, prior = 0.1, 0.45, 0.4
    assert 1 - proxy_accuracy_case_control(1 - missed, called, prior) == pytest.approx(0.13)


@pytest.mark.parametrize("recall", [0.3, 0.9])
@pytest.mark.parametrize("fallout", [0.05, 0.6])
@pytest.mark.parametrize("prior", [0.1, 0.7])
def test_case_control_form_is_the_accuracy_on_u(
    recall: float, fallout: float, prior: float
) -> None:
    share = prior * recall + (1 - prior) * fallout
    right = prior * recall + (1 - prior) * (1 - fallout)
    assert proxy_accuracy_case_control(recall, share, prior) == pytest.approx(right)


@pytest.mark.parametrize("recall", [0.3, 0.9])
@pytest.mark.parametrize("labelled", [0.02, 0.5])
@pytest.mark.parametrize("prior", [0.1, 0.7])
def test_single_set_form_is_the_accuracy_on_labelled_and_unlabelled_together(
    recall: float, labelled: float, prior: float
) -> None:
    fallout = 0.2
    share = prior * recall + (1 - prior) * fallout
    on_unlabelled = prior * recall + (1 - prior) * (1 - fallout)
    together = labelled * recall + (1 - labelled) * on_unlabelled
    single = proxy_accuracy_single_set(recall, share, prior, labelled)
    assert single == pytest.approx(together)


def test_both_forms_agree_where_hardly_anything_is_labelled() -> None:
    case_control = proxy_accuracy_case_control(0.8, 0.4, 0.3)
    assert proxy_accuracy_single_set(0.8, 0.4, 0.3, 1e-9) == pytest.approx(case_control)


def test_population_prior_counts_the_labelled_positives() -> None:
    n_positive, n_unlabelled, hidden = 100, 300, 60
    prior = population_prior(hidden / n_unlabelled, n_positive / (n_positive + n_unlabelled))
    assert prior == pytest.approx((n_positive + hidden) / (n_positive + n_unlabelled))


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


def test_parts_held_out_at_different_rates_need_the_labelled_share() -> None:
    rng = np.random.default_rng(11)
    problem = one_set(rng)
    size = len(problem.positives) + len(problem.unlabelled)
    share = len(problem.positives) / size
    whole = evaluate(problem, "single-set").figures["proxy_accuracy"]
    thinned = evaluate_pu(
        problem.positives,
        np.repeat(problem.unlabelled, 9),  # the same U, nine times as much of it
        threshold=problem.threshold,
        scenario="single-set",
        prior=problem.prior,
        labelled_share=share,
    ).figures["proxy_accuracy"]
    assert thinned.value == pytest.approx(whole.value)
    assert f"{share:.3g} are labelled" in thinned.assumes
    assert "same rate" in whole.assumes


# The single figures


def test_figures_follow_their_formulas() -> None:
    positives = np.repeat([0.9, 0.2], [90, 10])  # recall 0.9
    unlabelled = np.repeat([0.8, 0.1], [450, 550])  # share 0.45
    prior, recall, share = 0.4, 0.9, 0.45
    figures = evaluate_pu(positives, unlabelled, scenario="case-control", prior=prior).figures
    proxy = 0.9 * 1.0 + 0.1 * 0.55
    expected = {
        "recall": recall,
        "share_positive": share,
        "precision": prior * recall / share,
        "f1": 2 * 0.8 * recall / (0.8 + recall),
        "proxy_accuracy": 0.87,
        "proxy_auc": proxy,
        "auc": min((proxy - prior / 2) / (1 - prior), 1),
        "lee_liu": recall**2 / share,
    }
    assert {name: figure.value for name, figure in figures.items()} == pytest.approx(expected)


def test_recall_has_the_exact_interval() -> None:
    positives = np.repeat([0.9, 0.2], [17, 3])
    figure = evaluate_pu(positives, np.zeros(50), scenario="case-control").figures["recall"]
    exact = binomtest(17, 20).proportion_ci(method="exact")
    assert (figure.low, figure.high) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize("seed", range(5))
def test_proxy_auc_agrees_with_scikit_learn_also_with_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    positives, unlabelled = np.round(rng.normal(1, 1, 37), 1), np.round(rng.normal(0, 1, 211), 1)
    observed = np.repeat([1, 0], [37, 211])
    expected = roc_auc_score(observed, np.concatenate([positives, unlabelled]))
    assert proxy_auc(positives, unlabelled) == pytest.approx(expected)


def test_proxy_auc_of_a_random_score_is_one_half() -> None:
    assert proxy_auc(np.full(7, 0.3), np.full(9, 0.3)) == 0.5


def test_proxy_auc_ignores_the_scale_of_scores() -> None:
    rng = np.random.default_rng(0)
    positives, unlabelled = rng.normal(1, 1, 40), rng.normal(0, 1, 90)
    assert proxy_auc(np.exp(positives), np.exp(unlabelled)) == proxy_auc(positives, unlabelled)


def test_without_a_prior_only_figures_that_need_none_are_given() -> None:
    rng = np.random.default_rng(12)
    figures = evaluate_pu(
        rng.normal(2, 1, 50), rng.normal(0, 1, 400), scenario="single-set"
    ).figures
    missing = {name for name, figure in figures.items() if figure.value is None}
    assert missing == {"precision", "f1", "proxy_accuracy", "auc"}
    for name in missing:
        assert figures[name].low is None
        assert "prior" in figures[name].assumes


def test_nothing_called_positive_leaves_precision_undefined_and_rings() -> None:
    evaluation = evaluate_pu(np.zeros(20), np.zeros(400), scenario="case-control", prior=0.3)
    assert evaluation.degenerate is not None
    for name in ("precision", "lee_liu"):
        assert evaluation.figures[name].value is None
        assert "no unlabelled item was called positive" in evaluation.figures[name].assumes
    assert evaluation.figures["f1"].value == 0


def test_everything_called_positive_looks_good_and_rings() -> None:
    evaluation = evaluate_pu(np.ones(20), np.ones(400), scenario="case-control", prior=0.6)
    f1 = evaluation.figures["f1"].value
    assert f1 is not None
    assert f1 > 0.7
    assert evaluation.degenerate is not None
    assert "everything" in evaluation.degenerate


def test_one_positive_and_one_unlabelled_item_are_enough_to_answer_honestly() -> None:
    evaluation = evaluate_pu(np.array([0.9]), np.array([0.1]), scenario="single-set", prior=0.3)
    recall = evaluation.figures["recall"]
    assert recall.low is not None
    assert recall.low < 0.05


def test_evaluation_repeats_exactly() -> None:
    problem = two_samples(np.random.default_rng(13))
    assert evaluate(problem, "case-control") == evaluate(problem, "case-control")


def test_wider_coverage_gives_wider_intervals() -> None:
    problem = two_samples(np.random.default_rng(14))
    figures = [
        evaluate_pu(
            problem.positives,
            problem.unlabelled,
            threshold=problem.threshold,
            scenario="case-control",
            prior=problem.prior,
            coverage=coverage,
        ).figures
        for coverage in (0.8, 0.99)
    ]
    for name in LABELS:
        narrow, wide = figures[0][name], figures[1][name]
        assert (wide.low or 0) <= (narrow.low or 0)
        assert (wide.high or 0) >= (narrow.high or 0)


def test_json_is_strict_and_holds_every_figure_with_its_assumption() -> None:
    evaluation = evaluate_pu(np.zeros(20), np.zeros(400), scenario="case-control")
    read = json.loads(json.dumps(evaluation.to_json(), allow_nan=False))
    assert set(read) == {"figures", "degenerate"}
    assert list(read["figures"]) == list(LABELS)
    for name, figure in read["figures"].items():
        assert set(figure) == {"name", "label", "value", "low", "high", "assumes"}
        assert figure["name"] == name
        assert figure["assumes"]


@pytest.mark.parametrize(
    ("positives", "unlabelled", "complaint"),
    [
        ([], [0.1], "held-out positives must be a list with at least one number"),
        ([0.1], [], "held-out unlabelled items must be a list with at least one number"),
        ([0.1, np.nan], [0.1], "held-out positives hold NaN"),
        ([0.1], [np.inf], "held-out unlabelled items hold NaN or infinity"),
    ],
)
def test_bad_scores_are_named(
    positives: list[float], unlabelled: list[float], complaint: str
) -> None:
    with pytest.raises(DataError, match=complaint):
        evaluate_pu(np.array(positives), np.array(unlabelled), scenario="case-control")


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, 1.2, np.nan])
def test_a_prior_that_cannot_be_is_refused(prior: float) -> None:
    problem = two_samples(np.random.default_rng(15))
    with pytest.raises(ConfigError, match="prior must lie between 0 and 1"):
        evaluate(problem, "case-control", prior=prior)


@pytest.mark.parametrize(
    ("prior", "interval"), [(0.5, (0.6, 0.8)), (0.5, (0.4, 1.2)), (None, (0.2, 0.4))]
)
def test_an_interval_without_its_prior_inside_is_refused(
    prior: float | None, interval: tuple[float, float]
) -> None:
    with pytest.raises(ConfigError, match="prior_interval must lie in"):
        evaluate_pu(
            np.ones(20),
            np.zeros(20),
            scenario="case-control",
            prior=prior,
            prior_interval=interval,
        )


def test_a_labelled_share_is_refused_where_it_has_no_meaning() -> None:
    with pytest.raises(ConfigError, match="no meaning"):
        evaluate_pu(np.ones(20), np.zeros(20), scenario="case-control", labelled_share=0.1)


def test_an_unknown_scenario_is_refused_with_the_known_ones() -> None:
    # With run-time type checks switched on, they refuse first.
    with pytest.raises((ConfigError, TypeCheckError), match="case-control.*single-set"):
        evaluate_pu(np.ones(20), np.zeros(20), scenario="both")  # type: ignore[arg-type]
