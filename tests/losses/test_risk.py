import itertools
import math
from typing import Protocol

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onesided.core.errors import ConfigError, DataError
from onesided.losses.risk import (
    PURisk,
    RiskParts,
    Surrogate,
    imbalanced_risk,
    nnpu_risk,
    released_imbalanced_risk,
    risk_parts,
    surrogate_loss,
    upu_risk,
    zero_one_pu_risk,
)

PRIOR = 0.4
SURROGATES: list[Surrogate] = ["sigmoid", "logistic", "double_hinge"]

# Two batches: on the first the negative part is positive, on the second it is not.
CALM = ([2.0, -1.0], [0.5, -1.5])
MEMORISED = ([3.0, 2.0], [-3.0, -2.0])

Batch = tuple[list[float], list[float]]


class RiskFunction(Protocol):
    def __call__(self, parts: RiskParts, prior: float) -> PURisk: ...


MARGINS = st.lists(st.floats(-40, 40), min_size=1, max_size=8)
PRIORS = st.floats(0.01, 0.99)


def parts_of(batch: Batch, surrogate: Surrogate = "sigmoid") -> tuple[Tensor, RiskParts]:
    """Margins that can be differentiated, positives first, and the parts made of them."""
    positives, unlabelled = batch
    margins = torch.tensor([*positives, *unlabelled], dtype=torch.float64, requires_grad=True)
    labelled = torch.arange(len(margins)) < len(positives)
    return margins, risk_parts(margins, labelled, surrogate)


def gradient(risk: PURisk, margins: Tensor) -> list[float]:
    (by_margin,) = torch.autograd.grad(risk.objective, margins, retain_graph=True)
    values: list[float] = by_margin.tolist()
    return values


def scalar_loss(value: float, surrogate: Surrogate) -> float:
    """Cost for a positive label, as in textbooks."""
    if surrogate == "sigmoid":
        return 1 / (1 + math.exp(value))
    if surrogate == "logistic":
        return math.log(1 + math.exp(-value))
    return max(-value, 0.0, 0.5 - value / 2)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


# surrogates and parts


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_surrogates_are_their_textbook_formulas(surrogate: Surrogate) -> None:
    values = [-9.0, -1.0, -0.3, 0.0, 0.4, 1.0, 2.5]
    fast = surrogate_loss(torch.tensor(values, dtype=torch.float64), surrogate)
    assert fast.tolist() == pytest.approx([scalar_loss(value, surrogate) for value in values])


@given(MARGINS)
def test_the_sigmoid_loss_is_symmetric(values: list[float]) -> None:
    margins = torch.tensor(values, dtype=torch.float64)
    both = surrogate_loss(margins, "sigmoid") + surrogate_loss(-margins, "sigmoid")
    torch.testing.assert_close(both, torch.ones_like(margins), atol=1e-12, rtol=0)


@pytest.mark.parametrize("surrogate", ["logistic", "double_hinge"])
@given(values=MARGINS)
def test_the_convex_losses_differ_by_the_margin(surrogate: Surrogate, values: list[float]) -> None:
    margins = torch.tensor(values, dtype=torch.float64)
    difference = surrogate_loss(margins, surrogate) - surrogate_loss(-margins, surrogate)
    torch.testing.assert_close(difference, -margins, atol=1e-12, rtol=0)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_extreme_margins_give_finite_costs_and_gradients(surrogate: Surrogate) -> None:
    margins = torch.tensor([1e4, -1e4], requires_grad=True)
    cost = surrogate_loss(margins, surrogate)
    (by_margin,) = torch.autograd.grad(cost.sum(), margins)
    assert cost.isfinite().all()
    assert by_margin.isfinite().all()


@pytest.mark.parametrize(
    ("surrogate", "expected"),
    [
        ("sigmoid", (0.4251307503, 0.5748692497, 0.4024424275)),
        ("logistic", (0.7200948493, 1.2200948493, 0.5877451311)),
        ("double_hinge", (0.5, 1.0, 0.375)),
    ],
)
def test_parts_of_the_calm_batch(
    surrogate: Surrogate, expected: tuple[float, float, float]
) -> None:
    _, parts = parts_of(CALM, surrogate)
    assert (
        parts.positive_as_positive.item(),
        parts.positive_as_negative.item(),
        parts.unlabelled_as_negative.item(),
    ) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("surrogate", SURROGATES)
