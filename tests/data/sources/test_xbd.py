import csv
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score

from onesided.core.errors import DataError, DataNotFound, MissingLibrary
from onesided.core.labels import POSITIVE
from onesided.data.problem.dataset import PUSplit
from onesided.data.problem.samples import Source
from onesided.data.problem.split import SplitRecipe, split_source
from onesided.data.read.picture import decode
from onesided.data.read.polygons import cut
from onesided.data.sources import SOURCES
from onesided.data.sources.download import PreparedFiles
from onesided.data.sources.xbd.labels import CLASS_NAMES, find_tiles
from onesided.data.sources.xbd.load import inspect_xbd, load_xbd
from onesided.data.sources.xbd.prepare import COLUMNS, prepare_xbd
from tests.geo.fakes import FakeEvent, add_feature, write_xbd_event

SIDE = 160


def silent(done: int, total: int) -> None:
    """Hear of the progress, and say nothing."""


def event_in(root: Path, *, tiles: int = 2, un_classified: int = 0) -> FakeEvent:
    return write_xbd_event(
        root, seed=0, tiles=tiles, buildings_per_tile=9, size=SIDE, un_classified=un_classified
    )


def prepared(root: Path) -> PreparedFiles:
    return prepare_xbd(root, silent)


def table_of(root: Path) -> list[dict[str, str]]:
    with (root / "xbd-crops" / "buildings.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("layout", ["split", "event"])
def test_every_building_is_cut_out_once_with_its_facts(layout: str, tmp_path: Path) -> None:
    event = write_xbd_event(
        tmp_path,
        seed=1,
        tiles=3,
        buildings_per_tile=9,
        size=SIDE,
        layout="split" if layout == "split" else "event",
    )
    result = prepared(tmp_path)
    lines = table_of(tmp_path)
    assert tuple(lines[0]) == COLUMNS
    assert result.counts["crops"] == len(lines) == len(event.buildings) == 27
    for line, building in zip(lines, event.buildings, strict=True):
        assert (line["uid"], line["tile"], line["subtype"]) == (
            building.name,
            building.tile,
            building.subtype,
        )
        assert line["event"] == "volcano-miniature"
        assert float(line["lon"]) == pytest.approx(building.lon, abs=1e-7)
        assert float(line["lat"]) == pytest.approx(building.lat, abs=1e-7)


def test_a_crop_shows_the_building_with_half_its_size_around_it(tmp_path: Path) -> None:
    event = event_in(tmp_path, tiles=1)
    prepared(tmp_path)
    crops = load_xbd(tmp_path).train.values
    image = np.asarray(Image.open(event.images[0])).transpose(2, 0, 1)
    for crop, building in zip(crops, event.buildings, strict=True):
        corners = np.array(building.outline.corners)
        (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
        half = max(right - left, bottom - top) / 2
        window = (left - half, top - half, right + half, bottom + half)
        np.testing.assert_array_equal(crop, cut(image, window, 64))


def test_the_drawn_damage_is_visible_in_the_crops(tmp_path: Path) -> None:
    write_xbd_event(tmp_path, seed=3, tiles=2, buildings_per_tile=36, size=512)
    prepared(tmp_path)
    train = load_xbd(tmp_path).train
    # Rubble is dark, roofs are bright; the middle of a crop is the building.
    brightness = train.values[:, :, 24:40, 24:40].mean(axis=(1, 2, 3))
    damaged = np.isin(train.classes, SOURCES["xbd"].positive_classes)
    assert roc_auc_score(damaged, -brightness) > 0.95


def test_unclassified_buildings_are_dropped_and_counted(tmp_path: Path) -> None:
    event = event_in(tmp_path, un_classified=2)
    result = prepared(tmp_path)
    assert result.left_out["un-classified"] == event.un_classified == 4
    assert result.counts["crops"] == 14
    drawn = Counter(building.subtype for building in event.buildings)
    assert {name: result.counts.get(name, 0) for name in CLASS_NAMES} == {
        name: drawn[name] for name in CLASS_NAMES
    }


INSIDE = "POLYGON ((40 40, 80 40, 80 80, 40 80, 40 40))"


@pytest.mark.parametrize(
    ("wkt", "subtype", "counted"),
    [
        ("POLYGON EMPTY", "destroyed", "with an outline that bounds no area"),
        ("POLYGON ((1 1, 2 2, 3 3, 1 1))", "destroyed", "with an outline that bounds no area"),
        ("POLYGON ((nan 1, 2 2, 3 3, nan 1))", "destroyed", "with an outline that bounds no area"),
        ("gibberish", "destroyed", "with an outline that bounds no area"),
        (None, "destroyed", "with an outline that bounds no area"),
        ("POLYGON ((900 900, 940 900, 940 940, 900 900))", "destroyed", "outside their image"),
        ("POLYGON ((0 0, 9999 0, 9999 9999, 0 0))", "destroyed", "too large to be buildings"),
        (INSIDE, "blown-away", "without a uid or a known subtype"),
        (INSIDE, None, "without a uid or a known subtype"),
    ],
)
def test_what_cannot_be_cut_is_left_out_and_counted(
    wkt: str | None, subtype: str | None, counted: str, tmp_path: Path
) -> None:
    add_feature(event_in(tmp_path, tiles=1).labels[0], wkt, subtype)
    result = prepared(tmp_path)
    assert result.left_out == {counted: 1}
    assert result.counts["crops"] == 9


@pytest.mark.parametrize(
    ("wkt", "counted"),
    [
        ("POLYGON ((50 50, 90 90, 90 50, 50 90, 50 50))", "with a repaired outline"),
        (
            "MULTIPOLYGON (((50 50, 60 50, 60 60, 50 50)), ((70 70, 80 70, 80 80, 70 70)))",
            "with an outline of several parts",
        ),
        ("POLYGON ((0 50, 40 50, 40 90, 0 90, 0 50))", "partly black, at the border"),
    ],
)
def test_what_needs_care_is_cut_and_counted(wkt: str, counted: str, tmp_path: Path) -> None:
    label = event_in(tmp_path, tiles=1).labels[0]
    before = prepared(tmp_path).counts.get(counted, 0)
    add_feature(label, wkt, "destroyed")
    result = prepared(tmp_path)
    assert result.counts["crops"] == 10
    assert result.counts[counted] == before + 1


def test_things_that_are_no_buildings_and_repeated_uids_are_left_out(tmp_path: Path) -> None:
    label = event_in(tmp_path, tiles=1).labels[0]
    add_feature(label, INSIDE, "destroyed", feature_type="lava")
    add_feature(label, INSIDE, "destroyed", uid="same")
    add_feature(label, INSIDE, "no-damage", uid="same")
    result = prepared(tmp_path)
    assert result.left_out == {"not buildings": 1, "listed twice in their tile": 1}
    assert result.counts["crops"] == 10


def test_a_building_without_coordinates_keeps_its_crop(tmp_path: Path) -> None:
    uid = add_feature(event_in(tmp_path, tiles=1).labels[0], INSIDE, "destroyed")
    prepared(tmp_path)
    (line,) = (line for line in table_of(tmp_path) if line["uid"] == uid)
    assert (line["lon"], line["lat"]) == ("", "")


def test_neither_gdal_nor_a_library_of_maps_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for absent in ("rasterio", "pyogrio", "pyproj", "tifffile"):
        monkeypatch.setitem(sys.modules, absent, None)
    event_in(tmp_path)
    assert prepared(tmp_path).counts["crops"] == len(load_xbd(tmp_path).train) == 18


def test_without_shapely_the_error_comes_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    event_in(tmp_path)
    monkeypatch.setitem(sys.modules, "shapely", None)
    with pytest.raises(MissingLibrary, match=r"pip install 'onesided\[geo\]'"):
        prepared(tmp_path)
    assert not (tmp_path / "xbd-crops").exists()


def test_a_tile_in_two_folders_counts_once(tmp_path: Path) -> None:
    event_in(tmp_path)
    write_xbd_event(tmp_path, seed=0, tiles=2, buildings_per_tile=9, size=SIDE, layout="event")
    assert len(find_tiles(tmp_path)) == 2
    assert prepared(tmp_path).counts["crops"] == 18


def test_the_labels_from_before_the_disaster_are_not_read(tmp_path: Path) -> None:
    event_in(tmp_path)
    assert {tile.label.name for tile in find_tiles(tmp_path)} == {
        f"volcano-miniature_0000000{number}_post_disaster.json" for number in (0, 1)
    }


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda event: event.images[0].write_bytes(event.images[0].read_bytes()[:900]),
            "is damaged",
        ),
        (lambda event: event.images[0].unlink(), "does not exist"),
        (lambda event: event.labels[0].write_text("{"), "is not JSON"),
        (lambda event: event.labels[0].write_text("[]"), "is no label file of xBD"),
        (lambda event: event.labels[0].write_text('{"features": {}}'), "is no label file"),
    ],
)
def test_a_few_unreadable_tiles_are_reported_and_many_are_refused(
    damage: Callable[[FakeEvent], object], message: str, tmp_path: Path
) -> None:
    few, many = tmp_path / "few", tmp_path / "many"
    damage(write_xbd_event(few, seed=0, tiles=20, buildings_per_tile=1, size=32))
    result = prepared(few)
    assert result.counts["crops"] == 19
    ((file, reason),) = result.skipped
    assert file.startswith("volcano-miniature_00000000")
    assert message in reason
    damage(event_in(many))
    with pytest.raises(DataError, match=r"1 of 2 tiles in .* cannot be read\. The first: volcano"):
        prepared(many)
    with pytest.raises(DataNotFound):
        load_xbd(many)


