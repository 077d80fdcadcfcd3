"""NcPU against a slow, obvious version of its algorithm, and its switches one by one."""

import math
from dataclasses import dataclass, field

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from onesided.core.batch import DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.errors import ConfigError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.methods.base import EMBEDDING
from onesided.methods.ncpu import NcPU, NcPUConfig
from onesided.nets.build import BackboneConfig, build_backbone, seeded

ROWS, BATCH = 12, 8
VARIANTS = NcPUConfig.switches


def method(**settings: object) -> NcPU:
    config = NcPUConfig.from_settings({"projector_width": 8, "warmup_epochs": 1, **settings})
    facts = DataFacts(rows=ROWS, labelled=3, sample_shape=(2,))
    with seeded(0, "test"):
        backbone = build_backbone(BackboneConfig(width=0.05), (2,), [0, 0], [1, 1])
        return config.build(facts, backbone).double()


def random_outputs(seed: int) -> Outputs:
    draw = torch.Generator().manual_seed(seed)

    def unit(count: int) -> Tensor:
        # A common direction keeps most cosines positive, as trained embeddings have them.
        raw = torch.randn(count, EMBEDDING, generator=draw, dtype=torch.float64) + 0.5
        return F.normalize(raw, dim=1)

    def logits() -> Tensor:
        return 2 * torch.randn(BATCH, 2, generator=draw, dtype=torch.float64)

    embeddings = {"query": unit(BATCH), "key": unit(BATCH)}
    return Outputs({"logits": logits(), **embeddings, "judged": logits()})


def random_batch(seed: int) -> PUBatch:
    draw = torch.Generator().manual_seed(100 + seed)
    row = torch.randperm(ROWS, generator=draw)[:BATCH]
    return PUBatch(row=row, labelled=row < 3)


def at(epoch: int) -> Clock:
    return Clock(seed=0, stage="train", epoch=epoch, epochs=10, step=0, steps=2)


