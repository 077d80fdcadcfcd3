"""A miniature event of xBD, in the publisher's files."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from tests.geo.drawing import (
    FakeBuilding,
    Outline,
    draw_pair,
    draw_subtypes,
    place_buildings,
)

# Where the north-western corner of the first tile lies, and degrees per pixel.
LON, LAT, DEGREES = -90.80, 14.39, 5e-6


@dataclass(frozen=True)
class FakeEvent:
    """A miniature event of xBD.

    Attributes:
        labels: The label files after the disaster, one per tile.
        images: The images after the disaster, in the same order.
        buildings: What was drawn, tile by tile, without the unclassified.
        un_classified: Buildings of unknown damage.
    """

    event: str
    size: int
    labels: tuple[Path, ...]
    images: tuple[Path, ...]
    buildings: tuple[FakeBuilding, ...]
    un_classified: int


def write_xbd_event(
    folder: Path,
    *,
    seed: int,
    tiles: int,
    buildings_per_tile: int,
    layout: Literal["split", "event"] = "split",
    damaged_share: float = 0.4,
    size: int = 1024,
    event: str = "volcano-miniature",
    split: str = "train",
    un_classified: int = 0,
) -> FakeEvent:
    """Write images and labels of one event, before and after, as xBD ships them.

    With layout `split` they lie in SPLIT/images and SPLIT/labels, with `event` in
    EVENT/images and EVENT/labels. The first `un_classified` buildings of each tile carry
    the subtype un-classified, and no damage.
    """
    random = np.random.default_rng(seed)
    place = folder / (split if layout == "split" else event)
    for part in ("images", "labels"):
        (place / part).mkdir(parents=True, exist_ok=True)
    labels, images, buildings = [], [], []
    for number in range(tiles):
        tile = f"{event}_{number:08d}"
        outlines = place_buildings(size, buildings_per_tile, random)
        subtypes = draw_subtypes(buildings_per_tile - un_classified, damaged_share, random)
        drawn = ["no-damage"] * un_classified + subtypes
        pair = draw_pair(size, outlines, drawn, random)
        uids = [_uid(random) for _ in outlines]
        listed = ["un-classified"] * un_classified + subtypes
        for when, pixels in zip(("pre", "post"), pair, strict=True):
            name = f"{tile}_{when}_disaster"
            image, label = place / "images" / f"{name}.png", place / "labels" / f"{name}.json"
            Image.fromarray(pixels.transpose(1, 2, 0)).save(image, compress_level=1)
            known = listed if when == "post" else [None] * len(listed)
            label.write_text(json.dumps(_label(number, event, image, size, outlines, known, uids)))
        images.append(image)
        labels.append(label)
        for outline, subtype, uid in zip(outlines, listed, uids, strict=True):
            if subtype != "un-classified":
                lon, lat = _degrees(number, *outline.centre)
                buildings.append(FakeBuilding(uid, tile, subtype, outline, lon, lat))
    return FakeEvent(
        event, size, tuple(labels), tuple(images), tuple(buildings), tiles * un_classified
    )


def add_feature(label: Path, wkt: Any, subtype: str | None, **properties: Any) -> str:  # noqa: ANN401
    """Add a building to a label file, however odd, and return its uid."""
    content = json.loads(label.read_text())
    uid = str(properties.setdefault("uid", f"odd-{len(content['features']['xy'])}"))
    properties = {"feature_type": "building", **properties}
    if subtype is not None:
        properties["subtype"] = subtype
    content["features"]["xy"].append({"properties": properties, "wkt": wkt})
    label.write_text(json.dumps(content))
    return uid


def _label(
    number: int,
    event: str,
    image: Path,
    size: int,
    outlines: Sequence[Outline],
    subtypes: Sequence[str | None],
    uids: Sequence[str],
) -> dict[str, Any]:
    in_pixels, in_degrees = [], []
    for outline, subtype, uid in zip(outlines, subtypes, uids, strict=True):
        properties = {"feature_type": "building", "uid": uid}
        if subtype is not None:
            properties["subtype"] = subtype
        in_pixels.append({"properties": properties, "wkt": _wkt(outline.ring)})
        ring = [_degrees(number, x, y) for x, y in outline.ring]
        in_degrees.append({"properties": properties, "wkt": _wkt(ring)})
    return {
        "features": {"lng_lat": in_degrees, "xy": in_pixels},
        "metadata": {
            "sensor": "GEOEYE01",
            "provider_asset_type": "GEOEYE01",
            "gsd": 2.1829,
            "capture_date": "2018-06-22T16:19:50.000Z",
            "off_nadir_angle": 18.1,
            "pan_resolution": 0.5457,
            "sun_azimuth": 52.9,
            "sun_elevation": 62.7,
            "target_azimuth": 222.4,
            "disaster": event,
            "disaster_type": event.partition("-")[0],
            "catalog_id": "105001000E0E5F00",
            "original_width": size,
            "original_height": size,
            "width": size,
            "height": size,
            "id": f"MjU{number:04d}",
            "img_name": image.name,
        },
    }


def _degrees(number: int, x: float, y: float) -> tuple[float, float]:
    # Tiles lie side by side from west to east, a tenth of a degree apart.
    return LON + 0.1 * number + x * DEGREES, LAT - y * DEGREES


def _wkt(ring: Sequence[tuple[float, float]]) -> str:
    return f"POLYGON (({', '.join(f'{x!r} {y!r}' for x, y in ring)}))"


def _uid(random: np.random.Generator) -> str:
    digits = random.bytes(16).hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
