"""LaGAM against loops and a double backward pass, its schedules, and two clouds."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from onesided.core.batch import CleanBatch, DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.config import Settings
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.engine.train_config import TrainConfig
from onesided.methods.base import EMBEDDING
from onesided.methods.lagam import LaGAM, LaGAMConfig
from onesided.nets.build import BackboneConfig, build_backbone, seeded
from onesided.run.presets import recipe_settings
from tests.methods.slow_lagam import BATCH, ROWS, SlowLaGAM
from tests.methods.two_clouds import learn

CLEAN, WIDTH, EPOCHS = 5, 8, 10
SMALL: Settings = {"projector_width": 8, "warmup_epochs": 1, "neighbours_from": 3, "neighbours": 2}


def method(**settings: object) -> LaGAM:
    config = LaGAMConfig.from_settings({**SMALL, **settings})
    facts = DataFacts(rows=ROWS, labelled=3, sample_shape=(2,))
    with seeded(0, "test"):
        backbone = build_backbone(BackboneConfig(width=0.03), (2,), [0, 0], [1, 1])
        return config.build(facts, backbone).double()


def random_outputs(seed: int, head: Tensor) -> Outputs:
    """Return what a network with this linear head might say; the last entry is the bias."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    features, clean = normal(BATCH, WIDTH), normal(CLEAN, WIDTH)
    return Outputs(
        {
            "features": features,
            "margin": features @ head[:-1] + head[-1],
            "mixed_margin": 2 * normal(BATCH),
            "partner_offset": torch.tensor([1, -1, 1, -1, 1, -1]),
            "query": normal(BATCH, EMBEDDING),
            "key": normal(BATCH, EMBEDDING),
            "clean_features": clean,
            "clean_margin": clean @ head[:-1] + head[-1],
        }
    )


def full_batch(seed: int) -> PUBatch:
    """Return a batch of distinct rows, the first of which is labelled."""
    draw = torch.Generator().manual_seed(100 + seed)
    row = torch.cat([torch.tensor([seed % 3]), 3 + torch.randperm(ROWS - 3, generator=draw)])
    row = row[:BATCH]
    truth = torch.tensor([POSITIVE, NEGATIVE, POSITIVE, NEGATIVE, NEGATIVE])
    return PUBatch(row=row, labelled=row < 3, clean=CleanBatch({}, truth))


def at(epoch: int, step: int = 0) -> Clock:
    return Clock(seed=0, stage="train", epoch=epoch, epochs=EPOCHS, step=step, steps=2)


