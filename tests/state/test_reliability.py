"""Reliability: the closest rows, by the numbers computed by hand and by sorting."""

import pytest
import torch
from torch import Tensor

from onesided.state.reliability import Reliability

NO_LABELS = torch.zeros(5, dtype=torch.bool)


def selected(distance: list[float], share: float) -> Reliability:
    state = Reliability(len(distance))
    state.record(torch.arange(len(distance)), torch.tensor(distance))
    state.select(share=share)
    return state


def rows(state: Reliability, labelled: Tensor = NO_LABELS) -> set[int]:
    found = state.read(torch.arange(len(labelled)), labelled)
    return set(found.nonzero()[:, 0].tolist())


def test_the_closest_three_fifths_are_reliable() -> None:
    assert rows(selected([-0.9, -0.1, -0.5, -0.7, -0.3], 0.6)) == {0, 2, 3}


@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (0.29, 29), (0.6, 60), (1.0, 100)])
def test_as_many_are_chosen_as_a_share_of_all_rows_makes(share: float, count: int) -> None:
    distance = torch.rand(100, generator=torch.Generator().manual_seed(0)).tolist()
    state = selected(distance, share)
    expected = set(sorted(range(100), key=lambda row: distance[row])[:count])
    assert rows(state, torch.zeros(100, dtype=torch.bool)) == expected


def test_labelled_rows_are_always_reliable() -> None:
    state = selected([-0.9, -0.1, -0.5, -0.7, 0.8], 0.6)
    assert rows(state, torch.tensor([False, False, False, False, True])) == {0, 2, 3, 4}


def test_rows_without_a_distance_are_not_reliable() -> None:
    state = Reliability(5)
    state.record(torch.tensor([1]), torch.tensor([0.9]))
    state.select(share=1.0)
    assert rows(state) == {1}


def test_distances_count_from_the_next_selection() -> None:
    state = selected([-0.9, -0.1, -0.5, -0.7, -0.3], 0.2)
    state.record(torch.tensor([4]), torch.tensor([-1.0]))
    assert rows(state) == {0}
    state.select(share=0.2)
    assert rows(state) == {4}
