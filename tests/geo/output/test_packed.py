import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.core.errors import DataError
from onesided.geo.output.packed import QUANTA_PER_DEGREE, PackedShapes, Rings, pack

EARTH_RADIUS = 6_378_137.0
SQUARE = [(10.0, 50.0), (10.001, 50.0), (10.001, 50.001), (10.0, 50.001)]


def unpack(packed: PackedShapes) -> list[list[list[tuple[float, float]]]]:
    """Rebuild all rings, in degrees, as slowly as the description of the format reads."""
    sizes, steps = iter(packed.rings), iter(packed.steps)
    x = y = 0
    shapes = []
    for first in sizes:
        counts = [first] if first > 0 else [next(sizes) for _ in range(-first)]
        rings = []
        for count in counts:
            ring = []
            for _ in range(count):
                x, y = x + next(steps), y + next(steps)
                ring.append((x / QUANTA_PER_DEGREE, y / QUANTA_PER_DEGREE))
            rings.append(ring)
        shapes.append(rings)
    assert next(steps, None) is None
    return shapes


def packed_one(shape: Rings) -> list[list[tuple[float, float]]]:
    (rings,) = unpack(pack([("one", shape)]))
    return rings


def metres_apart(one: tuple[float, float], other: tuple[float, float]) -> float:
    east = math.radians((one[0] - other[0] + 180) % 360 - 180) * math.cos(math.radians(one[1]))
    return EARTH_RADIUS * math.hypot(east, math.radians(one[1] - other[1]))


@given(
    st.lists(
        st.tuples(st.floats(-180, 180), st.floats(-90, 90)),
        min_size=1,
        max_size=20,
    )
)
def test_no_position_moves_by_a_centimetre(positions: list[tuple[float, float]]) -> None:
    packed = pack([(str(place), [[place]]) for place in positions])
    for before, ((after,),) in zip(positions, unpack(packed), strict=True):
        assert metres_apart(before, after) < 0.01


def test_rounding_errors_do_not_add_up_along_a_long_chain() -> None:
    rng = np.random.default_rng(0)
    positions = [(float(x), float(y)) for x, y in rng.uniform(0, 1, (5000, 2))]
    last = unpack(pack([("", [[place]]) for place in positions]))[-1][0][0]
    assert metres_apart(positions[-1], last) < 0.01


def test_a_closed_ring_and_an_open_one_are_the_same() -> None:
    assert packed_one([[*SQUARE, SQUARE[0]]]) == packed_one([SQUARE])
    assert len(packed_one([SQUARE])[0]) == 4


def test_courtyards_and_buildings_of_several_parts_keep_all_their_rings() -> None:
    hole = [(10.0002, 50.0002), (10.0004, 50.0002), (10.0004, 50.0004)]
    part = [(10.002, 50.0), (10.003, 50.0), (10.003, 50.001)]
    shapes: list[tuple[str, Rings]] = [
        ("court", [SQUARE, hole]),
        ("none", ()),
        ("point", [[(10.0, 50.0)]]),
        ("parts", [SQUARE, hole, part]),
        ("empty ring", [[]]),
    ]
    assert [[len(ring) for ring in rings] for rings in unpack(pack(shapes))] == [
        [4, 3],
        [],
        [1],
        [4, 3, 3],
        [],
    ]


def test_neighbours_across_the_antimeridian_meet() -> None:
    crossing = [[(179.9999, -17.0), (-179.9999, -17.0), (-179.9999, -17.001)]]
    west, east = [[(178.4, -18.1)]], [[(-179.8, -16.9)]]
    packed = pack([("crossing", crossing), ("Suva", west), ("Taveuni", east)])
    (ring,), ((suva,),), ((taveuni,),) = unpack(packed)
    longitudes = [corner[0] for corner in ring]
    assert max(longitudes) - min(longitudes) == pytest.approx(0.0002)
    assert taveuni[0] - suva[0] == pytest.approx(1.8)
    assert packed.middle == pytest.approx((178.4 + 180.2) / 2)


def test_away_from_the_antimeridian_longitudes_stay_as_they_are() -> None:
    places = [(-95.4, 29.7), (-94.9, 29.8), (264.8, 29.8)]
    packed = pack([("", [[place]]) for place in places])
    assert [rings[0][0][0] for rings in unpack(packed)] == [-95.4, -94.9, -95.2]
    assert packed.middle == pytest.approx(-95.15)


def test_nothing_to_pack_is_no_error() -> None:
    assert pack([]) == PackedShapes([], [], 0.0)


@pytest.mark.parametrize(
    "place",
    [(3_450_000.0, 290_000.0), (0.0, 91.0), (-361.0, 0.0), (math.nan, 0.0), (0.0, math.inf)],
)
def test_what_is_not_in_degrees_is_refused_with_the_remedy(place: tuple[float, float]) -> None:
    with pytest.raises(DataError, match=r"'house 7' has .* EPSG:4326"):
        pack([("house 7", [[place]])])
