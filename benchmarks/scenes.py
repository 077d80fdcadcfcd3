"""Generated places after a disaster, of three kinds of damage, for the benchmark of maps.

Every place has roofs of many colours, trees with shadows, roads and bare soil, an image before and
one after under other light and a pixel apart, and damage that comes in districts. Nothing in it is
taken from a data set. What is drawn for each kind:

* collapse: rubble over a large part of the roof, and beside it; sound roofs have small stains.
* flood: brown water around the building, the roof as before; sound ones stand beside brown soil.
* fire: a charred roof with ash; some sound roofs are dark, too.
"""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from onesided.storage.optional import library

Kind = Literal["collapse", "flood", "fire"]
KINDS: tuple[Kind, ...] = ("collapse", "flood", "fire")
METRES_PER_PIXEL, WEST, NORTH, CRS = 0.5, 500_000.0, 1_600_000.0, "EPSG:32615"
PITCH = 44
"""Pixels from one building to the next."""
RUBBLE, WATER = np.array([150.0, 140.0, 130.0]), np.array([118.0, 98.0, 70.0])
CHARCOAL = np.array([38.0, 34.0, 32.0])


@dataclass(frozen=True)
class GeneratedScene:
    """The files of a place, and how many of its buildings are damaged."""

    post: Path
    pre: Path
    footprints: Path
    marked: Path
    truth: Path
    buildings: int
    damaged: int


