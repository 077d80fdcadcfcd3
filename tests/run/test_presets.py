"""A preset spends steps, however many of them a method needs for a pass."""

from typing import Any

import numpy as np
import pytest
import torch

from onesided.core.batch import Batching, Mixed, Stratified
from onesided.data.loader import Loader
from onesided.data.problem.dataset import PUDataset, Selection
from onesided.engine.train_config import TrainConfig
from onesided.methods import METHODS
from onesided.methods.base import GradientMethod
from onesided.run.presets import STEPS, Amount, preset_settings, published_settings, resolve
from tests.contract.cases import Case, build, toy_split

ROWS, LABELLED = 4000, 300


def planned(method: str, **train: Any) -> dict[str, Any]:  # noqa: ANN401 - any setting
    given = {"method": {"name": method}, "train": train}
    settings = preset_settings(
        "quick",
        data_name="folders",
        method_name=method,
        amount=Amount(ROWS, LABELLED),
        given=given,
    )
    return dict(settings["train"])


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


@pytest.mark.parametrize("method", ["ncpu", "nnpu", "vpu", "tedn", "holisticpu"])
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
    asked = {key: plan[key] for key in ("batching", "positives_per_batch") if key in plan}
    per_epoch = steps_of_an_epoch(method, plan["batch_size"], **(asked | train))
    assert abs(plan["epochs"] * per_epoch - STEPS["quick"]) <= per_epoch / 2


def preset_of(name: str, method: dict[str, Any], *, images: bool = True) -> dict[str, Any]:
    given = {"method": {"name": "ncpu", **method}}
    return preset_settings(
        name,
        data_name="cifar10",
        method_name="ncpu",
        amount=Amount(41_000, 1_000, images=images),
        given=given,
    )


def test_short_runs_take_the_variant_made_for_them_and_not_the_weights_of_1300_epochs() -> None:
    method = preset_of("quick", {})["method"]
    assert (method["variant"], method["alignment_weight"], method["entropy_weight"]) == (
        "budget",
        1.0,
        0.0,
    )
    assert preset_of("quick", {"variant": "paper"})["method"]["alignment_weight"] == 50.0
    assert "variant" not in preset_of("paper", {}).get("method", {})


def test_class_pairs_are_for_features_that_have_formed() -> None:
    frozen = {"network": {"name": "efficientnet_lite0", "trained": "head"}}
    planned = preset_settings(
        "quick",
        data_name="folders",
        method_name="ncpu",
        amount=Amount(1000, 100),
        given=frozen,
    )["method"]
    assert (planned["variant"], planned["alignment"]) == ("features", "robust")
    assert preset_of("quick", {})["method"]["alignment"] == "self"


def test_a_quarter_of_every_batch_is_positive_in_short_runs() -> None:
    train = preset_of("quick", {})["train"]
    assert (train["batching"], train["positives_per_batch"]) == ("stratified", 32)
    assert "batching" not in preset_of("quick", {"variant": "paper"})["train"]


def test_views_are_gentle_unless_a_few_positives_are_seen_again_and_again() -> None:
    assert preset_of("quick", {})["train"]["views"] == "gentle"
    assert planned("ncpu", epochs=30)["views"] == "gentle"
    assert planned("ncpu", epochs=31)["views"] == "published"


@pytest.mark.parametrize("preset", STEPS)
@pytest.mark.parametrize("epochs", [None, 12, 130])
def test_targets_forget_as_much_over_a_short_run_as_over_the_papers(
    preset: str, epochs: int | None
) -> None:
    given = {} if epochs is None else {"train": {"epochs": epochs}}
    settings = published_settings(preset, data_name="cifar10", given=given)
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
    method = resolve(given, "paper").method.model_dump()
    assert method["target_momentum"] == pytest.approx(momentum, abs=1e-4)
    assert method["warmup_epochs"] == warmup
    assert method["variant"] == "paper"


def test_what_was_asked_for_is_not_compressed() -> None:
    given = {
        "data": {"name": "cifar10"},
        "method": {"name": "ncpu", "target_momentum": 0.95},
        "train": {"epochs": 40},
    }
    method = resolve(given, "paper").method.model_dump()
    assert (method["target_momentum"], method["warmup_epochs"]) == (0.95, 12)


