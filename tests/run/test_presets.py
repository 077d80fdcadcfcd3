"""A preset spends steps, however many of them a method needs for a pass."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from onesided.core.batch import Batching, Mixed, Stratified
from onesided.core.config import Config, Settings, merge
from onesided.core.errors import ConfigError
from onesided.data.loader import Loader
from onesided.data.problem.dataset import PUDataset, Selection
from onesided.engine.train_config import TrainConfig
from onesided.methods import METHODS
from onesided.methods.base import GradientMethod
from onesided.run.config import RunConfig
from onesided.run.default_method import DEFAULT_METHOD
from onesided.run.preset_files import preset_files
from onesided.run.presets import Amount, Preset, plan_run, published_settings, read_preset
from tests.contract.cases import Case, build, toy_split
from tests.run.situations import CONFIGS, PRESETS, outcome, situations

ROWS, LABELLED = 4000, 300
BUDGETS = ("quick", "standard", "evening")


def settings_of(
    preset: str | Path, data_name: str, amount: Amount, given: Settings | None = None
) -> Settings:
    """Return what a run on this much data is, all of it."""
    plan = plan_run(merge({"data": {"name": data_name}}, given or {}), preset)
    return plan.for_amount(amount).to_settings()


def planned(method: str, **train: Any) -> dict[str, Any]:  # noqa: ANN401 - any setting
    given = {"method": {"name": method}, "train": train}
    return dict(settings_of("quick", "folders", Amount(ROWS, LABELLED), given)["train"])


def test_every_preset_resolves_to_what_it_always_did() -> None:
    recorded = json.loads(CONFIGS.read_text(encoding="utf-8"))
    now = {name: outcome(given, preset, data) for name, preset, given, data in situations()}
    assert json.loads(json.dumps(now)) == recorded


def steps_of_an_epoch(method: str, batch_size: int, **train: Any) -> int:  # noqa: ANN401
    """Count as the loader counts."""
    labelled = np.arange(ROWS) < LABELLED
    values = Selection(np.zeros((ROWS, 1), np.float32), np.arange(ROWS))
    data = PUDataset(values, labelled, np.zeros(ROWS, np.int64), ("",) * ROWS)
    loader = Loader(data, "vector", batch_size, torch.device("cpu"))
    choice = TrainConfig.from_settings(train)
    batching: Batching = METHODS[method].from_settings({}).batching(batch_size)
    if choice.batching == "mixed":
        batching = Mixed()
    if choice.batching == "stratified":
        batching = Stratified(choice.positives_per_batch)
    return loader.steps(batching)


@pytest.mark.parametrize("method", ["teacher", "ncpu", "nnpu", "vpu", "tedn", "holisticpu"])
@pytest.mark.parametrize(
    "train",
    [
        {},
        {"batching": "mixed"},
        {"batching": "stratified"},
        {"batching": "stratified", "positives_per_batch": 20},
    ],
    ids=str,
)
def test_quick_spends_its_steps_whatever_the_batches_are_made_of(
    method: str, train: dict[str, Any]
) -> None:
    plan = planned(method, **train)
    asked = {key: plan[key] for key in ("batching", "positives_per_batch")}
    per_epoch = steps_of_an_epoch(method, plan["batch_size"], **asked)
    steps = read_preset("quick").steps
    assert steps is not None
    assert abs(plan["epochs"] * per_epoch - steps) <= per_epoch / 2


def preset_of(name: str, method: dict[str, Any], *, images: bool = True) -> dict[str, Any]:
    amount = Amount(41_000, 1_000, images=images)
    return settings_of(name, "cifar10", amount, {"method": method})


NCPU = {"name": "ncpu"}
TEACHER = {"name": "teacher"}
NETWORK: Settings = {"method": TEACHER}


def test_short_runs_take_the_variant_made_for_them_and_not_the_weights_of_1300_epochs() -> None:
    method = preset_of("quick", TEACHER)["method"]
    assert (method["name"], method["variant"]) == ("teacher", "plain")
    assert (method["alignment_weight"], method["entropy_weight"]) == (1.0, 0.0)


@pytest.mark.parametrize("preset", BUDGETS)
def test_ncpu_is_the_published_mathematics_with_every_preset(preset: str) -> None:
    published, short = (preset_of(name, NCPU)["method"] for name in ("paper", preset))
    pace = ("target_momentum", "warmup_epochs")
    assert short["variant"] == "paper"
    assert {key: short[key] for key in short if key not in pace} == {
        key: published[key] for key in published if key not in pace
    }


def test_the_papers_preset_runs_the_papers_method_unless_another_is_named() -> None:
    assert preset_of("paper", {})["method"]["name"] == "ncpu"
    assert preset_of("paper", {"name": "teacher"})["method"]["name"] == "teacher"


def test_class_pairs_are_for_features_that_have_formed() -> None:
    frozen = {"backbone": {"name": "efficientnet_lite0", "freeze": True}}
    asked = merge(NETWORK, frozen)
    planned = settings_of("quick", "folders", Amount(1000, 100), asked)["method"]
    assert (planned["name"], planned["variant"]) == ("teacher", "features")
    assert planned["alignment"] == "robust"
    assert preset_of("quick", TEACHER)["method"]["alignment"] == "self"


def test_a_quarter_of_every_batch_is_positive_in_short_runs() -> None:
    train = preset_of("quick", TEACHER)["train"]
    assert (train["batching"], train["positives_per_batch"]) == ("stratified", 32)
    assert preset_of("quick", NCPU)["train"]["batching"] == "method"


def test_views_are_gentle_unless_a_few_positives_are_seen_again_and_again() -> None:
    assert preset_of("quick", TEACHER)["train"]["views"] == "gentle"
    assert planned("teacher", epochs=30)["views"] == "gentle"
    assert planned("teacher", epochs=31)["views"] == "published"


@pytest.mark.parametrize("preset", BUDGETS)
@pytest.mark.parametrize("epochs", [None, 12, 130])
def test_targets_forget_as_much_over_a_short_run_as_over_the_papers(
    preset: str, epochs: int | None
) -> None:
    given = {} if epochs is None else {"train": {"epochs": epochs}}
    settings = published_settings(preset, data_name="cifar10", method_name="teacher", given=given)
    passes = settings["train"]["epochs"]
    assert passes == (epochs or passes)
    assert settings["method"]["target_momentum"] ** passes == pytest.approx(0.99**1300)


@pytest.mark.parametrize(
    ("epochs", "momentum", "warmup"), [(1300, 0.99, 30), (100, 0.8775, 30), (40, 0.7213, 12)]
)
def test_the_papers_preset_is_compressed_into_fewer_epochs(
    epochs: int, momentum: float, warmup: int
) -> None:
    given = {"data": {"name": "cifar10"}, "train": {"epochs": epochs}}
    method = plan_run(given, "paper").checked.method.model_dump()
    assert method["target_momentum"] == pytest.approx(momentum, abs=1e-4)
    assert method["warmup_epochs"] == warmup
    assert method["variant"] == "paper"


@pytest.mark.parametrize("preset", ["paper", "quick"])
def test_votes_of_a_short_run_count_early_on_frozen_features(preset: str) -> None:
    given = {
        "data": {"name": "cifar10"},
        "method": {"name": "ncpu"},
        "train": {"epochs": 40},
        "backbone": {"name": "efficientnet_lite0", "freeze": True},
    }
    method = plan_run(given, preset).for_amount(Amount(41_000, 1_000)).method.model_dump()
    assert method["warmup_epochs"] == 2
    learning = plan_run({**given, "backbone": {}}, "paper").checked.method.model_dump()
    assert learning["warmup_epochs"] == 12


def test_what_was_asked_for_is_not_compressed() -> None:
    given = {
        "data": {"name": "cifar10"},
        "method": {"name": "ncpu", "target_momentum": 0.95},
        "train": {"epochs": 40},
    }
    method = plan_run(given, "paper").checked.method.model_dump()
    assert (method["target_momentum"], method["warmup_epochs"]) == (0.95, 12)


def test_ncpu_keeps_the_weights_of_its_data_set() -> None:
    def entropy(variant: str) -> float:
        given = {"method": {"name": "ncpu", "variant": variant}}
        settings = published_settings("quick", data_name="cifar100", given=given)
        return float(settings["method"]["entropy_weight"])

    assert (entropy("paper"), entropy("released")) == (0.5, 0.5)


def test_a_longer_preset_has_more_steps_or_a_wider_backbone_for_images() -> None:
    quick, standard, evening = (preset_of(name, TEACHER) for name in BUDGETS)
    assert standard["train"]["epochs"] == 4 * quick["train"]["epochs"]
    assert evening["train"]["epochs"] == standard["train"]["epochs"]
    widths = [settings["backbone"]["width"] for settings in (quick, standard, evening)]
    assert widths == sorted(set(widths))
    assert preset_of("quick", TEACHER, images=False)["backbone"]["width"] == 1.0


@pytest.mark.parametrize("method", ["vpu", "tedn", "holisticpu"])
def test_methods_that_pair_p_with_u_say_so_before_they_are_built(method: str) -> None:
    assert METHODS[method].from_settings({}).batching(24) == Stratified(12)


@pytest.mark.parametrize(
    ("preset", "data", "backbone", "largest"),
    [
        ("quick", "folders", {}, 64),
        ("quick", "folders", {"name": "efficientnet_lite0"}, 128),
        ("standard", "folders", {}, 128),
        ("evening", "folders", {}, 128),
        ("quick", "cifar10", {}, None),
    ],
)
def test_quick_resizes_own_images_to_64_pixels_at_most(
    preset: str, data: str, backbone: dict[str, Any], largest: int | None
) -> None:
    settings = settings_of(preset, data, Amount(1000, 100), {**NETWORK, "backbone": backbone})
    assert settings["data"].get("largest_side") == largest


@pytest.mark.parametrize("name", list(METHODS))
def test_a_method_batches_as_its_settings_say(name: str) -> None:
    method = build(Case(name), toy_split())
    if isinstance(method, GradientMethod):
        assert method.batching == Case(name).config().batching(24)


@pytest.mark.parametrize("amount", [Amount(16, 8), Amount(4080, 4000), Amount(7, 4)])
def test_a_preset_chooses_a_batch_that_the_unlabelled_can_fill(amount: Amount) -> None:
    train = settings_of("quick", "folders", amount, NETWORK)["train"]
    assert amount.rows - amount.labelled >= train["batch_size"] - train["positives_per_batch"] > 0


@pytest.mark.parametrize("data", ["cifar10", "folders"])
def test_what_is_more_than_a_pace_stays_the_papers(data: str) -> None:
    def steps(epochs: int) -> tuple[int, float]:
        given = {"method": {"name": "holisticpu"}, "train": {"epochs": epochs}}
        method = settings_of("paper", data, Amount(41000, 1000), given)["method"]
        return method["steps_per_epoch"], method["average_momentum"]

    assert steps(39) == steps(40)


@pytest.mark.parametrize("preset", BUDGETS)
def test_class_pairs_beside_another_risk_begin_within_a_short_run(preset: str) -> None:
    given = {"method": {"name": "nnpu", "alignment": "robust"}}
    planned = published_settings(preset, data_name="cifar10", method_name="nnpu", given=given)
    assert 1 <= planned["method"]["warmup_epochs"] < planned["train"]["epochs"] / 2


def test_presets_are_the_files_beside_the_recipes_the_shortest_first() -> None:
    assert tuple(preset_files()) == PRESETS
    for name in PRESETS:
        assert read_preset(name).summary


OWN = """
training = "budget"
steps = 600
most_epochs = 12
largest_side = 96
[backbone]
width = 0.75
[train]
learning_rate = 0.3
[method.teacher]
warmup_epochs = 2
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    return path


