"""Collections, and outlines across 180 degrees."""

import numpy as np
import shapely  # type: ignore[import-untyped, unused-ignore]

from onesided.geo.input.shapes import cut_at_antimeridian, without_collections

HOUSE, SHED = shapely.box(0, 0, 2, 2), shapely.box(5, 0, 6, 1)


def test_of_a_collection_only_the_polygons_are_a_building() -> None:
    line, nested = shapely.LineString([(0, 0), (9, 9)]), shapely.GeometryCollection([SHED])
    given = [
        shapely.GeometryCollection([HOUSE, line]),
        shapely.GeometryCollection([HOUSE, nested]),
        shapely.GeometryCollection([line]),
        HOUSE,
        None,
    ]
    shapes, count = without_collections(np.array(given, object))
    assert count == 3
    assert shapes[0].equals(HOUSE)
    assert shapes[1].equals(shapely.MultiPolygon([HOUSE, SHED]))
    assert shapes[2] is None
    assert shapes[3] is HOUSE
    assert shapes[4] is None


def test_an_outline_across_180_degrees_is_cut_in_two() -> None:
    across = shapely.Polygon([(179.9, 0), (-179.9, 0), (-179.9, 1), (179.9, 1)])
    beyond = shapely.box(179.9, 0, 180.1, 1)
    for given in (across, beyond):
        parts = cut_at_antimeridian(given)
        assert parts.geom_type == "MultiPolygon"
        boxes = sorted(tuple(round(edge, 6) for edge in part.bounds) for part in parts.geoms)
        assert boxes == [(-180, 0, -179.9, 1), (179.9, 0, 180, 1)]


def test_an_outline_elsewhere_or_cut_already_stays_as_it_is() -> None:
    two = shapely.MultiPolygon([shapely.box(179.9, 0, 180, 1), shapely.box(-180, 0, -179.9, 1)])
    for given in (HOUSE, two, shapely.Point(-179.9, 3)):
        assert cut_at_antimeridian(given) is given


def test_an_outline_wholly_beyond_180_comes_back_to_the_other_side() -> None:
    shape = cut_at_antimeridian(shapely.box(181, 0, 182, 1))
    assert shape.bounds == (-179, 0, -178, 1)
