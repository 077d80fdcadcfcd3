"""One step of vPU against loops over samples."""

import math

import pytest
import torch
from torch import Tensor

from onesided.core.batch import DataFacts, Losses, PUBatch, Stratified
from onesided.core.clock import Clock
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.core.rng import numpy_generator
from onesided.methods.vpu import VPU, VPUConfig
from onesided.nets.build import BackboneConfig, build_backbone, seeded
from tests.methods.linear_clouds import Untouched

SEED = 5


def method(**settings: object) -> VPU:
    config = VPUConfig.from_settings(settings)
    facts = DataFacts(rows=20, labelled=6, sample_shape=(2,), batch_size=8)
    with seeded(0, "test"):
        return config.build(facts, Untouched()).double()


def at(step: int, epoch: int = 0) -> Clock:
    return Clock(SEED, "train", epoch, 10, step, 20)


def random_batch(seed: int, positives: int = 4, unlabelled: int = 4) -> PUBatch:
    draw = torch.Generator().manual_seed(seed)
    count = positives + unlabelled
    labelled = torch.arange(count)[torch.randperm(count, generator=draw)] < positives
    images = 2 * torch.randn(count, 2, generator=draw, dtype=torch.float64)
    return PUBatch(torch.arange(count), labelled, {"classify": images})


def step_of(ours: VPU, batch: PUBatch, clock: Clock) -> Losses:
    return ours.loss(ours(batch, clock), batch, clock)


def slow_terms(ours: VPU, batch: PUBatch, clock: Clock) -> dict[str, float]:
    """The published algorithm as loops over samples."""
    weight, bias = ours.classifier.weight.detach(), ours.classifier.bias.detach()

    def phi(x: Tensor) -> float:
        logits = [float(weight[c] @ x + bias[c]) for c in (NEGATIVE, POSITIVE)]
        return 1 / (1 + math.exp(logits[NEGATIVE] - logits[POSITIVE]))

    images, labelled = batch.views["classify"], batch.labelled.tolist()
    x_p = [images[i] for i in range(len(images)) if labelled[i]]
    x_u = [images[i] for i in range(len(images)) if not labelled[i]]
    variational = math.log(mean([phi(x) for x in x_u])) - mean([math.log(phi(x)) for x in x_p])

    random = numpy_generator(clock.seed, "mixup", clock.stage, clock.epoch, clock.step)
    a = random.beta(ours.config.mixup_concentration, ours.config.mixup_concentration)
    partner = random.permutation(len(x_p))
    costs = []
    for j in range(min(len(x_p), len(x_u))):
        mixed = a * x_u[j] + (1 - a) * x_p[partner[j]]
        target = a * phi(x_u[j]) + (1 - a) * 1
        costs.append((math.log(target) - math.log(phi(mixed))) ** 2)
    return {"variational": variational, "mixup": ours.config.mixup_weight * mean(costs)}


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


# one step


@pytest.mark.parametrize(("positives", "unlabelled"), [(4, 4), (2, 6), (6, 2), (1, 7)])
def test_every_step_equals_the_loops_over_samples(positives: int, unlabelled: int) -> None:
    ours = method(mixup_weight=0.3)
    for step in range(6):
        batch = random_batch(step, positives, unlabelled)
        losses = step_of(ours, batch, at(step))
        expected = slow_terms(ours, batch, at(step))
        assert {name: value.item() for name, value in losses.terms.items()} == pytest.approx(
            expected, rel=1e-9, abs=1e-12
        )
        assert losses.total.item() == pytest.approx(sum(expected.values()), rel=1e-9)


def test_partners_and_share_change_from_step_to_step_and_not_within() -> None:
    ours = method()
    batch = random_batch(0)
    mixed = [ours(batch, at(step))["mixed"] for step in (0, 0, 1)]
    assert torch.equal(mixed[0], mixed[1])
    assert not torch.equal(mixed[0], mixed[2])


def test_a_fixed_target_takes_the_mixup_gradient_off_the_unlabelled() -> None:
    slopes = {}
    for target in ("learning", "fixed"):
        ours = method(mixup_weight=1.0, mixup_target=target)
        batch = random_batch(3)
        outputs = ours(batch, at(0))
        terms = ours.loss(outputs, batch, at(0)).terms
        (slopes[target],) = torch.autograd.grad(
            terms["mixup"], outputs["logits"], allow_unused=True
        )
    assert slopes["fixed"] is None
    assert slopes["learning"][~random_batch(3).labelled].abs().sum() > 0


def test_without_weight_nothing_is_mixed() -> None:
    ours = method(mixup_weight=0)
    outputs = ours(random_batch(0), at(0))
    assert "mixed" not in outputs
    assert list(ours.loss(outputs, random_batch(0), at(0)).terms) == ["variational"]


@pytest.mark.parametrize(("positives", "unlabelled"), [(0, 8), (8, 0), (1, 7)])
def test_a_batch_that_lacks_partners_still_gives_a_number(positives: int, unlabelled: int) -> None:
    with seeded(0, "test"):
        backbone = build_backbone(BackboneConfig(width=0.05), (2,), [0, 0], [1, 1])
        ours = VPUConfig().build(DataFacts(rows=8, labelled=4, sample_shape=(2,)), backbone)
    whole = random_batch(1, positives, unlabelled)
    batch = PUBatch(whole.row, whole.labelled, {"classify": whole.views["classify"].float()})
    losses = step_of(ours, batch, at(0))
    losses.total.backward()  # type: ignore[no-untyped-call]
    assert losses.total.isfinite()
    assert ("mixup" in losses.terms) == bool(positives and unlabelled)


def test_half_of_every_batch_is_labelled() -> None:
    assert method().batching == Stratified(4)


def test_the_prior_bound_is_logged() -> None:
    losses = step_of(method(), random_batch(2), at(0))
    assert float(losses.watched["prior_bound"]) == pytest.approx(
        math.exp(losses.terms["variational"].item())
    )