@given(positives=MARGINS, unlabelled=MARGINS)
def test_parts_are_means_over_each_group(
    surrogate: Surrogate, positives: list[float], unlabelled: list[float]
) -> None:
    _, parts = parts_of((positives, unlabelled), surrogate)
    assert parts.positive_as_positive.item() == pytest.approx(
        mean([scalar_loss(value, surrogate) for value in positives]), abs=1e-12
    )
    assert parts.positive_as_negative.item() == pytest.approx(
        mean([scalar_loss(-value, surrogate) for value in positives]), abs=1e-12
    )
    assert parts.unlabelled_as_negative.item() == pytest.approx(
        mean([scalar_loss(-value, surrogate) for value in unlabelled]), abs=1e-12
    )


def test_a_batch_without_positives_trains_on_the_unlabelled_alone() -> None:
    margins, parts = parts_of(([], [0.5, -1.5]))
    risk = nnpu_risk(parts, PRIOR)
    assert risk.value.item() == pytest.approx(0.4024424275, abs=1e-10)
    assert all(derivative > 0 for derivative in gradient(risk, margins))


def test_a_batch_without_unlabelled_gives_a_finite_step() -> None:
    margins, parts = parts_of(([2.0, -1.0], []))
    assert parts.unlabelled_as_negative.item() == 0
    for risk in (upu_risk(parts, PRIOR), nnpu_risk(parts, PRIOR), imbalanced_risk(parts, PRIOR)):
        assert all(math.isfinite(derivative) for derivative in gradient(risk, margins))


# uPU


@pytest.mark.parametrize(
    ("surrogate", "expected"),
    [("sigmoid", 0.3425470278), ("logistic", 0.3877451311), ("double_hinge", 0.175)],
)
def test_upu_risk_of_the_calm_batch(surrogate: Surrogate, expected: float) -> None:
    _, parts = parts_of(CALM, surrogate)
    risk = upu_risk(parts, PRIOR)
    assert risk.value.item() == pytest.approx(expected, abs=1e-10)
    assert risk.objective.item() == risk.value.item()
    assert not risk.ascending.item()


def test_upu_gradient_of_the_calm_batch() -> None:
    margins, parts = parts_of(CALM)
    expected = [-0.0419974342, -0.0786447733, 0.1175018561, 0.0745732260]
    assert gradient(upu_risk(parts, PRIOR), margins) == pytest.approx(expected, abs=1e-10)


@given(positives=MARGINS, unlabelled=MARGINS, prior=PRIORS)
def test_a_symmetric_loss_needs_only_one_term_over_positives(
    positives: list[float], unlabelled: list[float], prior: float
) -> None:
    _, parts = parts_of((positives, unlabelled))
    short = 2 * prior * parts.positive_as_positive + parts.unlabelled_as_negative - prior
    assert upu_risk(parts, prior).value.item() == pytest.approx(short.item(), abs=1e-12)


@pytest.mark.parametrize("surrogate", ["logistic", "double_hinge"])
@given(positives=MARGINS, unlabelled=MARGINS, prior=PRIORS)
def test_a_linear_odd_loss_makes_the_positive_term_linear(
    surrogate: Surrogate, positives: list[float], unlabelled: list[float], prior: float
) -> None:
    _, parts = parts_of((positives, unlabelled), surrogate)
    short = parts.unlabelled_as_negative.item() - prior * mean(positives)
    assert upu_risk(parts, prior).value.item() == pytest.approx(short, abs=1e-12)


def test_memorising_drives_upu_to_minus_the_prior() -> None:
    _, parts = parts_of(([40.0, 40.0], [-40.0, -40.0]))
    assert upu_risk(parts, PRIOR).value.item() == pytest.approx(-PRIOR, abs=1e-9)


@given(positives=MARGINS, unlabelled=MARGINS, prior=PRIORS)
def test_with_the_sigmoid_upu_never_falls_below_minus_the_prior(
    positives: list[float], unlabelled: list[float], prior: float
) -> None:
    _, parts = parts_of((positives, unlabelled))
    assert upu_risk(parts, prior).value.item() >= -prior - 1e-12


# A world of three points, in which every expectation is a short sum.