def random_head(seed: int) -> Tensor:
    return torch.randn(WIDTH + 1, generator=torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize("virtual_step", [1e-3, 0.5])
def test_ten_steps_equal_the_loops_over_samples(virtual_step: float) -> None:
    ours = method(virtual_step=virtual_step, temperature=0.5)
    slow = SlowLaGAM(ours.config)
    for step in range(10):
        head = random_head(step)
        outputs, batch, clock = (
            random_outputs(step, head),
            full_batch(step),
            at(step // 2, step % 2),
        )
        cluster = torch.randint(3, (ROWS,), generator=torch.Generator().manual_seed(step))
        ours.clusters.member.copy_(cluster)
        losses = ours.loss(outputs, batch, clock)
        expected = slow.step(outputs, batch, head, cluster.tolist(), clock)
        assert losses.terms.keys() == expected.keys()
        for name, value in expected.items():
            assert float(losses.terms[name]) == pytest.approx(value, rel=1e-9), (step, name)
        assert float(losses.total) == pytest.approx(sum(expected.values()), rel=1e-9)
    current = ours.labels.current(torch.arange(ROWS), torch.arange(ROWS) < 3)
    assert current[:, POSITIVE].tolist() == pytest.approx([y[0] for y in slow.labels])
    assert (current[3:, POSITIVE] > 0).any(), "some label moved"


@pytest.mark.parametrize(("epoch", "rho"), [(20, 0.9425), (200, 0.875), (399, 0.800375)])
def test_momentum_of_the_labels_falls_over_the_run(epoch: int, rho: float) -> None:
    assert LaGAMConfig().target_momentum_at(epoch, 400) == pytest.approx(rho)


def losses_at(epoch: int, batch: PUBatch, **settings: object) -> tuple[LaGAM, Losses]:
    ours = method(**settings)
    return ours, ours.loss(random_outputs(1, random_head(1)), batch, at(epoch))


def test_during_warm_up_unlabelled_rows_are_negative_and_nothing_is_grouped() -> None:
    ours, losses = losses_at(0, full_batch(1))
    assert "group" not in losses.terms
    unlabelled = torch.arange(3, ROWS)
    current = ours.labels.current(unlabelled, torch.zeros(ROWS - 3, dtype=torch.bool))
    assert not current[:, POSITIVE].any()


def test_a_batch_in_which_nothing_is_positive_is_passed_over() -> None:
    none = torch.zeros(BATCH, dtype=torch.bool)
    batch = replace(full_batch(1), row=torch.arange(3, 3 + BATCH), labelled=none)
    ours, losses = losses_at(5, batch)
    assert float(losses.total) == 0
    assert float(losses.watched["passed_over"]) == 1
    assert not ours.labels.current(batch.row, none)[:, POSITIVE].any()


@pytest.mark.parametrize("label", [POSITIVE, NEGATIVE])
def test_a_clean_batch_of_one_class_neither_breaks_nor_stops(label: int) -> None:
    batch = replace(full_batch(1), clean=CleanBatch({}, torch.full((CLEAN,), label)))
    _, losses = losses_at(5, batch)
    assert torch.isfinite(losses.total)


def test_labelled_positives_are_held_by_their_label_at_every_step() -> None:
    ours = method().float()
    for step in range(8):
        outputs = random_outputs(step, random_head(step))
        single = Outputs(
            {
                name: value.float() if value.is_floating_point() else value
                for name, value in outputs.tensors.items()
            }
        )
        ours.loss(single, full_batch(step), at(5))
        known = ours.labels.current(torch.arange(3), torch.ones(3, dtype=torch.bool))
        assert known[:, POSITIVE].tolist() == [1, 1, 1]


def test_copies_of_the_clean_batch_from_other_processes_change_nothing() -> None:
    alone, together = method(), method()
    outputs, batch = random_outputs(1, random_head(1)), full_batch(1)
    twice = {
        name: outputs[name].repeat(2, *[1] * (outputs[name].ndim - 1))
        for name in ("clean_features", "clean_margin")
    }
    one = alone.loss(outputs, batch, at(5))
    two = together.loss(Outputs({**outputs.tensors, **twice}), batch, at(5))
    assert float(one.total) == float(two.total)


def views(count: int, seed: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    roles = ("weak", "strong", "plain")
    return {role: torch.rand(count, 2, generator=draw).double() for role in roles}


def image_batch(count: int = BATCH) -> PUBatch:
    truth = torch.tensor([POSITIVE, NEGATIVE, POSITIVE, NEGATIVE, NEGATIVE])
    row = torch.arange(count)
    return PUBatch(row, row < 3, views(count, 0), clean=CleanBatch(views(CLEAN, 1), truth))


def test_forward_mixes_neighbours_and_leaves_no_trace_of_the_clean_samples() -> None:
    ours = method().eval()
    batch, clock = image_batch(), at(5)
    outputs = ours(batch, clock)
    weak, share = batch.views["weak"], SlowLaGAM(ours.config).share(clock)
    mixed = share * weak + (1 - share) * weak[[1, 0, 3, 2, 5, 4]]
    logits = ours.classify(mixed)
    assert torch.allclose(outputs["mixed_margin"], logits[:, POSITIVE] - logits[:, NEGATIVE])
    assert batch.clean is not None
    clean = ours.classify(batch.clean.views["plain"])
    assert torch.allclose(outputs["clean_margin"], clean[:, POSITIVE] - clean[:, NEGATIVE])
    assert not outputs["clean_features"].requires_grad
    assert not outputs["features"].requires_grad


def test_clean_samples_do_not_move_the_running_statistics() -> None:
    with_clean, without = method().train(), method(warmup_epochs=9).train()
    assert "clean_margin" in with_clean(image_batch(), at(5))
    assert "clean_margin" not in without(image_batch(), at(5))
    for name, value in with_clean.backbone.named_buffers():
        assert torch.equal(value, dict(without.backbone.named_buffers())[name]), name


@pytest.mark.parametrize("shards", [(6,), (2, 4), (3, 3), (1, 5)])
def test_partners_stay_partners_when_shards_are_put_together(shards: tuple[int, ...]) -> None:
    ours = method().eval()
    offsets = torch.cat([ours(image_batch(size), at(0))["partner_offset"] for size in shards])
    partner = torch.arange(6) + offsets
    assert torch.equal(partner[partner], torch.arange(6)), "partners are mutual"
    start = 0
    for size in shards:
        inside = partner[start : start + size]
        assert ((inside >= start) & (inside < start + size)).all()
        start += size


def test_clusters_are_found_anew_once_labels_may_move() -> None:
    ours = method(clusters=2)
    asked: list[int] = []
    points = torch.cat([torch.zeros(6, 2), 5 * torch.ones(6, 2)]).double()

    def sweep(function: object, **where: object) -> tuple[Tensor, Tensor]:
        asked.append(1)
        assert callable(function)
        return function(points).detach(), torch.arange(ROWS) < 3

    ours.begin_epoch(at(0), sweep)
    assert not asked
    ours.begin_epoch(at(1), sweep)
    together = ours.clusters.together(torch.arange(ROWS))
    half = torch.arange(ROWS) < 6
    assert torch.equal(together, half[:, None] == half[None, :])


def test_the_released_variant_cuts_the_raw_logit_at_one_half() -> None:
    config = LaGAMConfig.from_settings({"variant": "released"})
    assert config.group_threshold == pytest.approx(1 / (1 + math.exp(-0.5)), abs=1e-6)
    assert config.neighbours == 9


@pytest.mark.parametrize(
    ("epochs", "warmup", "neighbours"), [(400, 20, 51), (60, 10, 21), (10, 2, 4)]
)
def test_a_smaller_budget_shortens_what_comes_before_the_meta_labels(
    epochs: int, warmup: int, neighbours: int
) -> None:
    config = LaGAMConfig().for_budget(epochs)
    assert (config.warmup_epochs, config.neighbours_from) == (warmup, neighbours)


@pytest.mark.parametrize(
    ("data_name", "clusters"), [("cifar10", 5), ("cifar100", 5), ("stl10", 100)]
)
def test_recipes_hold_what_the_ncpu_authors_ran(data_name: str, clusters: int) -> None:
    recipe = recipe_settings(data_name, "lagam")
    train = TrainConfig.from_settings(recipe["train"])
    assert (train.epochs, train.batch_size, train.learning_rate) == (400, 64, 1e-3)
    assert train.weight_decay == 1e-4
    rates = [train.learning_rate_at(epoch, 400) for epoch in (250, 251, 300, 301, 350, 351, 399)]
    assert rates == pytest.approx([1e-3, 1e-4, 1e-4, 1e-5, 1e-5, 1e-6, 1e-6])
    assert recipe["data"] == {"clean": 100}
    config = LaGAMConfig.from_settings(recipe.get("method", {}))
    assert (config.clusters, config.neighbours, config.warmup_epochs) == (clusters, 10, 20)


def test_it_finds_the_boundary_between_two_clouds() -> None:
    config = LaGAMConfig.from_settings(
        {"projector_width": 32, "warmup_epochs": 7, "neighbours_from": 15}
    )
    assert learn(config, epochs=40).accuracy >= 0.95
