"""Several processes that train as one: rows in order, and the gradient of one process."""

from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from onesided.core.batch import CleanBatch, Outputs, PUBatch
from onesided.core.dist import (
    gather,
    gather_batch,
    gather_outputs,
    join_if_launched,
    rank,
    shard,
    wait_for_all,
    world,
)
from onesided.core.errors import ConfigError

ROWS = 8
Found = tuple[Mapping[str, Tensor], Mapping[str, Tensor]]


def whole_batch() -> PUBatch:
    return PUBatch(
        row=torch.tensor([5, 3, 9, 1, 0, 7, 2, 4]),
        labelled=torch.tensor([True, False, False, True, False, False, False, True]),
        views={"classify": torch.linspace(-1, 1, ROWS * 3).double().reshape(ROWS, 3)},
        truth=torch.tensor([1, 0, 1, 1, 0, 0, 0, 1]),
        negative=torch.tensor([False, True, False, False, False, False, True, False]),
    )


def linear() -> nn.Linear:
    layer = nn.Linear(3, 1).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.3, -1.1, 0.7]]))
        layer.bias.fill_(0.2)
    return layer


def risk(scores: Tensor, labelled: Tensor) -> Tensor:
    """No average over rows: a logarithm of a mean and a switch, as in vPU and nnPU."""
    difference = scores[~labelled].sigmoid().mean() - 0.8 * scores[labelled].sigmoid().mean()
    return scores.exp().mean().log() ** 2 + difference.abs()


def test_a_single_process_has_all_rows() -> None:
    assert (rank(), world()) == (0, 1)
    assert list(range(7))[shard(7)] == list(range(7))


def test_gathering_in_a_single_process_returns_the_tensor_itself() -> None:
    tensor = torch.ones(3, requires_grad=True)
    assert gather(tensor) is tensor
    assert gather_outputs(Outputs({"logits": tensor}))["logits"] is tensor


def test_a_single_process_does_not_wait() -> None:
    wait_for_all()


@pytest.mark.parametrize("launched", [None, "1"])
def test_without_torchrun_no_group_is_joined(
    monkeypatch: pytest.MonkeyPatch, launched: str | None
) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if launched:
        monkeypatch.setenv("WORLD_SIZE", launched)
    join_if_launched()
    assert world() == 1


def test_others_wait_for_rank_0_as_long_as_a_day_of_embedding_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: dict[str, object] = {}
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(
        torch.distributed, "init_process_group", lambda *_, **options: asked.update(options)
    )
    join_if_launched()
    waiting = asked["timeout"]
    assert isinstance(waiting, timedelta)
    assert waiting >= timedelta(days=1)


def test_the_gathered_batch_keeps_rows_and_labels_and_drops_the_images() -> None:
    batch = whole_batch()
    gathered = gather_batch(batch)
    assert torch.equal(gathered.row, batch.row)
    assert torch.equal(gathered.labelled, batch.labelled)
    assert gathered.truth is batch.truth
    assert torch.equal(gathered.surely_negative, batch.surely_negative)
    assert dict(gathered.views) == {}


def test_a_batch_without_truth_is_gathered_without_truth() -> None:
    batch = PUBatch(row=torch.tensor([1]), labelled=torch.tensor([True]))
    assert gather_batch(batch).truth is None
    assert gather_batch(batch).negative is None


def test_clean_samples_are_whole_in_every_process_and_stay() -> None:
    clean = CleanBatch(views={"classify": torch.zeros(2, 3)}, truth=torch.tensor([1, 0]))
    batch = PUBatch(row=torch.tensor([1]), labelled=torch.tensor([True]), clean=clean)
    assert gather_batch(batch).clean is clean


