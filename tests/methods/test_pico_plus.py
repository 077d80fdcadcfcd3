"""PiCO+ against loops over samples, its guards, and two clouds."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.config import Settings
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.methods.base import EMBEDDING
from onesided.methods.pico import PiCOConfig
from onesided.methods.pico_plus import PiCOPlus
from onesided.nets.build import BackboneConfig, build_backbone, seeded
from tests.methods.slow_pico import BATCH, QUEUE, ROWS
from tests.methods.slow_pico_plus import SlowPiCOPlus
from tests.methods.two_clouds import learn

SMALL: Settings = {
    "variant": "plus",
    "projector_width": 8,
    "queue_length": QUEUE,
    "warmup_epochs": 0,
    "neighbours": 3,
    "neighbours_from": 4,
    "temperature": 0.5,
}


def method(**settings: object) -> PiCOPlus:
    config = PiCOConfig.from_settings({**SMALL, **settings})
    facts = DataFacts(rows=ROWS, labelled=3, sample_shape=(2,))
    with seeded(0, "test"):
        backbone = build_backbone(BackboneConfig(width=0.05), (2,), [0, 0], [1, 1])
        built = config.build(facts, backbone)
    assert isinstance(built, PiCOPlus)
    return built.double()


def no_sweep(
    function: object, *, view: Augment = Augment.PLAIN, of: str = "train"
) -> tuple[Tensor, Tensor]:
    raise AssertionError("PiCO+ needs no sweep: it uses the distances recorded in training")


def random_outputs(seed: int) -> Outputs:
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    return Outputs(
        {
            "logits": 2 * normal(BATCH, 2),
            "mixed_logits": 2 * normal(BATCH, 2),
            "partner_offset": torch.tensor([1, -1, 1, -1, 1, -1]),
            "query": 3 * normal(BATCH, EMBEDDING),
            "key": 3 * normal(BATCH, EMBEDDING),
        }
    )


def random_batch(seed: int) -> PUBatch:
    row = torch.randperm(ROWS, generator=torch.Generator().manual_seed(100 + seed))[:BATCH]
    return PUBatch(row=row, labelled=row < 3)


def at(epoch: int, step: int = 0) -> Clock:
    return Clock(seed=0, stage="train", epoch=epoch, epochs=10, step=step, steps=2)


def run(ours: PiCOPlus, epochs: int) -> list[Losses]:
    """Take two steps per epoch on random outputs."""
    found = []
    for epoch in range(epochs):
        ours.begin_epoch(at(epoch), no_sweep)
        for step in range(2):
            seed = 2 * epoch + step
            found.append(ours.loss(random_outputs(seed), random_batch(seed), at(epoch, step)))
    return found


@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_sixteen_steps_equal_the_loops_over_samples(share: float) -> None:
    ours = method(reliable_share=share)
    slow = SlowPiCOPlus(ours.config, [(key, UNKNOWN, False) for key in ours.queue.read()[0]])
    for epoch in range(8):
        ours.begin_epoch(at(epoch), no_sweep)
        slow.begin_epoch()
        for step in range(2):
            outputs, batch = random_outputs(2 * epoch + step), random_batch(2 * epoch + step)
            losses = ours.loss(outputs, batch, at(epoch, step))
            expected = slow.step(outputs, batch, at(epoch, step))
            assert losses.terms.keys() == expected.keys()
            for name, value in expected.items():
                assert float(losses.terms[name]) == pytest.approx(value, rel=1e-6), (epoch, name)
            assert float(losses.total) == pytest.approx(sum(expected.values()), rel=1e-6)
    for ours_label, label in ((POSITIVE, 0), (NEGATIVE, 1)):
        assert torch.allclose(ours.prototypes.vectors[ours_label], slow.prototypes[label])
    assert ours.reliability.reliable.tolist() == slow.reliable


def test_the_warm_up_is_that_of_pico_with_distances_recorded() -> None:
    ours = method(warmup_epochs=5)
    plain = PiCOConfig.from_settings({**SMALL, "refinement": "none", "warmup_epochs": 5}).build(
        DataFacts(rows=ROWS, labelled=3, sample_shape=(2,)), ours.backbone
    )
    outputs, batch = random_outputs(0), random_batch(0)
    ours.begin_epoch(at(4), no_sweep)
    expected = plain.double().loss(outputs, batch, at(4))
    losses = ours.loss(outputs, batch, at(4))
    assert {name: float(term) for name, term in losses.terms.items()} == pytest.approx(
        {name: float(term) for name, term in expected.terms.items()}
    )
    assert ours.reliability.distance[batch.row].isfinite().all()
    assert not ours.reliability.reliable.any()
    assert not ours.queue.read_trust().any()


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_batch_with_no_reliable_row_or_only_reliable_rows_gives_numbers(share: float) -> None:
    ours = method(reliable_share=share)
    none = torch.zeros(BATCH, dtype=torch.bool)
    run(ours, 3)
    ours.begin_epoch(at(3), no_sweep)
    for epoch in (3, 5):
        batch = replace(random_batch(9), labelled=none)
        losses = ours.loss(random_outputs(9), batch, at(epoch))
        assert torch.isfinite(losses.total)
        empty = losses.terms["reliable" if share == 0 else "unreliable"]
        assert float(empty) == 0


def test_only_reliable_rows_move_the_prototypes() -> None:
    ours = method(reliable_share=0.0)
    batch = replace(random_batch(0), labelled=torch.zeros(BATCH, dtype=torch.bool))
    ours.loss(random_outputs(0), batch, at(0))
    assert not ours.prototypes.vectors.any()


def test_labelled_positives_are_reliable_and_have_the_target_positive_at_every_step() -> None:
    ours = method(reliable_share=0.0)
    run(ours, 4)
    known = torch.arange(3)
    yes = torch.ones(3, dtype=torch.bool)
    assert ours.reliability.read(known, yes).all()
    assert ours.targets.current(known, yes)[:, POSITIVE].tolist() == [1, 1, 1]
    assert ours.prototypes.vectors[POSITIVE].any()
    assert not ours.prototypes.vectors[NEGATIVE].any()


def test_forward_mixes_query_views_of_neighbours_after_the_warm_up() -> None:
    ours = method().eval()
    draw = torch.Generator().manual_seed(0)
    views = {role: torch.rand(BATCH, 2, generator=draw).double() for role in ("query", "key")}
    outputs = ours(replace(random_batch(0), views=views), at(5))
    share = SlowPiCOPlus(ours.config, []).share(at(5))
    mixed = share * views["query"] + (1 - share) * views["query"][[1, 0, 3, 2, 5, 4]]
    assert torch.allclose(outputs["mixed_logits"], ours.classify(mixed))
    early = method(warmup_epochs=6)(replace(random_batch(0), views=views), at(5))
    assert "mixed_logits" not in early


def test_in_a_short_run_every_phase_is_reached() -> None:
    config = PiCOConfig.from_settings({"variant": "plus"})
    assert (config.warmup_epochs, config.neighbours_from) == (5, 100)
    short = config.for_budget(20)
    assert (short.warmup_epochs, short.neighbours_from) == (2, 3)
    long = config.for_budget(800)
    assert long == config


def test_it_finds_the_boundary_between_two_clouds() -> None:
    config = PiCOConfig.from_settings(
        {
            "variant": "plus",
            "projector_width": 32,
            "queue_length": 512,
            "encoder_momentum": 0.99,
            "warmup_epochs": 3,
            "neighbours_from": 10,
        }
    )
    assert learn(config, epochs=20).accuracy >= 0.95