@pytest.mark.parametrize(("epochs", "warmup"), [(4, 2), (6, 3), (30, 3), (76, 19)])
def test_votes_begin_before_gentle_views_are_known_by_heart(epochs: int, warmup: int) -> None:
    short = METHODS["ncpu"].from_settings({"variant": "budget"}).for_budget(epochs)
    assert short.model_dump()["warmup_epochs"] == warmup


def test_another_variant_keeps_the_weights_of_its_data_set() -> None:
    def entropy(variant: str) -> float:
        given = {"method": {"name": "ncpu", "variant": variant}}
        settings = published_settings("quick", data_name="cifar100", given=given)
        return float(settings["method"]["entropy_weight"])

    assert (entropy("paper"), entropy("released"), entropy("budget")) == (0.5, 0.5, 0.0)


def test_a_longer_preset_has_more_steps_or_a_wider_network_for_images() -> None:
    quick, standard, evening = (preset_of(name, {}) for name in STEPS)
    assert standard["train"]["epochs"] == 4 * quick["train"]["epochs"]
    assert evening["train"]["epochs"] == standard["train"]["epochs"]
    widths = [settings["network"]["width"] for settings in (quick, standard, evening)]
    assert widths == sorted(set(widths))
    assert "width" not in preset_of("quick", {}, images=False)["network"]


@pytest.mark.parametrize("method", ["vpu", "tedn", "holisticpu"])
def test_methods_that_pair_p_with_u_say_so_before_they_are_built(method: str) -> None:
    assert METHODS[method].from_settings({}).batching(24) == Stratified(12)


@pytest.mark.parametrize(
    ("preset", "data", "network", "largest"),
    [
        ("quick", "folders", {}, 64),
        ("quick", "folders", {"name": "efficientnet_lite0"}, None),
        ("standard", "folders", {}, None),
        ("evening", "folders", {}, None),
        ("quick", "cifar10", {}, None),
    ],
)
def test_quick_looks_at_own_images_of_64_pixels_at_most(
    preset: str, data: str, network: dict[str, Any], largest: int | None
) -> None:
    settings = preset_settings(
        preset,
        data_name=data,
        method_name="ncpu",
        amount=Amount(1000, 100),
        given={"network": network},
    )
    assert settings["data"].get("largest_side") == largest


@pytest.mark.parametrize("name", list(METHODS))
def test_a_method_batches_as_its_settings_say(name: str) -> None:
    method = build(Case(name), toy_split())
    if isinstance(method, GradientMethod):
        assert method.batching == Case(name).config().batching(24)


@pytest.mark.parametrize("amount", [Amount(16, 8), Amount(4080, 4000), Amount(7, 4)])
def test_a_preset_chooses_a_batch_that_the_unlabelled_can_fill(amount: Amount) -> None:
    train = preset_settings(
        "quick", data_name="folders", method_name="ncpu", amount=amount, given={}
    )["train"]
    assert amount.rows - amount.labelled >= train["batch_size"] - train["positives_per_batch"] > 0


@pytest.mark.parametrize("data", ["cifar10", "folders"])
def test_what_is_more_than_a_pace_stays_the_papers(data: str) -> None:
    def steps(epochs: int) -> tuple[int, float]:
        settings = preset_settings(
            "paper",
            data_name=data,
            method_name="holisticpu",
            amount=Amount(41000, 1000),
            given={"train": {"epochs": epochs}},
        )
        method = METHODS["holisticpu"].from_settings(settings.get("method", {})).model_dump()
        return method["steps_per_epoch"], method["average_momentum"]

    assert steps(39) == steps(40)


@pytest.mark.parametrize("preset", STEPS)
def test_class_pairs_beside_another_risk_begin_within_a_short_run(preset: str) -> None:
    given = {"method": {"name": "nnpu", "alignment": "robust"}}
    planned = published_settings(preset, data_name="cifar10", method_name="nnpu", given=given)
    assert 1 <= planned["method"]["warmup_epochs"] < planned["train"]["epochs"] / 2
