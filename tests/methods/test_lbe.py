"""LBE: EM by epochs, and a bias of labelling that it finds on two clouds."""

from functools import cache

import numpy as np
import pytest
import torch

from onesided.core.batch import DataFacts, Losses, PUBatch
from onesided.core.clock import Clock
from onesided.core.labels import POSITIVE
from onesided.data.problem.dataset import PUDataset, Selection
from onesided.engine.sweep import MethodSweep, evaluating
from onesided.losses.classification import balanced_cross_entropy, margin
from onesided.losses.labelling_bias import expected_cost, hidden_positive
from onesided.methods.lbe import LBE, LBEConfig
from onesided.nets.build import seeded
from tests.methods.linear_clouds import Untouched

ROWS, WARMUP, EPOCHS = 3000, 5, 40


def biased_clouds(seed: int) -> PUDataset:
    """Return two clouds along x1; a positive is labelled the likelier, the larger its x2."""
    random = np.random.default_rng(seed)
    positive = random.uniform(size=ROWS) < 0.5
    values = random.normal(size=(ROWS, 2))
    values[:, 0] += np.where(positive, 1.5, -1.5)
    chance = 0.6 / (1 + np.exp(-2 * values[:, 1]))
    labelled = positive & (random.uniform(size=ROWS) < chance)
    names = tuple(map(str, range(ROWS)))
    selection = Selection(values.astype(np.float32), np.arange(ROWS))
    return PUDataset(selection, labelled, positive.astype(np.int64), names)


def untrained(data: PUDataset) -> LBE:
    facts = DataFacts(rows=ROWS, labelled=int(data.labelled.sum()), sample_shape=(2,))
    with seeded(0, "lbe"):
        return LBEConfig(warmup_epochs=WARMUP).build(facts, Untouched())


def batch_of(data: PUDataset) -> PUBatch:
    samples = torch.from_numpy(data.values.take(slice(None)))
    return PUBatch(torch.arange(ROWS), torch.from_numpy(data.labelled), {"classify": samples})


def at(epoch: int) -> Clock:
    return Clock(0, "train", epoch, EPOCHS)


def begin(method: LBE, data: PUDataset, epoch: int) -> None:
    sweep = MethodSweep(method, {"train": data}, "vector", torch.device("cpu"), at(epoch))
    method.begin_epoch(at(epoch), sweep)


def step_of(method: LBE, batch: PUBatch, epoch: int) -> Losses:
    return method.loss(method(batch, at(epoch)), batch, at(epoch))


def accuracy(method: LBE, data: PUDataset) -> float:
    with evaluating(method):
        logits = method.classify(torch.from_numpy(data.values.take(slice(None))))
    return float(((margin(logits) > 0).numpy() == (data.truth == POSITIVE)).mean())


@cache
def history(seed: int) -> tuple[LBE, PUDataset, list[float], list[float]]:
    """Return the trained method, its data, and accuracy and likelihood after every epoch."""
    data = biased_clouds(seed)
    method, batch = untrained(data), batch_of(data)
    optimizer = torch.optim.Adam(method.parameters(), lr=0.05)
    accuracies, likelihoods = [], []
    for epoch in range(EPOCHS):
        begin(method, data, epoch)
        for _ in range(20):
            losses = step_of(method, batch, epoch)
            optimizer.zero_grad()
            losses.total.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        accuracies.append(accuracy(method, data))
        likelihoods.append(float(step_of(method, batch, epoch).watched["log_likelihood"]))
    return method, data, accuracies, likelihoods


@pytest.mark.parametrize("seed", [0, 1])
def test_a_biased_p_is_corrected(seed: int) -> None:
    _, _, accuracies, _ = history(seed)
    assert accuracies[WARMUP - 1] < 0.82, "a classifier of P against U takes the bias for the class"
    assert accuracies[-1] > 0.86
    assert accuracies[-1] > accuracies[WARMUP - 1] + 0.06


@pytest.mark.parametrize("seed", [0, 1])
def test_the_bias_of_labelling_is_found(seed: int) -> None:
    method, _, _, _ = history(seed)
    of_class = (method.classifier.weight[1] - method.classifier.weight[0]).tolist()
    of_label = method.propensity.weight[0].tolist()
    assert of_class[0] > 2 * abs(of_class[1]), "the class depends on x1"
    assert of_label[1] > 2 * abs(of_label[0]), "the labelling depends on x2"


@pytest.mark.parametrize("seed", [0, 1])
def test_em_does_not_lower_the_likelihood(seed: int) -> None:
    _, _, _, likelihoods = history(seed)
    assert (np.diff(likelihoods[WARMUP:]) > -1e-4).all()
    assert likelihoods[-1] > likelihoods[WARMUP - 1] + 0.01


def test_eta_starts_as_one_half_and_the_e_step_fills_every_row() -> None:
    data = biased_clouds(2)
    method, batch = untrained(data), batch_of(data)
    outputs = method(batch, at(0))
    assert (outputs["label_logit"] == 0).all()
    begin(method, data, 0)
    z = margin(outputs["logits"]).detach()
    expected = hidden_positive(z, torch.zeros(ROWS))
    assert torch.allclose(method.posterior.positive, expected, atol=1e-6)
    read = method.posterior.read(batch.row, batch.labelled)
    assert (read[batch.labelled] == 1).all(), "whoever is labelled is positive"


def test_the_loss_is_the_m_step_after_the_warm_up_and_p_against_u_before() -> None:
    data = biased_clouds(2)
    method, batch = untrained(data), batch_of(data)
    begin(method, data, 0)
    outputs = method(batch, at(0))
    z, label_z = margin(outputs["logits"]), outputs["label_logit"][:, 0]
    q = method.posterior.read(batch.row, batch.labelled)
    of_class, of_label = expected_cost(z, label_z, batch.labelled, q)
    early, late = (step_of(method, batch, epoch) for epoch in (WARMUP - 1, WARMUP))
    warm = balanced_cross_entropy(z, batch.labelled)
    assert early.total.item() == pytest.approx((warm + of_label).item(), rel=1e-5)
    assert late.total.item() == pytest.approx((of_class + of_label).item(), rel=1e-5)


@pytest.mark.parametrize(("epochs", "warmup"), [(1, 1), (8, 2), (400, 10)])
def test_a_short_run_leaves_most_of_its_time_to_em(epochs: int, warmup: int) -> None:
    assert LBEConfig().for_budget(epochs).warmup_epochs == warmup