def test_a_preset_of_ones_own_decides_what_its_file_says(own: Path) -> None:
    settings = settings_of(own, "folders", Amount(500, 60), NETWORK)
    assert settings["train"]["epochs"] == 12  # 17 of 36 steps would be affordable
    assert settings["train"]["learning_rate"] == 0.3
    assert settings["data"]["largest_side"] == 96
    assert settings["backbone"]["width"] == 0.75
    assert settings["method"]["warmup_epochs"] == 2


def test_what_a_person_sets_wins_over_the_preset_of_their_own(own: Path) -> None:
    given: Settings = {
        "train": {"learning_rate": 0.1},
        "backbone": {"width": 0.5},
        "data": {"largest_side": 32},
        "method": {**TEACHER, "warmup_epochs": 4},
    }
    settings = settings_of(own, "folders", Amount(500, 60), given)
    for table, asked in given.items():
        assert settings[table].items() >= asked.items()


def test_a_preset_may_choose_a_pretrained_backbone_unless_another_is_asked_for(own: Path) -> None:
    own.write_text(OWN.replace("width = 0.75", 'name = "efficientnet_lite0"\nfreeze = true'))
    settings = settings_of(own, "folders", Amount(500, 60), NETWORK)
    assert settings["backbone"]["freeze"] is True
    assert settings["method"]["variant"] == "features"
    assert settings["data"]["largest_side"] == 128
    small = merge(NETWORK, {"backbone": {"name": "small"}})
    another = settings_of(own, "folders", Amount(500, 60), small)
    assert (another["backbone"]["freeze"], another["data"]["largest_side"]) == (False, 96)


