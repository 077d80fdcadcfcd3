"""Probabilities from the answers of an audit, beside those from P, U and the prior."""

import numpy as np
import pytest

from onesided.core.labels import UNKNOWN
from onesided.metrics.audit import UNANSWERED, decided_answers
from onesided.metrics.audit_design import AuditDesign, audit_sample
from onesided.metrics.calibration import Calibration
from onesided.run.audited import FEWEST_OF_A_CLASS, audited_probabilities

WRONG = Calibration(scores=(0.0, 1.0), probabilities=(0.5, 1.0), basis="prior")


def pool(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return scores, and classes of which a share of score squared is positive."""
    random = np.random.default_rng(seed)
    scores = random.random(4000)
    return scores, (random.random(4000) < scores**2).astype(np.int64)


def answered(scores: np.ndarray, truth: np.ndarray, size: int) -> tuple[AuditDesign, np.ndarray]:
    design = audit_sample(scores, size=size, threshold=0.7)
    answers = np.full(len(scores), UNANSWERED)
    answers[design.order] = truth[design.order]
    return design, answers


def test_each_answer_stands_for_its_part_of_the_pool() -> None:
    scores, truth = pool()
    design, answers = answered(scores, truth, 200)
    answers[design.order[::7]] = UNKNOWN
    found = decided_answers(design, answers)
    assert found.weights.sum() == pytest.approx(len(scores))
    assert np.isin(answers[found.rows], (0, 1)).all()
    assert len(np.unique(found.weights.round(6))) > 1, "the draw is not uniform"


def test_answers_correct_probabilities_that_p_made_wrong() -> None:
    scores, truth = pool()
    design, answers = answered(scores, truth, 400)
    found = audited_probabilities(scores, design, answers, WRONG)
    assert found.now is not None
    assert found.now.basis == "answers"
    assert np.abs(found.now.of(scores) - scores**2).mean() < 0.06
    assert found.reliability is not None
    assert found.reliability_before is not None
    assert found.reliability_before.low > found.reliability.high
    rising = found.now.of(np.sort(scores))
    assert (np.diff(rising) >= 0).all()
    assert "neither on a typical P nor on a prior" in found.explained


def test_its_error_is_told_from_answers_that_a_curve_did_not_see() -> None:
    # With classes by a coin, a curve fitted to 60 answers fits them and nothing else.
    scores, _ = pool()
    truth = np.random.default_rng(1).integers(0, 2, len(scores))
    design, answers = answered(scores, truth, 60)
    found = audited_probabilities(scores, design, answers, None)
    assert found.reliability is not None
    assert found.reliability.error > 0.1


def test_too_few_answers_leave_what_there_was_and_say_so() -> None:
    scores, truth = pool()
    design, answers = answered(scores, truth, 40)
    few = audited_probabilities(scores, design, answers, WRONG)
    assert few.now == WRONG
    assert few.reliability is None
    assert "there are 40" in few.explained
    assert "stay" in few.explained
    rare = np.where(scores > np.sort(scores)[-5], 1, 0)
    design, answers = answered(scores, rare, 100)
    one_sided = audited_probabilities(scores, design, answers, None)
    assert one_sided.now is None
    assert f"{FEWEST_OF_A_CLASS} of either class" in one_sided.explained
