"""The variational PU loss and its mixup term: vPU.

| symbol  | code                          | meaning                                        |
|---------|-------------------------------|------------------------------------------------|
| Phi(x)  | exp of a log Phi              | positiveness in (0, 1], up to a common factor  |
| P, U    | `positive`, `unlabelled`      | log Phi of labelled and of unlabelled samples  |
| x~      | `mixed`                       | log Phi of a x_U + (1 - a) x_P                 |
| a       | `share`                       | share of the unlabelled sample in the mixture  |
| T       | exp of `log_target`           | what Phi(x~) should be                         |

All in logarithms: log Phi = logsigmoid(margin) is exact where Phi rounds to 0 or 1.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def variational_loss(
    positive: Float[Tensor, "p"], unlabelled: Float[Tensor, "u"]
) -> Float[Tensor, ""]:
    """Return log(mean over U of Phi) - mean over P of log Phi.

    L_var (Chen et al. 2020): up to a constant the divergence of the distribution of P from
    the one that Phi makes of U, Phi p_U / E_U[Phi]. Its minimum -KL(p_P || p_U) lies where
    Phi is proportional to p_P / p_U, that is to the posterior, without a prior. As p_P / p_U <=
    1 / pi, exp(L_var) falls below pi only by overfitting. A group without rows costs zero.
    """
    attraction = positive.sum() / max(len(positive), 1)
    if len(unlabelled) == 0:
        return -attraction
    return unlabelled.logsumexp(dim=0) - math.log(len(unlabelled)) - attraction


def mixed_log_target(unlabelled: Float[Tensor, "n"], share: float) -> Float[Tensor, "n"]:
    """Return log T = log(a Phi(x_U) + (1 - a)): between U's positiveness and P's, which is 1.

    vPU's mixup target (Chen et al. 2020). Not detached: as published, the target has a gradient;
    pass a detached `unlabelled` where it should have none.
    """
    log_share = math.log(share) if share > 0 else -math.inf
    log_rest = math.log1p(-share) if share < 1 else -math.inf
    return torch.logaddexp(unlabelled + log_share, unlabelled.new_full((), log_rest))


def mixup_loss(mixed: Float[Tensor, "n"], log_target: Float[Tensor, "n"]) -> Float[Tensor, ""]:
    """Return the mean of (log T - log Phi(x~)) squared; zero without mixtures.

    vPU's consistency term (Chen et al. 2020). Without it a flexible network makes Phi small
    everywhere except on P.
    """
    return (log_target - mixed).square().sum() / max(len(mixed), 1)
