"""PiCO against loops over samples, its hand numbers, and two clouds."""

import pytest
import torch
from torch import Tensor

from onesided.core.batch import Augment, DataFacts, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.config import Settings
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.engine.train_config import TrainConfig
from onesided.methods.base import EMBEDDING
from onesided.methods.pico import PiCO, PiCOConfig
from onesided.nets.build import BackboneConfig, build_backbone, seeded
from onesided.run.presets import recipe_settings
from onesided.state.prototypes import Prototypes
from tests.methods.slow_pico import BATCH, QUEUE, ROWS, SlowPiCO
from tests.methods.two_clouds import learn

SMALL: Settings = {"projector_width": 8, "queue_length": QUEUE}
# PiCO+ has a class and a test file of its own.
EVERY_VARIANT = pytest.mark.parametrize("variant", ["published", "ncpu-paper"])


def method(**settings: object) -> PiCO:
    config = PiCOConfig.from_settings({**SMALL, **settings})
    facts = DataFacts(rows=ROWS, labelled=3, sample_shape=(2,))
    with seeded(0, "test"):
        backbone = build_backbone(BackboneConfig(width=0.05), (2,), [0, 0], [1, 1])
        return config.build(facts, backbone).double()


def random_outputs(seed: int) -> Outputs:
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    embeddings = {name: 3 * normal(BATCH, EMBEDDING) for name in ("query", "key")}
    return Outputs({"logits": 2 * normal(BATCH, 2), **embeddings})


def random_batch(seed: int) -> PUBatch:
    row = torch.randperm(ROWS, generator=torch.Generator().manual_seed(100 + seed))[:BATCH]
    return PUBatch(row=row, labelled=row < 3)


def at(epoch: int, epochs: int = 10) -> Clock:
    return Clock(seed=0, stage="train", epoch=epoch, epochs=epochs, step=0, steps=2)


@EVERY_VARIANT
@pytest.mark.parametrize("warmup_epochs", [0, 1])
def test_ten_steps_equal_the_loops_over_samples(variant: str, warmup_epochs: int) -> None:
    ours = method(variant=variant, warmup_epochs=warmup_epochs, temperature=0.5)
    keys, labels = ours.queue.read()
    assert set(labels.tolist()) == {UNKNOWN}
    slow = SlowPiCO(ours.config, [(key, UNKNOWN) for key in keys])
    for step in range(10):
        outputs, batch = random_outputs(step), random_batch(step)
        losses = ours.loss(outputs, batch, at(step // 2))
        expected = slow.step(outputs, batch, step // 2, 10)
        for name, value in expected.items():
            assert float(losses.terms[name]) == pytest.approx(value, rel=1e-9), (step, name)
        assert float(losses.total) == pytest.approx(sum(expected.values()), rel=1e-9)
    for ours_label, label in ((POSITIVE, 0), (NEGATIVE, 1)):
        assert torch.allclose(ours.prototypes.vectors[ours_label], slow.prototypes[label])


def moved(start: list[list[float]], query: list[list[float]], label: list[int]) -> Prototypes:
    state = Prototypes(2, 2).double()
    state.vectors.copy_(torch.tensor(start))
    state.follow(
        torch.tensor(query, dtype=torch.float64),
        torch.tensor(label),
        momentum=0.99,
        normalise="batch",
    )
    return state


def test_prototypes_give_the_numbers_computed_by_hand() -> None:
    # mu_0 of the paper is row POSITIVE here.
    first = moved([[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [POSITIVE, NEGATIVE])
    assert first.vectors[POSITIVE].tolist() == [1, 0]
    assert first.vectors[NEGATIVE].tolist() == [0, 1]
    second = moved(first.vectors.tolist(), [[0.6, 0.8]], [POSITIVE])
    assert second.vectors[POSITIVE].tolist() == pytest.approx([0.99996774, 0.00803187], abs=1e-8)
    logits = second.vectors @ torch.tensor([0.6, 0.8], dtype=torch.float64)
    assert logits.tolist() == pytest.approx([0.8, 0.60640614], abs=1e-8)
    assert logits.softmax(dim=0).tolist() == pytest.approx([0.54824787, 0.45175213], abs=1e-8)
    assert second.nearest(torch.tensor([[0.6, 0.8]], dtype=torch.float64)).tolist() == [NEGATIVE]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[0.6, 0.8], [0.0, -1.0]], [0.99999778, -0.00210944]),
        ([[0.0, -1.0], [0.6, 0.8]], [0.99999814, -0.00192678]),
    ],
)
def test_prototypes_remember_the_order_of_the_batch(
    rows: list[list[float]], expected: list[float]
) -> None:
    state = moved([[0.0, 0.0], [1.0, 0.0]], rows, [POSITIVE, POSITIVE])
    assert state.vectors[POSITIVE].tolist() == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("variant", "epochs", "after", "momentum"),
    [
        ("published", 800, 0, 0.95),
        ("published", 800, 400, 0.875),
        ("published", 800, 799, 0.8001875),
        ("ncpu-paper", 1300, 0, 0.99),
        ("ncpu-paper", 1300, 650, 0.97),
        ("ncpu-paper", 1300, 1299, 0.95003077),
    ],
)
def test_the_momentum_set_after_an_epoch_is_used_in_the_next(
    variant: str, epochs: int, after: int, momentum: float
) -> None:
    config = PiCOConfig.from_settings({"variant": variant})
    assert config.target_momentum_at(after + 1, epochs) == pytest.approx(momentum, abs=1e-8)
    assert config.target_momentum_at(0, epochs) == 0.99


