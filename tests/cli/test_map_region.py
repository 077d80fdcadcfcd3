"""A region in pieces: stopped and resumed, in parts on several machines, merged into one map."""

import base64
import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyogrio  # type: ignore[import-untyped, unused-ignore]
import pytest
import shapely  # type: ignore[import-untyped, unused-ignore]
from PIL import Image

from onesided.geo.input.vector import read_layer
from onesided.geo.output.region_page import shown_buildings
from onesided.geo.output.region_pictures import SIDE
from onesided.geo.output.streamed import Decided
from onesided.geo.scene import pieces
from onesided.jobs import region
from tests.cli.bad_input.refusals import state_of
from tests.cli.command import Outcome, assert_refused, call
from tests.geo.fakes import FakeScene, write_geotiff_scene

SMALL = ("--size", "16", "--set", "backbone.width=0.25", "--set", "train.batch_size=16")
TINY = ("--method", "ce", "--epochs", "2", *SMALL)
COUNT = 100


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> FakeScene:
    folder, metres = tmp_path_factory.mktemp("scene"), "EPSG:32615"
    return write_geotiff_scene(folder, seed=1, size=640, buildings=COUNT, crs_footprints=metres)


def given(scene: FakeScene) -> list[object]:
    return ["--image", scene.post, "--footprints", scene.gpkg, "--positives", scene.positives]


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "IN_A_PIECE", 16)