POINTS = [1.0, -0.5, -2.0]
P_POSITIVE, P_NEGATIVE, P_UNLABELLED = [0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [0.2, 0.35, 0.45]
WHOLE_WORLD = (POINTS[:2], 4 * POINTS[:1] + 7 * POINTS[1:2] + 9 * POINTS[2:])


def labelled_risk(surrogate: Surrogate, prior: float) -> float:
    """Risk computed with true negatives, which PU learning does not have."""
    on_positives = sum(
        share * scalar_loss(value, surrogate)
        for share, value in zip(P_POSITIVE, POINTS, strict=True)
    )
    on_negatives = sum(
        share * scalar_loss(-value, surrogate)
        for share, value in zip(P_NEGATIVE, POINTS, strict=True)
    )
    return prior * on_positives + (1 - prior) * on_negatives


@pytest.mark.parametrize(
    ("surrogate", "expected"),
    [("sigmoid", 0.2885525657), ("logistic", 0.3856968869), ("double_hinge", 0.1875)],
)
def test_upu_equals_the_risk_with_negatives_in_view(surrogate: Surrogate, expected: float) -> None:
    _, parts = parts_of(WHOLE_WORLD, surrogate)
    assert labelled_risk(surrogate, PRIOR) == pytest.approx(expected, abs=1e-10)
    assert upu_risk(parts, PRIOR).value.item() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("surrogate", "expected"),
    [("sigmoid", 0.3147438675), ("logistic", 0.4286922951), ("double_hinge", 0.21875)],
)
def test_imbalanced_risk_equals_the_balanced_risk_with_negatives_in_view(
    surrogate: Surrogate, expected: float
) -> None:
    _, parts = parts_of(WHOLE_WORLD, surrogate)
    assert labelled_risk(surrogate, 0.5) == pytest.approx(expected, abs=1e-10)
    assert imbalanced_risk(parts, PRIOR).value.item() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_over_all_possible_samples_upu_is_right_on_average_and_nnpu_too_large(
    surrogate: Surrogate,
) -> None:
    unbiased, non_negative = 0.0, 0.0
    for first, second in itertools.product(range(3), repeat=2):
        _, parts = parts_of(([POINTS[first]], [POINTS[second]]), surrogate)
        chance = P_POSITIVE[first] * P_UNLABELLED[second]
        unbiased += chance * upu_risk(parts, PRIOR).value.item()
        non_negative += chance * nnpu_risk(parts, PRIOR).value.item()
    assert unbiased == pytest.approx(labelled_risk(surrogate, PRIOR), abs=1e-12)
    assert non_negative > unbiased + 1e-3


# nnPU


def test_while_the_negative_part_is_positive_nnpu_is_upu() -> None:
    margins, parts = parts_of(CALM)
    risk = nnpu_risk(parts, PRIOR)
    assert risk.value.item() == pytest.approx(0.3425470278, abs=1e-10)
    assert gradient(risk, margins) == gradient(upu_risk(parts, PRIOR), margins)
    assert not risk.ascending.item()


@pytest.mark.parametrize("step", [1.0, 0.5])
def test_a_memorised_batch_is_climbed_back(step: float) -> None:
    margins, parts = parts_of(MEMORISED)
    risk = nnpu_risk(parts, PRIOR, step=step)
    assert risk.ascending.item()
    assert risk.objective.item() == pytest.approx(step * 0.2833598434, abs=1e-10)
    assert risk.value.item() == pytest.approx(0.0333257590, abs=1e-10)
    derivatives = [0.0090353319, 0.0209987171, -0.0225883299, -0.0524967927]
    expected = [step * derivative for derivative in derivatives]
    assert gradient(risk, margins) == pytest.approx(expected, abs=1e-10)


def test_parts_of_the_memorised_batch() -> None:
    _, parts = parts_of(MEMORISED)
    assert parts.positive_as_positive.item() == pytest.approx(0.0833143976, abs=1e-10)
    assert parts.positive_as_negative.item() == pytest.approx(0.9166856024, abs=1e-10)
    assert parts.unlabelled_as_negative.item() == pytest.approx(0.0833143976, abs=1e-10)
    assert upu_risk(parts, PRIOR).value.item() == pytest.approx(-0.2500340843, abs=1e-10)


def test_within_the_tolerance_nnpu_goes_on_descending() -> None:
    margins, parts = parts_of(MEMORISED)
    risk = nnpu_risk(parts, PRIOR, tolerance=0.3)
    assert risk.objective.item() == pytest.approx(-0.2500340843, abs=1e-10)
    assert gradient(risk, margins) == gradient(upu_risk(parts, PRIOR), margins)


