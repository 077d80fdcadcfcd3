"""Miniatures of what an analyst has: an xBD event, a GeoTIFF with footprints, ABCD pairs.

Written from the publishers' descriptions of their formats, with known damage drawn into
the pixels; what was drawn is returned. No network, and a second at most.
"""

from tests.geo.drawing import SUBTYPES, FakeBuilding, Outline
from tests.geo.fake_abcd import FakePairs, write_abcd
from tests.geo.fake_scene import GSD, FakeScene, write_geotiff_scene
from tests.geo.fake_xbd import FakeEvent, add_feature, write_xbd_event

__all__ = [
    "GSD",
    "SUBTYPES",
    "FakeBuilding",
    "FakeEvent",
    "FakePairs",
    "FakeScene",
    "Outline",
    "add_feature",
    "write_abcd",
    "write_geotiff_scene",
    "write_xbd_event",
]