class Killed(Exception):
    """What interrupts a preparation in these tests."""


def prepare_until(root: Path, tiles: int) -> None:
    """Prepare, and break off after so many tiles."""

    def stop(done: int, total: int) -> None:
        if done == tiles:
            raise Killed

    with pytest.raises(Killed):
        prepare_xbd(root, stop)


def contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((root / "xbd-crops").iterdir())}


@pytest.mark.parametrize("scar", ["none", "bytes beyond", "half a line", "lost bytes"])
def test_after_an_interruption_the_same_files_come_out(scar: str, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for root in (whole, broken):
        event_in(root, tiles=4, un_classified=1)
    prepared(whole)
    prepare_until(broken, 2)
    folder = broken / "xbd-crops"
    assert not (folder / "crops.npy").exists()
    if scar == "bytes beyond":
        with (folder / "crops.npy.part").open("ab") as file:
            file.write(b"x" * 5000)
        with (folder / "buildings.csv.part").open("ab") as file:
            file.write(b"half,a,li")
    elif scar == "half a line":
        with (folder / "journal.jsonl").open("ab") as file:
            file.write(b'{"tile": "vol')
    elif scar == "lost bytes":
        (folder / "crops.npy.part").write_bytes(b"")
    reported: list[int] = []
    prepare_xbd(broken, lambda done, total: reported.append(done))
    assert reported == ([1, 2, 3, 4] if scar == "lost bytes" else [3, 4])
    assert contents(broken) == contents(whole)
    assert set(contents(whole)) == {"crops.npy", "buildings.csv", "summary.json"}


def test_finished_work_is_not_done_again_but_new_tiles_are_cut(tmp_path: Path) -> None:
    event_in(tmp_path)
    reported: list[int] = []
    first = prepared(tmp_path)
    second = prepare_xbd(tmp_path, lambda done, total: reported.append(done))
    assert (reported, second) == ([], first)
    write_xbd_event(tmp_path, seed=5, tiles=1, buildings_per_tile=4, size=64, event="flood-new")
    assert prepared(tmp_path).counts["crops"] == 22
    assert set(load_xbd(tmp_path).train.groups["event"]) == {"volcano-miniature", "flood-new"}


def test_a_journal_of_other_files_is_not_continued(tmp_path: Path) -> None:
    event_in(tmp_path, tiles=3)
    prepare_until(tmp_path, 2)
    write_xbd_event(tmp_path, seed=5, tiles=1, buildings_per_tile=4, size=64, event="flood-new")
    assert prepared(tmp_path).counts["crops"] == 31


@pytest.mark.parametrize("place", [".", "xbd-crops"])
def test_crops_are_mapped_and_not_read(place: str, tmp_path: Path) -> None:
    event = event_in(tmp_path)
    prepared(tmp_path)
    train = load_xbd(tmp_path / place).train
    assert isinstance(train.values, np.memmap)
    assert train.sample_shape == (3, 64, 64)
    assert train.kind == "remote"
    assert train.names[0] == f"{event.buildings[0].tile}/{event.buildings[0].name}"


def small_split(source: Source, grouping: str | None) -> PUSplit:
    recipe = SplitRecipe(
        positive_classes=SOURCES["xbd"].positive_classes,
        positives=10,
        unlabelled=20,
        prior=0.4,
        grouping=grouping,
    )
    return split_source(source, recipe)


def test_neighbours_are_kept_together_where_people_ask_for_it(tmp_path: Path) -> None:
    write_xbd_event(tmp_path, seed=0, tiles=10, buildings_per_tile=9, size=96)
    prepared(tmp_path)
    source = load_xbd(tmp_path)

    def split(grouping: str | None) -> tuple[set[str], set[str]]:
        made = small_split(source, grouping)
        assert made.test is not None
        assert (made.train.truth[made.train.labelled] == POSITIVE).all()
        return tiles_of(made.train.names), tiles_of(made.test.names)

    def tiles_of(names: Sequence[str]) -> set[str]:
        return {name.partition("/")[0] for name in names}

    trained, tested = split("tile")
    assert not trained & tested
    assert len(tested) == 4
    trained, tested = split(None)
    assert trained & tested


def test_the_publishers_parts_stay_apart_unless_they_are_pooled(tmp_path: Path) -> None:
    for number, part in enumerate(("train", "tier3", "test", "hold")):
        write_xbd_event(
            tmp_path,
            seed=number,
            tiles=3,
            buildings_per_tile=9,
            size=96,
            event=f"flood-{part}",
            split=part,
        )
    prepared(tmp_path)
    source, entry = load_xbd(tmp_path), SOURCES["xbd"]

    def events(grouping: str | None) -> tuple[set[str], set[str]]:
        made = small_split(source, grouping)
        assert made.test is not None
        names = (made.train.names, made.test.names)
        trained, tested = ({name.partition("_")[0] for name in each} for each in names)
        return trained, tested

    assert events(None) == ({"flood-train", "flood-tier3"}, {"flood-test"})
    trained, tested = events(entry.paper_grouping)
    assert "flood-test" in trained
    assert "flood-hold" in tested


def test_tiles_may_be_georeferenced_copies(tmp_path: Path) -> None:
    event = write_xbd_event(tmp_path, seed=1, tiles=1, buildings_per_tile=4, size=64, split="tier1")
    before = find_tiles(tmp_path)[0]
    (png,) = event.images
    with Image.open(png) as picture:
        picture.save(png.with_suffix(".tif"))
    pixels = decode(png, channels=3)
    png.unlink()
    (tile,) = find_tiles(tmp_path)
    assert tile.image == before.image.with_suffix(".tif")
    assert tile.part == "tier1"
    np.testing.assert_array_equal(decode(tile.image, channels=3), pixels)
    assert prepared(tmp_path).counts["crops"] == 4


def test_the_papers_numbers_are_the_defaults() -> None:
    entry = SOURCES["xbd"]
    assert (entry.positives, entry.unlabelled, entry.prior) == (500, 20000, 0.4)
    assert (entry.held_out_positives, entry.held_out_unlabelled) == (50, 2000)
    assert [CLASS_NAMES[index] for index in entry.positive_classes] == ["major-damage", "destroyed"]
    np.testing.assert_allclose(255 * np.array(entry.mean), [82.5567, 103.9388, 98.9924])
    np.testing.assert_allclose(255 * np.array(entry.std), [35.2087, 33.5893, 38.6644])


def test_without_prepared_crops_the_error_says_what_to_do(tmp_path: Path) -> None:
    event_in(tmp_path)
    for root in (None, tmp_path):
        with pytest.raises(DataNotFound) as missing:
            load_xbd(root)
        message = str(missing.value)
        assert message.count("\n") == 0
        assert "https://xview2.org" in message
        assert f"onesided data prepare xbd --root {root or 'DATA'} --accept-licence" in message


def test_a_folder_without_xbd_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound, match="There is no xBD in"):
        prepared(tmp_path)
    with pytest.raises(DataNotFound, match="There is no xBD in"):
        prepared(tmp_path / "nowhere")