def test_beyond_the_tolerance_the_report_stops_at_it() -> None:
    _, parts = parts_of(MEMORISED)
    risk = nnpu_risk(parts, PRIOR, tolerance=0.2)
    assert risk.ascending.item()
    assert risk.value.item() == pytest.approx(0.0333257590 - 0.2, abs=1e-10)


@pytest.mark.parametrize(("beyond", "ascends"), [(0.0, False), (2**-40, True)])
def test_exactly_at_the_tolerance_nnpu_descends(beyond: float, ascends: bool) -> None:
    def number(value: float) -> Tensor:
        return torch.tensor(value, dtype=torch.float64)

    # Powers of two, so that the negative part is exactly -0.25 - beyond.
    parts = RiskParts(number(0.125), number(1.0), number(0.25 - beyond))
    assert nnpu_risk(parts, 0.5, tolerance=0.25).ascending.item() is ascends


def test_a_clamp_would_push_positives_the_other_way() -> None:
    margins, parts = parts_of(MEMORISED)
    negative = parts.unlabelled_as_negative - PRIOR * parts.positive_as_negative
    clamped = PRIOR * parts.positive_as_positive + negative.clamp(min=0)
    (of_clamp,) = torch.autograd.grad(clamped, margins, retain_graph=True)
    of_nnpu = gradient(nnpu_risk(parts, PRIOR), margins)
    assert (of_clamp[:2] < 0).all()
    assert all(derivative > 0 for derivative in of_nnpu[:2])


@pytest.mark.parametrize("surrogate", SURROGATES)
@given(positives=MARGINS, unlabelled=MARGINS, prior=PRIORS)
def test_nnpu_is_never_below_upu_and_never_below_zero(
    surrogate: Surrogate, positives: list[float], unlabelled: list[float], prior: float
) -> None:
    _, parts = parts_of((positives, unlabelled), surrogate)
    plain, non_negative = upu_risk(parts, prior).value, nnpu_risk(parts, prior)
    assert non_negative.value >= plain
    assert non_negative.value >= 0
    negative = parts.unlabelled_as_negative - prior * parts.positive_as_negative
    if negative >= 0:
        assert non_negative.value == plain
    elif negative < -1e-9:  # a smaller difference can drown in rounding
        assert non_negative.value > plain


@pytest.mark.parametrize("batch", [CALM, MEMORISED])
@pytest.mark.parametrize(
    "risk_of", [upu_risk, nnpu_risk, imbalanced_risk, released_imbalanced_risk]
)
def test_the_objective_carries_a_gradient_and_the_report_does_not(
    batch: Batch, risk_of: RiskFunction
) -> None:
    _, parts = parts_of(batch)
    risk = risk_of(parts, PRIOR)
    assert risk.objective.requires_grad
    assert not risk.value.requires_grad


def test_the_branch_is_chosen_without_reading_the_number() -> None:
    # Tensors on "meta" have no values: an `if` on one of them raises.
    margins = torch.zeros(6, device="meta", requires_grad=True)
    parts = risk_parts(margins, torch.zeros(6, dtype=torch.bool, device="meta"), "sigmoid")
    for risk in (
        upu_risk(parts, PRIOR),
        nnpu_risk(parts, PRIOR),
        imbalanced_risk(parts, PRIOR),
        released_imbalanced_risk(parts, PRIOR),
    ):
        assert risk.objective.shape == risk.ascending.shape == ()


# imbalanced nnPU


def test_imbalanced_risk_of_the_calm_batch() -> None:
    _, parts = parts_of(CALM)
    risk = imbalanced_risk(parts, PRIOR)
    negative = risk.value - 0.5 * parts.positive_as_positive
    assert negative.item() == pytest.approx(0.1437456064, abs=1e-10)
    assert risk.value.item() == pytest.approx(0.3563109815, abs=1e-10)


@pytest.mark.parametrize("risk_of", [imbalanced_risk, released_imbalanced_risk])
def test_both_imbalanced_forms_climb_alike(risk_of: RiskFunction) -> None:
    margins, parts = parts_of(MEMORISED)
    risk = risk_of(parts, PRIOR)
    assert risk.ascending.item()
    assert risk.objective.item() == pytest.approx(0.2361332028, abs=1e-10)
    assert risk.value.item() == pytest.approx(0.0416571988, abs=1e-10)
    weight = 0.5 / (1 - PRIOR)
    of_nnpu = gradient(nnpu_risk(parts, PRIOR), margins)
    assert gradient(risk, margins) == pytest.approx([weight * derivative for derivative in of_nnpu])


