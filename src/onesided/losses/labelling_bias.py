"""A positive is labelled with a probability of its own: LBE's likelihood and its EM.

| symbol  | code                | meaning                                                    |
|---------|---------------------|------------------------------------------------------------|
| h(x)    | sigmoid(`z`)        | P(y = 1 given x), true class                               |
| eta(x)  | sigmoid(`label_z`)  | P(s = 1 given y = 1, x), whether a positive is labelled    |
| s       | `labelled`          | a negative is never labelled                               |
| q(x)    | `posterior`         | P(y = 1 given x, s) by the model of the step before        |

    P(s = 1 | x) = h eta        P(s = 0 | x) = (1 - h) + h (1 - eta)

Gong et al., TPAMI 2021. All in logarithms, so that no sure row gives an infinite cost.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor


def hidden_positive(z: Float[Tensor, "n"], label_z: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    """Return P(y = 1 | x, s = 0) = h (1 - eta) / (1 - h eta), the E-step for unlabelled rows.

    Its log odds are log h - log(1 - h) + log(1 - eta).
    """
    return (z + F.logsigmoid(-label_z)).sigmoid()


def expected_cost(
    z: Float[Tensor, "n"],
    label_z: Float[Tensor, "n"],
    labelled: Bool[Tensor, "n"],
    posterior: Float[Tensor, "n"],
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Return the two parts of the M-step's cost: of the true class, and of the labelling.

    The expectation over q of -log P(y | x) and of -log P(s | y, x), each a mean over all rows:
    -q log h - (1 - q) log(1 - h), and -q (s log eta + (1 - s) log(1 - eta)).
    """
    of_class = -(posterior * F.logsigmoid(z) + (1 - posterior) * F.logsigmoid(-z))
    of_label = -posterior * F.logsigmoid(torch.where(labelled, label_z, -label_z))
    return of_class.mean(), of_label.mean()


def log_likelihood(
    z: Float[Tensor, "n"], label_z: Float[Tensor, "n"], labelled: Bool[Tensor, "n"]
) -> Float[Tensor, ""]:
    """Return the mean of log P(s | x), which no exact step of EM lowers."""
    known = F.logsigmoid(z) + F.logsigmoid(label_z)
    unknown = torch.logaddexp(F.logsigmoid(-z), F.logsigmoid(z) + F.logsigmoid(-label_z))
    return torch.where(labelled, known, unknown).mean()