def test_tiles_without_buildings_of_known_damage_are_refused(tmp_path: Path) -> None:
    event_in(tmp_path, tiles=1, un_classified=9)
    with pytest.raises(DataError, match="hold no building of known damage"):
        prepared(tmp_path)


@pytest.mark.parametrize(
    ("name", "change", "state"),
    [
        ("crops.npy", lambda content: content[:-1], "wrong size"),
        ("crops.npy", lambda content: content[:-1] + bytes([content[-1] ^ 1]), "wrong contents"),
        ("buildings.csv", lambda content: content + b"\n", "wrong size"),
    ],
)
def test_a_check_finds_what_changed(
    name: str, change: Callable[[bytes], bytes], state: str, tmp_path: Path
) -> None:
    event_in(tmp_path)
    prepared(tmp_path)
    assert {status.state for status in inspect_xbd(tmp_path)} == {"good"}
    path = tmp_path / "xbd-crops" / name
    path.write_bytes(change(path.read_bytes()))
    assert {status.path.name: status.state for status in inspect_xbd(tmp_path)}[name] == state


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("crops.npy", b"no array", "crops.npy is damaged"),
        ("crops.npy", b"", "crops.npy is damaged"),
        ("buildings.csv", b"a,b\n1,2\n", r"buildings\.csv, line 2 is damaged"),
        ("buildings.csv", b"", "18 crops and 0 buildings"),
        ("summary.json", b"{", "is not JSON"),
        ("summary.json", b"[]", "is not a summary"),
        ("summary.json", json.dumps({"identity": "x"}).encode(), "is not a summary"),
    ],
)
def test_damaged_crops_are_refused_with_what_to_do(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    event_in(tmp_path)
    prepared(tmp_path)
    (tmp_path / "xbd-crops" / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_xbd(tmp_path)


def test_an_array_of_objects_is_not_executed(tmp_path: Path) -> None:
    event_in(tmp_path)
    prepared(tmp_path)
    hostile = np.array([threading.Lock], dtype=object)
    np.save(tmp_path / "xbd-crops" / "crops.npy", hostile, allow_pickle=True)
    with pytest.raises(DataError, match="is damaged"):
        load_xbd(tmp_path)


def test_a_full_disk_is_reported_and_the_work_resumes_later(tmp_path: Path) -> None:
    event_in(tmp_path)
    (tmp_path / "xbd-crops").write_text("a file where the folder should be")
    with pytest.raises(DataError, match="cannot be written"):
        prepared(tmp_path)
    (tmp_path / "xbd-crops").unlink()
    assert prepared(tmp_path).counts["crops"] == 18
