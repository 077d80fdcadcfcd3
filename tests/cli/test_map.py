"""Whole maps from marked buildings; and bad input, refused in one sentence each."""

import csv
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import shapely  # type: ignore[import-untyped, unused-ignore]
from safetensors.torch import save_file

from onesided.core.config import read_toml
from onesided.geo.input.vector import Layer, read_layer
from onesided.metrics.pu import proxy_auc
from onesided.nets.build import BackboneConfig, build_backbone
from onesided.storage.features import KEY_BYTES
from onesided.storage.lock import alone
from tests.cli.command import Outcome, assert_refused, call, contents
from tests.cli.pictures import BLUE, RED, draw
from tests.geo.fakes import FakeScene, write_geotiff_scene, write_xbd_event
from tests.geo.rasters import noise, write_tiff

SMALL = ("--size", "16", "--set", "backbone.width=0.25", "--set", "train.batch_size=16")
TINY = ("--method", "ce", "--epochs", "1", "--allow-degenerate", *SMALL)
COUNT = 144
LONG = ("--method", "teacher", "--epochs", "24", *SMALL)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> FakeScene:
    """Buildings after a disaster, twenty of them marked; no test changes its files."""
    folder = tmp_path_factory.mktemp("scene")
    return write_geotiff_scene(folder, seed=1, size=768, buildings=COUNT)


def given(scene: FakeScene, **changed: object) -> list[object]:
    """Return the flags that name the scene's files, some of them others."""
    flags = {"image": scene.post, "footprints": scene.gpkg, "positives": scene.positives, **changed}
    return [word for flag, value in flags.items() if value for word in (f"--{flag}", value)]


