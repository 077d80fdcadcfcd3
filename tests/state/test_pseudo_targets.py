"""Pseudo targets: facts G1, G2, G3, and regret."""

import pytest
import torch

from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.state.pseudo_targets import PseudoTargets, SoftLabels

ROW = torch.tensor([0])
UNLABELLED, LABELLED = torch.tensor([False]), torch.tensor([True])
YES, NO = torch.tensor([True]), torch.tensor([False])
FOR, AGAINST = torch.tensor([POSITIVE]), torch.tensor([NEGATIVE])


def table(rows: int = 1) -> PseudoTargets:
    return PseudoTargets(rows).double()


@pytest.mark.parametrize(("votes", "expected"), [(1, 0.01), (68, 0.4951141112), (69, 0.5001629701)])
def test_unanimous_votes_move_the_phantom_geometrically(votes: int, expected: float) -> None:
    targets = table()
    for _ in range(votes):
        targets.vote(ROW, UNLABELLED, FOR, momentum=0.99)
    assert float(targets.phantom[0, POSITIVE]) == pytest.approx(expected, abs=1e-10)


def test_regret_a_released_row_continues_from_its_phantom() -> None:
    targets = table()
    for _ in range(80):
        targets.vote(ROW, UNLABELLED, FOR, momentum=0.99)
        gated = targets.read(ROW, UNLABELLED, YES)
        assert gated[0, NEGATIVE] == 1
        assert gated[0, POSITIVE] == 0
    released = targets.read(ROW, UNLABELLED, NO)
    assert float(released[0, POSITIVE]) == pytest.approx(0.5525, abs=1e-4)
    assert float(released[0, NEGATIVE]) == pytest.approx(0.4475, abs=1e-4)


def test_without_regret_the_released_row_starts_again() -> None:
    targets = table()
    for _ in range(80):
        targets.vote(ROW, UNLABELLED, FOR, momentum=0.99)
        targets.forget(ROW)
    targets.vote(ROW, UNLABELLED, FOR, momentum=0.99)
    assert float(targets.read(ROW, UNLABELLED, NO)[0, POSITIVE]) == pytest.approx(0.01)


@pytest.mark.parametrize("vote", [FOR, AGAINST])
@pytest.mark.parametrize("gate", [YES, NO])
def test_labelled_positives_are_positive_at_every_step(
    vote: torch.Tensor, gate: torch.Tensor
) -> None:
    targets = table()
    assert targets.read(ROW, LABELLED, gate)[0, POSITIVE] == 1
    targets.vote(ROW, LABELLED, vote, momentum=0.5)
    assert targets.read(ROW, LABELLED, gate)[0, POSITIVE] == 1
    assert targets.phantom[0].tolist() == [0.0, 1.0]


def test_only_the_rows_of_the_batch_change() -> None:
    targets = table(5)
    targets.vote(
        torch.tensor([3, 1]), torch.tensor([False, False]), torch.tensor([1, 0]), momentum=0.5
    )
    assert targets.phantom[:, POSITIVE].tolist() == [0, 0, 0, 0.5, 0]


def test_targets_are_distributions() -> None:
    targets = table(4)
    row = torch.arange(4)
    for votes in ([1, 0, 1, 1], [0, 0, 1, 0]):
        targets.vote(row, torch.zeros(4, dtype=torch.bool), torch.tensor(votes), momentum=0.9)
    read = targets.read(
        row, torch.tensor([True, False, False, False]), torch.tensor([False, True, False, False])
    )
    assert torch.allclose(read.sum(dim=1), torch.ones(4, dtype=torch.float64))


def test_the_table_travels_with_the_checkpoint() -> None:
    assert list(PseudoTargets(3).state_dict()) == ["phantom"]


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
def test_unlabelled_rows_start_at_the_given_label(positive: float) -> None:
    labels = SoftLabels(3, positive=positive)
    current = labels.current(torch.arange(3), torch.tensor([False, False, True]))
    assert current[:, POSITIVE].tolist() == [positive, positive, 1]
    assert current.sum(dim=1).tolist() == [1, 1, 1]
