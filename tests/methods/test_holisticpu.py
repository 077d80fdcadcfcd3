"""HolisticPU against loops over samples, and its two stages."""

import math

import pytest
import torch
from torch import Tensor, nn

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch, Stratified
from onesided.core.clock import Clock
from onesided.core.errors import ConfigError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.methods.holisticpu import OBSERVE, TEACH, HolisticPU, HolisticPUConfig
from onesided.nets.build import BackboneConfig, build_backbone, seeded

ROWS, BATCH = 12, 8


def method(**settings: object) -> HolisticPU:
    facts = DataFacts(rows=ROWS, labelled=3, sample_shape=(2,), batch_size=BATCH, seed=5)
    with seeded(0, "test"):
        backbone = build_backbone(BackboneConfig(width=0.05), (2,), (0.0, 0.0), (1.0, 1.0))
        return HolisticPUConfig.from_settings(settings).build(facts, backbone).double()


def random_outputs(seed: int) -> Outputs:
    draw = torch.Generator().manual_seed(seed)
    weak, strong = 3 * torch.randn(2, BATCH, 2, generator=draw, dtype=torch.float64)
    return Outputs({"weak": weak, "strong": strong})


def random_batch(seed: int) -> PUBatch:
    draw = torch.Generator().manual_seed(100 + seed)
    row = torch.randperm(ROWS, generator=draw)[:BATCH]
    return PUBatch(row=row, labelled=row < 3)


def at(stage: str, epoch: int = 0, step: int = 0) -> Clock:
    return Clock(seed=0, stage=stage, epoch=epoch, epochs=25, step=step, steps=2)


def probabilities(logits: Tensor) -> list[float]:
    return logits.softmax(dim=1)[:, POSITIVE].tolist()


def cross_entropy(p: float, target: float) -> float:
    return -target * math.log(p) - (1 - target) * math.log(1 - p)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def slow_observe(outputs: Outputs, batch: PUBatch, smoothing: float) -> dict[str, float]:
    weak, strong = probabilities(outputs["weak"]), probabilities(outputs["strong"])
    known = [i for i, labelled in enumerate(batch.labelled.tolist()) if labelled]
    unknown = [i for i in range(BATCH) if i not in known]
    target = 1 - smoothing / 2
    on_weak = mean([cross_entropy(weak[i], target) for i in known])
    on_strong = mean([cross_entropy(strong[i], target) for i in known])
    return {
        "positive": (on_weak + on_strong) / 2,
        "unlabelled": mean([cross_entropy(weak[i], 0) for i in unknown]),
    }


def slow_teach(
    outputs: Outputs, batch: PUBatch, pseudo: list[float], epoch: int
) -> dict[str, float]:
    weak, strong = probabilities(outputs["weak"]), probabilities(outputs["strong"])
    known = [i for i, labelled in enumerate(batch.labelled.tolist()) if labelled]
    unknown = [i for i in range(BATCH) if i not in known]
    trust = (epoch / 25) ** 0.8
    rows = batch.row.tolist()
    consistency = [
        cross_entropy(strong[i], float(weak[i] > 0.5)) if max(weak[i], 1 - weak[i]) >= 0.9 else 0.0
        for i in unknown
    ]
    return {
        "positive": mean([cross_entropy(weak[i], 1) for i in known]),
        "unlabelled": mean([cross_entropy(weak[i], trust * pseudo[rows[i]]) for i in unknown]),
        "consistency": mean(consistency),
    }


def assert_terms(found: Losses, expected: dict[str, float]) -> None:
    assert found.terms.keys() == expected.keys()
    for name, value in expected.items():
        assert float(found.terms[name]) == pytest.approx(value, rel=1e-9, abs=1e-12), name
    assert float(found.total) == pytest.approx(sum(expected.values()), rel=1e-9)


@pytest.mark.parametrize(("variant", "smoothing"), [("published", 0.1), ("ncpu-paper", 0.01)])
def test_observing_equals_the_loops_over_samples(variant: str, smoothing: float) -> None:
    ours = method(variant=variant)
    for seed in range(4):
        outputs, batch = random_outputs(seed), random_batch(seed)
        expected = slow_observe(outputs, batch, smoothing)
        assert_terms(ours.loss(outputs, batch, at(OBSERVE)), expected)


@pytest.mark.parametrize("epoch", [0, 12, 24])
def test_the_second_stage_equals_the_loops_over_samples(epoch: int) -> None:
    ours = method()
    pseudo = [float(row % 2) for row in range(ROWS)]
    ours.pseudo_labels.fill(torch.tensor(pseudo))
    for seed in range(4):
        outputs, batch = random_outputs(seed), random_batch(seed)
        expected = slow_teach(outputs, batch, pseudo, epoch)
        assert_terms(ours.loss(outputs, batch, at(TEACH, epoch)), expected)


