"""Small images are also tried as they are: a pretrained network knows photographs."""

from pathlib import Path

import numpy as np
import pytest

import onesided
from onesided.methods.auto import AutoConfig
from onesided.run.config import RunConfig
from onesided.run.presets import Amount, plan_run
from onesided.run.search.candidates import Candidate, Menu


def first(side: int, *, freeze: bool = True) -> list[Candidate]:
    backbone = {"name": "efficientnet_lite0"} if freeze else {"name": "small"}
    given = {"data": {"name": "digits"}, "method": {"name": "auto"}, "backbone": backbone}
    config: RunConfig = plan_run(
        given | ({"backbone": backbone | {"freeze": True}} if freeze else {}), "quick"
    ).checked
    assert isinstance(config.method, AutoConfig)
    amount = Amount(840, 40, pixels=side * side)
    return Menu(config, amount, amount, 1280, 5).first()


def test_of_several_layers_the_last_is_tried_alone() -> None:
    config = plan_run({"data": {"name": "digits"}, "method": {"name": "auto"}}, "quick").checked
    amount = Amount(840, 40, pixels=64)
    names = {one.name for one in Menu(config, amount, amount, 2048, 5).first()}
    assert {"linear-1", "linear-1-last", "linear-1-common-last"} <= names
    assert not any(one.name.endswith("-last") for one in first(8)), "it has one layer only"


def pixel_forest(candidates: list[Candidate]) -> Candidate | None:
    return next((one for one in candidates if one.name == "forest-pixels"), None)


def test_small_images_get_a_forest_on_their_pixels() -> None:
    found = pixel_forest(first(8))
    assert found is not None
    assert found.on_images
    assert not found.config.backbone.freeze, "its model holds no pretrained network"
    assert found.config.method_name == "forest"


def test_large_images_do_not() -> None:
    assert pixel_forest(first(64)) is None


def test_without_a_frozen_network_there_is_nothing_to_avoid() -> None:
    assert pixel_forest(first(8, freeze=False)) is None


@pytest.mark.slow
def test_a_model_on_pixels_ranks_images_by_itself(tmp_path: Path) -> None:
    settings = {"method": {"candidates": ["forest"], "folds": 2}}
    found = onesided.fit(data="digits", settings=settings, output=tmp_path / "run")
    names = {row["name"] for row in found.result["leaderboard"]}
    assert {"forest", "forest-pixels"} <= names
    assert found.result["words"].startswith("a forest on the pixels")
    loaded = onesided.PUClassifier.load(tmp_path / "run")
    assert np.isfinite(loaded.predict_proba(np.zeros((2, 1, 8, 8), np.uint8))).all()
