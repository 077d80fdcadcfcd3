"""The five risk methods: what they learn on the toy problem, how they fail, how alignment joins.

The bounds of the toy table are regression guards with slack: they were set after seeing
such runs, and show that a risk does what it should, not how good it is.
"""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from onesided.core.batch import DataFacts, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.errors import ConfigError
from onesided.losses.risk import PURisk, nnpu_risk, risk_parts, upu_risk
from onesided.methods import METHODS
from onesided.methods.base import EMBEDDING
from onesided.methods.risk import Evidence, RiskConfig, RiskMethod
from onesided.metrics.truth import TruthMetrics, truth_metrics
from onesided.nets.build import BackboneConfig, build_backbone, seeded

PRIOR = 0.4
SEEDS = (0, 1, 2)


def clouds(random: np.random.Generator, positives: int, negatives: int) -> Tensor:
    points = random.standard_normal((positives + negatives, 2))
    points[:positives, 0] += 2
    points[positives:, 0] -= 2
    return torch.from_numpy(points)


def toy_run(config: RiskConfig, prior: float, seed: int) -> TruthMetrics:
    """Train a linear scorer, full batch, Adam .05, 600 steps; return its test metrics."""
    random = np.random.default_rng(seed)
    samples = torch.cat([clouds(random, 200, 0), clouds(random, 800, 1200)])
    labelled = torch.arange(2200) < 200
    truth = (torch.arange(2200) < 1000).long()
    weight = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weight, bias], lr=0.05)
    for _ in range(600):
        optimizer.zero_grad()
        evidence = Evidence(samples @ weight + bias, labelled, truth, prior)
        config.risk(evidence).objective.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    test = clouds(random, 4000, 6000)
    scores = torch.sigmoid(test @ weight + bias).detach().numpy()
    return truth_metrics((np.arange(10_000) < 4000).astype(np.int64), scores)


def toy(name: str, prior: float = PRIOR, **settings: str) -> list[TruthMetrics]:
    config = METHODS[name].from_settings(settings)
    assert isinstance(config, RiskConfig)
    return [toy_run(config, prior, seed) for seed in SEEDS]


def means(runs: list[TruthMetrics]) -> tuple[float, float]:
    return float(np.mean([run.oa for run in runs])), float(np.mean([run.recall for run in runs]))


@pytest.mark.parametrize(
    ("name", "settings", "accuracy"),
    [
        ("supervised", {}, 0.965),
        ("upu", {"surrogate": "sigmoid"}, 0.96),
        ("upu", {"surrogate": "logistic"}, 0.955),
        ("nnpu", {}, 0.96),
        ("imbpu", {}, 0.96),
    ],
)
def test_with_the_right_prior_a_linear_scorer_comes_near_the_best_one(
    name: str, settings: dict[str, str], accuracy: float
) -> None:
    assert all(run.oa > accuracy for run in toy(name, PRIOR, **settings))


def test_plain_cross_entropy_calls_nearly_nothing_positive() -> None:
    assert means(toy("ce", balance="plain"))[1] < 0.05


def test_balanced_cross_entropy_is_fair_but_misses_positives() -> None:
    accuracy, recall = means(toy("ce"))
    assert accuracy > 0.90
    assert recall < means(toy("supervised"))[1]


def test_a_prior_too_high_calls_too_much_positive() -> None:
    for run in toy("nnpu", prior=0.6):
        assert run.recall > 0.99
        assert run.precision < 0.80


def test_a_prior_too_low_misses_positives() -> None:
    assert means(toy("nnpu", prior=0.2))[1] < 0.95


def test_a_balanced_world_favours_recall_where_positives_are_the_smaller_class() -> None:
    assert means(toy("imbpu"))[1] >= means(toy("nnpu"))[1] - 0.01


RiskOf = Callable[[Tensor, Tensor], PURisk]


def overfit(risk_of: RiskOf, seed: int) -> tuple[float, float]:
    """Train an MLP on 20 dimensions of which two tell; return training risk and test accuracy."""
    random = np.random.default_rng(seed)

    def draw(positives: int, negatives: int) -> Tensor:
        points = random.standard_normal((positives + negatives, 20)).astype(np.float32)
        points[:positives, :2] += 1
        points[positives:, :2] -= 1
        return torch.from_numpy(points)

    samples = torch.cat([draw(50, 0), draw(200, 300)])
    labelled = torch.arange(550) < 50
    with seeded(seed, "overfit"):
        network = nn.Sequential(
            nn.Linear(20, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 1)
        )
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    risk = torch.tensor(0.0)
    for _ in range(1500):
        optimizer.zero_grad()
        step = risk_of(network(samples)[:, 0], labelled)
        step.objective.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        risk = step.value
    test = draw(2000, 3000)
    with torch.no_grad():
        called = network(test)[:, 0] > 0
    return float(risk), float((called == (torch.arange(5000) < 2000)).float().mean())