def test_the_released_form_descends_like_nnpu() -> None:
    margins, parts = parts_of(CALM)
    risk = released_imbalanced_risk(parts, PRIOR)
    assert risk.value.item() == pytest.approx(0.3425470278, abs=1e-10)
    assert gradient(risk, margins) == gradient(nnpu_risk(parts, PRIOR), margins)


@given(positives=MARGINS, unlabelled=MARGINS, prior=PRIORS)
def test_without_a_change_of_prior_the_imbalanced_risk_is_nnpu(
    positives: list[float], unlabelled: list[float], prior: float
) -> None:
    margins, parts = parts_of((positives, unlabelled))
    plain, imbalanced = nnpu_risk(parts, prior), imbalanced_risk(parts, prior, target_prior=prior)
    assert imbalanced.value.item() == plain.value.item()
    assert imbalanced.objective.item() == plain.objective.item()
    assert imbalanced.ascending.item() == plain.ascending.item()
    assert gradient(imbalanced, margins) == gradient(plain, margins)


# the error rate for validation


def test_pu_error_rate_of_a_tenth_missed_and_45_percent_called_positive() -> None:
    positives, unlabelled = [1.0] * 9 + [-1.0], [1.0] * 9 + [-1.0] * 11
    margins = torch.tensor(positives + unlabelled, dtype=torch.float64)
    risk = zero_one_pu_risk(margins, torch.arange(30) < 10, PRIOR)
    assert risk.item() == pytest.approx(0.13, abs=1e-12)


def test_pu_error_rate_is_the_true_error_rate_when_positives_are_representative() -> None:
    # U holds 4 positives, of which 1 is missed, and 6 negatives, of which 2 are taken.
    positives, negatives = [1.0, 1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0, -1.0, -1.0]
    margins = torch.tensor(positives + positives + negatives, dtype=torch.float64)
    risk = zero_one_pu_risk(margins, torch.arange(14) < 4, PRIOR)
    assert risk.item() == pytest.approx(3 / 10, abs=1e-12)


def test_a_margin_of_zero_is_called_negative() -> None:
    margins = torch.tensor([0.0, 0.0], dtype=torch.float64)
    risk = zero_one_pu_risk(margins, torch.tensor([True, False]), PRIOR)
    assert risk.item() == pytest.approx(2 * PRIOR - PRIOR, abs=1e-12)


@pytest.mark.parametrize("labelled", [True, False])
def test_an_error_rate_from_one_group_alone_is_refused(labelled: bool) -> None:
    with pytest.raises(DataError, match="needs labelled positives and unlabelled samples"):
        zero_one_pu_risk(torch.zeros(3), torch.full((3,), labelled), PRIOR)


# bad priors


@pytest.mark.parametrize("prior", [0.0, 1.0, 1.2, -0.1, math.nan])
def test_a_prior_outside_zero_and_one_is_refused_with_a_remedy(prior: float) -> None:
    margins, parts = parts_of(CALM)
    labelled = torch.arange(4) < 2
    remedy = r"got prior .+\. A class prior lies between 0 and 1; pass prior = \"auto\""
    with pytest.raises(ConfigError, match="uPU " + remedy):
        upu_risk(parts, prior)
    with pytest.raises(ConfigError, match="nnPU " + remedy):
        nnpu_risk(parts, prior)
    with pytest.raises(ConfigError, match="imbalanced nnPU " + remedy):
        imbalanced_risk(parts, prior)
    with pytest.raises(ConfigError, match="imbalanced nnPU " + remedy):
        released_imbalanced_risk(parts, prior)
    with pytest.raises(ConfigError, match="The PU error rate " + remedy):
        zero_one_pu_risk(margins, labelled, prior)


@pytest.mark.parametrize("target_prior", [0.0, 1.0, 1.5])
def test_a_target_prior_outside_zero_and_one_is_refused(target_prior: float) -> None:
    _, parts = parts_of(CALM)
    with pytest.raises(ConfigError, match=r"target_prior .+ 0\.5 gives both classes equal weight"):
        imbalanced_risk(parts, PRIOR, target_prior=target_prior)