@pytest.mark.parametrize(
    ("variant", "epochs", "votes"), [("published", 800, 14), ("ncpu-paper", 1300, 63)]
)
def test_a_label_turns_after_so_many_epochs_of_positive_votes(
    variant: str, epochs: int, votes: int
) -> None:
    config = PiCOConfig.from_settings({"variant": variant})
    negative, epoch = 1.0, 0
    while negative >= 0.5:
        epoch += 1
        negative *= config.target_momentum_at(epoch, epochs)
    assert epoch == votes


@pytest.mark.parametrize(("epoch", "rate"), [(0, 0.01), (400, 0.005005), (799, 1.00385e-5)])
def test_the_learning_rate_of_its_authors_is_our_cosine(epoch: int, rate: float) -> None:
    train = TrainConfig(learning_rate=0.01, epochs=800)
    assert train.learning_rate_at(epoch, 800) == pytest.approx(rate, rel=1e-5)


@pytest.mark.parametrize(
    ("classification", "labelled", "value"),
    [
        ("mean", [True, False, False], 0.68448380),
        ("groups", [True, False, False], 1.09018970),
        ("groups", [False, False], 0.96326169),
    ],
)
def test_classification_gives_the_numbers_computed_by_hand(
    classification: str, labelled: list[bool], value: float
) -> None:
    logits, target = torch.zeros(3, 2, dtype=torch.float64), torch.zeros(3, 2, dtype=torch.float64)
    logits[:, POSITIVE], logits[:, NEGATIVE] = torch.tensor([2.0, 0, 1]), torch.tensor([0, 1.0, 0])
    target[:, POSITIVE] = torch.tensor([1, 0.3, 0])
    target[:, NEGATIVE] = 1 - target[:, POSITIVE]
    ours = method(classification=classification)
    rows = slice(3 - len(labelled), None)
    loss = ours._classification(logits[rows], target[rows], torch.tensor(labelled))
    assert float(loss) == pytest.approx(value, abs=1e-8)


def target_of(ours: PiCO, rows: Tensor) -> Tensor:
    return ours.targets.current(rows, rows < 3)[:, POSITIVE]


@EVERY_VARIANT
def test_labelled_positives_have_the_target_positive_at_every_step(variant: str) -> None:
    ours = method(variant=variant)
    for step in range(8):
        ours.loss(random_outputs(step), random_batch(step), at(step))
        assert target_of(ours, torch.arange(3)).tolist() == [1, 1, 1]


def test_during_warm_up_targets_stand_still_while_prototypes_and_queue_move() -> None:
    ours = method(warmup_epochs=5)
    ours.loss(random_outputs(0), random_batch(0), at(4))
    assert not target_of(ours, torch.arange(3, ROWS)).any()
    assert ours.prototypes.vectors.any()
    assert (ours.queue.read()[1] != UNKNOWN).sum() == BATCH


