"""Soft labels: how fast votes turn them, and whom they never turn."""

import pytest
import torch

from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.state.soft_labels import SoftLabels

ROW = torch.tensor([0])
UNLABELLED, LABELLED = torch.tensor([False]), torch.tensor([True])
FOR, AGAINST = torch.tensor([POSITIVE]), torch.tensor([NEGATIVE])


def positive_after(votes: int, momentum: float) -> list[float]:
    labels = SoftLabels(1).double()
    seen = []
    for _ in range(votes):
        labels.vote(ROW, UNLABELLED, FOR, momentum=momentum)
        seen.append(float(labels.current(ROW, UNLABELLED)[0, POSITIVE]))
    return seen


def test_three_votes_give_the_numbers_computed_by_hand() -> None:
    assert positive_after(3, 0.95) == pytest.approx([0.05, 0.0975, 0.142625])


@pytest.mark.parametrize(("momentum", "votes"), [(0.95, 14), (0.99, 69), (0.9425, 12)])
def test_a_label_turns_after_so_many_votes(momentum: float, votes: int) -> None:
    seen = positive_after(votes, momentum)
    assert seen[-1] > 0.5
    assert seen[-2] <= 0.5


def test_labelled_rows_stay_positive_exactly_whatever_the_votes() -> None:
    labels = SoftLabels(1)
    for _ in range(20):
        labels.vote(ROW, LABELLED, AGAINST, momentum=0.9425)
    assert labels.current(ROW, LABELLED)[0, POSITIVE] == 1
    assert labels.current(ROW, LABELLED)[0, NEGATIVE] == 0


@pytest.mark.parametrize("positive", [0.0, 0.5])
def test_unlabelled_rows_start_where_they_are_told_to(positive: float) -> None:
    labels = SoftLabels(3, positive=positive)
    current = labels.current(torch.arange(3), torch.tensor([False, False, True]))
    assert current[:, POSITIVE].tolist() == [positive, positive, 1]
    assert current.sum(dim=1).tolist() == [1, 1, 1]
