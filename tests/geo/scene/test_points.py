import os
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import DataError
from onesided.data.read.picture import decode
from onesided.geo.scene.points import PointScene, add_marked_folder, place_in_name, read_points
from tests.cli.pictures import BLUE, draw


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("-95.669934_29.807807.jpeg", (-95.669934, 29.807807)),
        ("-95.065175_30.059086999999998.jpeg", (-95.065175, 30.059086999999998)),
        ("damage/10_-5.5.png", (10.0, -5.5)),
        ("7.25_46.9_post.png", (7.25, 46.9)),
        ("house.png", None),
        ("200_10.png", None),
        ("10_95.png", None),
    ],
)
def test_the_position_is_in_the_name(name: str, place: tuple[float, float] | None) -> None:
    assert place_in_name(name) == place


def test_a_folder_of_crops_becomes_points_and_pictures(tmp_path: Path) -> None:
    first = draw(tmp_path / "-90.5_14.25.png", 0)
    draw(tmp_path / "south" / "-90.75_14.png", 1)
    scene = PointScene(read_points(tmp_path))
    assert scene.buildings.names == ("-90.5_14.25.png", "south/-90.75_14.png")
    assert [(point.x, point.y) for point in scene.buildings.geometries] == [
        (-90.5, 14.25),
        (-90.75, 14),
    ]
    chips = list(scene.chips([0, 1], 8))
    np.testing.assert_array_equal(chips[0], decode(first, size=(8, 8)))


def test_a_damaged_file_and_a_name_without_a_place_do_not_stop_the_others(tmp_path: Path) -> None:
    draw(tmp_path / "1_2.png", 0)
    draw(tmp_path / "house.png", 1)
    (tmp_path / "3_4.png").write_bytes(b"no image")
    scene = PointScene(read_points(tmp_path))
    chips = dict(zip(scene.buildings.names, scene.chips([0, 1, 2], 8), strict=True))
    assert isinstance(chips["3_4.png"], str)
    assert "not an image" in chips["3_4.png"]
    places = dict(zip(scene.buildings.names, scene.buildings.geometries, strict=True))
    assert places["house.png"] is None
    assert isinstance(chips["house.png"], np.ndarray)


def test_a_table_says_the_same_as_names(tmp_path: Path) -> None:
    draw(tmp_path / "crops" / "a.png", 0)
    draw(tmp_path / "crops" / "b.png", 1)
    table = tmp_path / "points.csv"
    table.write_text("id,lon,lat,path\n7,-90.5,14.25,crops/a.png\n8,-90.75,14,crops/b.png\n")
    scene = PointScene(read_points(table))
    assert scene.buildings.names == ("7", "8")
    assert scene.buildings.geometries[1].coords[0] == (-90.75, 14)
    table.write_text("lon,lat,path\n-90.5,14.25,crops/a.png\n")
    assert PointScene(read_points(table)).buildings.names == ("crops/a.png",)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x,14,a.png", "expected degrees"),
        ("190,14,a.png", "expected degrees"),
        ("9,14,z.png", "no file"),
        ("1,2,a.png\n3,4,a.png", "occurs 2 times"),
        ("", "lists no crop"),
    ],
)
def test_an_unclear_table_is_refused(tmp_path: Path, line: str, expected: str) -> None:
    draw(tmp_path / "a.png", 0)
    (tmp_path / "points.csv").write_text(f"lon,lat,path\n{line}\n")
    with pytest.raises(DataError, match=expected):
        read_points(tmp_path / "points.csv")


def test_a_folder_without_places_is_refused_with_an_example(tmp_path: Path) -> None:
    draw(tmp_path / "house.png", 0)
    with pytest.raises(DataError, match="LON_LAT"):
        read_points(tmp_path)


def test_marked_crops_mark_their_point_or_become_one(tmp_path: Path) -> None:
    for number in range(3):
        draw(tmp_path / "all" / f"{number}_10.png", number)
    os.makedirs(tmp_path / "marked")
    copied = tmp_path / "all" / "1_10.png"
    (tmp_path / "marked" / "1_10.png").write_bytes(copied.read_bytes())
    draw(tmp_path / "marked" / "5_10.png", 5)
    draw(tmp_path / "marked" / "2_10.png", 99, BLUE)  # the same place, another picture
    files, marked = add_marked_folder(read_points(tmp_path / "all"), tmp_path / "marked")
    names = [placed.file.name for placed in files]
    assert names == ["0_10.png", "1_10.png", "2_10.png", "marked/2_10.png", "5_10.png"]
    assert marked.tolist() == [False, True, False, True, True]
