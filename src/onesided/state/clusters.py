"""Clusters: which training rows lie together, as of the last time somebody looked."""

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
        """Divide all rows anew by k-means (LaGAM: 20 iterations, 5 restarts).

        Centres are found on at most 1000 rows per cluster: more would cost time and change
        nothing. One thread, because with several the order of sums depends on who is
        first, and a repeated run would not be the same run.
        """
        from sklearn.cluster import KMeans  # a second to import, and few methods cluster
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        points = features.cpu().numpy()
        count = min(count, len(points))
        chosen = random.permutation(len(points))[: count * POINTS_PER_CLUSTER]
        search = KMeans(
            count,
            max_iter=ITERATIONS,
            n_init=RESTARTS,
            random_state=int(random.integers(2**31)),
        )
        with threadpool_limits(limits=1):
            member = search.fit(points[np.sort(chosen)]).predict(points)
        self.member.copy_(torch.from_numpy(member.astype(np.int64)))

    def together(self, row: Int64[Tensor, "batch"]) -> Bool[Tensor, "batch batch"]:
        """Return which pairs of these rows share a cluster."""
        member = self.member[row]
        return member[:, None] == member[None, :]