@dataclass
class SlowNcPU:
    """Section 3 of the paper as loops over samples, with the paper's class order 0 = positive."""

    config: NcPUConfig
    prototypes: list[Tensor] = field(
        default_factory=lambda: [torch.zeros(EMBEDDING, dtype=torch.float64) for _ in range(2)]
    )
    phantom: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 1.0)] * ROWS)
    confidence: float = 0.5
    share: tuple[float, float] = (0.5, 0.5)
    kept_share: float = 0.5
    line: float = 0.0

    def step(self, outputs: Outputs, batch: PUBatch, epoch: int) -> dict[str, float]:
        c = self.config
        warm = epoch < c.warmup_epochs
        learner = probabilities(outputs["logits"])
        f = probabilities(outputs["judged"]) if c.judge == "target" else learner
        q, k = outputs["query"], outputs["key"]
        labelled = batch.labelled.tolist()
        predicted = [0 if labelled[i] or f[i][0] > f[i][1] else 1 for i in range(BATCH)]

        votes = self._votes(q, labelled)
        self._move_prototypes(q, predicted)
        if c.vote == "after":
            votes = self._votes(q, labelled)
        if c.voter == "judge":
            votes = self._judge_votes(f, labelled, epoch)
        self._move_threshold(f, labelled)
        tau = self.share[1] / max(self.share) * self.confidence

        targets = []
        for i, row in enumerate(batch.row.tolist()):
            targets.append(self._target(row, labelled[i], votes[i], f[i][1] >= tau, warm))
        classification = self._classification(learner, targets, labelled)

        aligned = []
        for i in range(BATCH):
            alone = warm or c.alignment == "self"
            peers = [
                j for j in range(BATCH) if i == j or (not alone and predicted[i] == predicted[j])
            ]
            aligned.append(mean([self._pair(q[i], k[j], i == j) for j in peers]))
        entropy = mean([-sum(p * math.log(p) for p in probability) for probability in learner])
        ramp = min(epoch / c.warmup_epochs, 1)
        return {
            "classification": classification,
            "alignment": c.alignment_weight * mean(aligned),
            "entropy": ramp * c.entropy_weight * entropy,
        }

    def _classification(
        self,
        f: list[tuple[float, float]],
        targets: list[tuple[float, float]],
        labelled: list[bool],
    ) -> float:
        if self.config.weighing == "classes":
            return sum(
                sum(-s[c] * math.log(p[c]) for s, p in zip(targets, f, strict=True))
                / sum(s[c] for s in targets)
                for c in (0, 1)
            )
        ce = [
            -(s[0] * math.log(p[0]) + s[1] * math.log(p[1]))
            for s, p in zip(targets, f, strict=True)
        ]
        on_p = [ce[i] for i in range(BATCH) if labelled[i]]
        on_u = [ce[i] for i in range(BATCH) if not labelled[i]]
        return mean(on_p) + mean(on_u)

    def _votes(self, q: Tensor, labelled: list[bool]) -> list[int]:
        similarity = [[float(row @ mu) for mu in self.prototypes] for row in q]
        return [0 if labelled[i] or s[0] > s[1] else 1 for i, s in enumerate(similarity)]

    def _judge_votes(
        self, f: list[tuple[float, float]], labelled: list[bool], epoch: int
    ) -> list[int]:
        margin = [math.log(p[0] / p[1]) for p in f]
        of_u = [m for m, known in zip(margin, labelled, strict=True) if not known]
        if epoch < self.config.warmup_epochs:
            past = min(self.config.threshold_momentum, (1 + 2 * epoch) / (10 + 2 * epoch))
            self.kept_share = past * self.kept_share + (1 - past) * mean([m > 0 for m in of_u])
        else:
            self.line += 0.05 * (mean([m > self.line for m in of_u]) - self.kept_share)
        return [0 if labelled[i] or margin[i] > self.line else 1 for i in range(BATCH)]

    def _move_prototypes(self, q: Tensor, predicted: list[int]) -> None:
        alpha = self.config.prototype_momentum
        for i, label in enumerate(predicted):
            moved = alpha * self.prototypes[label] + (1 - alpha) * q[i]
            if self.config.prototype_normalisation == "sample":
                moved = moved / moved.norm()
            self.prototypes[label] = moved
        for label in set(predicted):
            self.prototypes[label] = self.prototypes[label] / self.prototypes[label].norm()

    def _move_threshold(self, f: list[tuple[float, float]], labelled: list[bool]) -> None:
        gamma = self.config.threshold_momentum
        counted = [
            p for i, p in enumerate(f) if self.config.threshold_rows == "all" or not labelled[i]
        ]
        self.confidence = gamma * self.confidence + (1 - gamma) * mean([max(p) for p in counted])
        self.confidence = min(self.confidence, self.config.confidence_cap)
        self.share = (
            gamma * self.share[0] + (1 - gamma) * mean([p[0] for p in counted]),
            gamma * self.share[1] + (1 - gamma) * mean([p[1] for p in counted]),
        )

    def _target(
        self, row: int, labelled: bool, vote: int, sure: bool, warm: bool
    ) -> tuple[float, float]:
        rule, beta = self.config.disambiguation, self.config.target_momentum
        if labelled:
            return (1.0, 0.0)
        if warm or rule == "none":
            return (0.0, 1.0)
        old = self.phantom[row]
        ballot = (1.0, 0.0) if vote == 0 else (0.0, 1.0)
        self.phantom[row] = (
            beta * old[0] + (1 - beta) * ballot[0],
            beta * old[1] + (1 - beta) * ballot[1],
        )
        target = self.phantom[row]
        if sure and rule != "prototype":
            target = (0.0, 1.0)
            if rule == "prototype+threshold":
                self.phantom[row] = (0.0, 1.0)
        return target

    def _pair(self, q: Tensor, k: Tensor, itself: bool) -> float:
        if self.config.alignment == "self":
            return 2 - 2 * float(q @ k)
        low, high = 1e-4, 1 - 1e-4
        if self.config.bound == "coordinate":
            c = float(q.clamp(low, high) @ k.clamp(low, high))
        else:
            c = min(max(float(q @ k), low), high)
        if itself and self.config.self_pair == "plain":
            return 2 * (1 - c)
        return 2 * math.sqrt(max(1 - c, 0))


