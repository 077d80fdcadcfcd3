"""TEDn against loops over samples; its warm start, its guards, and the two clouds."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from onesided.core.batch import DataFacts, Losses, PUBatch, Stratified
from onesided.core.clock import Clock
from onesided.core.errors import ContractError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.methods.tedn import TEDn, TEDnConfig
from onesided.nets.build import BackboneConfig, build_backbone, seeded
from onesided.priors.bbe import best_bin
from tests.methods.linear_clouds import (
    POSITIVES,
    UNLABELLED,
    Clouds,
    Untouched,
    clouds,
    linear,
    points,
)

ROWS, LABELLED, BATCH = 14, 4, 8


def method(**settings: object) -> TEDn:
    config = TEDnConfig.from_settings({"warmup_epochs": 1, **settings})
    facts = DataFacts(rows=ROWS, labelled=LABELLED, sample_shape=(2,), batch_size=2)
    with seeded(0, "test"):
        return config.build(facts, Untouched()).double()


def at(epoch: int, step: int = 0) -> Clock:
    return Clock(0, "train", epoch, 10, step, 20)


def random_images() -> Tensor:
    return 2 * torch.randn(ROWS, 2, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


def batch_of(rows: list[int]) -> PUBatch:
    row = torch.tensor(rows)
    return PUBatch(row, row < LABELLED, {"classify": random_images()[row]})


def step_of(ours: TEDn, batch: PUBatch, clock: Clock) -> Losses:
    return ours.loss(ours(batch, clock), batch, clock)


def reject(ours: TEDn, share: float) -> None:
    """Rank all rows by the scorer as it is, and reject this share of U."""
    z = ours._margin(random_images()).detach()
    ours.kept.reject_top(z, torch.arange(ROWS) < LABELLED, share=share)


def slow_risk(ours: TEDn, rows: list[int], share: float) -> float:
    """CVIR as loops: rank U, drop the top, average both classes."""
    weight, bias = ours.classifier.weight.detach(), ours.classifier.bias.detach()

    def z(row: int) -> float:
        logits = weight @ random_images()[row] + bias
        return float(logits[POSITIVE] - logits[NEGATIVE])

    ranked = sorted(range(LABELLED, ROWS), key=z, reverse=True)
    rejected = ranked[: math.floor(share * len(ranked) + 1e-9)]
    on_p = [math.log(1 + math.exp(-z(row))) for row in rows if row < LABELLED]
    on_u = [
        math.log(1 + math.exp(z(row))) for row in rows if row >= LABELLED and row not in rejected
    ]
    return (sum(on_p) / len(on_p) + sum(on_u) / len(on_u)) / 2 if on_u else 0.0


# one step


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.7])
def test_the_risk_equals_the_loops_over_samples(share: float) -> None:
    ours = method()
    reject(ours, share)
    for seed in range(6):
        order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(seed)).tolist()
        rows = [0, 1, *(row for row in order if row > 1)][:BATCH]
        losses = step_of(ours, batch_of(rows), at(3))
        assert float(losses.total) == pytest.approx(slow_risk(ours, rows, share), rel=1e-9)


def test_rejected_rows_do_not_enter_the_network() -> None:
    ours = method()
    ours.kept.keep[[9, 10]] = False
    batch = batch_of([0, 8, 9, 10, 11])
    images = batch.views["classify"].clone()
    images[2:4] = math.nan
    outputs = ours(replace(batch, views={"classify": images}), at(3))
    assert outputs["logits"].isfinite().all()
    losses = ours.loss(outputs, batch, at(3))
    losses.total.backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None and p.grad.isfinite().all() for p in ours.parameters())
    assert float(losses.watched["kept"]) == 0.5


def test_a_batch_whose_unlabelled_part_is_rejected_gives_no_gradient() -> None:
    ours = method()
    ours.kept.keep[LABELLED:] = False
    losses = step_of(ours, batch_of([0, 1, 8, 9]), at(3))
    losses.total.backward()  # type: ignore[no-untyped-call]
    assert float(losses.total) == 0
    assert all(p.grad is not None and not p.grad.any() for p in ours.parameters())


def test_a_batch_that_is_rejected_but_for_one_row_passes_batch_normalisation() -> None:
    with seeded(0, "test"):
        backbone = build_backbone(BackboneConfig(width=0.05), (2,), [0, 0], [1, 1])
        ours = TEDnConfig().build(DataFacts(ROWS, LABELLED, (2,)), backbone)
    ours.kept.keep[LABELLED:] = False
    batch = batch_of([0, 8, 9])
    images = batch.views["classify"].float()
    losses = step_of(ours, replace(batch, views={"classify": images}), at(3))
    assert losses.total.isfinite()


def test_half_of_every_batch_is_labelled() -> None:
    assert method().batching == Stratified(1)


# estimating and rejecting


def untrained(seed: int = 0, **settings: object) -> tuple[TEDn, Clouds]:
    """Return the clouds and a scorer that ranks them by chance of its first weights."""
    ours = linear(TEDnConfig.from_settings(settings), 400, seed)
    assert isinstance(ours, TEDn)
    return ours, clouds(seed)


def ranking_by_first_coordinate(ours: TEDn) -> None:
    with torch.no_grad():
        ours.classifier.weight.zero_()
        ours.classifier.weight[POSITIVE, 0] = 1.0


def test_the_prior_is_the_best_bin_of_held_out_scores() -> None:
    ours, data = untrained(warmup_epochs=1)
    ranking_by_first_coordinate(ours)
    ours.begin_epoch(at(1), data.sweep(ours, at(1)))
    scores = data.held_out.values.take(slice(None))[:, 0]
    held_out = data.held_out.labelled
    assert float(ours.prior) == best_bin(scores[held_out], scores[~held_out]).ratio
    assert 0.35 < float(ours.prior) < 0.44


def test_the_top_share_of_training_rows_is_rejected() -> None:
    ours, data = untrained(warmup_epochs=1)
    ranking_by_first_coordinate(ours)
    ours.begin_epoch(at(1), data.sweep(ours, at(1)))
    kept = ours.kept.read(torch.arange(POSITIVES + UNLABELLED))
    count = math.floor(float(ours.prior) * UNLABELLED + 1e-9)
    assert int((~kept).sum()) == count
    assert kept[:POSITIVES].all(), "labelled rows are never rejected"
    first = points(data.train)[:, 0]
    assert float(first[POSITIVES:][kept[POSITIVES:]].max()) < float(first[~kept].min())


def test_during_the_warm_start_the_prior_is_logged_and_nothing_is_rejected() -> None:
    ours, data = untrained(warmup_epochs=3)
    ranking_by_first_coordinate(ours)
    for epoch, estimated in ((0, False), (1, True), (2, True)):
        ours.begin_epoch(at(epoch), data.sweep(ours, at(epoch)))
        assert (float(ours.prior) > 0) == estimated
        assert ours.kept.keep.all()
    ours.begin_epoch(at(3), data.sweep(ours, at(3)))
    assert not ours.kept.keep.all()


def test_a_prior_of_zero_rejects_no_row() -> None:
    ours, data = untrained(warmup_epochs=1)
    ranking_by_first_coordinate(ours)
    far_apart = data.held_out.values.take(slice(None))
    far_apart[~data.held_out.labelled] -= 100
    ours.begin_epoch(at(1), data.with_held_out(far_apart).sweep(ours, at(1)))
    assert float(ours.prior) == 0
    assert ours.kept.keep.all()


def test_a_prior_of_one_leaves_a_batch_of_negatives() -> None:
    ours, data = untrained(warmup_epochs=1)
    ranking_by_first_coordinate(ours)
    in_one_place = np.zeros_like(data.held_out.values.take(slice(None)))
    ours.begin_epoch(at(1), data.with_held_out(in_one_place).sweep(ours, at(1)))
    assert float(ours.prior) == 1
    assert int(ours.kept.keep[POSITIVES:].sum()) == 200


def test_without_held_out_data_it_stops_and_says_what_is_missing() -> None:
    ours, data = untrained(warmup_epochs=1)
    sweep = data.sweep(ours, at(1))
    alone = replace(sweep, parts={"train": data.train})
    with pytest.raises(ContractError, match="held_out"):
        ours.begin_epoch(at(1), alone)


def test_the_last_estimate_is_that_of_the_trained_network() -> None:
    ours, data = untrained()
    ranking_by_first_coordinate(ours)
    ours.finish(data.sweep(ours, at(9)))
    assert 0.35 < float(ours.prior) < 0.44


@pytest.mark.parametrize(
    ("epochs", "warmup"), [(1300, 100), (1100, 100), (100, 25), (10, 2), (1, 1)]
)
def test_a_short_run_warms_up_for_a_quarter(epochs: int, warmup: int) -> None:
    assert TEDnConfig().for_budget(epochs).warmup_epochs == warmup


# the two clouds


def trained(seed: int) -> tuple[TEDn, Clouds]:
    """Train as the reference values were found: whole batches, 300 warm steps, 20 rounds of 50."""
    ours, data = untrained(seed, warmup_epochs=6)
    values = points(data.train)
    rows = torch.arange(len(values))
    batch = PUBatch(rows, torch.from_numpy(data.train.labelled), {"classify": values})
    optimizer = torch.optim.Adam(ours.parameters(), lr=0.05)
    for epoch in range(26):
        ours.begin_epoch(at(epoch), data.sweep(ours, at(epoch)))
        for step in range(50):
            losses = step_of(ours, batch, at(epoch, step))
            optimizer.zero_grad()
            losses.total.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    ours.finish(data.sweep(ours, at(26)))
    return ours, data


def test_the_two_clouds_are_separated_and_counted() -> None:
    ours, data = trained(seed=1)
    assert data.accuracy(ours) > 0.965
    assert 0.35 < float(ours.prior) < 0.44
