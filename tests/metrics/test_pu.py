import json
from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from onesided.core.errors import DataError
from onesided.metrics.figure import NO_PRIOR, NOTHING_CALLED, Figure
from onesided.metrics.pu import (
    FORMULAS,
    after_review,
    evaluate_pu,
    population_prior,
    proxy_accuracy_case_control,
    proxy_accuracy_single_set,
    proxy_auc,
)

PRIOR = 0.3
NAMES = ("recall", "share_positive", "proxy_auc", *FORMULAS)


def scores() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of 80 positives and of 1000 unlabelled items, 300 of them positive."""
    rng = np.random.default_rng(8)
    unlabelled = rng.normal(0, 1, 1000) + 2.0 * (np.arange(1000) < 300)
    return rng.normal(2, 1, 80), unlabelled


def figures(
    prior: float, interval: tuple[float, float] | None = None, coverage: float = 0.95
) -> Mapping[str, Figure]:
    positives, unlabelled = scores()
    return evaluate_pu(
        positives,
        unlabelled,
        threshold=1.0,
        scenario="case-control",
        prior=prior,
        prior_interval=interval,
        coverage=coverage,
    ).figures


# Assumptions and warnings


@pytest.mark.parametrize("name", ["recall", "precision", "f1", "proxy_accuracy", "auc", "lee_liu"])
def test_figures_that_rest_on_scar_say_so(name: str) -> None:
    assert "scar" in figures(PRIOR)[name].assumes


@pytest.mark.parametrize("name", ["share_positive", "proxy_auc"])
def test_figures_that_do_not_rest_on_scar_do_not_claim_it(name: str) -> None:
    assert "scar" not in figures(PRIOR)[name].assumes


@pytest.mark.parametrize("name", ["precision", "f1", "proxy_accuracy", "auc"])
def test_figures_that_rest_on_a_prior_name_its_origin(name: str) -> None:
    exact, unsure = figures(0.25), figures(0.25, (0.2, 0.4))
    assert "given" in exact[name].assumes
    assert (exact["prior"].value, exact["prior"].interval) == (0.25, None)
    assert "estimated" in unsure[name].assumes
    assert (unsure["prior"].value, unsure["prior"].interval) == (0.25, (0.2, 0.4))


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


def test_a_recall_clearly_above_the_share_called_gives_no_such_report() -> None:
    positives = np.repeat([0.9, 0.1], [400, 100])
    unlabelled = np.repeat([0.9, 0.1], [400, 600])
    evaluation = evaluate_pu(positives, unlabelled, scenario="case-control")
    assert not any("not clearly above" in warning for warning in evaluation.warnings)


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


def test_parts_held_out_at_different_rates_need_the_labelled_share() -> None:
    positives, unlabelled = scores()
    whole = evaluate_pu(
        positives, unlabelled, threshold=1.0, scenario="single-set", prior=PRIOR
    ).figures["proxy_accuracy"]
    more_of_u = evaluate_pu(
        positives,
        np.repeat(unlabelled, 9),
        threshold=1.0,
        scenario="single-set",
        prior=PRIOR,
        labelled_share=80 / 1080,
    ).figures["proxy_accuracy"]
    assert more_of_u.value == pytest.approx(whole.value)
    assert "like_all" in more_of_u.assumes
    assert "same_rate" in whole.assumes


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
        "prior": prior,
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
    assert missing == {"precision", "f1", "proxy_accuracy", "auc", "prior"}
    for name in missing:
        assert figures[name].low is None
        assert figures[name].missing == NO_PRIOR


def test_nothing_called_positive_leaves_precision_undefined_and_raises_the_alarm() -> None:
    evaluation = evaluate_pu(np.zeros(20), np.zeros(400), scenario="case-control", prior=0.3)
    assert evaluation.degenerate is not None
    for name in ("precision", "lee_liu"):
        assert evaluation.figures[name].value is None
        assert evaluation.figures[name].missing == NOTHING_CALLED
    assert evaluation.figures["f1"].value == 0


def test_everything_called_positive_looks_good_and_raises_the_alarm() -> None:
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


def test_a_perfect_separation_keeps_its_value_inside_its_interval() -> None:
    figure = evaluate_pu(
        np.arange(10.0) + 100, np.arange(500.0) / 10, scenario="case-control", prior=0.01
    ).figures["auc"]
    assert figure.value == figure.high == 1
    assert figure.low is not None
    assert figure.low < 0.95


def test_a_prior_of_which_nothing_is_known_still_gives_numbers() -> None:
    evaluation = evaluate_pu(
        np.ones(20), np.zeros(50), scenario="case-control", prior=0.5, prior_interval=(0.0, 1.0)
    )
    json.dumps(evaluation.to_json(), allow_nan=False)
    f1 = evaluation.figures["f1"]
    assert f1.low is not None
    assert f1.high == 1
    assert f1.low < 0.5


def test_evaluation_repeats_exactly() -> None:
    assert figures(PRIOR, (0.2, 0.4)) == figures(PRIOR, (0.2, 0.4))


def test_wider_coverage_gives_wider_intervals() -> None:
    narrow, wide = figures(PRIOR, coverage=0.8), figures(PRIOR, coverage=0.99)
    for name in NAMES:
        assert (wide[name].low or 0) < (narrow[name].low or 0)
        assert (wide[name].high or 0) > (narrow[name].high or 0)


def test_an_uncertain_prior_widens_only_the_figures_that_need_it() -> None:
    known, unsure = figures(PRIOR), figures(PRIOR, (0.2, 0.4))
    for name in NAMES:
        wider = (unsure[name].high or 0) - (unsure[name].low or 0) > 1.05 * (
            (known[name].high or 0) - (known[name].low or 0)
        )
        assert wider == (name in {"precision", "f1", "proxy_accuracy", "auc"})


def test_json_is_strict_and_holds_every_figure_with_its_assumption() -> None:
    evaluation = evaluate_pu(np.zeros(20), np.zeros(400), scenario="case-control")
    read = json.loads(json.dumps(evaluation.to_json(), allow_nan=False))
    assert set(read) == {"figures", "assumptions", "degenerate"}
    assert set(read["figures"]) == {*NAMES, "prior"}
    keys = {"name", "label", "value", "low", "high", "assumes", "bias", "missing"}
    for name, figure in read["figures"].items():
        assert set(figure) == keys
        assert figure["name"] == name
        assert figure["assumes"] or name == "prior"
        assert set(figure["assumes"]) <= set(read["assumptions"])


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


def test_after_a_review_recall_is_told_to_be_too_high() -> None:
    random = np.random.default_rng(0)
    positive, hidden = random.beta(4, 2, 200), np.sort(random.beta(4, 2, 300))
    left = hidden[:150]  # a review went down the ranking and took the better half
    pool = np.concatenate([left, random.beta(2, 6, 1000)])
    usual = evaluate_pu(positive, pool, scenario="case-control", prior=0.2)
    recall = after_review(usual).figures["recall"]
    assert recall.low is not None
    assert (left > 0.5).mean() < recall.low, "what P says is false of what is left"
    assert recall.bias == "high"
    assert "easy_first" in recall.assumes
    assert usual.figures["recall"].bias is None


def test_a_review_changes_no_number_and_nothing_that_does_not_rest_on_p() -> None:
    usual = evaluate_pu(np.linspace(0.3, 1, 50), np.linspace(0, 1, 400), scenario="case-control")
    reviewed = after_review(usual).figures
    for name, figure in usual.figures.items():
        assert (reviewed[name].value, reviewed[name].interval) == (figure.value, figure.interval)
        assert ("easy_first" in reviewed[name].assumes) == ("scar" in figure.assumes)
    assert reviewed["proxy_auc"] == usual.figures["proxy_auc"]
