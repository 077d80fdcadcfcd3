"""Elkan-Noto: the paper's formulas row by row, and what its lemma promises."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit

from onesided.core.errors import CheckpointError, ConfigError
from onesided.methods.against_pool import TrainingRows
from onesided.methods.elkan_noto import (
    ElkanNotoConfig,
    doubled,
    label_frequency,
    platt_line,
    positive_share,
    posterior,
)
from onesided.metrics.pu import proxy_auc
from onesided.priors.logistic_line import logistic_line
from tests.methods.p_against_u import WIDTH, clouds, trained, untrained, with_entry

QUICK = {"penalty": 0.01}


def some_rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    g = random.uniform(0.01, 0.9, 40)
    return g, np.arange(40) < 12, random.integers(0, 4, 40) + 0.5


def test_estimators_of_c_are_those_of_the_paper() -> None:
    g, labelled, weight = some_rows()
    mean = over = under = largest = total = 0.0
    for value, is_labelled, times in zip(g, labelled, weight, strict=True):
        under += times * value
        largest = max(largest, value)
        if is_labelled:
            mean += times * value
            over += times * value
            total += times
    assert label_frequency(g, labelled, weight, "e1") == pytest.approx(mean / total)
    assert label_frequency(g, labelled, weight, "e2") == pytest.approx(over / under)
    assert label_frequency(g, labelled, weight, "e3") == pytest.approx(largest)


def test_where_classes_do_not_overlap_all_three_estimators_are_c() -> None:
    """The paper's Section 2: g(x) = c for every positive and 0 for every negative."""
    c, positive = 0.3, np.arange(1000) < 500
    labelled, g = np.arange(1000) < 150, np.where(positive, c, 0.0)
    for constant in ("e1", "e2", "e3"):
        assert label_frequency(g, labelled, np.ones(1000), constant) == pytest.approx(c)


def test_weights_of_unlabelled_items_follow_from_bayes_rule() -> None:
    """w(x) = P(y = 1 | x, s = 0) from a table of all four cases."""
    c = 0.35
    for truth in (0.0, 0.1, 0.6, 0.95):
        labelled = truth * c
        unlabelled_positive, negative = truth * (1 - c), 1 - truth
        expected = unlabelled_positive / (unlabelled_positive + negative)
        assert positive_share(np.array([labelled]), c)[0] == pytest.approx(expected)
        assert posterior(np.array([labelled]), c)[0] == pytest.approx(truth, abs=2e-6)


def test_scores_are_at_most_1_and_keep_the_order_above_c() -> None:
    g = np.linspace(0.01, 0.99, 500)
    scores = posterior(g, 0.2)
    assert (np.diff(scores) > 0).all()
    assert scores.max() <= 1
    assert np.abs(scores - np.minimum(g / 0.2, 1)).max() < 2e-6
    assert positive_share(g, 0.2).max() < 1


def test_platts_line_minimises_the_cross_entropy_of_his_targets() -> None:
    random = np.random.default_rng(3)
    positive, weight = np.arange(60) < 20, random.uniform(0.5, 2, 60)
    values = random.normal(size=60) + positive
    above, below = weight[positive].sum(), weight[~positive].sum()

    def cost(line: np.ndarray) -> float:
        total = 0.0
        for value, is_positive, times in zip(values, positive, weight, strict=True):
            p = expit(line[0] * value + line[1])
            target = (above + 1) / (above + 2) if is_positive else 1 / (below + 2)
            total -= times * (target * np.log(p) + (1 - target) * np.log(1 - p))
        return total

    best = minimize(cost, np.zeros(2), tol=1e-12)
    assert platt_line(values, positive, weight) == pytest.approx(best.x, abs=1e-4)


def test_scores_that_separate_perfectly_give_a_finite_line() -> None:
    positive = np.arange(50) < 10
    slope, intercept = platt_line(np.where(positive, 1.0, -1.0), positive, np.ones(50))
    assert expit(slope + intercept) == pytest.approx(11 / 12, abs=1e-3)
    assert expit(intercept - slope) == pytest.approx(1 / 42, abs=1e-3)


def test_a_line_never_falls() -> None:
    positive = np.arange(50) < 10
    values = np.where(positive, -1.0, 1.0) + np.linspace(0, 3, 50)
    assert logistic_line(values, positive.astype(float), np.ones(50))[0] < 0
    assert platt_line(values, positive, np.ones(50))[0] > 0


