"""vPU over whole sets: its decision, its choice of epoch, and the two clouds."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from onesided.core.batch import Augment, DataFacts
from onesided.core.clock import Clock
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.loader import Loader
from onesided.data.problem.dataset import PUDataset
from onesided.losses.classification import p_positive
from onesided.losses.variational import variational_loss
from onesided.methods.vpu import VPU, VPUConfig
from tests.methods.linear_clouds import (
    POSITIVES,
    PRIOR,
    UNLABELLED,
    Clouds,
    Untouched,
    clouds,
    linear,
    points,
)

FACTS = DataFacts(rows=POSITIVES + UNLABELLED, labelled=POSITIVES, sample_shape=(2,))


def at(epoch: int) -> Clock:
    return Clock(5, "train", epoch, 10, 0, 20)


# the decision


def line(weight: float, bias: float, **settings: object) -> VPU:
    """Return a vPU whose margin is weight x1 + bias."""
    ours = VPUConfig.from_settings(settings).build(FACTS, Untouched()).double()
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
    train = points(data.train).double()
    test = points(data.test).double()
    log_phi, largest = (F.logsigmoid(1.5 * x[:, 0] + bias) for x in (test, train))
    expected = log_phi - largest.max() > math.log(0.5)
    scores = p_positive(ours.classify(test))
    assert torch.equal(scores > 0.5, expected)
    assert 0 < int(expected.sum()) < len(test)


def test_a_phi_that_is_small_everywhere_still_finds_positives() -> None:
    data = clouds(0)
    ours = line(1.5, -30.0, selection="last")
    before = p_positive(ours.classify(points(data.test).double()))
    ours.finish(data.sweep(ours, at(0)))
    after = p_positive(ours.classify(points(data.test).double()))
    assert not (before > 0.5).any(), "Phi alone decides nothing"
    assert (after > 0.5).any()


def test_the_shift_keeps_the_order_of_samples() -> None:
    data = clouds(0)
    ours = line(1.5, -3.0, selection="last")
    test = points(data.test).double()
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
        test = points(data.test).double()
        called.append(int((p_positive(ours.classify(test)) > 0.5).sum()))
    assert called[1] > called[0]


def test_what_inference_needs_includes_the_largest_margin() -> None:
    state = line(1.0, 0.0).inference_state()
    assert "largest.value" in state
    assert not any(name.startswith("best.") for name in state)


# the choice of epoch


def become(ours: VPU, weight: float) -> None:
    with torch.no_grad():
        ours.classifier.weight[POSITIVE, 0] = weight


def loss_of(z: Tensor, data: PUDataset) -> float:
    """L_var of margins in row order."""
    log_phi, labelled = F.logsigmoid(z.double()), torch.from_numpy(data.labelled)
    return float(variational_loss(log_phi[labelled], log_phi[~labelled]))


def run_through(data: Clouds, weights: list[float], **settings: object) -> VPU:
    """Let every epoch end with one of the weights, and return what the run ends with."""
    ours = line(0.0, 0.0, **settings)
    for epoch, weight in enumerate(weights):
        ours.begin_epoch(at(epoch), data.sweep(ours, at(epoch)))
        become(ours, weight)
    ours.finish(data.sweep(ours, at(len(weights))))
    return ours


def weight_of(ours: VPU) -> float:
    return float(ours.classifier.weight[POSITIVE, 0])


@pytest.mark.parametrize("weights", [[0.5, 2.0, -1.0], [2.0, 0.5, -1.0], [-1.0, 0.5, 2.0]])
def test_the_epoch_with_the_lowest_held_out_loss_is_kept(weights: list[float]) -> None:
    data = clouds(1)
    first = points(data.held_out)[:, 0]
    best = min(weights, key=lambda weight: loss_of(weight * first, data.held_out))
    assert weight_of(run_through(data, weights)) == best == 2.0


def test_the_choice_is_made_on_held_out_data() -> None:
    data = clouds(1)
    mirrored = data.with_held_out(-points(data.held_out).numpy())
    assert weight_of(run_through(data, [2.0, -1.0])) == 2.0
    assert weight_of(run_through(mirrored, [2.0, -1.0])) == -1.0


def test_the_last_epoch_is_kept_where_asked_for() -> None:
    ours = run_through(clouds(1), [0.5, 2.0, -1.0], selection="last")
    assert weight_of(ours) == -1.0
    assert ours.best is None


def test_the_untrained_network_is_no_candidate() -> None:
    data = clouds(1)
    ours = line(2.0, 0.0)
    ours.begin_epoch(at(0), data.sweep(ours, at(0)))
    become(ours, -1.0)
    ours.finish(data.sweep(ours, at(1)))
    assert weight_of(ours) == -1.0


def test_the_normaliser_belongs_to_the_network_that_is_kept() -> None:
    data = clouds(1)
    ours = run_through(data, [2.0, -1.0])
    largest = 2.0 * float(points(data.train)[:, 0].max())
    assert float(ours.largest.value) == pytest.approx(largest)


def test_finishing_twice_is_finishing_once() -> None:
    data = clouds(1)
    ours = line(2.0, 0.0)
    ours.finish(data.sweep(ours, at(1)))
    state = {name: value.clone() for name, value in ours.state_dict().items()}
    ours.finish(data.sweep(ours, at(1)))
    assert all(torch.equal(value, state[name]) for name, value in ours.state_dict().items())


# the two clouds


def trained(weight: float, seed: int) -> tuple[VPU, Clouds]:
    """Train on 200 + 200 rows a step by Adam: 300 steps, at twice the reference's rate."""
    data = clouds(seed)
    ours = linear(VPUConfig(mixup_weight=weight), 2 * POSITIVES, seed)
    assert isinstance(ours, VPU)
    loader = Loader(data.train, "vector", 2 * POSITIVES, torch.device("cpu"))
    steps = UNLABELLED // POSITIVES
    optimizer = torch.optim.Adam(ours.parameters(), lr=0.04, betas=(0.5, 0.99))
    for epoch in range(30):
        clock = Clock(seed, "train", epoch, 30, 0, steps)
        ours.begin_epoch(clock, data.sweep(ours, clock))
        views = {"classify": Augment.PLAIN}
        for now, batch in loader.epoch(clock, views, ours.batching):
            losses = ours.loss(ours(batch, now), batch, now)
            optimizer.zero_grad()
            losses.total.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    ours.finish(data.sweep(ours, clock))
    return ours, data


def training_bound(ours: VPU, data: Clouds) -> float:
    """exp(L_var) on all of the training set."""
    logits = ours.classifier(points(data.train)).detach()
    return math.exp(loss_of(logits[:, POSITIVE] - logits[:, NEGATIVE], data.train))


def test_the_two_clouds_are_separated_and_the_bound_lies_above_the_prior() -> None:
    bounds = []
    for weight in (0.0, 0.03, 0.3):
        ours, data = trained(weight, seed=1)
        assert data.accuracy(ours) > 0.955
        bounds.append(training_bound(ours, data))
    assert PRIOR < bounds[0] < 0.46
    assert 0.44 < bounds[2] < 0.50
    assert bounds == sorted(bounds), "mixing costs likelihood"