@pytest.fixture(scope="module")
def trained(scene: FakeScene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a region that was mapped on one machine."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "IN_A_PIECE", 16)
        outcome = call("map", *given(scene), "--region", "-o", folder / "damage.gpkg", *TINY,
                       "--formats", "parquet,fgb,pmtiles", "--cells", "100", "--test", scene.truth,
                       "--allow-degenerate", "--quiet")  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    return folder


def rows(path: Path) -> dict[str, tuple[float, float]]:
    """Return score and rank of every building, -1 where it has none."""
    layer = read_layer(path)
    values = zip(layer.columns["id"], layer.columns["score"], layer.columns["rank"], strict=True)
    return {name: tuple(np.nan_to_num([score, rank], nan=-1)) for name, score, rank in values}


def test_every_building_is_in_every_format_once(scene: FakeScene, trained: Path) -> None:
    names = sorted(building.name for building in scene.buildings)
    for ending in (".gpkg", ".parquet", ".fgb"):
        found = read_layer(trained / f"damage{ending}")
        assert sorted(found.columns["id"]) == names
        assert found.system is not None
        assert found.system.to_epsg() == 32615
        area = sum(shape.area for shape in found.geometries)
        assert area == pytest.approx(sum(s.area for s in read_layer(scene.gpkg).geometries))
    assert pyogrio.read_info(trained / "damage.pmtiles")["fields"].tolist()[:2] == ["mvt_id", "id"]


def test_ranks_are_global_and_follow_scores(trained: Path) -> None:
    layer = read_layer(trained / "damage.gpkg")
    unmarked = ["unlabelled" in role for role in layer.columns["role"]]
    scores, ranks = layer.columns["score"][unmarked], layer.columns["rank"][unmarked]
    assert sorted(ranks) == list(range(1, len(ranks) + 1))
    assert (np.diff(scores[np.argsort(ranks)]) <= 0).all()


def page_data(page: Path) -> dict[str, Any]:
    text = page.read_text(encoding="utf-8")
    found = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    content: dict[str, Any] = json.loads(found[0])
    return content


def test_the_page_shows_every_building_with_the_scores_of_the_files(trained: Path) -> None:
    page = page_data(trained / "map.html")
    shown = zip(page["names"], page["scores"], page["ranks"], strict=True)
    found = {name: (-1 if score is None else score, rank or -1) for name, score, rank in shown}
    expected = rows(trained / "damage.gpkg")
    assert found.keys() == expected.keys()
    for name, (score, rank) in expected.items():
        assert found[name] == (pytest.approx(score), rank)
    assert all(page["rings"]), "every building has a shape"


def test_the_page_of_a_region_has_the_attributes_of_its_buildings(
    scene: FakeScene, trained: Path, tmp_path: Path
) -> None:
    layer, path = read_layer(scene.gpkg), tmp_path / "described.gpkg"
    uses = np.array([f"use {number % 7}" for number in range(COUNT)], object)
    pyogrio.raw.write(
        path,
        geometry=shapely.to_wkb(layer.geometries),
        field_data=[layer.columns["id"], uses],
        fields=["id", "use"],
        geometry_type="Polygon",
        crs="EPSG:32615",
    )
    outcome = call("map", "--image", scene.post, "--footprints", path, "--region", "--quiet",
                   "--model", trained / "damage-run", "-o", tmp_path / "m.gpkg",
                   "--allow-degenerate")  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    page = page_data(tmp_path / "map.html")
    (column,) = page["attributes"]
    assert column["name"] == "use"
    told = [column["texts"][at] for at in column["place"]]
    expected = dict(zip(layer.columns["id"], uses, strict=True))
    assert dict(zip(page["names"], told, strict=True)) == expected


def test_the_page_has_the_image_beside_it_and_pictures_of_buildings_inside(trained: Path) -> None:
    page = page_data(trained / "map.html")
    assert page["bounds"] is not None
    layer = page["files"]["layers"]["after"]
    assert layer["sharp"]
    assert page["files"]["chips"] is None, "a sharp image shows every building"
    for level, tiles in enumerate(layer["tiles"]):
        for tile in tiles:
            assert (trained / page["files"]["folder"] / f"after-{level}-{tile}.js").is_file()
    pictured = [
        name for name, size in zip(page["names"], page["pictures"][1::2], strict=True) if size
    ]
    scored = [name for name, (score, _) in rows(trained / "damage.gpkg").items() if score >= 0]
    assert sorted(pictured) == sorted(scored)


def test_buildings_are_sharp_where_there_is_no_room_for_the_image(
    scene: FakeScene, trained: Path, tmp_path: Path
) -> None:
    parts = ["map", "merge", trained / "damage-run", "-o", tmp_path / "damage.gpkg"]
    ways = ("--allow-degenerate", "--quiet", "--image", scene.post)
    assert call(*parts, *ways, "--page-megabytes", "0.1").exit_code == 0
    page = page_data(tmp_path / "map.html")
    assert not page["files"]["layers"]["after"]["sharp"]
    assert any("coarser than the image" in sentence for sentence in page["warnings"])
    chips, folder = page["files"]["chips"], tmp_path / page["files"]["folder"]
    assert 0 < chips["count"] < COUNT
    order = np.argsort([-1 if score is None else -score for score in page["scores"]])
    assert set(chips["rows"]) <= set(order[: COUNT - 1].tolist())
    (text,) = re.findall(r'"(/9j/[^"]*)"', (folder / "chips-0.js").read_text())[:1]
    with Image.open(io.BytesIO(base64.b64decode(text))) as picture:
        assert picture.size == (SIDE, SIDE)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 0.2e6


def test_a_merge_without_images_makes_a_page_without_pictures(
    trained: Path, tmp_path: Path
) -> None:
    parts = ["map", "merge", trained / "damage-run", "-o", tmp_path / "damage.gpkg"]
    assert call(*parts, "--allow-degenerate", "--quiet").exit_code == 0
    page = page_data(tmp_path / "map.html")
    assert page["files"] is None
    assert not any(page["pictures"])
    assert any("merge again with --image" in sentence for sentence in page["warnings"])


def test_a_page_of_many_buildings_shows_the_marked_and_the_highest() -> None:
    decided = Decided(
        scores=np.array([0.2, 0.9, np.nan, 0.5, 0.1]),
        marked=np.array([False, False, False, False, True]),
        held_out=np.zeros(5, bool),
        ranks=np.zeros(5, np.int64),
        reasons={},
        threshold=0.5,
    )
    assert shown_buildings(decided, 3).tolist() == [False, True, False, True, True]
    assert shown_buildings(decided, 4).tolist() == [True, True, False, True, True]
    assert shown_buildings(decided).all()


def test_cells_count_every_building_and_their_intervals_hold_their_values(trained: Path) -> None:
    with (trained / "cells.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert len(cells) > 1
    assert sum(int(cell["buildings"]) for cell in cells) == COUNT
    for cell in cells:
        if cell["damaged"]:
            low, value, high = (float(cell[f"damaged{end}"]) for end in ("_low", "", "_high"))
            assert low <= value <= high


def scored(scene: FakeScene, trained: Path, output: Path, *words: object) -> Outcome:
    return call("map", "--image", scene.post, "--footprints", scene.gpkg, "--positives",
                scene.positives, "--model", trained / "damage-run", "-o", output,
                "--allow-degenerate", "--quiet", *words)  # fmt: skip


def test_parts_of_several_machines_make_the_same_map_as_one(
    scene: FakeScene, trained: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "whole" / "damage.gpkg"
    assert scored(scene, trained, whole, "--region").exit_code == 0
    runs = []
    for number in (1, 2, 3):
        machine = tmp_path / f"machine{number}"
        outcome = scored(scene, trained, machine / "part.gpkg", "--part", f"{number}/3")
        assert outcome.exit_code == 0, outcome.err
        assert not (machine / "part.gpkg").exists()
        runs.append(machine / "part-run")
    merged = tmp_path / "merged.gpkg"
    refused = call("map", "merge", *runs[:2], "-o", merged)
    assert_refused(refused, "pieces are not scored yet")
    outcome = call("map", "merge", *runs, "-o", merged, "--allow-degenerate", "--quiet")
    assert outcome.exit_code == 0, outcome.err
    assert rows(merged) == rows(whole)


def test_a_stopped_region_does_only_what_is_left(
    scene: FakeScene, trained: Path, tmp_path: Path
) -> None:
    first = tmp_path / "damage.gpkg"
    assert scored(scene, trained, first, "--region").exit_code == 0
    expected = rows(first)
    kept = tmp_path / "damage-run" / "region" / "scores"
    files = sorted(kept.iterdir())
    files[1].unlink()
    times = {path: path.stat().st_mtime_ns for path in sorted(kept.iterdir())}
    first.unlink()
    assert scored(scene, trained, first, "--region").exit_code == 0
    assert rows(first) == expected
    assert {path: path.stat().st_mtime_ns for path in times} == times
    # A kill while footprints are sorted leaves a half-made folder of another name.
    shutil.move(tmp_path / "damage-run/region/pieces", tmp_path / "damage-run/region/pieces.part")
    assert scored(scene, trained, first, "--region").exit_code == 0
    assert rows(first) == expected


def test_the_terminal_tells_how_good_the_map_is_and_what_to_open(
    trained: Path, tmp_path: Path
) -> None:
    output = tmp_path / "damage.gpkg"
    outcome = call("map", "merge", trained / "damage-run", "-o", output, "--allow-degenerate")
    assert outcome.exit_code == 0, outcome.err
    told = outcome.out + outcome.err
    assert "Recall on held-out marked buildings: " in told
    assert "95% interval" in told
    assert f"Open {tmp_path / 'map.html'} in a browser" in told


def test_files_of_a_region_change_together_or_not_at_all(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["map", "merge", trained / "damage-run", "-o", tmp_path / "damage.gpkg", "--quiet"]
    assert call(*words, "--allow-degenerate").exit_code == 0
    before = state_of(tmp_path)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(region, "region_page", interrupted)  # after all layers were written
        assert call(*words, "--formats", "fgb", "--cells", "100").exit_code == 130
    assert state_of(tmp_path) == before
    again = call(*words, "--formats", "fgb", "--cells", "100", "--allow-degenerate")
    assert again.exit_code == 0, again.err
    found = {path.name for path in tmp_path.iterdir()}
    beside = {"damage.gpkg", "damage.fgb", "damage.qml", "summary.csv", "cells.csv", "map.html"}
    assert found == beside


def test_footprints_are_read_in_pieces_from_every_format(
    scene: FakeScene, trained: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "division"
    found = {}
    for number, path in enumerate((scene.gpkg, scene.geojson, trained / "damage.parquet")):
        division = pieces.divide(path, folder / str(number), id_column="id")
        names = [name for piece in division.all() for name in piece.buildings.names]
        assert len(names) == len(set(names)) == division.count == COUNT
        found[path.suffix] = sorted(names)
    assert found[".gpkg"] == found[".geojson"] == found[".parquet"]


def test_a_part_needs_a_model_and_numbers(scene: FakeScene, tmp_path: Path) -> None:
    output = tmp_path / "damage.gpkg"
    assert_refused(
        call("map", *given(scene), "-o", output, "--part", "1/2"), "--part needs --model"
    )
    for part in ("", "0/4", "5/4", "x", "1", "1/", "-1/3"):
        refused = call("map", *given(scene), "-o", output, f"--part={part}", "--model", tmp_path)
        assert_refused(refused, "--part takes a part such as 3/64")


def test_ids_that_occur_twice_are_refused_by_name(tmp_path: Path) -> None:
    box = {"type": "Polygon", "coordinates": [[[0, 0], [0, 1], [1, 1], [0, 0]]]}
    features = [{"type": "Feature", "properties": {"id": name}, "geometry": box} for name in "aba"]
    path = tmp_path / "b.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    with pytest.raises(Exception, match="The id 'a' occurs more than once"):
        pieces.divide(path, tmp_path / "region")