def write_scene(
    folder: Path, kind: Kind, *, seed: int, across: int, share: float, marked: int
) -> GeneratedScene:
    """Write a place of `across` by `across` buildings, this share of them damaged."""
    random = np.random.default_rng([seed, KINDS.index(kind)])
    folder.mkdir(parents=True, exist_ok=True)
    side = across * PITCH + PITCH
    before = _ground(side, random)
    middles = PITCH + PITCH * np.stack(np.meshgrid(range(across), range(across)), -1).reshape(-1, 2)
    middles = middles + random.uniform(-5, 5, middles.shape)
    halves = random.uniform(6, 13, middles.shape)
    damaged = _districts(middles, side, share, random)
    roofs = random.uniform(70, 225, (len(middles), 1)) + random.normal(0, 16, (len(middles), 3))
    after = before.copy()
    for row, (middle, half) in enumerate(zip(middles, halves, strict=True)):
        _roof(before, middle, half, roofs[row], random)
        _roof(after, middle, half, roofs[row], random)
        _damage(after, middle, half, kind, random, is_damaged=bool(damaged[row]))
    for middle in random.uniform(0, side, (across * across // 2, 2)):
        _tree(before, middle, random)
        _tree(after, middle, random)
    light = random.uniform(0.8, 1.2, 3)
    after = np.roll(after * light[:, None, None], (1, -1), axis=(1, 2))
    post, pre = folder / "post.tif", folder / "pre.tif"
    for path, pixels in ((post, after), (pre, before)):
        write_image(path, pixels + random.normal(0, 5, pixels.shape))
    # The image after is a pixel off, as images of two days are; footprints fit the first.
    names = [f"b{row:05d}" for row in range(len(middles))]
    _write_footprints(folder / "buildings.gpkg", names, middles, halves)
    chosen = sorted(random.permutation(np.flatnonzero(damaged))[:marked])
    _write_rows(folder / "marked.csv", [("id",), *((names[row],) for row in chosen)])
    classes = [(name, int(is_damaged)) for name, is_damaged in zip(names, damaged, strict=True)]
    _write_rows(folder / "truth.csv", [("id", "label"), *classes])
    return GeneratedScene(
        post,
        pre,
        folder / "buildings.gpkg",
        folder / "marked.csv",
        folder / "truth.csv",
        len(names),
        int(damaged.sum()),
    )


def _ground(side: int, random: np.random.Generator) -> np.ndarray:
    """Return grass with bare soil in patches, and roads."""
    coarse = random.normal(0, 1, (side // 40 + 2, side // 40 + 2))
    soil = np.kron(coarse, np.ones((40, 40)))[:side, :side] > 0.7
    grass = np.array([92.0, 116.0, 74.0])[:, None, None] + random.normal(0, 9, (3, side, side))
    brown = np.array([136.0, 112.0, 84.0])[:, None, None] + random.normal(0, 9, (3, side, side))
    ground = np.where(soil, brown, grass)
    for place in range(PITCH // 2, side, 4 * PITCH):
        ground[:, place - 4 : place + 4] = 125 + random.normal(0, 6, (3, 8, side))
    return ground


def _districts(
    middles: np.ndarray, side: int, share: float, random: np.random.Generator
) -> np.ndarray:
    """Return which buildings are damaged: more around three centres than elsewhere."""
    centres = random.uniform(0, side, (3, 2))
    nearest = np.linalg.norm(middles[:, None] - centres, axis=2).min(axis=1) / side
    risk = -3 * nearest + random.gumbel(0, 0.35, len(middles))
    damaged = np.zeros(len(middles), bool)
    damaged[np.argsort(-risk)[: round(share * len(middles))]] = True
    return damaged


def _part(image: np.ndarray, middle: np.ndarray, half: np.ndarray) -> np.ndarray:
    (left, top), (right, bottom) = (
        (np.rint(middle - half)).astype(int),
        (np.rint(middle + half).astype(int)),
    )
    return image[:, max(top, 0) : bottom, max(left, 0) : right]


def _roof(
    image: np.ndarray,
    middle: np.ndarray,
    half: np.ndarray,
    colour: np.ndarray,
    random: np.random.Generator,
) -> None:
    _part(image, middle + 3, half)[:] *= 0.55  # its shadow
    part = _part(image, middle, half)
    ridge = np.where(np.arange(part.shape[1])[:, None] < part.shape[1] / 2, 1.08, 0.92)
    part[:] = colour[:, None, None] * ridge + random.normal(0, 4, part.shape)


def _tree(image: np.ndarray, middle: np.ndarray, random: np.random.Generator) -> None:
    part = _part(image, middle, np.full(2, random.uniform(2, 5)))
    part[:] = np.array([45.0, 78.0, 42.0])[:, None, None] + random.normal(0, 10, part.shape)


def _damage(
    image: np.ndarray,
    middle: np.ndarray,
    half: np.ndarray,
    kind: Kind,
    random: np.random.Generator,
    *,
    is_damaged: bool,
) -> None:
    """Draw damage, or what could be taken for it."""
    extent = random.uniform(0.45, 1.0) if is_damaged else random.uniform(0.0, 0.12)
    match kind:
        case "collapse":
            part = _part(image, middle, half * (1.25 if is_damaged else 1))
            pieces = random.uniform(size=part.shape[1:]) < extent
            rubble = RUBBLE[:, None, None] + random.choice([-70, -20, 30], part.shape[1:])
            part[:, pieces] = (rubble + random.normal(0, 14, part.shape))[:, pieces]
        case "flood":
            part = _part(image, middle, half + 7)
            inside = np.ones(part.shape[1:], bool)
            inside[6:-6, 6:-6] = False
            wet = inside & (random.uniform(size=part.shape[1:]) < 0.3 + 0.7 * extent)
            water = WATER[:, None, None] + random.normal(0, 4, part.shape)
            if is_damaged:
                part[:, wet] = water[:, wet]
        case "fire":
            part = _part(image, middle, half)
            burnt = random.uniform(size=part.shape[1:]) < extent
            ash = CHARCOAL[:, None, None] + random.choice([0, 0, 70], part.shape[1:])
            part[:, burnt] = (ash + random.normal(0, 9, part.shape))[:, burnt]
            if not is_damaged and random.uniform() < 0.15:
                part[:] *= 0.45  # a dark roof


def write_image(path: Path, pixels: np.ndarray) -> None:
    """Write colours as a tiled GeoTIFF whose corner is that of every place."""
    rasterio = library("rasterio", "The benchmark")
    values = pixels.clip(0, 255).astype(np.uint8)
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        count=3,
        height=values.shape[1],
        width=values.shape[2],
        dtype="uint8",
        crs=CRS,
        transform=rasterio.Affine(METRES_PER_PIXEL, 0, WEST, 0, -METRES_PER_PIXEL, NORTH),
        tiled=True,
        compress="deflate",
    ) as file:
        file.write(values)


def _write_footprints(
    path: Path, names: list[str], middles: np.ndarray, halves: np.ndarray
) -> None:
    shapely, raw = library("shapely", "The benchmark"), library("pyogrio.raw", "The benchmark")
    (left, top), (right, bottom) = (middles - halves).T, (middles + halves).T
    west, east = WEST + left * METRES_PER_PIXEL, WEST + right * METRES_PER_PIXEL
    south, north = NORTH - bottom * METRES_PER_PIXEL, NORTH - top * METRES_PER_PIXEL
    raw.write(
        path,
        geometry=shapely.to_wkb(shapely.box(west, south, east, north)),
        field_data=[np.array(names, object)],
        fields=["id"],
        geometry_type="Polygon",
        crs=CRS,
        driver="GPKG",
    )


def _write_rows(path: Path, rows: list[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
