"""Costs under pseudo labels: soft labels, and labels predicted by the network itself.

| symbol  | code              | meaning                                       |
|---------|-------------------|-----------------------------------------------|
| g       | `margin`          | logit of positive minus logit of negative     |
| p       | sigmoid(`margin`) | probability of positive                       |
| y       | `positive`        | soft label: how much of a positive, in [0, 1] |
| weak    | `teacher`         | margins of the weakly changed views           |
| strong  | `student`         | margins of the strongly changed views         |
| T       | `temperature`     | below 1 a prediction becomes more confident   |
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def soft_label_cost(margin: Float[Tensor, "n"], positive: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    """Return the cross entropy of each row against a soft label.

    -y log p - (1 - y) log(1 - p). With y = 1 - rho / 2 it is label smoothing by rho over
    two classes, as HolisticPU smooths its labelled positives.
    """
    return -(positive * F.logsigmoid(margin) + (1 - positive) * F.logsigmoid(-margin))


def confident_consistency(
    teacher: Float[Tensor, "n"], student: Float[Tensor, "n"], *, confidence: float
) -> Float[Tensor, "n"]:
    """Return the cost of strong views under the class of weak ones, where that is confident.

    FixMatch's term (Sohn et al., 2020), as HolisticPU uses it: zero where the confidence of
    the weak view is below `confidence`. Average over all rows, not over the confident ones, so
    that the term grows with what the network has learned. The teacher gets no gradient.
    """
    teacher = teacher.detach()
    sure = teacher.abs().sigmoid() >= confidence
    cost = -F.logsigmoid(torch.where(teacher > 0, student, -student))
    return cost.where(sure, 0.0)


def sharpened(
    probability: Float[Tensor, "n classes"], *, temperature: float
) -> Float[Tensor, "n classes"]:
    """Return more confident predictions: proportional to p^(1/T), each row summing to 1.

    MixMatch (Berthelot et al., NeurIPS 2019) does this to all its predictions, PiCO+ to those
    of unreliable rows. In logarithms, as the 14th power of a small number underflows.
    """
    return (probability.log() / temperature).softmax(dim=1)