def test_settings_of_one_method_leave_the_others_alone(own: Path) -> None:
    given = {"method": {"name": "ce"}}
    assert settings_of(own, "folders", Amount(500, 60), given)["method"]["name"] == "ce"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "steps = 600",
            "stepps = 600",
            "own.toml: unknown setting 'stepps'. Did you mean 'steps'?",
        ),
        ("steps = 600", "", 'training = "budget" and steps go together'),
        ('"budget"', '"recipe"', 'training = "budget" and steps go together'),
        ('"budget"', '"long"', "own.toml: training: Input should be 'budget' or 'recipe'"),
        ("most_epochs = 12", "most_epochs = 3", "the fewest cannot be more than the most"),
        ("width = 0.75", "width = -1", "own.toml: backbone.width: Input should be greater than 0"),
        ("learning_rate", "rate", "own.toml [train]: unknown setting 'rate'"),
        ("warmup_epochs", "warmup", "own.toml [method.teacher]: unknown setting 'warmup'"),
        ("method.teacher", "method.teachr", "own.toml [method]: there is no method 'teachr'. Did"),
        ("[backbone]", "[network", "own.toml is not valid TOML"),
    ],
)
def test_an_error_in_a_preset_names_its_file(own: Path, before: str, after: str, said: str) -> None:
    own.write_text(OWN.replace(before, after))
    with pytest.raises(ConfigError) as refused:
        plan_run({"data": {"name": "folders"}, "method": {"name": "ce"}}, own)
    assert said in str(refused.value)
    assert "own.toml" in str(refused.value)