def test_the_first_votes_of_all_are_ties_and_fall_to_negative() -> None:
    ours = method(warmup_epochs=0)
    losses = ours.loss(random_outputs(0), random_batch(0), at(0))
    assert float(losses.watched["positive_votes"]) == 0


@pytest.mark.parametrize(("start", "positive"), [("negative", 0.0), ("uniform", 0.5)])
def test_unlabelled_rows_start_as_asked(start: str, positive: float) -> None:
    rows = torch.arange(3, ROWS)
    assert target_of(method(start=start), rows).tolist() == [positive] * (ROWS - 3)


def test_without_labelled_rows_the_classes_can_change_places() -> None:
    first, second = method(start="uniform"), method(start="uniform")
    for step in range(6):
        batch = PUBatch(random_batch(step).row, torch.zeros(BATCH, dtype=torch.bool))
        outputs = random_outputs(step)
        swapped = Outputs({**outputs.tensors, "logits": outputs["logits"].flip(1)})
        # From the second step on: the first votes are ties, which fall to one side.
        one, two = (
            m.loss(o, batch, at(0 if step == 0 else 2))
            for m, o in ((first, outputs), (second, swapped))
        )
        assert float(one.total) == pytest.approx(float(two.total))
    assert torch.allclose(first.prototypes.vectors, second.prototypes.vectors.flip(0))


@pytest.mark.parametrize(
    ("variant", "view"), [("published", Augment.STRONG), ("ncpu-paper", Augment.WEAK)]
)
def test_the_query_is_seen_as_the_variant_says(variant: str, view: Augment) -> None:
    assert method(variant=variant).views == {"query": view, "key": Augment.STRONG}


def test_the_key_encoder_follows_before_the_key_is_computed() -> None:
    ours = method(encoder_momentum=0.5)
    with torch.no_grad():
        for parameter in ours.backbone.parameters():
            parameter.add_(1.0)
    before = [p.clone() for p in ours.key_encoder.parameters()]
    views = {role: torch.rand(BATCH, 2, dtype=torch.float64) for role in ("query", "key")}
    outputs = ours(PUBatch(random_batch(0).row, random_batch(0).labelled, views), at(0))
    online = [*ours.backbone.parameters(), *ours.projector.parameters()]
    for old, new, followed in zip(before, ours.key_encoder.parameters(), online, strict=True):
        assert torch.allclose(new, 0.5 * old + 0.5 * followed)
    assert outputs["query"].requires_grad
    assert not outputs["key"].requires_grad


@pytest.mark.parametrize("epochs", [10, 40, 100])
@EVERY_VARIANT
def test_in_a_short_run_targets_can_turn_within_a_tenth_of_it(variant: str, epochs: int) -> None:
    config = PiCOConfig.from_settings({"variant": variant}).for_budget(epochs)
    assert config.target_momentum ** (epochs / 10) <= 0.5 + 1e-9


@pytest.mark.parametrize(("variant", "epochs"), [("published", 800), ("ncpu-paper", 1300)])
def test_the_published_budgets_change_nothing(variant: str, epochs: int) -> None:
    config = PiCOConfig.from_settings({"variant": variant})
    assert config.for_budget(epochs) == config


@pytest.mark.parametrize(
    ("data_name", "rate", "batch"),
    [("cifar10", 1e-3, 256), ("cifar100", 1e-3, 256), ("stl10", 1e-2, 512)],
)
def test_recipes_hold_what_the_ncpu_authors_ran(data_name: str, rate: float, batch: int) -> None:
    recipe = recipe_settings(data_name, "pico")
    train = TrainConfig.from_settings(recipe["train"])
    assert (train.epochs, train.learning_rate, train.batch_size) == (1300, rate, batch)
    assert (train.clip, train.weight_decay, train.floor) == (10, 1e-3, 1e-3)
    config = PiCOConfig.from_settings(recipe["method"])
    assert (config.classification, config.query_view) == ("groups", "weak")
    assert (config.target_momentum, config.final_target_momentum) == (0.99, 0.95)


@EVERY_VARIANT
def test_it_finds_the_boundary_between_two_clouds(variant: str) -> None:
    config = PiCOConfig.from_settings(
        {"variant": variant, "projector_width": 32, "queue_length": 512, "encoder_momentum": 0.99}
    )
    assert learn(config, epochs=30).accuracy >= 0.95