def test_the_second_training_holds_every_unlabelled_row_twice() -> None:
    random = np.random.default_rng(1)
    kinds = np.array(list("PPUUUNU"))
    data = TrainingRows(random.normal(size=(7, 2)), kinds == "P", kinds == "N", np.arange(7) + 1.0)
    share = np.linspace(0.1, 0.7, 7)
    found = doubled(data, share)
    expected = []
    for row, kind in enumerate(kinds):
        features, weight = tuple(data.features[row]), row + 1.0
        match kind:
            case "P":
                expected.append((features, True, False, weight))
            case "N":
                expected.append((features, False, True, weight))
            case "U":
                expected.append((features, True, False, weight * share[row]))
                expected.append((features, False, False, weight * (1 - share[row])))
    assert found.negative is not None
    assert found.weights is not None
    rows = zip(found.features, found.labelled, found.negative, found.weights, strict=True)
    held = sorted((tuple(x), bool(p), bool(n), float(w)) for x, p, n, w in rows)
    assert [row[:3] for row in held] == [row[:3] for row in sorted(expected)]
    assert [row[3] for row in held] == pytest.approx([row[3] for row in sorted(expected)])
    assert found.weights.sum() == pytest.approx(28), "no row counts more than before"


@pytest.mark.parametrize("training", ["once", "weighted"])
@pytest.mark.parametrize("learner", ["linear", "forest"])
def test_scores_are_near_the_true_posterior_where_p_is_a_random_sample(
    training: str, learner: str
) -> None:
    """Lemma 1, on clouds N(shift, 1) and N(0, 1) of which the posterior is known."""
    data = clouds(3000, seed=2, shift=1.6)
    settings = ElkanNotoConfig.from_settings({**QUICK, "training": training, "learner": learner})
    scores = trained(settings, data).scores(data.features)
    odds = 0.5 * np.exp(1.6 * data.features.sum(axis=1) - WIDTH * 1.6**2 / 2)
    assert np.abs(scores - odds / (1 + odds)).mean() < 0.1
    assert scores.mean() == pytest.approx(data.truth.mean(), abs=0.05)
    called = scores > 0.5
    assert (called == data.truth).mean() > 0.93
    plain = trained(ElkanNotoConfig(penalty=0.01), data)
    assert plain.calibration[2] == pytest.approx(0.5, abs=0.1), "half of the positives are labelled"


def test_c_is_too_low_where_classes_overlap() -> None:
    data = clouds(3000, seed=2, shift=0.3)
    assert trained(ElkanNotoConfig(penalty=0.01), data).calibration[2] < 0.4


def test_the_score_is_g_over_c_for_each_sample() -> None:
    data = clouds()
    method = trained(ElkanNotoConfig(penalty=0.1), data)
    slope, intercept, c = method.calibration
    for sample, score in zip(data.new[:5], method.scores(data.new[:5]), strict=True):
        margin = method.learner.margins(sample[None])[0]
        g = 1 / (1 + np.exp(-(slope * margin + intercept)))
        assert score == pytest.approx(min(g / c, 1), abs=2e-6)


def test_each_estimator_of_c_gives_its_own_model() -> None:
    data = clouds()
    constants = [
        trained(ElkanNotoConfig(penalty=0.1, constant=name), data).calibration[2]
        for name in ("e1", "e2", "e3")
    ]
    assert len(set(constants)) == 3
    assert max(constants) == constants[2], "nothing exceeds the largest g"


def test_the_penalty_is_chosen_once_and_the_order_is_that_of_linear() -> None:
    from onesided.methods.linear import LinearConfig

    data = clouds(90, seed=3)
    automatic, linear = trained(ElkanNotoConfig(), data), trained(LinearConfig(), data)
    assert automatic.learner.penalty == linear.penalty
    assert (np.argsort(automatic.scores(data.new)) == np.argsort(linear.scores(data.new))).all()


def test_a_known_negative_is_no_part_of_the_estimate_of_c() -> None:
    data = clouds(600, shift=2.0)
    negative = ~data.truth & (np.arange(600) % 2 == 0)
    method = untrained(ElkanNotoConfig(penalty=0.01))
    method.fit(data.features, data.labelled, np.random.default_rng(0), negative=negative)
    assert method.calibration[2] == pytest.approx(0.5, abs=0.1)
    scores = method.scores(data.features)
    assert proxy_auc(scores[data.truth & ~data.labelled], scores[~data.truth]) > 0.95


@pytest.mark.parametrize("numbers", [[1.0, 0.0], [-1.0, 0, 0.5], [1.0, 0, 0], [1.0, 0, 1.5]])
def test_a_damaged_calibration_is_refused(numbers: list[float]) -> None:
    settings = ElkanNotoConfig(penalty=1.0)
    state = trained(settings, clouds()).state_dict()
    wrong = with_entry(state, "calibration", torch.tensor(numbers, dtype=torch.float64))
    with pytest.raises(CheckpointError, match="share of labelled positives"):
        untrained(settings).load_state_dict(wrong)


def test_a_penalty_is_checked_as_that_of_linear_is() -> None:
    with pytest.raises(ConfigError, match="auto or a number above 0"):
        ElkanNotoConfig.from_settings({"penalty": 0})