def test_a_preset_that_is_not_there_is_refused(tmp_path: Path) -> None:
    given = {"data": {"name": "folders"}}
    with pytest.raises(ConfigError, match=r"There is no preset 'evning'. Did you mean 'evening'"):
        plan_run(given, "evning")
    with pytest.raises(ConfigError, match=r"There is no configuration file .*missing\.toml"):
        plan_run(given, tmp_path / "missing.toml")


@pytest.mark.parametrize("preset", PRESETS)
def test_settings_are_checked_once_and_before_the_data_is_read(
    preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def counted(kind: type) -> "classmethod[Any, Any, Any]":
        real = vars(kind)["from_settings"].__func__

        def call(cls: type, *arguments: Any) -> Any:  # noqa: ANN401 - as it is
            calls.append(kind.__name__)
            return real(cls, *arguments)

        return classmethod(call)

    for kind in (RunConfig, Config):
        monkeypatch.setattr(kind, "from_settings", counted(kind))
    plan = plan_run({"data": {"name": "cifar10"}}, preset)
    assert calls.count("RunConfig") == 1
    calls.clear()
    plan.for_data(toy_split())
    assert calls == []


def test_without_a_preset_a_run_is_what_was_given() -> None:
    given = {"data": {"name": "digits"}, "train": {"epochs": 3}}
    plan = plan_run(given, None)
    assert plan.checked == RunConfig.from_settings(given)
    assert plan.for_data(toy_split()) is plan.checked


def test_what_is_known_before_the_data_is_read_holds_after_it() -> None:
    given = {"data": {"name": "folders"}, "train": {"device": "cpu"}, "seed": 4, **NETWORK}
    plan = plan_run(given, "quick")
    run = plan.for_data(toy_split())
    assert (run.data, run.backbone) == (plan.checked.data, plan.checked.backbone)
    assert (run.train.device, run.seed) == ("cpu", 4)
    assert run.data.model_dump()["largest_side"] == read_preset("quick").largest_side


SEARCHED = Amount(1000, 100)


@pytest.mark.parametrize(("preset", "minutes"), [("quick", 2), ("standard", 20), ("evening", 120)])
def test_a_run_without_a_method_is_a_search_that_takes_as_long_as_the_preset(
    preset: str, minutes: float
) -> None:
    settings = settings_of(preset, "folders", SEARCHED)
    assert settings["method"]["name"] == DEFAULT_METHOD == "auto"
    assert settings["method"]["minutes"] == minutes
    assert (settings["data"]["held_out"], settings["threshold"]) == (0, "prior")


def test_a_search_takes_features_of_images_and_vectors_as_they_are() -> None:
    images = settings_of("quick", "folders", SEARCHED)["backbone"]
    vectors = settings_of("quick", "table", Amount(1000, 100, images=False))["backbone"]
    assert (images["name"], images["freeze"]) == ("efficientnet_lite0", True)
    assert (vectors["name"], vectors["freeze"]) == ("auto", False)


def test_a_search_with_a_pretrained_network_by_name_takes_its_features() -> None:
    """Or linear models and forests would train on pixels."""
    usual = settings_of("quick", "folders", SEARCHED)["backbone"]
    named = {"backbone": {"name": "efficientnet_lite0"}}
    assert settings_of("quick", "folders", SEARCHED, named)["backbone"] == usual
    learning = {"backbone": {"name": "efficientnet_lite0", "freeze": False}}
    assert not settings_of("quick", "folders", SEARCHED, learning)["backbone"]["freeze"]


def test_a_search_keeps_the_width_of_a_network_for_vectors() -> None:
    asked = {"backbone": {"width": 0.5}}
    vectors = settings_of("quick", "table", Amount(1000, 100, images=False), asked)
    assert vectors["backbone"]["width"] == 0.5


@pytest.mark.parametrize("data", ["folders", "table", "cifar10"])
@pytest.mark.parametrize("asked", [{"width": 0.5}, {"normalisation": "none"}])
def test_a_search_on_images_refuses_what_its_pretrained_network_cannot_have(
    data: str, asked: Settings
) -> None:
    with pytest.raises(ConfigError, match=r"efficientnet_lite0.* small"):
        settings_of("quick", data, SEARCHED, {"backbone": asked})
    named = settings_of("quick", data, SEARCHED, {"backbone": {"name": "small", **asked}})
    assert named["backbone"].items() >= asked.items()


def test_every_setting_of_a_preset_says_what_it_is() -> None:
    assert all(field.description for field in Preset.model_fields.values())
