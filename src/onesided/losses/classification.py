"""Cross entropies and entropy: soft targets (the paper's LDCE), positive against the rest.

| symbol   | code              | meaning                                                  |
|----------|-------------------|----------------------------------------------------------|
| f(x)     | softmax(`logits`) | class probabilities, columns NEGATIVE and POSITIVE       |
| s        | `target`          | soft label, same columns                                 |
| P, U     | `labelled`        | rows whose positive label was observed, and the others   |
| z        | `margin`          | logit of positive minus logit of negative                |
| H(f)     | `mean_entropy`    | -sum f log f                                             |

The paper numbers the classes 0 = positive, 1 = negative; here columns go by name.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from onesided.core.labels import NEGATIVE, POSITIVE


def p_positive(logits: Float[Tensor, "n 2"]) -> Float[Tensor, "n"]:
    """Return the probability of the positive class."""
    return logits.softmax(dim=1)[:, POSITIVE]


def margin(logits: Float[Tensor, "n 2"]) -> Float[Tensor, "n"]:
    """Return by how much the positive logit exceeds the negative one.

    The two-class softmax depends on this number alone: p(positive) = sigmoid(margin).
    """
    return logits[:, POSITIVE] - logits[:, NEGATIVE]


def mean_or_zero(values: Float[Tensor, "n"], mask: Bool[Tensor, "n"]) -> Float[Tensor, ""]:
    """Return the mean of the masked values, or a differentiable zero when there are none.

    Mixed batches sometimes hold no labelled positive (one in ten on ABCD): the term is then
    zero, instead of a NaN that would end the run.
    """
    return values.where(mask, 0).sum() / mask.sum().clamp(min=1)


def soft_cross_entropy(
    logits: Float[Tensor, "n 2"], target: Float[Tensor, "n 2"]
) -> Float[Tensor, "n"]:
    """Return the cross entropy of each row against its soft target.

    Label-disambiguation cross entropy (NcPU, Eq. 3). Softmax and logarithm are one function,
    so the cost of a confident mistake is large but finite.
    """
    return -(target * logits.log_softmax(dim=1)).sum(dim=1)


def positive_unlabelled_cross_entropy(
    logits: Float[Tensor, "n 2"], target: Float[Tensor, "n 2"], labelled: Bool[Tensor, "n"]
) -> Float[Tensor, ""]:
    """Return the mean cross entropy over P plus the mean cross entropy over U.

    The first two terms of NcPU's objective (Eq. 14). Two means instead of one give the
    few labelled positives (about 6 of 256 on CIFAR) the weight of all unlabelled rows.
    """
    cost = soft_cross_entropy(logits, target)
    return mean_or_zero(cost, labelled) + mean_or_zero(cost, ~labelled)


def class_weighted_cross_entropy(
    logits: Float[Tensor, "n 2"], target: Float[Tensor, "n 2"]
) -> Float[Tensor, ""]:
    """Return the mean cross entropy over positive plus that over negative target mass.

    Equals `positive_unlabelled_cross_entropy` while all of U has the target negative. Once
    positives are found in U, both classes still have equal weight. With equal weights of P and U,
    positives would weigh 1 + s against 1 - s, s being their share of U's targets.
    """
    cost = -target * logits.log_softmax(dim=1)
    mass = target.sum(dim=0)
    # The cost of a class without mass is 0.
    return (cost.sum(dim=0) / mass.clamp(min=torch.finfo(mass.dtype).tiny)).sum()


def plain_cross_entropy(
    margin: Float[Tensor, "n"], positive: Bool[Tensor, "n"]
) -> Float[Tensor, ""]:
    """Return the cross entropy of positive against the rest, averaged over the batch.

    An ordinary classifier that takes unlabelled rows as negatives; labelled positives have
    only the weight of their share of the batch.
    """
    return _cross_entropy(margin, positive).mean()


def balanced_cross_entropy(
    margin: Float[Tensor, "n"], positive: Bool[Tensor, "n"]
) -> Float[Tensor, ""]:
    """Return the cross entropy averaged within each class, then over the two classes.

    The form in which the NcPU authors ran "CE" and "Supervised": repeating every
    unlabelled row changes nothing. A batch of one class gives half of that class's mean.
    """
    cost = _cross_entropy(margin, positive)
    return (mean_or_zero(cost, positive) + mean_or_zero(cost, ~positive)) / 2


def _cross_entropy(margin: Float[Tensor, "n"], positive: Bool[Tensor, "n"]) -> Float[Tensor, "n"]:
    # Not softplus: torch's turns linear above 20, an error of 2e-9 that float64 would show.
    return -F.logsigmoid(torch.where(positive, margin, -margin))


def mean_entropy(logits: Float[Tensor, "n 2"]) -> Float[Tensor, ""]:
    """Return the mean entropy of the predicted class probabilities, in nats.

    The regularisation below Eq. 14 of the NcPU paper. Minimising it makes the classifier
    decide, so that pseudo targets do not stay near 0.5.
    """
    # exp(log p) * log p is 0 for p = 0; p.log() would be -inf and the product NaN.
    log_probability = logits.log_softmax(dim=1)
    return -(log_probability.exp() * log_probability).sum(dim=1).mean()
