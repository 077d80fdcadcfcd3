import sys
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import DataError, DataNotFound
from onesided.data.read.picture import decode
from onesided.data.read.polygons import building_window, cut
from onesided.geo.scene.tiles import is_event, read_event
from tests.geo.fakes import FakeEvent, add_feature, write_xbd_event


@pytest.fixture
def event(tmp_path: Path) -> FakeEvent:
    return write_xbd_event(tmp_path, seed=2, tiles=2, buildings_per_tile=9, size=256)


def folders(event: FakeEvent) -> tuple[Path, Path]:
    return event.labels[0].parent, event.images[0].parent


def test_buildings_are_cut_from_their_own_tile_without_gdal(
    event: FakeEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] in ("rasterio", "pyogrio")]:
        monkeypatch.setitem(sys.modules, module, None)
    scene = read_event(*folders(event))
    assert scene.buildings.names == tuple(building.name for building in event.buildings)
    chips = list(scene.chips(range(18), 16))
    for row, building in enumerate(event.buildings):
        picture = next(path for path in event.images if building.tile in path.name)
        outline = scene.tiles[int(scene.tile_of[row])].outlines[row % 9]
        np.testing.assert_array_equal(
            chips[row], cut(decode(picture), building_window(outline), 16)
        )


def test_places_are_those_of_the_label_file(event: FakeEvent) -> None:
    scene = read_event(*folders(event))
    for building, shape in zip(event.buildings, scene.buildings.geometries, strict=True):
        assert (shape.centroid.x, shape.centroid.y) == pytest.approx(
            (building.lon, building.lat), abs=1e-7
        )
    assert scene.buildings.columns["subtype"].tolist() == [b.subtype for b in event.buildings]


def test_the_picture_before_comes_first(event: FakeEvent) -> None:
    scene = read_event(*folders(event), pre=folders(event)[1])
    assert scene.channels == 6
    pair = next(scene.chips([0], 16))
    alone = next(read_event(*folders(event)).chips([0], 16))
    assert isinstance(pair, np.ndarray)
    np.testing.assert_array_equal(pair[3:], alone)


def test_outlines_that_bound_nothing_are_skipped_with_the_reason(event: FakeEvent) -> None:
    add_feature(event.labels[0], "POLYGON EMPTY", "destroyed")
    add_feature(event.labels[0], "POLYGON ((", "destroyed")
    scene = read_event(*folders(event))
    reasons = [chip for chip in scene.chips(range(20), 16) if isinstance(chip, str)]
    assert reasons == ["its outline is empty"] * 2
    # They are in no label in degrees, so the map lists them without a place.
    assert sum(shape is None for shape in scene.buildings.geometries) == 2


def test_an_event_is_known_by_its_label_files(event: FakeEvent, tmp_path: Path) -> None:
    labels, images = folders(event)
    assert is_event(labels)
    assert is_event(event.labels[0])
    assert not is_event(images)
    assert not is_event(tmp_path / "buildings.json")


def test_missing_pictures_and_bad_label_files_are_refused(event: FakeEvent) -> None:
    labels, images = folders(event)
    event.images[1].unlink()
    with pytest.raises(DataNotFound, match=event.images[1].stem):
        read_event(labels, images)
    event.labels[0].write_text('{"features": {}}')
    with pytest.raises(DataError, match="label file of xBD"):
        read_event(labels, images)
