"""Risks estimated from positives and unlabelled rows: uPU, nnPU, imbalanced nnPU.

| symbol  | code                             | meaning                                      |
|---------|----------------------------------|----------------------------------------------|
| z       | `margin`                         | logit of positive minus logit of negative    |
| l(z)    | `surrogate_loss`                 | cost of z for a positive; l(-z) for negative |
| Rp+     | `RiskParts.positive_as_positive` | mean over P of l(z)                          |
| Rp-     | `RiskParts.positive_as_negative` | mean over P of l(-z)                         |
| Ru-     | `RiskParts.unlabelled_as_negative` | mean over U of l(-z)                       |
| Rneg    | `negative` in the formulas       | Ru- - pi Rp-: (1 - pi) x risk on negatives   |
| pi, pi' | `prior`, `target_prior`          | share of positives in U; share to learn for  |
| gamma   | `step`                           | factor of nnPU's ascent                      |
| beta    | `tolerance`                      | how negative Rneg may be before the ascent   |

U is a mixture, p_U = pi p_P + (1 - pi) p_N, so the cost of negatives can be computed without
negatives: (1 - pi) E_N = E_U - pi E_P. All three methods use this equation.
"""

from dataclasses import dataclass
from typing import Literal, assert_never

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from onesided.core.errors import ConfigError, DataError
from onesided.losses.classification import mean_or_zero

Surrogate = Literal["sigmoid", "logistic", "double_hinge"]
"""Smooth replacement of the zero-one loss."""


@dataclass(frozen=True)
class RiskParts:
    """The three batch means of which every risk consists: Rp+, Rp- and Ru-."""

    positive_as_positive: Float[Tensor, ""]
    positive_as_negative: Float[Tensor, ""]
    unlabelled_as_negative: Float[Tensor, ""]


@dataclass(frozen=True)
class PURisk:
    """A risk as it is minimised and as it is reported; in nnPU the two differ.

    Attributes:
        objective: What is differentiated.
        value: What is reported, without gradient.
        ascending: Whether this step reduces overfitting instead of the risk.
    """

    objective: Float[Tensor, ""]
    value: Float[Tensor, ""]
    ascending: Bool[Tensor, ""]


def surrogate_loss(margin: Float[Tensor, "n"], surrogate: Surrogate) -> Float[Tensor, "n"]:
    """Return the cost of each margin for a positive label; negate it for a negative one.

    The sigmoid is symmetric, l(z) + l(-z) = 1, hence bounded (du Plessis et al. 2014);
    logistic and double hinge are convex with l(z) - l(-z) = -z (du Plessis et al. 2015).
    """
    match surrogate:
        case "sigmoid":
            return (-margin).sigmoid()
        case "logistic":
            return -F.logsigmoid(margin)
        case "double_hinge":
            return torch.maximum(-margin, ((1 - margin) / 2).relu())
        case _:
            assert_never(surrogate)


def risk_parts(
    margin: Float[Tensor, "n"], labelled: Bool[Tensor, "n"], surrogate: Surrogate
) -> RiskParts:
    """Return the mean costs over P and U; a group without rows costs zero.

    Each group is divided by its own size, not by the batch: the few labelled positives
    represent all positives.
    """
    as_positive = surrogate_loss(margin, surrogate)
    as_negative = surrogate_loss(-margin, surrogate)
    return RiskParts(
        positive_as_positive=mean_or_zero(as_positive, labelled),
        positive_as_negative=mean_or_zero(as_negative, labelled),
        unlabelled_as_negative=mean_or_zero(as_negative, ~labelled),
    )


def upu_risk(parts: RiskParts, prior: float) -> PURisk:
    """Return the unbiased risk, pi Rp+ + Ru- - pi Rp-.

    uPU (du Plessis et al. 2014, 2015). Because it is unbiased it can fall below zero: a
    flexible network overfits by memorising P.
    """
    require_prior(prior, "uPU")
    risk = prior * parts.positive_as_positive + _negative_part(parts, prior)
    never = torch.zeros_like(risk, dtype=torch.bool)
    return PURisk(objective=risk, value=risk.detach(), ascending=never)


def nnpu_risk(
    parts: RiskParts, prior: float, *, step: float = 1.0, tolerance: float = 0.0
) -> PURisk:
    """Return uPU's risk with a negative part that must not fall below zero.

    nnPU (Kiryo et al. 2017, Algorithm 1). The negative part estimates a mean of costs. Below
    -tolerance (beta) the network has memorised P, and the step ascends along this part alone, by
    the factor `step` (gamma). A clamp would not be enough: it would still descend pi Rp+.
    """
    require_prior(prior, "nnPU")
    positive = prior * parts.positive_as_positive
    return _non_negative(positive, _negative_part(parts, prior), step, tolerance)