@pytest.fixture(scope="module")
def mapped(scene: FakeScene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished map by Teacher, which no test changes."""
    folder = tmp_path_factory.mktemp("mapped")
    outcome = call("map", *given(scene), "--test", scene.truth, "-o", folder / "damage.gpkg",
                   *LONG, "--allow-degenerate", "--quiet")  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    return folder


def truth_of(scene: FakeScene) -> dict[str, bool]:
    return {building.name: building.damaged for building in scene.buildings}


def auc_of(layer: Layer, scene: FakeScene) -> float:
    """Return how often a damaged unmarked building outscores an intact one."""
    truth = truth_of(scene)
    rows = [row for row, name in enumerate(layer.columns["id"]) if name not in scene.marked]
    damaged = np.array([truth[layer.columns["id"][row]] for row in rows])
    scores = layer.columns["score"][rows]
    return proxy_auc(scores[damaged], scores[~damaged])


def test_twenty_marked_buildings_find_the_others(scene: FakeScene, mapped: Path) -> None:
    assert len(scene.marked) == 20
    assert auc_of(read_layer(mapped / "damage.gpkg"), scene) > 0.95


def test_every_footprint_is_in_every_form_of_the_map_once(scene: FakeScene, mapped: Path) -> None:
    names = [building.name for building in scene.buildings]
    for file in ("damage.gpkg", "damage.geojson"):
        assert read_layer(mapped / file).columns["id"].tolist() == names
    page = (mapped / "map.html").read_text(encoding="utf-8")
    assert all(page.count(f'"{name}"') == 1 for name in names)


def test_roles_show_marked_buildings_and_ranks_the_order_to_check(
    scene: FakeScene, mapped: Path
) -> None:
    layer = read_layer(mapped / "damage.gpkg")
    columns = layer.columns
    marked = [name in scene.marked for name in columns["id"]]
    assert [role.endswith("positive") for role in columns["role"]] == marked
    assert sum(role.startswith("held-out") for role in columns["role"]) >= 8
    ranks = columns["rank"][~np.array(marked)]
    assert sorted(ranks) == list(range(1, COUNT - 19))
    assert np.isnan(columns["rank"][marked]).all()


def test_all_files_are_there_and_the_summary_knows_the_truth(mapped: Path) -> None:
    names = {path.name for path in mapped.iterdir()}
    assert names == {
        *("damage.gpkg", "damage.geojson", "damage.qml", "summary.csv", "map.html"),
        *("map-files", "damage-run"),
    }
    with (mapped / "summary.csv").open(newline="") as file:
        values = {(row["figure"], row["part"]): row["value"] for row in csv.DictReader(file)}
    assert values["buildings", ""] == str(COUNT)
    assert float(values["auc", "true labels, held-out places"]) > 0.95
    assert (mapped / "damage-run" / "report.html").exists()


def test_the_geopackage_keeps_the_coordinates_given(scene: FakeScene, mapped: Path) -> None:
    came, went = read_layer(scene.gpkg), read_layer(mapped / "damage.gpkg")
    assert went.system == came.system
    assert shapely.equals(went.geometries, came.geometries).all()


def test_the_same_command_finds_everything_done(scene: FakeScene, mapped: Path) -> None:
    before = contents(mapped / "damage-run")
    report = before.pop("report.html")
    outcome = call("map", *given(scene), "--test", scene.truth, "-o", mapped / "damage.gpkg",
                   *LONG, "--allow-degenerate", "--json")  # fmt: skip
    assert outcome.exit_code == 0
    printed = json.loads(outcome.out)
    assert (printed["buildings"], printed["scored"], printed["skipped"]) == (COUNT, COUNT, 0)
    after = contents(mapped / "damage-run")
    assert len(after.pop("report.html")) == pytest.approx(len(report), rel=0.1)
    assert after == before


def test_a_model_scores_another_place_with_the_numbers_it_was_trained_with(
    mapped: Path, tmp_path: Path
) -> None:
    other = write_geotiff_scene(tmp_path / "scene", seed=9, size=384, buildings=36, marked=5)
    outcome = call("map", *given(other), "--model", mapped / "damage-run",
                   "-o", tmp_path / "other.geojson", "--allow-degenerate")  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    assert "trained elsewhere" in outcome.err
    assert auc_of(read_layer(tmp_path / "other.geojson"), other) > 0.9
    assert not (tmp_path / "other-run" / "config.toml").exists()


def test_a_model_needs_no_marked_building(scene: FakeScene, mapped: Path, tmp_path: Path) -> None:
    outcome = call("map", *given(scene, positives=None), "--model", mapped / "damage-run",
                   "-o", tmp_path / "again.geojson", "--quiet")  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    again = read_layer(tmp_path / "again.geojson").columns["score"]
    first = read_layer(mapped / "damage.geojson").columns["score"]
    np.testing.assert_allclose(again, first, rtol=1e-4, atol=1e-6)


def test_a_frozen_backbone_needs_its_weights_file_only_once(
    scene: FakeScene, tmp_path: Path
) -> None:
    weights = tmp_path / "mine.safetensors"
    drawn = build_backbone(BackboneConfig(width=0.25), (3, 16, 16), [0.5] * 3, [0.5] * 3)
    save_file(drawn.state_dict(), weights)
    made = tmp_path / "made.gpkg"
    words = ("--method", "teacher", "--epochs", "1", "--allow-degenerate", *SMALL)
    frozen = ("--weights", weights, "--freeze")
    outcome = call("map", *given(scene), "-o", made, *words, *frozen, "--quiet")
    assert outcome.exit_code == 0, outcome.err
    chunks = list((tmp_path / "made-run" / "cache" / "features").glob("*/*.chunk"))
    assert sum(path.stat().st_size for path in chunks) == COUNT * (KEY_BYTES + 4 * drawn.width)
    settings = read_toml(tmp_path / "made-run" / "config.toml")
    assert settings["method"]["variant"] == "features"
    weights.unlink()
    again, model = tmp_path / "again.gpkg", ("--model", tmp_path / "made-run", "--quiet")
    outcome = call("map", *given(scene), "-o", again, *model, "--allow-degenerate")
    assert outcome.exit_code == 0, outcome.err
    first, second = (read_layer(path).columns["score"] for path in (made, again))
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_stretch_goes_with_the_model(tmp_path: Path) -> None:
    deep = write_geotiff_scene(tmp_path / "deep", seed=2, size=384, buildings=64, dtype="uint16",
                               bands=4)  # fmt: skip
    outcome = call("map", *given(deep, pre=deep.pre), "-o", tmp_path / "deep.gpkg", *TINY)
    assert outcome.exit_code == 0, outcome.err
    cutting = json.loads((tmp_path / "deep-run" / "cutting.json").read_text())
    assert [len(image["low"]) for image in cutting["images"]] == [4, 4]
    # Half as bright: with its own stretch it would look the same, with the model's it does not.
    outcome = call("map", *given(deep, pre=deep.pre), "-o", tmp_path / "same.geojson",
                   "--model", tmp_path / "deep-run", "--allow-degenerate")  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    pixels = (tmp_path / "deep-run" / "chips" / "pixels.u8").read_bytes()
    assert (tmp_path / "same-run" / "chips" / "pixels.u8").read_bytes() == pixels
    dark = write_tiff(tmp_path / "dark.tif", _half(deep.post), transform=deep.transform)
    call("map", *given(deep, pre=deep.pre, image=dark), "-o", tmp_path / "dark.geojson",
         "--model", tmp_path / "deep-run", "--allow-degenerate")  # fmt: skip
    darker = np.fromfile(tmp_path / "dark-run" / "chips" / "pixels.u8", np.uint8)
    before, after = darker.reshape(64, 2, -1).mean(axis=(0, 2))
    assert after < 0.7 * before


def _half(path: Path) -> np.ndarray:
    import rasterio  # type: ignore[import-untyped, unused-ignore]

    with rasterio.open(path) as file:
        return np.asarray(file.read() // 2)


def test_buildings_outside_are_listed_with_the_reason(scene: FakeScene, tmp_path: Path) -> None:
    content = json.loads(scene.geojson.read_text())
    for feature in content["features"][:3]:
        ring = feature["geometry"]["coordinates"][0]
        feature["geometry"]["coordinates"] = [[[x + 1, y] for x, y in ring]]
    (tmp_path / "moved.geojson").write_text(json.dumps(content))
    outcome = call("map", *given(scene, footprints=tmp_path / "moved.geojson"), *TINY,
                   "-o", tmp_path / "damage.geojson")  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    layer = read_layer(tmp_path / "damage.geojson")
    assert len(layer) == COUNT
    assert layer.columns["reason"][:4].tolist() == ["lies outside post.tif"] * 3 + [None]
    assert np.isnan(layer.columns["score"][:4]).tolist() == [True] * 3 + [False]
    assert "Skipped b00000: lies outside post.tif." in outcome.err


def test_an_xbd_event_becomes_geojson_without_gdal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = write_xbd_event(tmp_path, seed=1, tiles=2, buildings_per_tile=36, size=256)
    for module in [name for name in sys.modules if name.split(".")[0] in ("rasterio", "pyogrio")]:
        monkeypatch.setitem(sys.modules, module, None)
    outcome = call("map", "--image", event.images[0].parent, "--footprints", event.labels[0].parent,
                   "--positives-column", "subtype=destroyed", *TINY,
                   "-o", tmp_path / "damage.geojson")  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    layer = read_layer(tmp_path / "damage.geojson")
    assert layer.columns["id"].tolist() == [building.name for building in event.buildings]
    for shape, building in zip(layer.geometries, event.buildings, strict=True):
        # A pixel of this event is 5e-6 degrees.
        assert shape.centroid.x == pytest.approx(building.lon, abs=2.5e-6)
        assert shape.centroid.y == pytest.approx(building.lat, abs=2.5e-6)
    destroyed = [building.subtype == "destroyed" for building in event.buildings]
    assert [role.endswith("positive") for role in layer.columns["role"]] == destroyed


@pytest.fixture(scope="module")
def crops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of crops named LON_LAT, four in ten of them red; and ten further red ones."""
    folder = tmp_path_factory.mktemp("crops")
    for number in range(60):
        colour = RED if number % 5 < 2 else BLUE
        draw(folder / "all" / f"{-95 + number / 100:.6f}_29.5.png", number, colour)
    for number in range(20):
        draw(folder / "marked" / f"{-94 + number / 100:.6f}_29.5.png", 100 + number)
    return folder


def test_points_give_the_same_map(crops: Path, tmp_path: Path) -> None:
    outcome = call("map", "--points", crops / "all", "--positives", crops / "marked",
                   "--method", "teacher", "--epochs", 6, *SMALL,
                   "--set", "train.learning_rate=0.02", "--allow-degenerate",
                   "-o", tmp_path / "damage.geojson")  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    layer = read_layer(tmp_path / "damage.geojson")
    assert len(layer) == 80
    places = [f"{shape.x:.6f}_{shape.y:g}.png" for shape in layer.geometries]
    assert places == layer.columns["id"].tolist()
    red = np.array([round((shape.x + 95) * 100) % 5 < 2 for shape in layer.geometries[:60]])
    scores = layer.columns["score"][:60]
    assert proxy_auc(scores[red], scores[~red]) > 0.95
    assert (tmp_path / "map.html").exists()


def test_points_can_be_marked_by_their_names(crops: Path, tmp_path: Path) -> None:
    names = sorted(path.name for path in (crops / "all").iterdir())[:12]
    # As a spreadsheet shows a name that starts with a minus, or as it is.
    (tmp_path / "ids.csv").write_text("id\n" + "\n".join([f"'{names[0]}", *names[1:]]) + "\n")
    outcome = call("map", "--points", crops / "all", "--positives", tmp_path / "ids.csv", *TINY,
                   "-o", tmp_path / "damage.geojson")  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    columns = read_layer(tmp_path / "damage.geojson").columns
    marked = {
        name
        for name, role in zip(columns["id"], columns["role"], strict=True)
        if role.endswith("positive")
    }
    assert marked == set(names)


def refused(tmp_path: Path, *words: object) -> Outcome:
    """Run a map that must write nothing."""
    before = {path.name for path in tmp_path.iterdir()}
    outcome = call("map", *words, "-o", tmp_path / "damage.geojson", *TINY)
    assert {path.name for path in tmp_path.iterdir()} - before <= {"damage-run"}
    return outcome


def test_footprints_without_a_system_are_refused(scene: FakeScene, tmp_path: Path) -> None:
    for name in ("shp", "shx", "dbf"):
        shutil.copy(_shapefile(scene, tmp_path / "with").with_suffix(f".{name}"), tmp_path)
    outcome = refused(tmp_path, *given(scene, footprints=tmp_path / "buildings.shp"))
    assert_refused(outcome, "buildings.shp", "--footprints-crs EPSG:4326")


def _shapefile(scene: FakeScene, folder: Path) -> Path:
    from pyogrio.raw import read, write  # type: ignore[import-untyped, unused-ignore]

    folder.mkdir(exist_ok=True)
    meta, _, shapes, fields = read(scene.gpkg)
    path = folder / "buildings.shp"
    write(path, geometry=shapes, field_data=fields, fields=meta["fields"],
          geometry_type="Polygon", crs=meta["crs"])  # fmt: skip
    return path


def test_an_image_of_another_place_is_refused(scene: FakeScene, tmp_path: Path) -> None:
    image = write_tiff(tmp_path / "far.tif", noise(0))
    outcome = refused(tmp_path, *given(scene, image=image))
    assert_refused(outcome, "None of the 144 buildings lies in", "far.tif", "longitude -93.0")


def test_ids_that_match_nothing_are_refused(scene: FakeScene, tmp_path: Path) -> None:
    (tmp_path / "ids.csv").write_text("id\nx1\nx2\n")
    outcome = refused(tmp_path, *given(scene, positives=tmp_path / "ids.csv"))
    assert_refused(outcome, "None of the 2 ids", "'x1'", "'b00000'")


def test_all_buildings_marked_is_refused(scene: FakeScene, tmp_path: Path) -> None:
    names = [building.name for building in scene.buildings]
    (tmp_path / "ids.csv").write_text("id\n" + "\n".join(names) + "\n")
    outcome = refused(tmp_path, *given(scene, positives=tmp_path / "ids.csv"))
    assert_refused(outcome, "All 144 buildings are marked")


def test_too_few_marked_are_refused(scene: FakeScene, tmp_path: Path) -> None:
    (tmp_path / "ids.csv").write_text("id\nb00000\n")
    outcome = refused(tmp_path, *given(scene, positives=tmp_path / "ids.csv"))
    assert_refused(outcome, "1 marked buildings", "at least 10")


@pytest.mark.parametrize("with_pre", [True, False])
def test_a_model_for_other_bands_is_refused(
    scene: FakeScene, mapped: Path, tmp_path: Path, with_pre: bool
) -> None:
    image = scene.post if with_pre else write_tiff(
        tmp_path / "grey.tif", noise(0, bands=1, height=768, width=768), transform=scene.transform
    )  # fmt: skip
    flags = given(scene, image=image, pre=scene.pre if with_pre else None)
    outcome = call("map", *flags, "--model", mapped / "damage-run", "-o", tmp_path / "x.geojson")
    assert_refused(outcome, "takes images of 3 bands", "these have " + ("6" if with_pre else "1"))


def test_a_truncated_image_is_refused(scene: FakeScene, tmp_path: Path) -> None:
    whole = scene.post.read_bytes()
    (tmp_path / "post.tif").write_bytes(whole[: len(whole) // 2])
    outcome = refused(tmp_path, *given(scene, image=tmp_path / "post.tif"))
    assert_refused(outcome, "post.tif is damaged or cut short")


def test_an_unknown_layer_is_refused(scene: FakeScene, tmp_path: Path) -> None:
    outcome = refused(tmp_path, *given(scene, layer="houses"))
    assert_refused(outcome, "no layer 'houses'", "buildings")


def test_duplicate_ids_are_refused(scene: FakeScene, tmp_path: Path) -> None:
    content = json.loads(scene.geojson.read_text())
    content["features"][1]["properties"]["id"] = "b00000"
    (tmp_path / "twice.geojson").write_text(json.dumps(content))
    outcome = refused(tmp_path, *given(scene, footprints=tmp_path / "twice.geojson"))
    assert_refused(outcome, "'b00000' occurs 2 times", "--id-column")


def test_an_empty_layer_is_refused(scene: FakeScene, tmp_path: Path) -> None:
    (tmp_path / "none.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    outcome = refused(tmp_path, *given(scene, footprints=tmp_path / "none.geojson"))
    assert_refused(outcome, "none.geojson holds no feature")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--image", "a.tif"), "--footprints"),
        (("--points", "x", "--image", "a.tif", "--positives", "y"), "does not go with --points"),
        (("--points", "x"), "--positives"),
        (("--points", "missing", "--positives", "y"), "missing"),
        (("--image", "no.tif", "--footprints", "no.gpkg", "--positives", "y"), "no.tif"),
    ],
)
def test_flags_that_say_too_little_or_too_much_are_refused(
    tmp_path: Path, words: tuple[str, ...], expected: str
) -> None:
    assert_refused(refused(tmp_path, *words), expected)


def test_an_output_of_another_kind_is_refused(scene: FakeScene, tmp_path: Path) -> None:
    outcome = call("map", *given(scene), "-o", tmp_path / "damage.shp")
    assert_refused(outcome, ".gpkg or .geojson", "damage.shp")
    (tmp_path / "file").touch()
    outcome = call("map", *given(scene), "-o", tmp_path / "file" / "new" / "damage.gpkg")
    assert_refused(outcome, "file is a file", "Choose another place with -o")


def test_the_folder_of_the_output_is_made_once_the_input_can_be_used(
    scene: FakeScene, mapped: Path, tmp_path: Path
) -> None:
    (tmp_path / "ids.csv").write_text("id\nb00000\n")
    output = tmp_path / "some" / "new" / "damage.geojson"
    for words in (
        given(scene, positives=tmp_path / "ids.csv"),
        given(scene, positives=tmp_path / "missing.csv"),
        given(scene, image=tmp_path / "missing.tif"),
    ):
        assert_refused(call("map", *words, "-o", output, *TINY))
        assert not (tmp_path / "some").exists()
    outcome = call("map", *given(scene, positives=None), "--model", mapped / "damage-run",
                   "--run", tmp_path / "run", "-o", output, "--quiet")  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    assert {path.suffix for path in output.parent.iterdir()} == {
        *(".geojson", ".qml", ".csv", ".html", "")  # the last is the folder of the page's images
    }


def test_missing_weights_are_refused_before_anything_is_cut(
    scene: FakeScene, tmp_path: Path
) -> None:
    words = ("-o", tmp_path / "x.gpkg", *TINY, "--weights", tmp_path / "lost.safetensors")
    assert_refused(call("map", *given(scene), *words), "There is no file of weights")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [("--epochs", 3), ("--preset", "standard"), ("--freeze",)])
def test_a_setting_beside_a_model_is_refused(
    words: tuple[object, ...], scene: FakeScene, mapped: Path, tmp_path: Path
) -> None:
    outcome = call("map", *given(scene), "--model", mapped / "damage-run", *words,
                   "-o", tmp_path / "x.geojson")  # fmt: skip
    assert_refused(outcome, "--model takes a finished model as it is")


def test_other_marks_do_not_overwrite_a_run_unasked(
    scene: FakeScene, mapped: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(mapped, tmp_path / "mapped"))
    (tmp_path / "ids.csv").write_text("id\n" + "\n".join(scene.marked[:15]) + "\n")
    flags = (*given(scene, positives=tmp_path / "ids.csv"), "-o", folder / "damage.gpkg", *TINY)
    before = contents(folder / "damage-run")
    assert_refused(call("map", *flags), "holds another run", "--overwrite")
    assert contents(folder / "damage-run") == before
    assert call("map", *flags, "--overwrite").exit_code == 0


@pytest.mark.parametrize("by_model", [False, True])
def test_chips_of_a_map_at_work_are_not_cut_again_by_another(
    scene: FakeScene, mapped: Path, tmp_path: Path, by_model: bool
) -> None:
    folder = Path(shutil.copytree(mapped, tmp_path / "mapped"))
    before = contents(folder)
    marks = {"positives": None} if by_model else {}
    how = ("--model", mapped / "damage-run") if by_model else (*TINY, "--margin", 1, "--overwrite")
    with alone(folder / "damage-run"):
        outcome = call("map", *given(scene, **marks), "-o", folder / "damage.gpkg", *how)
    assert_refused(outcome, "Another command is at work in", folder / "damage-run")
    assert contents(folder) == before


@pytest.mark.parametrize("ending", [".gpkg", ".geojson"])
def test_a_map_is_never_written_over_what_was_given(
    scene: FakeScene, tmp_path: Path, ending: str
) -> None:
    theirs = shutil.copy(
        scene.geojson if ending == ".geojson" else scene.gpkg, tmp_path / f"e{ending}"
    )
    before = Path(theirs).read_bytes()
    outcome = call("map", *given(scene, footprints=theirs), "-o", tmp_path / "e.gpkg")
    assert_refused(outcome, f"e{ending}, which was given with --footprints")
    assert Path(theirs).read_bytes() == before


def cut_margin(folder: Path) -> tuple[float, float, bytes]:
    """Return the margin in two files, and the chips, which show the one that was used."""
    written = json.loads((folder / "cutting.json").read_text())["margin"]
    set_to = read_toml(folder / "config.toml")["data"]["margin"]
    return written, set_to, (folder / "chips" / "pixels.u8").read_bytes()


def test_a_margin_is_the_same_by_flag_and_by_setting(scene: FakeScene, tmp_path: Path) -> None:
    ways = {"flag": ("--margin", "2"), "setting": ("--set", "data.margin=2")}
    for name, words in ways.items():
        outcome = call("map", *given(scene), "-o", tmp_path / f"{name}.geojson", *TINY, *words)
        assert outcome.exit_code == 0, outcome.err
    flag, setting = (cut_margin(tmp_path / f"{name}-run") for name in ways)
    assert flag == setting
    assert flag[:2] == (2.0, 2.0)


def test_a_prior_for_a_finished_model_is_the_same_by_flag_and_by_setting(
    scene: FakeScene, mapped: Path, tmp_path: Path
) -> None:
    ways = {"flag": ("--prior", "0.3"), "setting": ("--set", "prior=0.3")}
    for name, words in ways.items():
        outcome = call("map", *given(scene), "--model", mapped / "damage-run", *words,
                       "-o", tmp_path / name / "map.geojson", "--allow-degenerate")  # fmt: skip
        assert outcome.exit_code == 0, outcome.err
    flag, setting = ((tmp_path / name / "summary.csv").read_text() for name in ways)
    assert flag == setting
    assert "0.3" in flag
