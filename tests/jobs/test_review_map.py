"""A review of a map: buildings before and after, and answers that go back to the map."""

import csv
import json
from pathlib import Path

import pytest

from onesided.core.errors import ConfigError
from onesided.geo.input.vector import read_layer
from onesided.jobs.map import map_buildings
from onesided.jobs.review import ReviewSession
from tests.cli.command import assert_refused, call
from tests.geo.fakes import FakeScene, write_geotiff_scene

SETTINGS = {"backbone": {"width": 0.25}, "train": {"batch_size": 16}}


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> tuple[FakeScene, Path]:
    """A small town, and the map of it."""
    folder = tmp_path_factory.mktemp("town")
    scene = write_geotiff_scene(folder, seed=1, size=512, buildings=64)
    remap(scene, folder / "damage.gpkg")
    return scene, folder


def remap(scene: FakeScene, output: Path, **data: object) -> None:
    map_buildings(
        image=scene.post, pre=scene.pre, footprints=scene.gpkg, positives=scene.positives,
        method="ce", epochs=1, size=16, settings={**SETTINGS, "data": data}, output=output,
    )  # fmt: skip


def test_buildings_are_shown_before_and_after_and_answers_go_back_to_the_map(
    mapped: tuple[FakeScene, Path], tmp_path: Path
) -> None:
    scene, folder = mapped
    session = ReviewSession(folder / "damage-run", reviewer="Anna")
    damaged = {building.name for building in scene.buildings if building.damaged}
    picks = session.next(10, strategy="likely")
    assert session.shown_items.show(picks[0].item).pictures == ("Before", "After")
    before, after = (session.shown_items.picture(picks[0].item, which) for which in (0, 1))
    assert before is not None
    assert after is not None
    assert before.content != after.content
    for pick in picks:
        session.answer(pick.item, "positive" if pick.item in damaged else "negative")
    # As a map, and back from it.
    file = session.export(tmp_path / "checked.geojson")
    layer = read_layer(file)
    given = {each.item: each.answer for each in session.answers()}
    column = dict(zip(layer.columns["id"], layer.columns["answer"], strict=True))
    assert {name: word for name, word in column.items() if word} == given
    assert session.import_file(file) == 0
    # The next map learns from them.
    with pytest.raises(ConfigError, match=r"--set data\.answers=answers\.csv"):
        session.apply()
    answers = session.export(tmp_path / "answers.csv")
    remap(scene, tmp_path / "next.gpkg", answers=str(answers))
    with (tmp_path / "next-run" / "split.csv").open(newline="") as split:
        roles = {row["item"]: row["role"] for row in csv.DictReader(split)}
    assert {roles[item] for item, word in given.items() if word == "positive"} <= {"train-positive"}
    result = json.loads((tmp_path / "next-run" / "result.json").read_text())
    assert any("joined P" in notice for notice in result["notices"])


def test_the_map_page_s_answers_are_imported(
    mapped: tuple[FakeScene, Path], tmp_path: Path
) -> None:
    _, folder = mapped
    session = ReviewSession(folder / "damage-run", reviewer="Ben")
    item = session.next(1, strategy="likely")[0].item
    saved = tmp_path / "review.csv"
    saved.write_text(f"id,answer,reviewer,time\n{item},unsure,Clara,2026-05-31T14:00:00Z\n")
    assert session.import_file(saved) == 1
    assert session.own_answer(item, "Clara") == "unsure"


def test_chips_that_are_missing_are_told_of(mapped: tuple[FakeScene, Path]) -> None:
    scene, folder = mapped
    names = folder / "damage-run" / "chips" / "names.json"
    content = names.read_bytes()
    names.unlink()
    try:
        session = ReviewSession(folder / "damage-run")
        assert "Give the map command" in session.shown_items.show(session.items[0]).missing
        remap(scene, folder / "damage.gpkg")  # it trains nothing, and writes what is missing
        assert names.read_bytes() == content
    finally:
        names.write_bytes(content)


def test_a_map_without_a_map_file_beside_it_asks_for_one(
    mapped: tuple[FakeScene, Path], tmp_path: Path
) -> None:
    _, folder = mapped
    run = folder / "damage-run"
    assert_refused(call("review", run, "--map", folder / "damage.gpkg"), "for --export")
    outcome = call("review", run, "--export", tmp_path / "a.gpkg", "--map", folder / "damage.gpkg")
    assert outcome.exit_code == 0, outcome.err
    assert len(read_layer(tmp_path / "a.gpkg")) == 64
