"""What the map page shows: shapes in degrees, the images below them, pictures of buildings."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float64, Int64

from onesided.geo.input.coordinates import WGS84, Geometries, between, converted, system
from onesided.geo.input.footprints import id_text
from onesided.geo.input.image import edge_in_degrees, to_pixels
from onesided.geo.output.basemap import Basemap
from onesided.geo.output.packed import Rings
from onesided.geo.output.page import MapItem, MapPage
from onesided.geo.output.page_files import ChipFiles, ChipValues, PageFiles
from onesided.geo.output.pyramid import (
    NO_DATA,
    Bounds,
    Pyramid,
    colours,
    jpeg,
    mercator,
    plan_pyramid,
)
from onesided.geo.output.summary import Summary, label
from onesided.geo.output.table import MapTable
from onesided.geo.scene.chips import Chips
from onesided.geo.scene.footprint_scene import OutlinedImage
from onesided.metrics.words import NOT_ESTIMATED, assumptions_of, full_value_text
from onesided.storage.names import printable
from onesided.storage.optional import library

TOP, DOUBTFUL, MARKED = 300, 100, 100
"""How many pictures the page carries: more would make it too large to send around."""
PICTURE_QUALITY, BASE_QUALITY = 70, 80
BASE_SIDE = 1600
"""Pixels of the longer side of the image under the buildings, at most."""
PAGE_MEGABYTES = 500.0
"""Room for the files beside the page. A square kilometre at 30 cm takes about 4, before and after
8."""


def map_page(
    table: MapTable,
    chips: Chips,
    summary: Summary,
    *,
    title: str,
    after_from: int = 0,
    images: Sequence[OutlinedImage] = (),
    warnings: Sequence[str] = (),
    basemap: Basemap | None = None,
    most_megabytes: float = PAGE_MEGABYTES,
) -> MapPage:
    """Return the content of the page.

    Args:
        table: Every building with its score.
        chips: What was cut from the images.
        summary: Figures.
        title: Heading of the page.
        after_from: First channel of the image after the event, 0 where there is none before it.
        images: Images of the whole place, to be shown under the buildings: the one after the
            event alone, or before it the one before.
        warnings: Sentences to show.
        basemap: A map from the network that a person may switch on.
        most_megabytes: Room for the files beside the page.
    """
    shapes = converted(table.buildings.geometries, table.buildings.system, system(WGS84))
    after = images[-1] if images else None
    before = images[0] if len(images) > 1 else None
    files = page_files(table, chips, shapes, images, after_from, most_megabytes)
    return MapPage(
        title=title,
        items=_items(table, shapes, chips, after_from),
        threshold=table.threshold,
        base=base_picture(after) if after is not None else None,
        base_before=base_picture(before) if before is not None else None,
        files=files,
        facts=facts_of(summary),
        warnings=(*warnings, *shortage(files, most_megabytes)),
        attributes=described(
            table.buildings.names,
            {name: values.tolist() for name, values in table.buildings.columns.items()},
        ),
        basemap=basemap,
    )


def page_files(
    table: MapTable,
    chips: Chips,
    shapes: Geometries,
    images: Sequence[OutlinedImage],
    after_from: int,
    most_megabytes: float,
) -> PageFiles:
    """Return what to write beside the page: the images by tiles, else a chip of every building."""
    room = most_megabytes * 1e6
    boxes = _boxes(shapes)
    names = ("before", "after")[-len(images) :] if images else ()
    planned = {
        name: plan_pyramid(image, boxes, most_bytes=room / len(images))
        for name, image in zip(names, images, strict=True)
    }
    layers = {name: pyramid for name, pyramid in planned.items() if pyramid is not None}
    if layers:
        return PageFiles(layers)
    rows = np.flatnonzero(chips.kept)
    if not len(rows):
        return PageFiles()
    return PageFiles(chips=fitting_chips(chips.values, rows, table.scores, after_from, room))


def fitting_chips(
    values: ChipValues,
    rows: Int64[np.ndarray, "m"],
    scores: Float64[np.ndarray, "n"],
    after_from: int,
    most_bytes: float,
) -> ChipFiles:
    """Return as many of the pictures as fit, those with the highest scores."""
    every = ChipFiles(values, rows, after_from)
    fitting = int(most_bytes / every.usual_bytes())
    if fitting >= len(rows):
        return every
    order = np.argsort(-scores[rows], kind="stable")[:fitting]
    return ChipFiles(values, np.sort(rows[order]), after_from)


def described(
    names: Sequence[str], columns: Mapping[str, Sequence[object]]
) -> dict[str, Sequence[object]]:
    """Return the columns of the footprints but the one that names buildings."""
    return {
        column: values
        for column, values in columns.items()
        if tuple(map(id_text, values)) != tuple(names)
    }


def _boxes(shapes: Geometries) -> Float64[np.ndarray, "n 4"]:
    boxes: Float64[np.ndarray, "n 4"] = library("shapely", "A map").bounds(shapes)
    return boxes


def shortage(files: PageFiles, most_megabytes: float) -> list[str]:
    """Return a warning where the images could not be written with their own pixels."""
    coarse = [each for each in files.layers.values() if not each.is_sharp]
    if not coarse:
        return []
    size = max(map(Pyramid.pixel_metres, coarse))
    return [
        f"The page shows the image with pixels of {size:.2g} m, which is coarser than the image "
        f"itself, because its files may take {most_megabytes:.0f} MB. For a sharper one, give "
        "--page-megabytes a larger number."
    ]


def _items(table: MapTable, shapes: Geometries, chips: Chips, after_from: int) -> list[MapItem]:
    pictured = set(pictured_rows(table.scores, table.marked, table.threshold).tolist())
    ranks, roles = table.ranks, table.roles
    items = []
    for row, name in enumerate(table.buildings.names):
        before = after = None
        if row in pictured:
            chip = np.asarray(chips.values[row])
            after = jpeg(chip[after_from:], PICTURE_QUALITY)
            before = jpeg(chip[:after_from], PICTURE_QUALITY) if after_from else None
        score = float(table.scores[row])
        items.append(
            MapItem(
                name=printable(name),
                rings=rings_of(shapes[row]),
                score=None if np.isnan(score) else score,
                rank=int(ranks[row]) or None,
                role=roles[row],
                reason=table.reasons.get(row),
                before=before,
                after=after,
            )
        )
    return items


def pictured_rows(
    scores: Float64[np.ndarray, "n"],
    marked: Bool[np.ndarray, "n"],
    threshold: float,
    *,
    times: int = 1,
) -> Int64[np.ndarray, "m"]:
    """Return the rows that get a picture: highest, near the threshold, marked with low scores.

    `times` as many of each as a page carries inside.
    """
    unmarked = np.flatnonzero(~np.isnan(scores) & ~marked)
    known = np.flatnonzero(~np.isnan(scores) & marked)
    highest = unmarked[np.argsort(-scores[unmarked], kind="stable")][: times * TOP]
    distance = np.abs(scores[unmarked] - threshold)
    doubtful = unmarked[np.argsort(distance, kind="stable")][: times * DOUBTFUL]
    lowest_marked = known[np.argsort(scores[known], kind="stable")][: times * MARKED]
    return np.unique(np.concatenate([highest, doubtful, lowest_marked]))


def rings_of(shape: object) -> Rings:
    """Return a shape in degrees as rings; nothing where a map cannot show it."""
    shapely = library("shapely", "A map")
    if shape is None or shapely.is_empty(shape):
        return ()
    corners = shapely.get_coordinates(shape)
    # Mercator has no poles, and conversion gives infinity far outside a coordinate system.
    if not np.isfinite(corners).all() or np.abs(corners[:, 1]).max() > 85:
        return ()
    if shapely.get_dimensions(shape) != 2:
        return [corners[:1]]
    return [
        shapely.get_coordinates(ring)  # as tuples they would take four times the memory
        for part in shapely.get_parts(shape)
        for ring in (part.exterior, *part.interiors)
    ]


def facts_of(summary: Summary) -> list[tuple[str, str]]:
    """Return label and value of every figure; a reason for missing figures comes only once."""
    facts, reasons = [], set()
    for figure in summary.figures:
        repeated = not figure.is_known and figure.missing in reasons
        facts.append((label(figure), NOT_ESTIMATED if repeated else full_value_text(figure)))
        reasons.add(figure.missing)
    known = [figure for figure in summary.figures if figure.is_known]
    return facts + [(f"assumes {each.label}", each.text) for each in assumptions_of(known)]


def base_picture(background: OutlinedImage, side: int = BASE_SIDE) -> tuple[bytes, Bounds] | None:
    """Return the image as JPEG: columns evenly spaced in longitude, rows in Web Mercator.

    By nearest neighbours and pyproj alone, so it needs no GDAL; takes about a second.
    """
    image, small = background.image, background.overview
    west, south, east, north = edge_in_degrees(image)
    if small is None or not (-85 < south < north < 85 and 0 < east - west <= 360):
        return None  # Mercator has no poles, and a map of the whole Earth needs no picture
    top, bottom = mercator(north), mercator(south)
    across, down = math.radians(east - west), top - bottom
    scale = min(side, max(small.valid.shape)) / max(across, down)
    width, height = max(1, round(across * scale)), max(1, round(down * scale))
    longitude = west + (np.arange(width) + 0.5) / width * (east - west)
    stretched = top - (np.arange(height) + 0.5) / height * down
    latitude = np.degrees(np.arctan(np.sinh(stretched)))
    picture = np.full((3, height, width), NO_DATA, np.uint8)
    convert = between(system(WGS84), image.system)
    shown_colours = colours(small.values)
    small_height, small_width = small.valid.shape
    for row in range(height):  # a row at a time: coordinates take more memory than pixels
        points = convert(np.column_stack([longitude, np.full(width, latitude[row])]))
        column, line = to_pixels(image.matrix, points).T
        x = np.floor(column * small_width / image.width)
        y = np.floor(line * small_height / image.height)
        inside = (x >= 0) & (x < small_width) & (y >= 0) & (y < small_height)
        x, y = x[inside].astype(np.int64), y[inside].astype(np.int64)
        shown = small.valid[y, x]
        picture[:, row, np.flatnonzero(inside)[shown]] = shown_colours[:, y[shown], x[shown]]
    turn = 360.0 * (west < -180)
    return jpeg(picture, BASE_QUALITY), (west + turn, south, east + turn, north)
