"""vPU against loops over samples; its decision, its choice of epoch, and the two clouds."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch, Stratified
from onesided.core.clock import Clock
from onesided.core.labels import NEGATIVE, POSITIVE, p_positive
from onesided.core.rng import numpy_generator
from onesided.data.loader import Loader
from onesided.losses.variational import variational_loss
from onesided.methods.vpu import VPU, VPUConfig
from onesided.nets.build import NetworkConfig, build_backbone, seeded
from tests.methods.clouds import POSITIVES, PRIOR, UNLABELLED, Clouds, Untouched, clouds, linear

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
        assert {name: float(value) for name, value in losses.terms.items()} == pytest.approx(
            expected, rel=1e-9, abs=1e-12
        )
        assert float(losses.total) == pytest.approx(sum(expected.values()), rel=1e-9)


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
        backbone = build_backbone(NetworkConfig(width=0.05), (2,), [0, 0], [1, 1])
        ours = VPUConfig().build(DataFacts(rows=8, labelled=4, sample_shape=(2,)), backbone)
    whole = random_batch(1, positives, unlabelled)
    batch = PUBatch(whole.row, whole.labelled, {"classify": whole.views["classify"].float()})
    losses = step_of(ours, batch, at(0))
    losses.total.backward()  # type: ignore[no-untyped-call]
    assert losses.total.isfinite()
    assert ("mixup" in losses.terms) == bool(positives and unlabelled)


def test_half_of_every_batch_is_labelled() -> None:
    assert method().batching == Stratified(4)


def test_the_prior_bound_is_told() -> None:
    losses = step_of(method(), random_batch(2), at(0))
    assert float(losses.watched["prior_bound"]) == pytest.approx(
        math.exp(float(losses.terms["variational"]))
    )


# the decision


def line(weight: float, bias: float, **settings: object) -> VPU:
    """Return a vPU whose margin is weight x1 + bias."""
    ours = method(**settings)
    with torch.no_grad():
        ours.classifier.weight.zero_()
        ours.classifier.bias.zero_()
        ours.classifier.weight[POSITIVE, 0] = weight
        ours.classifier.bias[POSITIVE] = bias
    return ours


@pytest.mark.parametrize("bias", [-30.0, -3.0, 0.0, 4.0])
def test_positive_means_phi_above_half_of_its_maximum(bias: float) -> None:
    data = clouds(0)
    ours = line(1.5, bias, selection="last")
    ours.finish(data.sweep(ours, at(0)))
    train = torch.from_numpy(data.train.values.take(slice(None))).double()
    test = torch.from_numpy(data.test.values.take(slice(None))).double()
    log_phi, largest = (F.logsigmoid(1.5 * x[:, 0] + bias) for x in (test, train))
    expected = log_phi - largest.max() > math.log(0.5)
    scores = p_positive(ours.classify(test))
    assert torch.equal(scores > 0.5, expected)
    assert 0 < int(expected.sum()) < len(test)


def test_a_phi_that_is_small_everywhere_still_finds_positives() -> None:
    data = clouds(0)
    ours = line(1.5, -30.0, selection="last")
    test = torch.from_numpy(data.test.values.take(slice(None))).double()
    assert not (p_positive(ours.classify(test)) > 0.5).any(), "Phi alone decides nothing"
    ours.finish(data.sweep(ours, at(0)))
    assert (p_positive(ours.classify(test)) > 0.5).any()


def test_the_shift_keeps_the_order_of_samples() -> None:
    data = clouds(0)
    ours = line(1.5, -3.0, selection="last")
    test = torch.from_numpy(data.test.values.take(slice(None))).double()
    before = ours.classify(test)
    ours.finish(data.sweep(ours, at(0)))
    after = ours.classify(test)
    difference = (after - before)[:, POSITIVE] - (after - before)[:, NEGATIVE]
    assert float(difference.min()) > 0
    torch.testing.assert_close(difference, difference[:1].expand(len(difference)))


def test_a_quantile_below_one_calls_more_positive() -> None:
    data = clouds(0)
    called = []
    for quantile in (1.0, 0.9):
        ours = line(0.3, -6.0, selection="last", normaliser_quantile=quantile)
        ours.finish(data.sweep(ours, at(0)))
        test = torch.from_numpy(data.test.values.take(slice(None))).double()
        called.append(int((p_positive(ours.classify(test)) > 0.5).sum()))
    assert called[1] > called[0]


def test_what_inference_needs_includes_the_largest_margin() -> None:
    state = method().inference_state()
    assert "largest.value" in state
    assert not any(name.startswith("best.") for name in state)


# the choice of epoch


def become(ours: VPU, weight: float) -> None:
    with torch.no_grad():
        ours.classifier.weight[POSITIVE, 0] = weight


def held_out_loss(data: Clouds, weight: float) -> float:
    values = torch.from_numpy(data.validation.values.take(slice(None))).double()
    log_phi = F.logsigmoid(weight * values[:, 0])
    labelled = torch.from_numpy(data.validation.labelled)
    return float(variational_loss(log_phi[labelled], log_phi[~labelled]))


def weight_after(data: Clouds, weights: list[float], **settings: object) -> float:
    """Let every epoch end with one of the weights, and return what the run ends with."""
    ours = line(0.0, 0.0, **settings)
    for epoch, weight in enumerate(weights):
        ours.begin_epoch(at(0, epoch), data.sweep(ours, at(0, epoch)))
        become(ours, weight)
    ours.finish(data.sweep(ours, at(0, len(weights))))
    return float(ours.classifier.weight[POSITIVE, 0])


@pytest.mark.parametrize("weights", [[0.5, 2.0, -1.0], [2.0, 0.5, -1.0], [-1.0, 0.5, 2.0]])
def test_the_epoch_with_the_lowest_held_out_loss_is_kept(weights: list[float]) -> None:
    data = clouds(1)
    best = min(weights, key=lambda weight: held_out_loss(data, weight))
    assert weight_after(data, weights) == best == 2.0


def test_the_last_epoch_is_kept_where_asked_for() -> None:
    assert weight_after(clouds(1), [0.5, 2.0, -1.0], selection="last") == -1.0
    assert method(selection="last").best is None


def test_the_untrained_network_is_no_candidate() -> None:
    data = clouds(1)
    ours = line(2.0, 0.0)
    ours.begin_epoch(at(0, 0), data.sweep(ours, at(0, 0)))
    become(ours, -1.0)
    ours.finish(data.sweep(ours, at(0, 1)))
    assert float(ours.classifier.weight[POSITIVE, 0]) == -1.0


def test_the_normaliser_belongs_to_the_network_that_is_kept() -> None:
    data = clouds(1)
    ours = line(0.0, 0.0)
    for epoch, weight in enumerate([2.0, -1.0]):
        ours.begin_epoch(at(0, epoch), data.sweep(ours, at(0, epoch)))
        become(ours, weight)
    ours.finish(data.sweep(ours, at(0, 2)))
    largest = 2.0 * float(data.train.values.take(slice(None))[:, 0].max())
    assert float(ours.largest.value) == pytest.approx(largest)


def test_finishing_twice_is_finishing_once() -> None:
    data = clouds(1)
    ours = line(2.0, 0.0)
    ours.finish(data.sweep(ours, at(0, 1)))
    state = {name: value.clone() for name, value in ours.state_dict().items()}
    ours.finish(data.sweep(ours, at(0, 1)))
    assert all(torch.equal(value, state[name]) for name, value in ours.state_dict().items())


# the two clouds


def trained(weight: float, seed: int) -> tuple[VPU, Clouds]:
    """Train as the reference values were found: 200 + 200 rows a step, Adam, 600 steps."""
    data = clouds(seed)
    ours = linear(VPUConfig(mixup_weight=weight), 2 * POSITIVES, seed)
    assert isinstance(ours, VPU)
    loader = Loader(data.train, "vector", 2 * POSITIVES, torch.device("cpu"))
    steps = UNLABELLED // POSITIVES
    optimizer = torch.optim.Adam(ours.parameters(), lr=0.02, betas=(0.5, 0.99))
    for epoch in range(60):
        clock = Clock(seed, "train", epoch, 60, 0, steps)
        ours.begin_epoch(clock, data.sweep(ours, clock))
        views = {"classify": Augment.PLAIN}
        for now, batch in loader.epoch(clock, views, ours.batching):
            losses = step_of(ours, batch, now)
            optimizer.zero_grad()
            losses.total.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    ours.finish(data.sweep(ours, clock))
    return ours, data


def training_bound(ours: VPU, data: Clouds) -> float:
    """exp(L_var) on all of the training set."""
    values = torch.from_numpy(data.train.values.take(slice(None)))
    logits = ours.classifier(ours.backbone(values)).detach().double()
    log_phi = F.logsigmoid(logits[:, POSITIVE] - logits[:, NEGATIVE])
    labelled = torch.from_numpy(data.train.labelled)
    return math.exp(float(variational_loss(log_phi[labelled], log_phi[~labelled])))


def test_the_two_clouds_are_told_apart_and_the_bound_lies_above_the_prior() -> None:
    bounds = []
    for weight in (0.0, 0.03, 0.3):
        ours, data = trained(weight, seed=1)
        assert data.accuracy(ours) > 0.955
        bounds.append(training_bound(ours, data))
    assert PRIOR < bounds[0] < 0.46
    assert 0.44 < bounds[2] < 0.50
    assert bounds == sorted(bounds), "mixing costs likelihood"
