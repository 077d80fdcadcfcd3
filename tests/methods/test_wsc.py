"""WSC against loops over samples, its switches, and the collapse that balance prevents."""

import warnings

import pytest
import torch
from torch import Tensor

from onesided.core.batch import DataFacts, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.config import Settings
from onesided.core.errors import ConfigError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.engine.train_config import TrainConfig
from onesided.methods.wsc import WSC, WSC_EMBEDDING, WSCConfig
from onesided.nets.build import BackboneConfig, build_backbone, seeded
from onesided.run.presets import recipe_settings
from onesided.state.transition import KnownTransition, LearnedTransition
from tests.methods.slow_wsc import BATCH, EPOCHS, ROWS, SlowWSC
from tests.methods.two_clouds import BATCH as CLOUD_BATCH
from tests.methods.two_clouds import learn

KNOWN: Settings = {"transition": "known", "known_prior": 0.4}
QUIET = pytest.mark.filterwarnings("ignore:WSC with supervision")


def method(**settings: object) -> WSC:
    config = WSCConfig.from_settings({"projector_width": 8, **settings})
    facts = DataFacts(rows=ROWS, labelled=3, sample_shape=(2,))
    with seeded(0, "test"):
        backbone = build_backbone(BackboneConfig(width=0.05), (2,), [0, 0], [1, 1])
        return config.build(facts, backbone).double()


def random_outputs(seed: int) -> Outputs:
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return 2 * torch.randn(*shape, generator=draw, dtype=torch.float64)

    logits = {name: normal(BATCH, 2) for name in ("logits", "first_logits", "second_logits")}
    return Outputs(
        {**logits, **{name: normal(BATCH, WSC_EMBEDDING) for name in ("first", "second")}}
    )


def random_batch(seed: int) -> PUBatch:
    row = torch.randperm(ROWS, generator=torch.Generator().manual_seed(100 + seed))[:BATCH]
    return PUBatch(row=row, labelled=row < 3)


def at(epoch: int) -> Clock:
    return Clock(seed=0, stage="train", epoch=epoch, epochs=EPOCHS, step=0, steps=2)


@QUIET
@pytest.mark.parametrize(
    "settings",
    [*({"variant": name} for name in WSCConfig.switches), KNOWN, {"transition_rate": 0.5}],
    ids=str,
)
def test_ten_steps_equal_the_loops_over_samples(settings: Settings) -> None:
    ours = method(**settings)
    scale = ours.config.transition_scale
    slow = SlowWSC(ours.config, [[-scale, -scale], [-scale, -scale]])
    for step in range(10):
        outputs, batch = random_outputs(step), random_batch(step)
        losses = ours.loss(outputs, batch, at(step))
        expected = slow.step(outputs, batch.labelled.tolist(), step)
        assert losses.terms.keys() == expected.keys()
        for name, value in expected.items():
            assert float(losses.terms[name]) == pytest.approx(value, rel=1e-7), (step, name)
        assert float(losses.total) == pytest.approx(sum(expected.values()), rel=1e-7)
    learned = slow.matrix(slow.weights)
    for label, index in ((POSITIVE, 0), (NEGATIVE, 1)):
        assert float(ours.transition.matrix[label, label]) == pytest.approx(
            learned[index][index], rel=1e-7
        )


def test_the_contrast_grows_from_zero_with_the_epochs() -> None:
    ours = method()
    outputs, batch = random_outputs(0), random_batch(0)
    at_zero, half, late = (
        float(ours.loss(outputs, batch, at(epoch)).terms["contrast"]) for epoch in (0, 5, 9)
    )
    assert at_zero == 0
    assert half == pytest.approx(late * 5 / 9)


def test_no_gradient_reaches_the_probabilities_used_as_targets() -> None:
    ours = method()
    outputs = random_outputs(0)
    for tensor in outputs.tensors.values():
        tensor.requires_grad_()
    losses = ours.loss(outputs, random_batch(0), at(5))
    for name in ("consistency", "contrast"):
        (gradient,) = torch.autograd.grad(
            losses.terms[name], outputs["logits"], retain_graph=True, allow_unused=True
        )
        assert gradient is None, name


def test_the_transition_moves_by_its_own_rate_and_is_no_parameter() -> None:
    ours = method(transition_rate=0.1)
    assert isinstance(ours.transition, LearnedTransition)
    assert not list(ours.transition.parameters())
    before = ours.transition.matrix
    ours.loss(random_outputs(0), random_batch(0), at(0))
    assert not torch.equal(ours.transition.matrix, before)


def test_a_known_transition_stays() -> None:
    ours = method(**KNOWN)
    assert isinstance(ours.transition, KnownTransition)
    before = ours.transition.matrix.clone()
    losses = ours.loss(random_outputs(0), random_batch(0), at(0))
    assert torch.equal(ours.transition.matrix, before)
    assert "volume" not in losses.terms


@pytest.mark.parametrize("settings", [{"transition": "known"}, {"known_prior": 0.4}], ids=str)
def test_a_known_transition_and_its_prior_go_together(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="go together"):
        WSCConfig.from_settings(settings)


