"""DistPU against loops over samples, and its two stages."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from onesided.core.batch import Augment, DataFacts, Outputs, PUBatch
from onesided.core.clock import Clock, Pace
from onesided.core.errors import ConfigError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.methods.distpu import ALIGN, MIX, DistPU, DistPUConfig
from onesided.nets.build import BackboneConfig, build_backbone, seeded

ROWS, BATCH, PRIOR = 12, 8, 0.4


def method(**settings: object) -> DistPU:
    facts = DataFacts(rows=ROWS, labelled=3, sample_shape=(2,), prior=PRIOR)
    with seeded(0, "test"):
        backbone = build_backbone(BackboneConfig(width=0.05), (2,), (0.0, 0.0), (1.0, 1.0))
        return DistPUConfig.from_settings(settings).build(facts, backbone).double()


def random_outputs(seed: int, *, spread: float = 2.0) -> Outputs:
    draw = torch.Generator().manual_seed(seed)

    def logits() -> torch.Tensor:
        return spread * torch.randn(BATCH, 2, generator=draw, dtype=torch.float64)

    return Outputs({"logits": logits(), "mixed": logits()})


def random_batch(seed: int) -> PUBatch:
    draw = torch.Generator().manual_seed(100 + seed)
    row = torch.randperm(ROWS, generator=draw)[:BATCH]
    return PUBatch(row=row, labelled=row < 3)


def at(stage: str, epoch: int = 0, step: int = 0) -> Clock:
    return Clock(seed=0, stage=stage, epoch=epoch, epochs=60, step=step, steps=2)


def margins(logits: torch.Tensor, limit: float = 0.0) -> list[float]:
    values = (logits[:, POSITIVE] - logits[:, NEGATIVE]).tolist()
    return [max(min(value, limit), -limit) if limit else value for value in values]


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def entropy(p: float) -> float:
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def cross_entropy(p: float, target: float) -> float:
    return -target * math.log(p) - (1 - target) * math.log(1 - p)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@dataclass
class SlowDistPU:
    """The two objectives as loops over samples."""

    limit: float = 0.0
    soft: list[float] = field(default_factory=lambda: [0.0] * ROWS)

    def align(self, outputs: Outputs, batch: PUBatch) -> dict[str, float]:
        free = [sigmoid(g) for g in margins(outputs["logits"])]
        cut = [sigmoid(g) for g in margins(outputs["logits"], self.limit)]
        unlabelled = [p for p, known in zip(cut, batch.labelled.tolist(), strict=True) if not known]
        return {
            "risk": self._risk(free, batch),
            "entropy": 2e-3 * mean([entropy(p) for p in unlabelled]),
        }

    def mix(
        self, outputs: Outputs, batch: PUBatch, epoch: int, share: float, partner: list[int]
    ) -> dict[str, float]:
        labelled, rows = batch.labelled.tolist(), batch.row.tolist()
        clean = [sigmoid(g) for g in margins(outputs["logits"], self.limit)]
        mixed = [sigmoid(g) for g in margins(outputs["mixed"], self.limit)]
        target = [1.0 if labelled[i] else self.soft[rows[i]] for i in range(BATCH)]
        costs = [
            share * cross_entropy(mixed[i], target[i])
            + (1 - share) * cross_entropy(mixed[i], target[partner[i]])
            for i in range(BATCH)
        ]
        for i, row in enumerate(rows):
            self.soft[row] = clean[i]
        weight = 0.004 * (1 - math.cos(math.pi * epoch / (2 * 60)))
        unlabelled = [clean[i] for i in range(BATCH) if not labelled[i]]
        return {
            "risk": self._risk(clean, batch),
            "entropy": weight * mean([entropy(p) for p in unlabelled]),
            "mixed_entropy": 0.04 * mean([entropy(p) for p in mixed]),
            "mixup": 5 * mean(costs),
        }

    def _risk(self, probability: list[float], batch: PUBatch) -> float:
        pairs = list(zip(probability, batch.labelled.tolist(), strict=True))
        on_positive = [p for p, known in pairs if known]
        on_unlabelled = [p for p, known in pairs if not known]
        risk = abs(1 - mean(on_positive)) if on_positive else 0.0
        return risk + abs(mean(on_unlabelled) - PRIOR) / (2 * PRIOR)


def assert_terms(found: object, expected: dict[str, float]) -> None:
    terms = found.terms  # type: ignore[attr-defined]
    assert terms.keys() == expected.keys()
    for name, value in expected.items():
        assert float(terms[name]) == pytest.approx(value, rel=1e-9, abs=1e-12), name
    assert float(found.total) == pytest.approx(sum(expected.values()), rel=1e-9)  # type: ignore[attr-defined]


@pytest.mark.parametrize("variant", ["published", "ncpu-paper"])
def test_alignment_equals_the_loops_over_samples(variant: str) -> None:
    ours = method(variant=variant)
    slow = SlowDistPU(limit=ours.config.logit_limit)
    for seed in range(4):
        outputs, batch = random_outputs(seed, spread=8), random_batch(seed)
        assert_terms(ours.loss(outputs, batch, at(ALIGN)), slow.align(outputs, batch))


@pytest.mark.parametrize("variant", ["published", "ncpu-paper"])
def test_six_steps_of_mixing_equal_the_loops_over_samples(variant: str) -> None:
    ours = method(variant=variant)
    slow = SlowDistPU(limit=ours.config.logit_limit)
    for step in range(6):
        clock = at(MIX, epoch=10 * step, step=step % 2)
        outputs, batch = random_outputs(step, spread=8), random_batch(step)
        share, partner = ours._draw(BATCH, clock)
        expected = slow.mix(outputs, batch, clock.epoch, share, partner.tolist())
        assert_terms(ours.loss(outputs, batch, clock), expected)
        assert ours.soft_labels.positive.tolist() == pytest.approx(slow.soft)


def test_the_papers_scale_is_the_released_one_times_twice_the_prior() -> None:
    outputs, batch, clock = random_outputs(1), random_batch(1), at(ALIGN)
    released = method().loss(outputs, batch, clock).terms["risk"]
    paper = method(risk_scale="paper").loss(outputs, batch, clock).terms["risk"]
    assert float(paper) == pytest.approx(2 * PRIOR * float(released))


@pytest.mark.parametrize(("epoch", "weight"), [(0, 0.0), (30, 0.00117157), (59, 0.00389529)])
def test_the_entropy_of_the_second_stage_rises_along_a_cosine(epoch: int, weight: float) -> None:
    assert method()._entropy_weight(at(MIX, epoch)) == pytest.approx(weight, abs=1e-8)


def test_limited_margins_learn_nothing_beyond_their_limit() -> None:
    logits = torch.tensor([[0.0, 12.0]] * BATCH, dtype=torch.float64, requires_grad=True)
    outputs = Outputs({"logits": logits, "mixed": logits})
    method(logit_limit=10).loss(outputs, random_batch(0), at(MIX)).total.backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert not logits.grad.any()


def test_shares_come_from_the_beta_distribution_and_belong_to_a_place() -> None:
    ours = method()
    shares = np.array([ours._draw(BATCH, at(MIX, epoch=e))[0] for e in range(2000)])
    assert shares.mean() == pytest.approx(0.5, abs=0.02)
    assert shares.var() == pytest.approx(1 / (4 * (2 * 6 + 1)), rel=0.1)
    one, other = ours._draw(BATCH, at(MIX, epoch=3)), ours._draw(BATCH, at(MIX, epoch=3))
    assert one[0] == other[0]
    assert torch.equal(one[1], other[1])
    assert sorted(one[1].tolist()) == list(range(BATCH))


def test_mixtures_are_made_of_the_drawn_partners() -> None:
    ours, clock = method(), at(MIX, epoch=5)
    images = torch.arange(2.0 * BATCH, dtype=torch.float64).reshape(BATCH, 2)
    share, partner = ours._draw(BATCH, clock)
    expected = torch.stack(
        [share * images[i] + (1 - share) * images[partner[i]] for i in range(BATCH)]
    )
    assert torch.allclose(ours._mixed(images, clock), expected)


@pytest.mark.parametrize(
    ("epochs", "lengths"), [(120, [60, 60]), (3, [2, 1]), (2, [1, 1]), (1, [1])]
)
def test_the_run_is_halved_into_alignment_and_mixing(epochs: int, lengths: list[int]) -> None:
    stages = method().plan(epochs)
    assert [stage.epochs for stage in stages] == lengths
    assert [stage.name for stage in stages] == [ALIGN, MIX][: len(lengths)]


def test_mixing_goes_at_a_tenth_of_the_learning_rate() -> None:
    align, mixing = method().plan(120)
    assert align.pace == Pace()
    assert 5e-4 * mixing.pace.learning_rate == pytest.approx(5e-5)
    assert 5e-3 * mixing.pace.weight_decay == pytest.approx(1e-3)
    assert mixing.pace.floor == 0.7


def test_plain_sgd_is_for_the_first_stage_only() -> None:
    align, mixing = method(align_optimizer="plain-sgd").plan(120)
    assert (align.pace.optimizer, align.pace.momentum) == ("sgd", 0.0)
    assert mixing.pace.optimizer is None


def test_the_published_form_changes_no_sample_and_the_ncpu_one_does() -> None:
    assert method().views == {"classify": Augment.PLAIN}
    assert method(variant="ncpu-paper").views == {"classify": Augment.WEAK}
    assert method(variant="ncpu-paper", view="plain").views == {"classify": Augment.PLAIN}


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(ConfigError, match="variant"):
        DistPUConfig.from_settings({"variant": "paper"})
