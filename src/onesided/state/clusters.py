"""Clusters of training rows, as of the last `regroup`."""

from random import getstate, setstate

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

POINTS_PER_CLUSTER = 1000
ITERATIONS = 20
RESTARTS = 5


class Clusters(nn.Module):
    """The cluster of every training row; all in one before the first `regroup`."""

    member: Tensor

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.register_buffer("member", torch.zeros(rows, dtype=torch.int64))

    @torch.no_grad()
    def regroup(
        self, features: Float[Tensor, "rows dim"], *, count: int, random: np.random.Generator
    ) -> None:
        """Cluster all rows anew by k-means (LaGAM: 20 iterations, 5 restarts).

        Centres are found on at most 1000 rows per cluster: more would cost time and change
        nothing. On one thread, because with several the order of sums varies, and a repeated
        run would differ.
        """
        points = features.cpu().numpy()
        count = min(count, len(points))
        chosen = np.sort(random.permutation(len(points))[: count * POINTS_PER_CLUSTER])
        member = _k_means(points, chosen, count, seed=int(random.integers(2**31)))
        self.member.copy_(torch.from_numpy(member))

    def together(self, row: Int64[Tensor, "batch"]) -> Bool[Tensor, "batch batch"]:
        """Return which pairs of these rows share a cluster."""
        member = self.member[row]
        return member[:, None] == member[None, :]


def _k_means(
    points: Float[np.ndarray, "rows dim"], chosen: Int64[np.ndarray, "n"], count: int, *, seed: int
) -> Int64[np.ndarray, "rows"]:
    """Find centres on the chosen rows, and return the nearest one of every row."""
    before = getstate()
    # The import takes a second, and few methods cluster. It also draws from Python's global
    # random numbers, which belong to the user.
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    setstate(before)
    search = KMeans(count, max_iter=ITERATIONS, n_init=RESTARTS, random_state=seed)
    with threadpool_limits(limits=1):
        nearest: np.ndarray = search.fit(points[chosen]).predict(points)
    return nearest.astype(np.int64)