@pytest.mark.parametrize(("projection", "learns"), [("learned", True), ("random", False)])
def test_the_projector_learns_unless_it_is_to_stay_random(projection: str, learns: bool) -> None:
    parameters = list(method(projection=projection).projector.parameters())
    assert [p.requires_grad for p in parameters] == [learns] * len(parameters)


def test_the_plain_mean_warns_that_it_collapses() -> None:
    with pytest.warns(UserWarning, match="calls nothing positive"):
        method(variant="unmodified")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        method(supervision="mean", **KNOWN)


def test_the_weak_view_of_every_sample_stays_with_its_strong_ones() -> None:
    ours = method().eval()
    views = {role: torch.rand(BATCH, 2, dtype=torch.float64) for role in ours.views}
    outputs = ours(PUBatch(random_batch(0).row, random_batch(0).labelled, views), at(0))
    for name, role in (
        ("logits", "classify"),
        ("first_logits", "first"),
        ("second_logits", "second"),
    ):
        assert torch.allclose(outputs[name], ours.classify(views[role]))
    for role in ("first", "second"):
        assert torch.allclose(outputs[role], ours.projector(ours.backbone(views[role])))


@pytest.mark.parametrize("data_name", ["cifar10", "cifar100", "stl10"])
def test_recipes_hold_what_the_ncpu_authors_ran(data_name: str) -> None:
    recipe = recipe_settings(data_name, "wsc")
    train = TrainConfig.from_settings(recipe["train"])
    assert (train.epochs, train.batch_size, train.weight_decay) == (250, 256, 1e-3)
    rates = [train.learning_rate_at(epoch, 250) for epoch in (0, 125, 250)]
    assert rates == pytest.approx([0.001, 0.0006, 0.0002])
    assert (train.schedule, train.decay) == ("cosine-step", "weights")
    config = WSCConfig.from_settings(recipe["method"])
    assert (config.view_weight, config.class_weight, config.repulsion_weight) == (1, 12, 3)
    assert (config.contrast_weight, config.balance_weight, config.volume_weight) == (1, 0.1, 0.01)
    assert (config.transition_scale, config.transition_rate) == (0.5, 0.001)
    assert config.supervision == "balanced"


@pytest.mark.parametrize(
    ("rate", "floor", "rates"),
    [(0.001, 0.2, [0.001, 0.0006, 0.0002]), (1e-4, 2.0, [1e-4, 1.5e-4, 2e-4])],
)
def test_a_floor_above_the_first_rate_makes_it_rise_as_in_the_authors_run_on_xbd(
    rate: float, floor: float, rates: list[float]
) -> None:
    train = TrainConfig(learning_rate=rate, schedule="cosine-step", floor=floor)
    assert [train.learning_rate_at(epoch, 1) for epoch in (0, 0.5, 1)] == pytest.approx(rates)


def test_on_xbd_the_recipe_keeps_the_rate_instead() -> None:
    train = TrainConfig.from_settings(recipe_settings("xbd", "wsc")["train"])
    assert {train.learning_rate_at(epoch, 250) for epoch in (0, 100, 250)} == {1e-4}


CLOUDS: Settings = {"projector_width": 32}


@pytest.mark.parametrize("variant", ["published", "ncpu-paper", "binary"])
def test_balanced_it_finds_the_boundary_between_two_clouds(variant: str) -> None:
    config = WSCConfig.from_settings({**CLOUDS, "variant": variant})
    assert learn(config, epochs=30).accuracy >= 0.95


@QUIET
def test_unmodified_it_calls_nothing_positive() -> None:
    config = WSCConfig.from_settings({**CLOUDS, "variant": "unmodified"})
    assert learn(config, epochs=30).recall < 0.05


@QUIET
def test_unmodified_it_lives_where_half_of_every_batch_is_labelled() -> None:
    config = WSCConfig.from_settings({**CLOUDS, "variant": "unmodified"})
    learned = learn(config, epochs=20, positives_per_batch=CLOUD_BATCH // 2)
    assert learned.accuracy >= 0.95


def test_unmodified_it_lives_with_a_transition_that_is_known() -> None:
    config = WSCConfig.from_settings({**CLOUDS, "variant": "unmodified", **KNOWN})
    assert learn(config, epochs=30).accuracy >= 0.95


def test_on_xbd_the_transition_learns_as_slowly_as_the_model() -> None:
    recipe = recipe_settings("xbd", "wsc")
    rate = TrainConfig.from_settings(recipe["train"]).learning_rate
    assert WSCConfig.from_settings(recipe["method"]).transition_rate == rate == 1e-4


def test_a_known_transition_counts_p_and_u_as_the_supervision_weighs_them() -> None:
    def shown(**settings: str) -> float:
        return float(method(**KNOWN, **settings).transition.matrix[POSITIVE, POSITIVE])

    assert shown(supervision="balanced") == pytest.approx(1 / 1.4)
    assert shown(supervision="mean") < 0.7
