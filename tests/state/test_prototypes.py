"""Prototypes: facts P1 and P2, and the closed forms against the obvious loop."""

import pytest
import torch
import torch.nn.functional as F

from onesided.state.prototypes import Normalisation, Prototypes

ROWS = torch.tensor([[0.0, 1.0], [0.6, 0.8], [0.8, 0.6]], dtype=torch.float64)


def prototypes(start: list[list[float]]) -> Prototypes:
    state = Prototypes(2, len(start[0])).double()
    state.vectors.copy_(torch.tensor(start))
    return state


def follow_slowly(
    start: torch.Tensor, rows: torch.Tensor, momentum: float, normalise: Normalisation
) -> torch.Tensor:
    mean: torch.Tensor = start.clone()
    for row in rows:
        mean = momentum * mean + (1 - momentum) * row
        if normalise == "sample":
            mean = mean / mean.norm()
    return F.normalize(mean, dim=0)


@pytest.mark.parametrize(
    ("normalise", "expected"),
    [("batch", [0.9997097009, 0.0240938571]), ("sample", [0.9997135423, 0.0239339385])],
)
def test_three_rows_give_the_numbers_computed_by_hand(
    normalise: Normalisation, expected: list[float]
) -> None:
    state = prototypes([[1.0, 0.0], [0.0, 0.0]])
    state.follow(ROWS, torch.zeros(3, dtype=torch.int64), momentum=0.99, normalise=normalise)
    assert state.vectors[0].tolist() == pytest.approx(expected, abs=1e-10)


def test_before_normalising_the_average_is_the_hand_number() -> None:
    from onesided.state.prototypes import _average

    start = torch.tensor([1.0, 0.0], dtype=torch.float64)
    assert _average(start, ROWS, 0.99).tolist() == pytest.approx([0.984239, 0.023721], abs=1e-9)


@pytest.mark.parametrize("normalise", ["sample", "batch"])
@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.9, 0.99])
@pytest.mark.parametrize("count", [1, 2, 7, 60])
@pytest.mark.parametrize("from_zero", [True, False])
def test_closed_form_equals_the_loop_over_rows(
    normalise: Normalisation, momentum: float, count: int, from_zero: bool
) -> None:
    draw = torch.Generator().manual_seed(count)
    rows = F.normalize(torch.randn(count, 16, generator=draw, dtype=torch.float64), dim=1)
    start = F.normalize(torch.randn(16, generator=draw, dtype=torch.float64), dim=0)
    start = start * (0 if from_zero else 1)
    state = Prototypes(2, 16).double()
    state.vectors[1] = start
    state.follow(rows, torch.ones(count, dtype=torch.int64), momentum=momentum, normalise=normalise)
    expected = follow_slowly(start, rows, momentum, normalise)
    assert torch.allclose(state.vectors[1], expected, atol=1e-12)
    assert not state.vectors[0].any(), "a class without rows stays where it was"


def test_only_rows_of_a_class_move_its_prototype() -> None:
    state = prototypes([[1.0, 0.0], [0.0, 1.0]])
    state.follow(ROWS, torch.tensor([1, 0, 1]), momentum=0.5, normalise="batch")
    alone = prototypes([[1.0, 0.0], [0.0, 1.0]])
    alone.follow(ROWS[[1]], torch.tensor([0]), momentum=0.5, normalise="batch")
    assert torch.equal(state.vectors[0], alone.vectors[0])


def test_prototypes_have_unit_length_after_an_update() -> None:
    state = Prototypes(2, 2)
    state.follow(ROWS.float(), torch.tensor([0, 1, 1]), momentum=0.9, normalise="sample")
    assert torch.allclose(state.vectors.norm(dim=1), torch.ones(2))


def test_the_vote_goes_to_the_nearest_prototype() -> None:
    state = prototypes([[1.0, 0.0], [0.0, 1.0]])
    assert state.nearest(ROWS).tolist() == [1, 1, 0]


def test_prototypes_travel_with_the_checkpoint() -> None:
    assert list(Prototypes(2, 4).state_dict()) == ["vectors"]


def test_a_row_right_opposite_its_prototype_leaves_numbers() -> None:
    prototypes = Prototypes(1, 2)
    label = torch.zeros(1, dtype=torch.int64)
    here = torch.tensor([[1.0, 0.0]])
    for row in (here, -here, here):
        prototypes.follow(row, label, momentum=0.5, normalise="sample")
    assert torch.isfinite(prototypes.vectors).all()
