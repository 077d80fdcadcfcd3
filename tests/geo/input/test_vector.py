import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyogrio.raw import write  # type: ignore[import-untyped, unused-ignore]
from shapely import box, to_wkb  # type: ignore[import-untyped, unused-ignore]

from onesided.core.errors import ConfigError, DataError, DataNotFound, OnesidedError
from onesided.geo.input.vector import read_layer


def write_features(path: Path, features: list[dict[str, Any]], **further: Any) -> Path:  # noqa: ANN401
    content = {"type": "FeatureCollection", "features": features, **further}
    path.write_text(json.dumps(content))
    return path


def feature(x: float, y: float, **properties: Any) -> dict[str, Any]:  # noqa: ANN401
    point = {"type": "Point", "coordinates": [x, y]}
    return {"type": "Feature", "geometry": point, "properties": properties}


def write_squares(path: Path, layer: str, count: int = 2, crs: str | None = "EPSG:4326") -> Path:
    write(
        path,
        geometry=to_wkb([box(row, 0, row + 0.5, 1) for row in range(count)]),
        field_data=[np.arange(count)],
        fields=["number"],
        geometry_type="Polygon",
        crs=crs,
        layer=layer,
        append=path.exists(),
    )
    return path


def test_geojson_is_in_degrees_unless_it_says_otherwise(tmp_path: Path) -> None:
    degrees = read_layer(write_features(tmp_path / "a.geojson", [feature(-90, 14)]))
    assert degrees.system is not None
    assert degrees.system.to_epsg() == 4326
    named = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32615"}}
    metres = read_layer(write_features(tmp_path / "b.geojson", [feature(5e5, 1.6e6)], crs=named))
    assert metres.system is not None
    assert metres.system.to_epsg() == 32615


def test_metres_without_a_name_are_not_taken_for_degrees(tmp_path: Path) -> None:
    layer = read_layer(write_features(tmp_path / "a.geojson", [feature(5e5, 1.6e6)]))
    assert layer.system is None
    given = read_layer(tmp_path / "a.geojson", given_system="EPSG:32615")
    assert given.system is not None
    assert given.system.to_epsg() == 32615


def test_attributes_keep_their_kind_and_gaps_stay_gaps(tmp_path: Path) -> None:
    rows = [feature(0, 0, count=1, name="x", height=2.5), feature(1, 1, count=2)]
    layer = read_layer(write_features(tmp_path / "a.geojson", rows))
    assert layer.columns["count"].dtype == np.int64
    assert layer.columns["name"].tolist() == ["x", None]
    assert np.isnan(layer.columns["height"][1])
    assert list(layer.keys) == [1, 2]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"features": 3}', '{"features": [3]}',
    '{"features": [{"geometry": {"type": "Point", "coordinates": "here"}}]}'])  # fmt: skip
def test_what_is_not_geojson_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.geojson"
    path.write_text(text)
    with pytest.raises(DataError, match=r"a\.geojson"):
        read_layer(path)


def test_an_empty_layer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no feature"):
        read_layer(write_features(tmp_path / "a.geojson", []))


def test_an_unknown_layer_is_refused_with_the_nearest_known_one(tmp_path: Path) -> None:
    path = write_squares(tmp_path / "a.gpkg", "buildings")
    with pytest.raises(ConfigError, match="Did you mean 'buildings'"):
        read_layer(path, layer="building")


def test_of_several_layers_one_has_to_be_chosen(tmp_path: Path) -> None:
    path = write_squares(tmp_path / "a.gpkg", "houses", count=3)
    write_squares(path, "roads", count=2)
    with pytest.raises(ConfigError, match="houses, roads"):
        read_layer(path)
    assert len(read_layer(path, layer="houses")) == 3


def test_a_geopackage_of_an_undefined_place_has_no_system(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="crs"):
        path = write_squares(tmp_path / "a.gpkg", "a", crs=None)
    assert read_layer(path).system is None


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gpkg").write_bytes(b"not a database")
    with pytest.raises(DataError, match=r"a\.gpkg"):
        read_layer(tmp_path / "a.gpkg")
    with pytest.raises(DataNotFound):
        read_layer(tmp_path / "b.gpkg")


def test_without_gdal_a_geopackage_names_the_extra_and_geojson_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_squares(tmp_path / "a.gpkg", "a")
    for module in [name for name in sys.modules if name.partition(".")[0] == "pyogrio"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(OnesidedError, match=r"pip install 'onesided\[geo\]'"):
        read_layer(path)
    assert len(read_layer(write_features(tmp_path / "a.geojson", [feature(0, 0)]))) == 1


def test_a_system_is_given_for_files_that_name_none(tmp_path: Path) -> None:
    path = write_squares(tmp_path / "a.gpkg", "squares", crs="EPSG:4326")
    assert read_layer(path, given_system="EPSG:4326").system is not None
    with pytest.raises(ConfigError, match=r"WGS 84; .*UTM zone 15N was given"):
        read_layer(path, given_system="EPSG:32615")