def probabilities(logits: Tensor) -> list[tuple[float, float]]:
    return [(float(p[POSITIVE]), float(p[NEGATIVE])) for p in logits.softmax(dim=1)]


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def run_both(steps: int, **settings: object) -> None:
    ours = method(**settings)
    slow = SlowNcPU(ours.config)
    for step in range(steps):
        epoch = step // 2
        outputs, batch = random_outputs(step), random_batch(step)
        losses = ours.loss(outputs, batch, at(epoch))
        expected = slow.step(outputs, batch, epoch)
        for name, value in expected.items():
            assert float(losses.terms[name]) == pytest.approx(value, rel=1e-9, abs=1e-12), (
                step,
                name,
            )
        assert float(losses.total) == pytest.approx(sum(expected.values()), rel=1e-9)
    for label, ours_label in ((0, POSITIVE), (1, NEGATIVE)):
        assert torch.allclose(ours.prototypes.vectors[ours_label], slow.prototypes[label])


@pytest.mark.parametrize("variant", list(VARIANTS))
def test_ten_steps_equal_the_loops_over_samples(variant: str) -> None:
    run_both(10, variant=variant)


@pytest.mark.parametrize("rule", ["none", "prototype", "prototype+threshold", "phantom"])
def test_every_way_of_disambiguation_equals_the_loops(rule: str) -> None:
    run_both(10, disambiguation=rule, target_momentum=0.6)


@pytest.mark.parametrize(
    "switch",
    [{key: value} for key, value in VARIANTS["released"].items()],
    ids=lambda switch: next(iter(switch)),
)
def test_every_switch_of_the_released_code_can_be_set_alone(switch: dict[str, object]) -> None:
    run_both(6, **switch)


def test_a_variant_fills_its_switches_and_a_given_switch_wins() -> None:
    released = NcPUConfig.from_settings({"variant": "released", "confidence_cap": 0.9})
    assert released.bound == "coordinate"
    assert released.self_pair == "plain"
    assert released.confidence_cap == 0.9
    assert NcPUConfig().bound == "similarity"


def losses_at(epoch: int, **settings: object) -> tuple[NcPU, Losses]:
    ours = method(**settings)
    return ours, ours.loss(random_outputs(1), random_batch(1), at(epoch))


def test_during_warm_up_the_table_stands_still_and_the_gate_is_open() -> None:
    ours, losses = losses_at(0, warmup_epochs=5)
    assert torch.equal(ours.targets.phantom[:, NEGATIVE], torch.ones(ROWS, dtype=torch.float64))
    assert float(losses.watched["gated"]) == 0
    assert ours.prototypes.vectors.any(), "prototypes already move"


def test_entropy_ramps_up_over_the_warm_up() -> None:
    weights = [method(warmup_epochs=4, entropy_weight=8)._entropy_weight(at(e)) for e in range(7)]
    assert weights == [0, 2, 4, 6, 8, 8, 8]


