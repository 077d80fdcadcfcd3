import json
from pathlib import Path

import pytest

from onesided.core.errors import ConfigError, DataError
from onesided.geo.input.footprints import read_footprints
from onesided.geo.input.positives import marks_of_ids
from onesided.geo.input.vector import read_layer
from onesided.geo.output.layers import write_geojson, write_geopackage
from onesided.jobs.answers import merge_files
from tests.cli.command import call
from tests.geo.maps import houses, table


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A map of five houses, and two people's files."""
    write_geopackage(table(houses(5), marked=1), tmp_path / "damage.gpkg")
    (tmp_path / "anna.csv").write_text("id,answer,reviewer,time\nh1,positive,Anna,2024-01-01\n"
                                       "h2,positive,Anna,2024-01-01\n")  # fmt: skip
    (tmp_path / "ben.csv").write_text("id,answer,reviewer,time\nh1,negative,Ben,2024-01-02\n"
                                      "h9,skip,Ben,2024-01-02\n")  # fmt: skip
    return tmp_path


def test_answers_become_columns_of_the_map(place: Path) -> None:
    found = merge_files(
        [place / "anna.csv", place / "ben.csv"],
        output=place / "checked.gpkg",
        map_file=place / "damage.gpkg",
    )
    layer = read_layer(place / "checked.gpkg")
    assert layer.columns["answer"].tolist() == [None, "unsure", "positive", None, None]
    assert layer.columns["reviewer"].tolist() == [None, "Anna; Ben", "Anna", None, None]
    assert layer.columns["id"].tolist() == ["h0", "h1", "h2", "h3", "h4"]
    assert layer.columns["score"].shape == (5,)
    assert found.unknown == 1


def test_a_saved_map_becomes_a_geopackage(place: Path) -> None:
    write_geojson(table(houses(5), marked=1), place / "decisions.geojson")
    content = json.loads((place / "decisions.geojson").read_text())
    for feature in content["features"]:
        feature["properties"] |= {"answer": None, "reviewer": None, "time": None}
    content["features"][3]["properties"] |= {"answer": "positive", "reviewer": "Eve"}
    new = {"id": "new-1", "answer": "positive", "role": "drawn"}
    content["features"].append(
        {
            "type": "Feature",
            "id": "new-1",
            "geometry": {"type": "Point", "coordinates": [-93, 14]},
            "properties": new,
        }
    )
    (place / "decisions.geojson").write_text(json.dumps(content))
    merge_files([place / "decisions.geojson", place / "anna.csv"], output=place / "all.gpkg")
    layer = read_layer(place / "all.gpkg")
    assert layer.columns["id"].tolist()[-1] == "new-1"
    answers = layer.columns["answer"].tolist()
    assert answers == [None, "positive", "positive", "positive", None, "positive"]


def test_training_leaves_out_what_people_disagree_on(place: Path) -> None:
    merge_files([place / "anna.csv", place / "ben.csv"], output=place / "review.csv")
    marks = marks_of_ids(read_footprints(place / "damage.gpkg"), place / "review.csv")
    assert marks.marked.tolist() == [False, False, True, False, False]
    assert any("both damaged and not damaged" in warning for warning in marks.warnings)


def test_answers_alone_have_no_place(place: Path) -> None:
    with pytest.raises(ConfigError, match=r"--map damage\.gpkg"):
        merge_files([place / "anna.csv"], output=place / "a.gpkg")
    with pytest.raises(ConfigError, match=r"\.csv, \.geojson or \.gpkg"):
        merge_files([place / "anna.csv"], output=place / "a.xlsx")
    with pytest.raises(DataError, match="no column 'answer'"):
        merge_files([place / "damage.gpkg"], output=place / "a.gpkg")


def test_the_command_tells_who_disagrees(place: Path) -> None:
    files = [str(place / name) for name in ("anna.csv", "ben.csv")]
    told = call("answers", *files, "-o", str(place / "review.csv"))
    assert told.exit_code == 0
    assert "People disagree on h1 (Anna: positive, Ben: negative)" in told.err
    assert "review.csv" in told.out
    content = json.loads(call("answers", *files, "-o", str(place / "r.csv"), "--json").out)
    assert content["conflicts"] == ["h1 (Anna: positive, Ben: negative)"]