def one_of_two() -> dict[str, Tensor]:
    """Train one step on a shard, and gather what else can be gathered."""
    whole, mine = whole_batch(), shard(ROWS)
    assert whole.truth is not None
    batch = PUBatch(
        row=whole.row[mine],
        labelled=whole.labelled[mine],
        truth=whole.truth[mine],
        negative=whole.surely_negative[mine],
    )
    network = DistributedDataParallel(linear())
    outputs = Outputs({"scores": network(whole.views["classify"][mine])[:, 0]})
    gathered, everyone = gather_outputs(outputs), gather_batch(batch)
    assert everyone.truth is not None
    total = risk(gathered["scores"], everyone.labelled)
    total.backward()  # type: ignore[no-untyped-call]
    grad = network.module.weight.grad
    across = torch.arange(4.0).reshape(2, 2).T + 10 * rank()
    with pytest.raises(ConfigError, match="batch of 7 rows cannot be shared equally by 2"):
        shard(7)
    wait_for_all()
    return {
        "rank": torch.tensor([rank(), world()]),
        "rows": everyone.row,
        "labelled": everyone.labelled,
        "negative": everyone.surely_negative,
        "truth": everyone.truth,
        "scores": gathered["scores"].detach(),
        "loss": total.detach(),
        "gradient": grad,
        "across": gather(across),
    }


@pytest.fixture(scope="module")
def both(in_two_processes: Callable[[Callable[[], Mapping[str, Tensor]]], Found]) -> Found:
    return in_two_processes(one_of_two)


@pytest.mark.ddp
def test_two_processes_know_who_they_are(both: Found) -> None:
    assert [found["rank"].tolist() for found in both] == [[0, 2], [1, 2]]


@pytest.mark.ddp
@pytest.mark.parametrize("process", [0, 1])
def test_shards_put_together_are_the_batch_in_its_order(both: Found, process: int) -> None:
    batch, found = whole_batch(), both[process]
    assert batch.truth is not None
    assert torch.equal(found["rows"], batch.row)
    assert torch.equal(found["labelled"], batch.labelled)
    assert torch.equal(found["negative"], batch.surely_negative)
    assert found["labelled"].dtype == found["negative"].dtype == torch.bool
    assert torch.equal(found["truth"], batch.truth)


@pytest.mark.ddp
@pytest.mark.parametrize("process", [0, 1])
def test_every_process_has_the_loss_of_the_whole_batch(both: Found, process: int) -> None:
    batch = whole_batch()
    with torch.no_grad():
        scores = linear()(batch.views["classify"])[:, 0]
    torch.testing.assert_close(both[process]["scores"], scores, rtol=1e-14, atol=0)
    expected = risk(scores, batch.labelled)
    torch.testing.assert_close(both[process]["loss"], expected, rtol=1e-14, atol=0)


@pytest.mark.ddp
@pytest.mark.parametrize("process", [0, 1])
def test_the_gradient_is_that_of_one_process(both: Found, process: int) -> None:
    batch, layer = whole_batch(), linear()
    total = risk(layer(batch.views["classify"])[:, 0], batch.labelled)
    (gradient,) = torch.autograd.grad(total, layer.weight)
    torch.testing.assert_close(both[process]["gradient"], gradient, rtol=1e-13, atol=1e-15)


def test_a_risk_of_the_own_shard_would_have_another_gradient() -> None:
    """Or the test above could not fail."""
    batch, layer = whole_batch(), linear()
    scores = layer(batch.views["classify"])[:, 0]
    halves = [risk(scores[part], batch.labelled[part]) for part in (slice(0, 4), slice(4, ROWS))]
    (averaged,) = torch.autograd.grad(torch.stack(halves).mean(), layer.weight, retain_graph=True)
    (exact,) = torch.autograd.grad(risk(scores, batch.labelled), layer.weight)
    assert (averaged - exact).abs().max() > 0.01


@pytest.mark.ddp
@pytest.mark.parametrize("process", [0, 1])
def test_a_transposed_tensor_is_gathered_row_by_row(both: Found, process: int) -> None:
    assert both[process]["across"].tolist() == [[0, 2], [1, 3], [10, 12], [11, 13]]
