"""Batches hold only what a method declared; losses are in full precision."""

from dataclasses import FrozenInstanceError

import pytest
import torch

from onesided.core.batch import Outputs, PUBatch


def two_rows() -> PUBatch:
    return PUBatch(row=torch.tensor([4, 7]), labelled=torch.tensor([True, False]))


def test_a_batch_holds_no_truth_and_no_clean_samples_unless_given() -> None:
    batch = two_rows()
    assert batch.truth is None
    assert batch.clean is None
    assert dict(batch.views) == {}


def test_batches_do_not_share_their_views() -> None:
    assert two_rows().views is not two_rows().views


def test_a_method_cannot_put_the_truth_into_its_batch() -> None:
    batch = two_rows()
    with pytest.raises(FrozenInstanceError):
        batch.truth = torch.tensor([1, 0])  # type: ignore[misc]


def test_outputs_are_found_by_name() -> None:
    logits = torch.zeros(2, 2)
    outputs = Outputs({"logits": logits})
    assert outputs["logits"] is logits
    assert "logits" in outputs
    assert "query" not in outputs
    with pytest.raises(KeyError, match="query"):
        outputs["query"]


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_becomes_float32_for_the_loss(half: torch.dtype) -> None:
    values = torch.tensor([0.1, -2.5, 3.0]).to(half)
    full = Outputs({"logits": values}).in_full_precision()["logits"]
    assert full.dtype == torch.float32
    assert full.tolist() == values.tolist()


@pytest.mark.parametrize(
    "kept", [torch.float32, torch.float64, torch.int64, torch.int8, torch.bool]
)
def test_what_is_precise_already_or_no_float_stays_itself(kept: torch.dtype) -> None:
    values = torch.tensor([0, 1, 1]).to(kept)
    assert Outputs({"value": values}).in_full_precision()["value"] is values


def test_every_output_keeps_its_name() -> None:
    outputs = Outputs({"logits": torch.zeros(2).half(), "row": torch.arange(2)})
    assert list(outputs.in_full_precision().tensors) == ["logits", "row"]


def test_gradients_flow_back_through_the_change_of_precision() -> None:
    weight = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
    total = Outputs({"logits": 2 * weight}).in_full_precision()["logits"].sum()
    (gradient,) = torch.autograd.grad(total, weight)
    assert gradient.tolist() == [2, 2, 2]
