"""Intervals of an audit, against a slow gambler, and by simulated pools."""

import math

import numpy as np
import pytest
from scipy.special import expit

from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.metrics.audit import (
    FIGURES,
    STAKES,
    TRUST,
    UNANSWERED,
    AuditFigures,
    _equation,
    _game,
    _most_money,
    _sample,
    audit_estimate,
    counted_answers,
)
from onesided.metrics.audit_design import AuditDesign, audit_sample


def pool(
    seed: int, *, items: int = 1500, prior: float = 0.1, gap: float = 2.0, shift: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and true classes; the scores are probabilities where the shift is 0."""
    random = np.random.default_rng(seed)
    truth = (random.random(items) < prior).astype(np.int64)
    seen = random.standard_normal(items) + gap * truth
    return expit(gap * seen - gap**2 / 2 + math.log(prior / (1 - prior)) + shift), truth


def answered(design: AuditDesign, truth: np.ndarray, count: int) -> np.ndarray:
    answers = np.full(len(truth), UNANSWERED)
    answers[design.order[:count]] = truth[design.order[:count]]
    return answers


def true_figures(scores: np.ndarray, truth: np.ndarray, threshold: float) -> dict[str, float]:
    called = scores > threshold
    above, both = int(truth[called].sum()), int(truth.sum())
    return {
        "precision": above / called.sum(),
        "recall": above / both,
        "f1": 2 * above / (called.sum() + both),
        "positives": both,
        "left": both - above,
    }


def holds(found: AuditFigures, true: dict[str, float]) -> dict[str, bool]:
    held = {}
    for name, each in found.figures.items():
        assert each.low is not None
        assert each.high is not None
        held[name] = each.low <= true[name] <= each.high
    return held


def slow_money(
    scores: np.ndarray,
    design: AuditDesign,
    answers: np.ndarray,
    threshold: float,
    weights: tuple[float, float],
    c: float,
) -> float:
    """Return the most that the average gambler ever had, item by item as the docstring says."""
    w = np.where(scores > threshold, *weights)
    cell = 2 * design.stratum + (scores <= threshold)
    drawn: list[int] = []
    money, most = np.ones(2 * len(STAKES)), 1.0
    for turn, item in enumerate(design.order):
        rest = np.setdiff1d(np.arange(len(scores)), drawn)
        if turn >= design.first:
            open_strata = np.unique(design.stratum[rest])
            total = design.chance[open_strata].sum()
            q = {
                i: design.chance[design.stratum[i]]
                / total
                / (design.stratum[rest] == design.stratum[i]).sum()
                for i in rest
            }
            assert math.isclose(sum(q.values()), 1)
            p = {}
            for one in np.unique(cell[rest]):
                before = [answers[i] for i in drawn if cell[i] == one]
                guess = scores[cell == one].mean()
                p[one] = (sum(before) + TRUST * guess) / (len(before) + TRUST)
            base = sum(w[i] * answers[i] for i in drawn) + sum(w[i] * p[cell[i]] for i in rest)

            def x(
                i: int, y: int, base: float = base, p: dict[int, float] = p, q: dict[int, float] = q
            ) -> float:
                return float(base + w[i] * (y - p[cell[i]]) / q[i] - c)

            possible = [x(i, y) for i in rest for y in (0, 1)]
            got = x(item, answers[item])
            up = 1 + STAKES * got / -min(possible)
            down = 1 - STAKES * got / max(possible)
            money = money * np.concatenate([up, down])
            assert (money > -1e-12).all()
            most = max(most, money.mean())
        drawn.append(int(item))
    return most


def test_the_gamblers_are_those_of_the_docstring() -> None:
    scores, truth = pool(1, items=60, prior=0.4)
    design = audit_sample(scores, size=30, seed=2)
    answers = answered(design, truth, 30)
    for threshold in (0.5, 0.3):  # a cut between strata, and one inside a stratum
        sample = _sample(scores, design, scores > threshold, *counted_answers(design, answers))
        for name, value in (("recall", 0.4), ("f1", 0.9), ("positives", 20.0), ("left", 15.0)):
            a, b, c = _equation(name, np.array([value]), sample.called)
            fast = _most_money(_game(sample), a, b, c)
            weights = (float(a[0]), float(b[0]))
            slow = slow_money(scores, design, answers, threshold, weights, float(c[0]))
            assert fast[0] == pytest.approx(math.log(slow), abs=1e-9)


def test_every_draw_gives_an_unbiased_number_also_with_bad_scores() -> None:
    """The mean of X_t - c over many draws is 0 at every turn if c is the truth."""
    scores, truth = pool(5, items=40, prior=0.3, shift=3.0)
    numbers = []
    for seed in range(400):
        design = audit_sample(scores, size=18, seed=seed)
        answers = answered(design, truth, 18)
        sample = _sample(scores, design, scores > 0.5, *counted_answers(design, answers))
        a, b, c = _equation("positives", np.array([float(truth.sum())]), sample.called)
        game = _game(sample)
        weight = np.where(game.above[:, None], a, b)
        known = game.total @ weight - c
        mean = known[:, 0] + game.outcome * weight[game.cell][:, 0]
        numbers.append(mean)
        assert _most_money(game, a, b, c) >= 0
    errors = np.array(numbers)
    spread = errors.std(axis=0) / len(errors) ** 0.5
    assert (np.abs(errors.mean(axis=0)) < 4.5 * spread).all()


@pytest.mark.parametrize(("prior", "gap", "shift"), [(0.02, 3, 0), (0.3, 1.5, 0), (0.1, 0.3, 3)])
def test_intervals_hold_the_truth_at_all_looks_together(
    prior: float, gap: float, shift: float
) -> None:
    missed = dict.fromkeys(FIGURES, 0)
    pools = 12  # the campaign is benchmarks/audit.py
    for seed in range(pools):
        scores, truth = pool(seed, prior=prior, gap=gap, shift=shift)
        threshold = float(np.quantile(scores, 1 - prior))
        true = true_figures(scores, truth, threshold)
        design = audit_sample(scores, size=150, threshold=threshold, seed=seed)
        (found,) = audit_estimate(
            scores, design, answered(design, truth, 150), thresholds=[threshold]
        )
        for name, held in holds(found, true).items():
            missed[name] += not held
    # The money is followed over all answers: held at the end is held at every look. With
    # probability 0.95 or more for each of 12 pools, four misses are one in 400.
    assert max(missed.values()) < 4, missed


def test_values_are_unbiased() -> None:
    scores, truth = pool(3, items=300, prior=0.3, shift=1.0)
    values = []
    for seed in range(60):
        design = audit_sample(scores, size=60, seed=seed)
        (found,) = audit_estimate(scores, design, answered(design, truth, 60))
        values.append([found.figures[name].value for name in ("positives", "left", "precision")])
    true, drawn = true_figures(scores, truth, 0.5), np.array(values, dtype=np.float64)
    means, spread = drawn.mean(axis=0), drawn.std(axis=0) / 60**0.5
    expected = [true[name] for name in ("positives", "left", "precision")]
    assert (np.abs(means - expected) < 4 * spread).all()


def test_a_pool_answered_whole_leaves_only_the_truth() -> None:
    scores, truth = pool(2, items=80, prior=0.3)
    design = audit_sample(scores, size=80)
    (found,) = audit_estimate(scores, design, truth)
    for name, true in true_figures(scores, truth, 0.5).items():
        each = found.figures[name]
        assert each.low == each.high == each.value == pytest.approx(true)


def test_none_found_is_an_answer_with_an_upper_bound() -> None:
    scores = np.random.default_rng(0).random(2000) * 0.2
    design = audit_sample(scores, size=200, target="left")
    none = np.zeros(2000, dtype=np.int64)
    (found,) = audit_estimate(scores, design, answered(design, none, 200))
    left = found.figures["left"]
    assert (left.value, left.low) == (0, 0)
    assert left.high is not None
    assert 20 < left.high < 150  # three in two hundred would be 30
    assert found.figures["precision"].value is None  # nothing is called positive


def test_unsure_answers_widen_the_interval_on_both_sides() -> None:
    scores, truth = pool(4, prior=0.3)
    design = audit_sample(scores, size=200)
    sure = answered(design, truth, 200)
    unsure = sure.copy()
    unsure[design.order[20:200:9]] = UNKNOWN
    before, after = (audit_estimate(scores, design, each)[0].figures for each in (sure, unsure))
    for name in FIGURES:
        one, other = before[name], after[name]
        assert other.low is not None
        assert other.high is not None
        assert one.low is not None
        assert one.high is not None
        assert other.low < 1.01 * one.low or other.low == 0
        assert other.high > 0.99 * one.high
        assert other.worst < other.best  # type: ignore[operator]


def test_who_passes_an_item_over_gains_nothing() -> None:
    scores, truth = pool(6, prior=0.3)
    design = audit_sample(scores, size=100)
    answers = answered(design, truth, 100)
    passed = answers.copy()
    passed[design.order[[30, 60]]] = UNANSWERED
    _, given = counted_answers(design, passed)
    assert (given == UNKNOWN).sum() == 2
    passed[design.order[90:]] = UNANSWERED  # the end was not reached yet: no answers at all
    assert len(counted_answers(design, passed)[0]) == 90


def test_before_the_first_answer_everything_is_possible() -> None:
    scores, truth = pool(7, items=200)
    design = audit_sample(scores, size=20)
    (found,) = audit_estimate(scores, design, answered(design, truth, 0))
    positives = found.figures["positives"]
    assert (positives.value, positives.low, positives.high) == (None, 0, 200)


def test_more_answers_make_intervals_shorter() -> None:
    scores, truth = pool(8, prior=0.2)
    design = audit_sample(scores, size=600)
    lengths = []
    for count in (50, 150, 600):
        (found,) = audit_estimate(scores, design, answered(design, truth, count))
        each = found.figures["f1"]
        lengths.append(each.high - each.low)  # type: ignore[operator]
    assert lengths[0] > lengths[1] > lengths[2]


def test_impossible_input_is_refused() -> None:
    scores, truth = pool(9, items=50)
    design = audit_sample(scores, size=20)
    with pytest.raises(ConfigError, match="coverage"):
        audit_estimate(scores, design, truth, coverage=1.0)
    with pytest.raises(DataError, match="same items"):
        audit_estimate(scores[:-1], design, truth[:-1])
    with pytest.raises(DataError, match="POSITIVE, NEGATIVE"):
        audit_estimate(scores, design, truth + 5)
    assert {POSITIVE, NEGATIVE} == set(np.unique(truth))
