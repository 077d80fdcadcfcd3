"""LBE's likelihood and EM, against a table of all cases."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from onesided.losses.labelling_bias import expected_cost, hidden_positive, log_likelihood


def some(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    random = np.random.default_rng(seed)
    z, label_z = random.normal(scale=2, size=(2, 25))
    return torch.from_numpy(z), torch.from_numpy(label_z), torch.arange(25) < 9


def joint(z: float, label_z: float) -> dict[tuple[int, int], float]:
    """Return P(y, s | x) of the graphical model: x to y, and x and y to s."""
    h, eta = 1 / (1 + math.exp(-z)), 1 / (1 + math.exp(-label_z))
    return {(1, 1): h * eta, (1, 0): h * (1 - eta), (0, 1): 0.0, (0, 0): 1 - h}


def test_the_e_step_is_bayes_rule() -> None:
    z, label_z, _ = some()
    for found, a, b in zip(hidden_positive(z, label_z), z, label_z, strict=True):
        table = joint(float(a), float(b))
        assert float(found) == pytest.approx(table[1, 0] / (table[1, 0] + table[0, 0]))


def test_the_likelihood_sums_over_both_classes() -> None:
    z, label_z, labelled = some()
    total = 0.0
    for a, b, s in zip(z, label_z, labelled, strict=True):
        table = joint(float(a), float(b))
        total += math.log(table[1, int(s)] + table[0, int(s)])
    assert float(log_likelihood(z, label_z, labelled)) == pytest.approx(total / 25)


def posterior_of(z: Tensor, label_z: Tensor, labelled: Tensor) -> Tensor:
    return torch.where(labelled, 1.0, hidden_positive(z, label_z))


def test_the_m_step_expects_the_log_of_the_joint_probability() -> None:
    z, label_z, labelled = some()
    q = posterior_of(*some(1)[:2], labelled)
    total = 0.0
    for a, b, s, one in zip(z, label_z, labelled, q, strict=True):
        table = joint(float(a), float(b))
        for y, share in ((1, float(one)), (0, 1 - float(one))):
            if share:
                total -= share * math.log(table[y, int(s)])
    of_class, of_label = expected_cost(z, label_z, labelled, q)
    assert float(of_class + of_label) == pytest.approx(total / 25)


def bound(z: Tensor, label_z: Tensor, labelled: Tensor, q: Tensor) -> float:
    """Return the expected log joint probability plus the entropy of q."""
    of_class, of_label = expected_cost(z, label_z, labelled, q)
    entropy = -(torch.xlogy(q, q) + torch.xlogy(1 - q, 1 - q)).mean()
    return float(entropy - of_class - of_label)


def test_the_bound_touches_the_likelihood_at_the_e_step_and_nowhere_exceeds_it() -> None:
    """Why EM never lowers the likelihood."""
    z, label_z, labelled = some()
    truth = float(log_likelihood(z, label_z, labelled))
    exact = posterior_of(z, label_z, labelled)
    assert bound(z, label_z, labelled, exact) == pytest.approx(truth)
    for factor in (0.1, 0.7, 0.99):
        other = torch.where(labelled, 1.0, exact * factor)
        assert bound(z, label_z, labelled, other) < truth


def test_one_number_by_hand() -> None:
    """With h = eta = 1/2 a third of the unlabelled are positive, and a quarter is labelled."""
    zero = torch.zeros(1)
    assert float(hidden_positive(zero, zero)) == pytest.approx(1 / 3)
    assert float(log_likelihood(zero, zero, zero == 0)) == pytest.approx(math.log(1 / 4))


def test_the_likelihood_cannot_tell_class_from_labelling() -> None:
    z, label_z, labelled = some()
    first, second = log_likelihood(z, label_z, labelled), log_likelihood(label_z, z, labelled)
    assert float(first) == pytest.approx(float(second)), "where EM starts decides which is which"


def test_rows_that_are_sure_cost_a_finite_number() -> None:
    sure = torch.tensor([200.0, -200.0, 200.0])
    labelled = torch.tensor([True, False, False])
    assert math.isfinite(float(log_likelihood(sure, sure, labelled)))
    assert all(map(math.isfinite, expected_cost(sure, sure, labelled, torch.ones(3))))
    assert hidden_positive(sure, sure.flip(0)).isfinite().all()
