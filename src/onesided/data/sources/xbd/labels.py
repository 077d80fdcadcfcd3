"""The label files of xBD: which buildings a tile shows, where, and how damaged.

A tile is called EVENT_NUMBER and has an image and a label file for before and after the
disaster. They lie in `images` and `labels`, side by side, in a folder per split (train,
tier3, test, hold) or per event. A label file is JSON:

    {"features": {"xy": [{"wkt": "POLYGON ((...))",
                          "properties": {"feature_type": "building",
                                         "subtype": "no-damage", "uid": "..."}}, ...],
                  "lng_lat": [...the same in degrees...]},
     "metadata": {"disaster": "...", "img_name": "...", "width": 1024, ...}}
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onesided.core.errors import DataNotFound
from onesided.data.read.files import Unreadable
from onesided.data.read.polygons import (
    BadPolygon,
    Window,
    building_window,
    polygon_from_wkt,
    require_shapely,
    sound_polygon,
)

CLASS_NAMES = ("no-damage", "minor-damage", "major-damage", "destroyed")
"""In the order of the damage: the positives are 2 and 3, as in the paper's table."""
UNCLASSIFIED = "un-classified"
ADDRESS = "https://xview2.org"
PARTS = {"train": "train", "tier1": "train", "tier3": "train", "test": "test", "hold": "apart"}
"""Folder of the publisher to what it is for; the georeferenced copy calls train tier1."""
ENDINGS = (".png", ".tif", ".tiff")
"""PNG as the contest ships tiles, TIFF as the publisher's georeferenced copy does."""
_ENDING = "_post_disaster.json"


@dataclass(frozen=True)
class XbdTile:
    """Image and labels of one tile after the disaster."""

    name: str
    label: Path
    image: Path
    part: str = ""
    """Folder of the publisher that it lies in: train, tier1, tier3, test, hold, or none of them."""

    @property
    def event(self) -> str:
        """The disaster, such as hurricane-harvey."""
        return self.name.rpartition("_")[0]


@dataclass(frozen=True)
class Building:
    """One building of a tile.

    Attributes:
        box: The upright rectangle around its outline.
        window: What to cut from the image.
        lon: Of its centre, in degrees; None where the file does not say.
        repaired: Whether its outline crossed itself.
        parts: Polygons that its outline consists of.
    """

    uid: str
    subtype: str
    box: Window
    window: Window
    lon: float | None
    lat: float | None
    repaired: bool
    parts: int


def find_tiles(root: Path) -> tuple[XbdTile, ...]:
    """Return the tiles in a folder, whatever the layout, sorted by name; each name once."""
    tiles: dict[str, XbdTile] = {}
    for label in sorted(root.rglob(f"*{_ENDING}")):
        name = label.name.removesuffix(_ENDING)
        folder = label.parent
        images = folder.parent / "images" if folder.name == "labels" else folder
        files = [images / f"{name}_post_disaster{ending}" for ending in ENDINGS]
        image = next((file for file in files if file.is_file()), files[0])
        parts = [part for part in label.relative_to(root).parts[:-1] if part in PARTS]
        tile = XbdTile(name, label, image, parts[-1] if parts else "")
        # A tile may lie in its split and in its event; they are copies.
        if name not in tiles or (tile.part and not tiles[name].part):
            tiles[name] = tile
    if not tiles:
        raise DataNotFound(
            f"There is no xBD in {root}: expected folders images and labels with files such as "
            f"hurricane-harvey_00000000{_ENDING}, in a folder per split or per event. "
            f"Get it from {ADDRESS} and unpack it there."
        )
    return tuple(tiles[name] for name in sorted(tiles))


@dataclass(frozen=True)
class Outlined:
    """One building as a label file describes it, not yet checked.

    Attributes:
        uid: Empty where the file has none.
        subtype: Its damage, as written.
        pixels: Well-known text of its outline in pixels of the image, if it has one.
        degrees: The same in degrees.
    """

    uid: str
    subtype: object
    is_building: bool
    pixels: object
    degrees: object


def read_outlined(path: Path) -> list[Outlined]:
    """Return all that a label file lists; raise `Unreadable` if it is no label file."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise Unreadable(path, f"cannot be opened: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise Unreadable(path, f"is not JSON ({error})") from error
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, dict) or not isinstance(features.get("xy"), list):
        raise Unreadable(path, "has no list features.xy, so it is no label file of xBD")
    degrees = {uid: feature.get("wkt") for uid, feature in _by_uid(features.get("lng_lat"))}
    return [
        Outlined(
            uid,
            feature["properties"].get("subtype"),
            feature["properties"].get("feature_type", "building") == "building",
            feature.get("wkt"),
            degrees.get(uid),
        )
        for uid, feature in _by_uid(features["xy"])
    ]


def _by_uid(features: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for feature in features if isinstance(features, list) else []:
        if isinstance(feature, dict) and isinstance(feature.get("properties"), dict):
            yield str(feature["properties"].get("uid", "")), feature


def read_buildings(tile: XbdTile) -> tuple[list[Building], Counter[str]]:
    """Return the buildings of known damage and sound outline; count the others by reason."""
    buildings: dict[str, Building] = {}
    left_out = Counter[str]()
    for outlined in read_outlined(tile.label):
        outcome = _checked(outlined)
        if isinstance(outcome, str):
            left_out[outcome] += 1
        elif outcome.uid in buildings:
            left_out["listed twice in their tile"] += 1
        else:
            buildings[outcome.uid] = outcome
    return list(buildings.values()), left_out


def _checked(outlined: Outlined) -> Building | str:
    """Return a building, or why it is left out."""
    if not outlined.is_building:
        return "not buildings"
    subtype = outlined.subtype
    if subtype == UNCLASSIFIED:
        return UNCLASSIFIED
    if not isinstance(subtype, str) or subtype not in CLASS_NAMES or not outlined.uid:
        return "without a uid or a known subtype"
    try:
        outline, repaired = sound_polygon(polygon_from_wkt(outlined.pixels))
        window = building_window(outline)
    except BadPolygon:
        return "with an outline that bounds no area"
    lon, lat = _centre(outlined.degrees)
    parts = int(require_shapely().get_num_geometries(outline))
    return Building(outlined.uid, subtype, outline.bounds, window, lon, lat, repaired, parts)


def _centre(degrees: object) -> tuple[float | None, float | None]:
    try:
        outline, _ = sound_polygon(polygon_from_wkt(degrees))
    except BadPolygon:
        return None, None
    centre = require_shapely().centroid(outline)
    return float(centre.x), float(centre.y)
