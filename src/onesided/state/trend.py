"""Trends: how the prediction of every training row changed during training.

| symbol  | code            | meaning                                                  |
|---------|-----------------|----------------------------------------------------------|
| p^(t)_i | `history[i, t]` | probability of positive of row i at the t-th recording   |
| d       | `difference`    | p of a later recording minus p of an earlier one         |
| psi     | `_influence`    | sign(d) log(1 + abs(d) + d^2 / 2): Catoni's influence    |
| TS_i    | `scores`        | mean of influences: a mean robust against single jumps   |
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor, nn

from onesided.core.errors import ContractError

Trend = Literal["consecutive", "symmetric", "pairwise"]
"""Which differences count, and how: from one recording to the next, with the released code's
one-sided logarithm; the same with Catoni's symmetric influence; all pairs, symmetric."""


class PredictionTrends(nn.Module):
    """The predictions of every row at every recording, in one table.

    Args:
        rows: Training rows.
        recordings: Columns of the table; fewer may be filled.
    """

    history: Tensor
    recorded: Tensor

    def __init__(self, rows: int, recordings: int) -> None:
        super().__init__()
        self.register_buffer("history", torch.zeros(rows, recordings))
        self.register_buffer("recorded", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def record(self, positive: Float[Tensor, "rows"]) -> None:
        """Store the current probability of positive of every row."""
        column = int(self.recorded)
        if column == self.history.shape[1]:
            raise ContractError(f"The table of trends is full after {column} recordings.")
        self.history[:, column] = positive.to(self.history)
        self.recorded.add_(1)

    def scores(self, trend: Trend) -> Float64[Tensor, "rows"]:
        """Return the trend score of every row: below zero where its prediction fell."""
        return trend_scores(self.history[:, : int(self.recorded)].double(), trend)

    def head_start(self, mask: Bool[Tensor, "rows"]) -> float:
        """Return the spread of the first recording over that of the last, on these rows.

        Rows that differ before the first recording show no trend. In 64 runs on a toy problem
        a value below 0.7 meant that 94 % of the rows or more got the right class; above 0.85 it
        was 10 to 93 %. The fall of the mean had no such relation.
        """
        first, last = self.history[mask, 0], self.history[mask, int(self.recorded) - 1]
        return float(first.double().std() / last.double().std().clamp(min=1e-12))


def trend_scores(
    history: Float64[Tensor, "rows recordings"], trend: Trend
) -> Float64[Tensor, "rows"]:
    """Return the mean influence of the differences between recordings.

    HolisticPU's trend score (Wang et al., 2023). Predictions of negatives in U fall steadily
    while the network learns P against U; those of positives go up and down. The released code
    takes consecutive recordings and log(1 + d + d^2 / 2) for both signs of d, which gives a fall
    a little less weight than an equal rise; its authors call that simplified.
    """
    recordings = history.shape[1]
    if recordings < 2:
        raise ContractError(f"A trend needs at least two recordings; got {recordings}.")
    if trend == "pairwise":
        lags = range(1, recordings)
        total = torch.stack([_influence(_differences(history, lag)).sum(1) for lag in lags]).sum(0)
        return total / (recordings * (recordings - 1) / 2)
    differences = _differences(history, 1)
    if trend == "symmetric":
        return _influence(differences).mean(dim=1)
    return (1 + differences + differences.square() / 2).log().mean(dim=1)


def _differences(
    history: Float64[Tensor, "rows recordings"], lag: int
) -> Float64[Tensor, "rows pairs"]:
    return history[:, lag:] - history[:, :-lag]


def _influence(difference: Float64[Tensor, "rows pairs"]) -> Float64[Tensor, "rows pairs"]:
    size = difference.abs()
    return difference.sign() * (size + size.square() / 2).log1p()