@pytest.mark.slow
def test_a_flexible_network_drives_upu_below_zero_and_nnpu_stays_above() -> None:
    def upu(margin: Tensor, labelled: Tensor) -> PURisk:
        return upu_risk(risk_parts(margin, labelled, "sigmoid"), PRIOR)

    def nnpu(margin: Tensor, labelled: Tensor) -> PURisk:
        return nnpu_risk(risk_parts(margin, labelled, "sigmoid"), PRIOR)

    free = [overfit(upu, seed) for seed in SEEDS]
    held = [overfit(nnpu, seed) for seed in SEEDS]
    assert np.mean([risk for risk, _ in free]) < -0.25
    assert np.mean([risk for risk, _ in held]) > -0.05
    assert np.mean([a for _, a in held]) - np.mean([a for _, a in free]) > 0.10


def small(name: str, **settings: object) -> RiskMethod:
    config = METHODS[name].from_settings({"projector_width": 8, **settings})
    facts = DataFacts(rows=6, labelled=2, sample_shape=(2,), prior=PRIOR)
    with seeded(0, "risk"):
        backbone = build_backbone(BackboneConfig(width=0.05), (2,), [0, 0], [1, 1])
        method = config.build(facts, backbone)
    assert isinstance(method, RiskMethod)
    return method


BATCH = PUBatch(
    row=torch.arange(6),
    labelled=torch.tensor([True, True, False, False, False, False]),
    truth=torch.tensor([1, 1, 1, 0, 0, 0]),
)
EMBEDDINGS = torch.eye(EMBEDDING)


def outputs(logits: list[float]) -> Outputs:
    margin = torch.tensor(logits)
    return Outputs(
        {
            "logits": torch.stack([-margin / 2, margin / 2], dim=1),
            "query": EMBEDDINGS[:6],
            "key": EMBEDDINGS[[0, 1, 2, 3, 4, 5]],
        }
    )


def at(epoch: int) -> Clock:
    return Clock(0, "train", epoch, 100)


def test_without_alignment_there_is_one_view_and_no_branch() -> None:
    method = small("nnpu")
    assert list(method.views) == ["classify"]
    assert method.branch is None
    assert set(method.loss(outputs([1.0] * 6), BATCH, at(0)).terms) == {"risk"}


@pytest.mark.parametrize("name", ["ce", "supervised", "upu", "nnpu", "imbpu"])
def test_alignment_is_added_to_the_risk_with_its_weight(name: str) -> None:
    bare = small(name)
    aligned = small(name, alignment="robust", alignment_weight=7, warmup_epochs=0)
    given = outputs([2.0, 1.0, 0.5, -1.0, -2.0, -1.5])
    risk = bare.loss(given, BATCH, at(0)).total
    both = aligned.loss(given, BATCH, at(0))
    assert set(aligned.views) == {"classify", "query", "key"}
    assert float(both.total) == pytest.approx(float(risk + both.terms["alignment"]), rel=1e-6)
    assert float(both.terms["alignment"]) > 0


def test_during_warm_up_only_self_pairs_are_aligned() -> None:
    method = small("upu", alignment="class", alignment_weight=1, warmup_epochs=5)
    given = outputs([1.0] * 6)
    assert float(method.loss(given, BATCH, at(4)).terms["alignment"]) == pytest.approx(0, abs=1e-6)
    assert float(method.loss(given, BATCH, at(5)).terms["alignment"]) > 1


def test_supervised_takes_its_pairs_from_true_classes() -> None:
    method = small("supervised", alignment="class", alignment_weight=1, warmup_epochs=0)
    wrong = outputs([-5.0, 5.0, -5.0, 5.0, -5.0, 5.0])
    pairs = method._same_class(wrong["logits"], BATCH, at(0))
    assert BATCH.truth is not None
    assert torch.equal(pairs, BATCH.truth[:, None] == BATCH.truth[None, :])


def test_a_lower_pair_threshold_admits_unsure_pairs() -> None:
    given = outputs([0.3, -0.3, 4.0, -4.0, 0.1, -0.1])["logits"]
    strict = small("nnpu", alignment="robust", warmup_epochs=0)
    loose = small("nnpu", alignment="robust", warmup_epochs=0, pair_threshold=0.2)
    unlabelled = PUBatch(BATCH.row, torch.zeros(6, dtype=torch.bool))
    assert (
        strict._same_class(given, unlabelled, at(0)).sum()
        < loose._same_class(given, unlabelled, at(0)).sum()
    )


def test_the_ascent_of_nnpu_is_watched() -> None:
    method = small("nnpu")
    losses = method.loss(outputs([3.0, 2.0, -3.0, -2.0, -3.0, -2.0]), BATCH, at(0))
    assert float(losses.watched["ascending"]) == 1


@pytest.mark.parametrize("name", ["upu", "nnpu", "imbpu"])
def test_a_prior_that_is_no_share_is_refused(name: str) -> None:
    config = METHODS[name].from_settings({})
    assert isinstance(config, RiskConfig)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        config.risk(Evidence(torch.zeros(4), torch.tensor([True, False, False, False]), None, 1.2))


@pytest.mark.parametrize(("prior", "warned"), [(0.9, False), (0.97, True), (1.0, False)])
def test_imbpu_warns_of_a_prior_near_one(prior: float, warned: bool) -> None:
    backbone = build_backbone(BackboneConfig(), (3,), [0.0] * 3, [1.0] * 3)
    facts = DataFacts(rows=20, labelled=5, sample_shape=(3,), prior=prior)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        METHODS["imbpu"].from_settings({}).build(facts, backbone)
    assert any("multiplies the few negatives" in str(one.message) for one in caught) == warned
