"""The plan of a search: what is held out, which backbone, which candidates are refused."""

from pathlib import Path
from typing import Any

import pytest

from onesided.core.errors import ConfigError
from onesided.methods.auto import AutoConfig
from onesided.run.config import OwnConfig, RunConfig
from onesided.run.presets import Amount, demo_settings, plan_run, short_run

IMAGES, VECTORS = Amount(1000, 100, images=True), Amount(1000, 100, images=False)


def planned(preset: str | None = "quick", amount: Amount = VECTORS, **given: Any) -> RunConfig:  # noqa: ANN401
    settings = {"data": {"name": "folders"}, "method": {"name": "auto"}, **given}
    return plan_run(settings, preset).for_amount(amount)


def test_auto_is_the_default_and_holds_nothing_out() -> None:
    config = plan_run({"data": {"name": "table"}}, "quick").for_amount(VECTORS)
    assert isinstance(config.method, AutoConfig)
    assert isinstance(config.data, OwnConfig)
    assert config.data.held_out == 0
    assert str(config.threshold) == "prior"


def test_what_a_person_holds_out_stays_held_out() -> None:
    config = planned(data={"name": "folders", "held_out": 0.3})
    assert isinstance(config.data, OwnConfig)
    assert config.data.held_out == 0.3


@pytest.mark.parametrize(("preset", "minutes"), [("quick", 2), ("standard", 20), ("evening", 120)])
def test_the_preset_says_how_long(preset: str, minutes: float) -> None:
    method = planned(preset).method
    assert isinstance(method, AutoConfig)
    assert method.minutes == minutes
    given = planned(preset, method={"name": "auto", "minutes": 7}).method
    assert isinstance(given, AutoConfig)
    assert given.minutes == 7


def test_images_are_seen_by_a_frozen_pretrained_backbone() -> None:
    backbone = planned(amount=IMAGES).backbone
    assert (backbone.name, backbone.freeze, backbone.layers) == (
        "efficientnet_lite0",
        True,
        "several",
    )


@pytest.mark.parametrize("amount", [IMAGES, VECTORS])
def test_another_backbone_that_was_asked_for_is_used(amount: Amount) -> None:
    config = planned(amount=amount, backbone={"name": "mlp", "width": 0.5})
    assert (config.backbone.name, config.backbone.width) == ("mlp", 0.5)
    assert not config.backbone.freeze


@pytest.mark.parametrize("preset", ["quick", None])
@pytest.mark.parametrize("key", ["candidates", "also"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("auto", "cannot be a candidate of itself"),
        ("supervised", "needs more than P and U"),
        ("lagam", "needs more than P and U"),
        ("vpu", "needs more than P and U"),
        ("lineal", "Did you mean 'linear'"),
    ],
)
def test_a_method_that_cannot_be_tried_is_refused_before_anything_is_read(
    preset: str | None, key: str, name: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        planned(preset, method={"name": "auto", key: [name]})


def test_a_budget_goes_with_auto_alone() -> None:
    with pytest.raises(ConfigError, match="time of auto, and the method is nnpu") as error:
        planned(method={"name": "nnpu", "minutes": 2.0})
    assert "\n" not in str(error.value)


def test_a_batch_size_that_was_asked_for_makes_another_run() -> None:
    default = planned().train.batch_size
    assert planned(train={"batch_size": default}).fingerprint() != planned().fingerprint()
    assert planned(train={"device": "cpu"}).fingerprint() == planned().fingerprint()


def test_a_presets_own_training_settings_reach_the_networks_of_a_search(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'training = "budget"\nsteps = 2500\n[train]\nbatch_size = 24\nlearning_rate = 0.003\n'
    )
    given = {"data": {"name": "table"}, "train": {"learning_rate": 0.2}}
    config = plan_run(given, path).for_amount(Amount(400, 100, images=False))
    candidate = short_run(config, "nnpu", 500, Amount(400, 100, images=False))
    assert candidate.train.batch_size == 24
    assert candidate.train.learning_rate == 0.2, "what a person asks for wins"


def test_a_short_run_keeps_what_was_asked_for() -> None:
    config = planned(train={"epochs": 3})
    run = short_run(config, "nnpu", 1500, VECTORS)
    assert run.method_name == "nnpu"
    assert run.train.epochs == 3
    assert short_run(planned(), "nnpu", 1500, VECTORS).train.epochs > 3


def test_settings_that_were_written_plan_the_same_search_again() -> None:
    config = planned(method={"name": "auto", "also": ["nnpu"]}, train={"epochs": 3})
    again = plan_run(config.to_settings(), None).for_amount(VECTORS)
    assert again == config
    assert again.fingerprint() == config.fingerprint()
    for one in (config, again):
        assert one.train.model_fields_set == {"epochs"}, "the rest is planned for each candidate"


def test_the_demonstration_trains_both_methods_for_minutes_on_the_same_features() -> None:
    auto, plain = (RunConfig.from_settings(demo_settings(name, 3)) for name in ("auto", "ce"))
    assert isinstance(auto.method, AutoConfig)
    assert auto.backbone == plain.backbone
    assert auto.data == plain.data
    assert (auto.seed, plain.seed) == (3, 3)
    assert plain.train.epochs <= 200, "the published length is 1300"
