"""Learning from noisy labels: a matrix T turns the class into the observed label.

| paper (WSC)  | code                | meaning                                            |
|--------------|---------------------|----------------------------------------------------|
| p = f(x)     | softmax(`logits`)   | class probabilities, columns NEGATIVE and POSITIVE |
| T            | `transition`        | T[c, y]: probability of label y for class c        |
| y~           | `labelled`          | POSITIVE where labelled, NEGATIVE elsewhere        |
| L_bal        | `class_balance_loss` | keeps predictions from being all of one class     |

In PU data the noise is one-sided: labelled rows are positive, and unlabelled positives have
the label "negative".
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
    """Return -log of the probability (p T)_y of each row's observed label.

    Forward correction (Patrini et al., CVPR 2017), WSC's supervised term. All in logarithms:
    the published code takes the logarithm of the product, which underflows for a confident
    classifier and a matrix with a zero.
    """
    label = torch.where(labelled, POSITIVE, NEGATIVE)
    log_transition = transition.log().T[label]  # (n, 2): log T[c, y] of each row's label
    return -(logits.log_softmax(dim=1) + log_transition).logsumexp(dim=1)


def mean_transition_loss(
    logits: Float[Tensor, "n 2"], transition: Float[Tensor, "2 2"], labelled: Bool[Tensor, "n"]
) -> Float[Tensor, ""]:
    """Return WSC's supervised term as published: the mean over the batch.

    On PU data it collapses. Few positives are labelled (one in twenty), which a learned T, whose
    diagonal exceeds 0.5, cannot represent: all-negative predictions fit best.
    """
    return transition_cross_entropy(logits, transition, labelled).mean()


def balanced_transition_loss(
    logits: Float[Tensor, "n 2"], transition: Float[Tensor, "2 2"], labelled: Bool[Tensor, "n"]
) -> Float[Tensor, ""]:
    """Return half of the mean over P plus half of the mean over U.

    WSC as the NcPU authors ran it on PU data. With equal weights of P and U, a positive is
    labelled with probability 1 / (1 + prior), which exceeds 0.5 for any number of labels: T
    can represent it, and predictions do not collapse.
    """
    cost = transition_cross_entropy(logits, transition, labelled)
    return (mean_or_zero(cost, labelled) + mean_or_zero(cost, ~labelled)) / 2


def class_balance_loss(logits: Float[Tensor, "n 2"]) -> Float[Tensor, ""]:
    """Return the cross entropy of the mean prediction against equal shares.

    WSC's balance term. Its minimum, log 2, is where half of the batch is called positive. It
    assumes a prior of about 0.5, so it suits data with such a prior.
    """
    share = logits.softmax(dim=1).mean(dim=0)
    return -share.clamp(min=LEAST_SHARE).log().mean()
