"""Learning through noisy labels: the label seen is the class turned over by a matrix T.

| paper (WSC)  | code                | meaning                                            |
|--------------|---------------------|----------------------------------------------------|
| p = f(x)     | softmax(`logits`)   | class probabilities, columns NEGATIVE and POSITIVE |
| T            | `transition`        | T[c, y]: probability to see label y on class c     |
| y~           | `labelled`          | POSITIVE where labelled, NEGATIVE elsewhere        |
| L_bal        | `class_balance_loss` | keeps the mean prediction from one class          |

In PU data the noise is one-sided: labelled rows are positive, and a share of the
positives carries the label "negative" because nobody labelled them.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.losses.classification import mean_or_zero

LEAST_SHARE = 1e-6


def transition_cross_entropy(
    logits: Float[Tensor, "n 2"], transition: Float[Tensor, "2 2"], labelled: Bool[Tensor, "n"]
) -> Float[Tensor, "n"]:
    """Return -log of the probability (p T)_y that each row shows the label it shows.

    Forward correction (Patrini et al., CVPR 2017), WSC's supervised term. Taken in
    logarithms throughout: the published code takes the logarithm of the product, which
    underflows for a sure classifier and a matrix with a zero in it.
    """
    label = torch.where(labelled, POSITIVE, NEGATIVE)
    log_transition = transition.log().T[label]  # (n, 2): log T[c, y] of each row's label
    return -(logits.log_softmax(dim=1) + log_transition).logsumexp(dim=1)


def mean_transition_loss(
    logits: Float[Tensor, "n 2"], transition: Float[Tensor, "2 2"], labelled: Bool[Tensor, "n"]
) -> Float[Tensor, ""]:
    """Return WSC's supervised term as published: the mean over the batch.

    On PU data it collapses. Few positives are labelled (one in twenty), and a learned T,
    whose diagonal exceeds one half, cannot say so: all-negative fits best.
    """
    return transition_cross_entropy(logits, transition, labelled).mean()


def balanced_transition_loss(
    logits: Float[Tensor, "n 2"], transition: Float[Tensor, "2 2"], labelled: Bool[Tensor, "n"]
) -> Float[Tensor, ""]:
    """Return half of the mean over P plus half of the mean over U.

    WSC as the NcPU authors ran it on PU data. Weighing P as much as U, a positive shows its
    label with probability 1 / (1 + prior), which exceeds one half whatever the number
    of labels: T can say it, and the collapse is gone.
    """
    cost = transition_cross_entropy(logits, transition, labelled)
    return (mean_or_zero(cost, labelled) + mean_or_zero(cost, ~labelled)) / 2


def class_balance_loss(logits: Float[Tensor, "n 2"]) -> Float[Tensor, ""]:
    """Return the cross entropy of the mean prediction against equal shares.

    WSC's balance term: smallest, log 2, where half of the batch is called positive. A
    hidden prior of one half, so it belongs to data that is not far from it.
    """
    share = logits.softmax(dim=1).mean(dim=0)
    return -share.clamp(min=LEAST_SHARE).log().mean()
