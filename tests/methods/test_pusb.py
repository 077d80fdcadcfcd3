"""PUSB: its order is that of the posterior although P is biased, its share that of the prior."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from onesided.core.batch import DataFacts, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.labels import POSITIVE
from onesided.data.problem.dataset import PUDataset, Selection
from onesided.engine.sweep import MethodSweep, evaluating
from onesided.losses.classification import p_positive
from onesided.losses.risk import least_squares_ratio, nnpu_risk, risk_parts
from onesided.methods.pusb import PUSB, PUSBConfig
from onesided.methods.risk import NNPUConfig, RiskMethod
from onesided.nets.build import seeded
from tests.methods.linear_clouds import Untouched

PRIOR = 0.4
POSTERIOR = np.array([0.02, 0.1, 0.3, 0.7, 0.95])
"""P(y = 1 | x) of five kinds of items, each equally frequent in U."""


def biased_share(power: float) -> np.ndarray:
    """Return p_P of the five kinds: a positive is labelled the likelier, the surer it is."""
    chosen = POSTERIOR * POSTERIOR**power
    share: np.ndarray = chosen / chosen.sum()
    return share


def test_under_invariance_of_order_the_ratio_rises_with_the_posterior() -> None:
    """The paper's first theorem, on a table."""
    for power in (0.0, 0.5, 3.0):
        ratio = biased_share(power) / 0.2
        assert (np.diff(ratio) > 0).all()


def counted(p_share: np.ndarray) -> tuple[Tensor, Tensor]:
    """Return kinds and labels of 1000 rows of P in these shares, and 1000 of U in equal ones."""
    kinds = np.concatenate([np.repeat(np.arange(5), np.round(1000 * p_share).astype(int))])
    pool = np.repeat(np.arange(5), 200)
    labelled = np.arange(len(kinds) + len(pool)) < len(kinds)
    return torch.from_numpy(np.concatenate([kinds, pool])), torch.from_numpy(labelled)


def minimised(kinds: Tensor, labelled: Tensor, order: str) -> Tensor:
    """Return one margin for each kind, at the minimum of the loss."""
    margins = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([margins], lr=0.5, max_iter=500, tolerance_grad=1e-12)

    def closure() -> Tensor:
        optimizer.zero_grad()
        z = margins[kinds]
        loss = (
            least_squares_ratio(z, labelled)
            if order == "ratio"
            else nnpu_risk(risk_parts(z, labelled, "logistic"), PRIOR).objective
        )
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return margins.detach()


def test_the_logistic_risk_is_minimised_by_the_prior_times_the_ratio() -> None:
    share = np.array([0.05, 0.1, 0.15, 0.3, 0.4])  # pi x ratio is below 1 everywhere
    margins = minimised(*counted(share), "risk")
    assert margins.sigmoid().numpy() == pytest.approx(PRIOR * share / 0.2, abs=1e-4)


def test_least_squares_are_minimised_by_the_ratio() -> None:
    share = np.array([0.05, 0.1, 0.15, 0.3, 0.4])
    margins = minimised(*counted(share), "ratio")
    assert F.softplus(margins).numpy() == pytest.approx(share / 0.2, abs=1e-4)


def test_least_squares_equal_the_loops_over_samples() -> None:
    random = np.random.default_rng(0)
    z, labelled = random.normal(size=30), np.arange(30) < 8
    total = 0.0
    for value, is_labelled in zip(z, labelled, strict=True):
        r = np.log1p(np.exp(value))
        total += -r / 8 if is_labelled else r * r / 2 / 22
    found = least_squares_ratio(torch.from_numpy(z), torch.from_numpy(labelled))
    assert float(found) == pytest.approx(total)


# two clouds, of which P holds the clear positives


def biased_clouds(seed: int = 0) -> PUDataset:
    """Return U of 40 % positives around x1 = 1, and P of those with a large x1 mostly."""
    random = np.random.default_rng(seed)
    candidates = random.normal([1, 0], 1, size=(4000, 2))
    kept = random.uniform(size=4000) < 1 / (1 + np.exp(-3 * (candidates[:, 0] - 2)))
    positives = candidates[kept][:300]
    pool = np.concatenate(
        [random.normal([1, 0], 1, size=(400, 2)), random.normal([-1, 0], 1, size=(600, 2))]
    )
    values = np.concatenate([positives, pool]).astype(np.float32)
    truth = np.concatenate([np.ones(700), np.zeros(600)]).astype(np.int64)
    labelled = np.arange(len(values)) < 300
    names = tuple(map(str, range(len(values))))
    return PUDataset(Selection(values, np.arange(len(values))), labelled, truth, names)


def trained(config: NNPUConfig, data: PUDataset) -> RiskMethod:
    """Return the method after full batches of plain gradient descent, and `finish`."""
    facts = DataFacts(rows=1300, labelled=300, sample_shape=(2,), prior=PRIOR, batch_size=1300)
    with seeded(0, "pusb"):
        method = config.build(facts, Untouched())
    optimizer = torch.optim.SGD(method.parameters(), lr=0.5)
    samples = torch.from_numpy(data.values.take(slice(None)))
    batch = PUBatch(torch.arange(1300), torch.from_numpy(data.labelled), {"classify": samples})
    for step in range(150):
        clock = Clock(0, "train", step, 150)
        losses = method.loss(Outputs(dict(method(batch, clock).tensors)), batch, clock)
        optimizer.zero_grad()
        losses.total.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    parts = {"train": data}
    method.finish(MethodSweep(method, parts, "vector", torch.device("cpu"), clock))
    return method


def called(method: RiskMethod, data: PUDataset) -> np.ndarray:
    with evaluating(method):
        scores = p_positive(method.classify(torch.from_numpy(data.values.take(slice(None)))))
    found: np.ndarray = scores.numpy() > 0.5
    return found


@pytest.mark.parametrize("order", ["risk", "ratio"])
def test_the_share_of_the_prior_is_called_positive_although_p_is_biased(order: str) -> None:
    data = biased_clouds()
    pool = ~data.labelled
    ours = called(trained(PUSBConfig.from_settings({"order": order}), data), data)[pool]
    theirs = called(trained(NNPUConfig(surrogate="logistic"), data), data)[pool]
    truth = data.truth[pool] == POSITIVE
    assert ours.mean() == pytest.approx(PRIOR, abs=0.002)
    assert abs(theirs.mean() - PRIOR) > 0.1, "the risk alone takes P for typical"
    assert (ours == truth).mean() > (theirs == truth).mean() + 0.05
    assert (ours == truth).mean() > 0.82, "the best rule is right for 84.5 %"


def test_the_shift_keeps_the_order_of_samples() -> None:
    data = biased_clouds()
    method = trained(PUSBConfig(), data)
    samples = torch.from_numpy(data.values.take(slice(None)))
    with evaluating(method):
        plain = method.classifier(method.backbone(samples)).double()
        shifted = method.classify(samples).double()
    before, after = (each[:, POSITIVE] - each[:, 1 - POSITIVE] for each in (plain, shifted))
    assert isinstance(method, PUSB)
    assert (before - after).numpy() == pytest.approx(float(method.cut.value), abs=1e-5)
    assert float(method.cut.value) != 0