@pytest.mark.parametrize("variant", list(VARIANTS))
@pytest.mark.parametrize("rule", ["none", "prototype", "prototype+threshold", "phantom"])
def test_labelled_positives_have_the_target_positive_at_every_step(variant: str, rule: str) -> None:
    ours = method(variant=variant, disambiguation=rule)
    for step in range(8):
        batch = random_batch(step)
        ours.loss(random_outputs(step), batch, at(step // 2))
        none = torch.zeros(BATCH, dtype=torch.bool)
        target = ours.targets.read(batch.row, batch.labelled, none)
        assert torch.equal(
            target[batch.labelled, POSITIVE],
            torch.ones(int(batch.labelled.sum()), dtype=torch.float64),
        )


def test_without_alignment_the_branch_is_not_trained() -> None:
    _, losses = losses_at(3, alignment="none")
    assert float(losses.terms["alignment"]) == 0


@pytest.mark.parametrize(("alignment", "value"), [("self", 2.0), ("class", 2.0)])
def test_orthogonal_embeddings_cost_two(alignment: str, value: float) -> None:
    ours = method(alignment=alignment, alignment_weight=1)
    embeddings = torch.eye(EMBEDDING, dtype=torch.float64)
    outputs = Outputs(
        {
            "logits": torch.zeros(BATCH, 2, dtype=torch.float64),
            "query": embeddings[:BATCH],
            "key": embeddings[BATCH : 2 * BATCH],
        }
    )
    losses = ours.loss(outputs, random_batch(0), at(3))
    assert float(losses.terms["alignment"]) == pytest.approx(value)


def test_the_target_network_follows_before_the_key_is_computed() -> None:
    ours = method(encoder_momentum=0.5)
    batch = random_batch(0)
    views = {
        role: torch.rand(BATCH, 2, dtype=torch.float64) for role in ("classify", "query", "key")
    }
    with torch.no_grad():
        for parameter in ours.backbone.parameters():
            parameter.add_(1.0)
    before = [p.clone() for p in ours.branch.target.parameters()]
    ours(PUBatch(batch.row, batch.labelled, views), at(0))
    online = [*ours.backbone.parameters(), *ours.branch.projector.parameters()]
    for old, new, followed in zip(before, ours.branch.target.parameters(), online, strict=True):
        assert torch.allclose(new, 0.5 * old + 0.5 * followed)


def test_keys_have_no_gradient_and_queries_have() -> None:
    ours = method()
    views = {
        role: torch.rand(BATCH, 2, dtype=torch.float64) for role in ("classify", "query", "key")
    }
    outputs = ours(PUBatch(random_batch(0).row, random_batch(0).labelled, views), at(0))
    assert outputs["query"].requires_grad
    assert not outputs["key"].requires_grad


@pytest.mark.parametrize(("epochs", "momentum"), [(400, 0.9679), (100, 0.8775), (40, 0.7213)])
def test_a_smaller_budget_keeps_the_number_of_half_lives(epochs: int, momentum: float) -> None:
    assert NcPUConfig().for_budget(epochs).target_momentum == pytest.approx(momentum, abs=1e-4)


def test_two_views_are_one_pass_less_and_the_classifier_learns_from_the_query() -> None:
    ours = method(variant="budget")
    passes: list[int] = []
    ours.backbone.register_forward_hook(lambda *_: passes.append(1))
    views = {role: torch.rand(BATCH, 2, dtype=torch.float64) for role in ours.views}
    assert set(views) == {"query", "key"}
    outputs = ours(PUBatch(random_batch(0).row, random_batch(0).labelled, views), at(0))
    assert len(passes) == 1
    assert torch.equal(outputs["logits"], ours.classifier(ours.backbone(views["query"])))


def test_a_target_judge_scores_new_samples_and_is_all_that_is_saved() -> None:
    ours = method(variant="budget").eval()
    samples = torch.rand(5, 2, dtype=torch.float64)
    before = ours.classify(samples)
    with torch.no_grad():
        for parameter in (*ours.backbone.parameters(), *ours.classifier.parameters()):
            parameter.add_(1)
    assert torch.equal(ours.classify(samples), before)
    again = method(variant="budget").eval()
    again.load_state_dict(ours.inference_state(), strict=False)
    assert torch.equal(again.classify(samples), before)
    assert torch.equal(again.embed(samples), ours.embed(samples))


@pytest.mark.parametrize(("epoch", "momentum"), [(0, 0.1), (4, 0.5), (1000, 0.99)])
def test_a_judge_follows_fast_at_first(epoch: int, momentum: float) -> None:
    ours = method(variant="budget")
    assert ours.judge is not None
    before = ours.judge.copies[0].get_parameter("weight").clone()
    with torch.no_grad():
        ours.classifier.weight.add_(1.0)
    views = {role: torch.rand(BATCH, 2, dtype=torch.float64) for role in ours.views}
    ours(PUBatch(random_batch(0).row, random_batch(0).labelled, views), at(epoch))
    moved = (ours.judge.copies[0].get_parameter("weight") - before).mean()
    assert float(moved) == pytest.approx(1 - momentum)


def test_the_paper_budget_changes_nothing() -> None:
    assert NcPUConfig().for_budget(1300) == NcPUConfig()


def test_an_unknown_switch_names_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'alignment_weight'"):
        NcPUConfig.from_settings({"aligment_weight": 20})