def test_the_second_objective_by_hand() -> None:
    ours = method()
    ours.pseudo_labels.fill((torch.arange(ROWS) == 5).float())

    def logits(positive: list[float], negative: list[float]) -> Tensor:
        columns = {POSITIVE: positive, NEGATIVE: negative}
        return torch.tensor([columns[0], columns[1]], dtype=torch.float64).T.contiguous()

    outputs = Outputs({"weak": logits([3, 0], [0, 1]), "strong": logits([1, 0], [0, 2])})
    batch = PUBatch(row=torch.tensor([5, 6]), labelled=torch.tensor([False, False]))
    losses = ours.loss(outputs, batch, at(TEACH, 12))
    assert float(losses.terms["unlabelled"]) == pytest.approx(0.84708159, abs=1e-8)
    assert float(losses.terms["consistency"]) == pytest.approx(0.15663084, abs=1e-8)
    assert float(losses.total) == pytest.approx(1.00371244, abs=1e-8)


@pytest.mark.parametrize(
    ("epoch", "trust"), [(0, 0.0), (1, 0.07614616), (12, 0.55589528), (24, 0.96786991)]
)
def test_pseudo_labels_are_trusted_more_and_more_and_never_quite(epoch: int, trust: float) -> None:
    assert method()._trust(at(TEACH, epoch)) == pytest.approx(trust, abs=1e-8)


def test_half_of_every_batch_is_labelled() -> None:
    assert method().batching == Stratified(BATCH // 2)
    assert method().views == {"weak": Augment.WEAK, "strong": Augment.STRONG}


@pytest.mark.parametrize(("epochs", "lengths"), [(40, [15, 25]), (20, [15, 5]), (3, [2, 1])])
def test_all_epochs_after_observing_are_the_second_stage(epochs: int, lengths: list[int]) -> None:
    assert [stage.epochs for stage in method().plan(epochs)] == lengths


def test_two_epochs_are_too_few_for_a_trend() -> None:
    with pytest.raises(ConfigError, match="at least 3 epochs"):
        method().plan(2)


def test_the_published_schedule_is_cut_off_when_observing_ends() -> None:
    observe, teach = method(steps_per_epoch=512).plan(40)
    assert (observe.steps, teach.steps) == (512, 512)
    assert observe.pace.span == 25
    assert math.cos(7 * math.pi / 16 * 15 / observe.pace.span) == pytest.approx(0.6788, abs=1e-4)
    assert math.cos(7 * math.pi / 16) == pytest.approx(0.1951, abs=1e-4)


@pytest.mark.parametrize(("epochs", "observed"), [(40, 15), (10, 4), (4, 2), (200, 75)])
def test_a_budget_keeps_the_proportion_of_the_stages(epochs: int, observed: int) -> None:
    planned = HolisticPUConfig(steps_per_epoch=512).for_budget(epochs)
    assert (planned.trend_epochs, planned.steps_per_epoch) == (observed, 0)


def views_of(values: Tensor) -> PUBatch:
    batch = random_batch(0)
    return PUBatch(batch.row, batch.labelled, {"weak": values, "strong": -values})


def test_batch_norm_sees_weak_and_strong_views_as_one_batch() -> None:
    ours = method()
    values = torch.linspace(-1, 2, 2 * BATCH, dtype=torch.float64).reshape(BATCH, 2)
    outputs = ours(views_of(values), at(OBSERVE))
    together = ours.classify(torch.cat([values, -values]))
    assert torch.allclose(torch.cat([outputs["weak"], outputs["strong"]]), together)


@pytest.mark.parametrize(
    ("statistics", "stage", "epoch", "learns"),
    [
        ("every-epoch", TEACH, 1, True),
        ("first-epoch", TEACH, 0, True),
        ("first-epoch", TEACH, 1, False),
        ("first-epoch", OBSERVE, 1, True),
    ],
)
def test_the_released_loop_freezes_batch_norm_after_the_first_epoch_of_stage_two(
    statistics: str, stage: str, epoch: int, learns: bool
) -> None:
    ours = method(statistics=statistics)
    before = [buffer.clone() for buffer in ours.backbone.buffers()]
    values = torch.linspace(-1, 2, 2 * BATCH, dtype=torch.float64).reshape(BATCH, 2)
    outputs = ours(views_of(values), at(stage, epoch))
    changed = [
        not torch.equal(old, new) for old, new in zip(before, ours.backbone.buffers(), strict=True)
    ]
    assert any(changed) == learns
    assert outputs["weak"].requires_grad


def test_the_second_stage_starts_with_weights_that_depend_on_the_seed_alone() -> None:
    first, second = method(), method()
    with torch.no_grad():
        for parameter in second.parameters():
            parameter.fill_(7.0)
        for buffer in second.backbone.buffers():
            buffer.add_(1)
    before = [p.clone() for p in first.classifier.parameters()]
    for one in (first, second):
        one._reset_weights()
    for part in ("backbone", "classifier"):
        fresh = dict(first.get_submodule(part).named_parameters())
        for name, value in second.get_submodule(part).named_parameters():
            assert torch.equal(value, fresh[name]), (part, name)
    assert not torch.equal(before[0], first.classifier.weight)


def test_batch_norm_starts_afresh_too() -> None:
    ours = method()
    norms = [m for m in ours.backbone.modules() if isinstance(m, nn.BatchNorm1d)]
    assert norms
    for norm in norms:
        assert norm.running_mean is not None
        norm.running_mean.fill_(3.0)
    ours._reset_weights()
    assert all(norm.running_mean is not None and not norm.running_mean.any() for norm in norms)
