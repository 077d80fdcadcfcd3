"""A review of a map: buildings before and after, and answers that go back to the map."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import ConfigError
from onesided.geo.input.vector import read_layer
from onesided.jobs.map import map_buildings
from onesided.jobs.review import ReviewSession, next_map
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


def test_the_next_round_of_a_map_is_a_map(
    mapped: tuple[FakeScene, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, folder = mapped
    run = tmp_path / "damage-run"
    shutil.copytree(folder / "damage-run", run, ignore=shutil.ignore_patterns("answers.jsonl"))
    session = ReviewSession(run, reviewer="Anna")
    damaged = {building.name for building in scene.buildings if building.damaged}
    picks = [pick.item for pick in session.next(12, strategy="random")]
    said = {item: "positive" if item in damaged else "negative" for item in picks}
    assert set(said.values()) == {"positive", "negative"}
    for item, word in said.items():
        session.answer(item, word)
    # From any folder; the first map and what lies beside it stay as they are.
    monkeypatch.chdir(tmp_path)
    before = {file: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    done = session.apply(tmp_path / "next" / "damage.gpkg")
    assert {file: file.read_bytes() for file in before} == before
    assert done.folder == tmp_path / "next" / "damage-run"
    assert [file.name for file in done.files][:2] == ["damage.gpkg", "damage.geojson"]
    manifest = json.loads((done.folder / "manifest.json").read_text())
    assert manifest["round"] == 2
    assert (
        manifest["parent"]["identity"]
        == json.loads((run / "manifest.json").read_text())["identity"]
    )
    # Confirmed positives are marked now; confirmed negatives are neither open nor called damaged.
    layer = read_layer(done.files[0])
    columns = {
        name: dict(zip(layer.columns["id"], layer.columns[name], strict=True))
        for name in ("role", "rank", "decision")
    }
    assert {item: columns["role"][item] for item in said} == said
    assert all(np.isnan(columns["rank"][item]) for item in said)
    rejected = [item for item, word in said.items() if word == "negative"]
    assert {columns["decision"][item] for item in rejected} == {"negative"}
    with (tmp_path / "next" / "summary.csv").open(newline="") as file:
        summary = {row["figure"]: row["value"] for row in csv.DictReader(file)}
    assert int(summary["rejected"]) == len(rejected)
    assert int(summary["marked"]) == len(scene.marked) + len(said) - len(rejected)
    # The round after that learns from both, and lies beside.
    second = ReviewSession(done.folder)
    assert second.round == 2
    assert not set(second.items) & set(said)
    with pytest.raises(ConfigError, match="is the map that was reviewed"):
        second.apply(tmp_path / "next" / "damage.gpkg")


def test_rounds_of_a_map_lie_beside_the_first() -> None:
    first = Path("town/damage.gpkg")
    second = next_map(first, 1)
    assert second == Path("town/damage-round2/damage.gpkg")
    assert next_map(second, 2) == Path("town/damage-round3/damage.gpkg")
    # A folder that happens to have the map's name is no round.
    assert next_map(Path("damage/damage.gpkg"), 1) == Path("damage/damage-round2/damage.gpkg")


def test_a_map_of_an_earlier_version_says_how_to_go_on(
    mapped: tuple[FakeScene, Path], tmp_path: Path
) -> None:
    scene, folder = mapped
    run = tmp_path / "old-run"
    shutil.copytree(folder / "damage-run", run)
    (run / "map.json").unlink()
    session = ReviewSession(run, reviewer="Anna")
    session.answer(session.items[0], "positive")
    with pytest.raises(ConfigError, match=r"--set data\.answers=answers\.csv"):
        session.apply()
    # That way works.
    answers = session.export(tmp_path / "answers.csv")
    remap(scene, tmp_path / "next.gpkg", answers=str(answers))
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


def test_the_next_round_of_a_region_is_a_region(tmp_path: Path) -> None:
    scene = write_geotiff_scene(tmp_path, seed=1, size=512, buildings=64)
    map_buildings(
        image=scene.post, footprints=scene.gpkg, positives=scene.positives, region=True,
        method="ce", epochs=1, size=16, settings=SETTINGS, output=tmp_path / "damage.gpkg",
    )  # fmt: skip
    session = ReviewSession(tmp_path / "damage-run", reviewer="Anna")
    high, low = session.items[0], session.items[-1]
    session.answer(high, "negative")
    session.answer(low, "positive")
    done = session.apply()
    assert done.files[0] == (tmp_path / "damage-round2" / "damage.gpkg").absolute()
    assert (done.folder / "region").is_dir()
    layer = read_layer(done.files[0])
    roles = dict(zip(layer.columns["id"], layer.columns["role"], strict=True))
    decisions = dict(zip(layer.columns["id"], layer.columns["decision"], strict=True))
    assert (roles[high], roles[low], decisions[high]) == ("negative", "positive", "negative")
