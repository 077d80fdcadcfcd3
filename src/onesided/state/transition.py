"""The transition matrix: how often each class has which label.

`matrix[c, y]` is the probability of label y for a sample of class c; rows sum to one.
Columns and rows go by NEGATIVE and POSITIVE.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from onesided.core.labels import NEGATIVE, POSITIVE

Objective = Callable[[Tensor], Tensor]
"""From a matrix to the number to minimise."""


class LearnedTransition(nn.Module):
    """A matrix that is learned by an objective of its own (WSC).

    T = rownorm(I + sigmoid(W) off the diagonal), so the diagonal is at least 0.5 and T stays
    invertible. W is state and not a parameter of the network: it takes plain gradient steps
    with its own rate, without momentum, decay or schedule, and the same in every process.

    Args:
        scale: W starts at minus this number everywhere; the larger, the nearer to identity.
    """

    weights: Tensor

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.register_buffer("weights", torch.full((2, 2), -scale))

    @property
    def matrix(self) -> Float[Tensor, "2 2"]:
        """The matrix, without gradient."""
        return row_stochastic(self.weights)

    def descend(self, objective: Objective, *, rate: float) -> None:
        """Take one plain gradient step on an objective of the matrix."""
        with torch.enable_grad():
            weights = self.weights.clone().requires_grad_(True)
            (gradient,) = torch.autograd.grad(objective(row_stochastic(weights)), weights)
        self.weights.sub_(rate * gradient)


class KnownTransition(nn.Module):
    """The matrix of PU data whose prior is known: negatives have no positive label.

    A positive is labelled with probability a = n_p / (n_p + prior x n_u).
    """

    matrix: Tensor

    def __init__(self, labelled: int, unlabelled: int, prior: float) -> None:
        super().__init__()
        shown = labelled / (labelled + prior * unlabelled)
        matrix = torch.zeros(2, 2)
        matrix[POSITIVE, POSITIVE] = shown
        matrix[POSITIVE, NEGATIVE] = 1 - shown
        matrix[NEGATIVE, NEGATIVE] = 1.0
        self.register_buffer("matrix", matrix)


def row_stochastic(weights: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
    """Return rownorm(I + sigmoid(W) off the diagonal)."""
    itself = torch.eye(len(weights), dtype=weights.dtype, device=weights.device)
    raw = itself + torch.sigmoid(weights) * (1 - itself)
    return raw / raw.sum(dim=1, keepdim=True)