def imbalanced_risk(
    parts: RiskParts,
    prior: float,
    *,
    target_prior: float = 0.5,
    step: float = 1.0,
    tolerance: float = 0.0,
) -> PURisk:
    """Return nnPU's risk for another share of positives, `target_prior`.

    ImbPU (Su, Chen and Xu, IJCAI 2021): pi still removes the positives from U, pi' weighs
    the two classes. At pi' = 1/2 the boundary lies where the posterior is pi, which
    favours recall when positives are rare, and negatives when they are not. The tolerance
    applies to the weighted negative part.
    """
    require_prior(prior, "imbalanced nnPU")
    if not 0 < target_prior < 1:
        raise ConfigError(
            f"imbalanced nnPU got target_prior {target_prior}. It is a share between 0 and 1; "
            "0.5 gives both classes equal weight."
        )
    positive = target_prior * parts.positive_as_positive
    negative = (1 - target_prior) / (1 - prior) * _negative_part(parts, prior)
    return _non_negative(positive, negative, step, tolerance)


def released_imbalanced_risk(
    parts: RiskParts,
    prior: float,
    *,
    target_prior: float = 0.5,
    step: float = 1.0,
    tolerance: float = 0.0,
) -> PURisk:
    """Return what the NcPU authors ran as "ImbPU": nnPU with a re-weighted ascent.

    Differs: from ImbPU, whose descent that code computes and then overwrites by nnPU's. Only
    for the rows of their table; `imbalanced_risk` is the published method.
    """
    balanced = imbalanced_risk(
        parts, prior, target_prior=target_prior, step=step, tolerance=tolerance
    )
    plain = upu_risk(parts, prior)
    return PURisk(
        objective=torch.where(balanced.ascending, balanced.objective, plain.objective),
        value=torch.where(balanced.ascending, balanced.value, plain.value),
        ascending=balanced.ascending,
    )


def least_squares_ratio(
    margin: Float[Tensor, "n"], labelled: Bool[Tensor, "n"]
) -> Float[Tensor, ""]:
    """Return mean_U r^2 / 2 - mean_P r, whose minimum is the density ratio r = p_P / p_U.

    LSIF (Kanamori, Hido and Sugiyama 2009), one of two ways to the ratio in PUSB (Kato, Teshima
    and Honda 2019). It equals half of E_U (r - p_P / p_U)^2 but for a constant. A ratio is not
    negative: r = log(1 + exp z).
    """
    ratio = F.softplus(margin)
    return mean_or_zero(ratio.square(), ~labelled) / 2 - mean_or_zero(ratio, labelled)


def zero_one_pu_risk(
    margin: Float[Tensor, "n"], labelled: Bool[Tensor, "n"], prior: float
) -> Float[Tensor, ""]:
    """Return the error rate estimated from P and U, to validate without negatives.

    uPU's risk of the zero-one loss (Kiryo et al. 2017): 2 pi err_P + err_U - pi, with err_P
    the share of P called negative and err_U the share of U called positive. A margin of
    exactly 0 is called negative. Sampling noise can make the estimate negative.
    """
    require_prior(prior, "The PU error rate")
    if labelled.all() or not labelled.any():
        raise DataError(
            "The PU error rate needs labelled positives and unlabelled samples; "
            f"got {int(labelled.sum())} labelled of {len(labelled)}."
        )
    called_positive = (margin > 0).to(margin.dtype)
    missed = mean_or_zero(1 - called_positive, labelled)
    return 2 * prior * missed + mean_or_zero(called_positive, ~labelled) - prior


def _negative_part(parts: RiskParts, prior: float) -> Float[Tensor, ""]:
    return parts.unlabelled_as_negative - prior * parts.positive_as_negative


def _non_negative(
    positive: Float[Tensor, ""], negative: Float[Tensor, ""], step: float, tolerance: float
) -> PURisk:
    # On the device: an `if` would stop the GPU in every step and break the graph of
    # torch.compile.
    ascending = negative.detach() < -tolerance
    risk = positive + negative
    return PURisk(
        objective=torch.where(ascending, -step * negative, risk),
        value=torch.where(ascending, positive - tolerance, risk).detach(),
        ascending=ascending,
    )


def require_prior(prior: float, method: str) -> None:
    """Refuse a class prior that is not between 0 and 1."""
    if not 0 < prior < 1:
        raise ConfigError(
            f"{method} got prior {prior:g}. A class prior lies between 0 and 1; "
            'pass prior = "auto" to estimate it.'
        )
