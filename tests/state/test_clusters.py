"""Clusters: found where they are, the same twice, of few or many points."""

import numpy as np
import torch
from torch import Tensor

from onesided.state.clusters import POINTS_PER_CLUSTER, Clusters


def three_heaps(rows: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    heap = torch.arange(rows) % 3
    centres = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    return centres[heap] + torch.randn(rows, 2, generator=draw), heap


def regrouped(points: Tensor, count: int, seed: int = 0) -> Clusters:
    clusters = Clusters(len(points))
    clusters.regroup(points, count=count, random=np.random.default_rng(seed))
    return clusters


def test_before_the_first_regroup_all_rows_are_together() -> None:
    assert Clusters(4).together(torch.tensor([3, 0])).all()


def test_heaps_are_found() -> None:
    points, heap = three_heaps(60)
    rows = torch.arange(60)
    together = regrouped(points, 3).together(rows)
    assert torch.equal(together, heap[:, None] == heap[None, :])


def test_rows_beyond_those_that_centres_were_found_on_are_placed_too() -> None:
    points, heap = three_heaps(3 * POINTS_PER_CLUSTER + 300)
    rows = torch.arange(len(points) - 50, len(points))
    together = regrouped(points, 3).together(rows)
    assert torch.equal(together, heap[rows][:, None] == heap[rows][None, :])


def test_the_same_place_in_a_run_gives_the_same_clusters() -> None:
    points = torch.rand(200, 4, generator=torch.Generator().manual_seed(3))
    first, second = (regrouped(points, 7, seed=5).member for _ in range(2))
    assert torch.equal(first, second)


def test_there_are_never_more_clusters_than_rows() -> None:
    points, _ = three_heaps(3)
    assert len(set(regrouped(points, 10).member.tolist())) == 3


def test_clusters_travel_with_the_checkpoint() -> None:
    assert list(Clusters(4).state_dict()) == ["member"]
