"""Ground, roofs and rubble, drawn from a seed so that a network can tell damage from none."""

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

SUBTYPES = ("no-damage", "minor-damage", "major-damage", "destroyed")
"""The damage scale of xBD, in its order; the last two count as damaged."""
# How much of a roof turns to rubble.
RUBBLE = {"no-damage": 0.0, "minor-damage": 0.15, "major-damage": 0.7, "destroyed": 1.0}


@dataclass(frozen=True)
class Outline:
    """A rectangle, turned: corners in pixels, x to the right and y downwards."""

    corners: tuple[tuple[float, float], ...]

    @property
    def ring(self) -> tuple[tuple[float, float], ...]:
        """The corners, with the first once more at the end."""
        return (*self.corners, self.corners[0])

    @property
    def centre(self) -> tuple[float, float]:
        """The middle of the rectangle."""
        x, y = np.mean(self.corners, axis=0)
        return float(x), float(y)


def place_buildings(size: int, count: int, random: np.random.Generator) -> list[Outline]:
    """Return so many rectangles that do not touch each other, in cells of a square image."""
    across = int(np.ceil(np.sqrt(count)))
    cell = size / across
    outlines = []
    for number in random.permutation(across * across)[:count]:
        row, column = divmod(int(number), across)
        long, short = cell * random.uniform(0.42, 0.52), cell * random.uniform(0.3, 0.4)
        turn = random.uniform(0, np.pi)
        shift = random.uniform(-0.08, 0.08, 2) * cell
        centre = np.array([column + 0.5, row + 0.5]) * cell + shift
        along = np.array([np.cos(turn), np.sin(turn)]) * long / 2
        beside = np.array([-np.sin(turn), np.cos(turn)]) * short / 2
        corners = (
            centre + along + beside,
            centre + along - beside,
            centre - along - beside,
            centre - along + beside,
        )
        outlines.append(Outline(tuple((float(x), float(y)) for x, y in corners)))
    return outlines


def draw_ground(size: int, random: np.random.Generator) -> np.ndarray:
    """Return (3, size, size) of uint8: green-brown noise."""
    # Noise repeats in blocks: a whole image of it would take most of a test's time.
    block = random.normal(0, 9, (3, 128, 128)) + np.array([92, 104, 70])[:, None, None]
    repeats = -(-size // 128)
    return np.tile(block, (1, repeats, repeats))[:, :size, :size].clip(0, 255).astype(np.uint8)


def draw_building(
    image: np.ndarray, outline: Outline, subtype: str, random: np.random.Generator
) -> None:
    """Draw a roof into (3, height, width), with as much rubble as its damage takes."""
    height, width = image.shape[1:]
    corners = np.array(outline.corners)
    left, top = np.maximum(np.floor(corners.min(axis=0)).astype(int), 0)
    right, bottom = np.minimum(np.ceil(corners.max(axis=0)).astype(int), (width, height))
    mask = Image.new("1", (int(right - left), int(bottom - top)))
    ImageDraw.Draw(mask).polygon([(x - left, y - top) for x, y in outline.corners], fill=1)
    roof = np.asarray(mask)
    # Bright and even while it stands; dark and uneven where it fell.
    colour = random.uniform(165, 215) + np.array([12, 0, -8]) * random.uniform(-1, 1)
    standing = colour[:, None, None] + random.normal(0, 3, (3, *roof.shape))
    fallen = random.choice([40.0, 75.0, 150.0], (1, *roof.shape)) + random.normal(
        0, 12, (3, *roof.shape)
    )
    rows = np.arange(roof.shape[0])[:, None] / max(roof.shape[0] - 1, 1)
    is_rubble = np.broadcast_to(rows <= RUBBLE[subtype], roof.shape) & (RUBBLE[subtype] > 0)
    drawn = np.where(is_rubble, fallen, standing).clip(0, 255).astype(np.uint8)
    piece = image[:, top:bottom, left:right]
    piece[:, roof] = drawn[:, roof]


def draw_pair(
    size: int, outlines: list[Outline], subtypes: list[str], random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the image before, where every roof stands, and the image after."""
    before = draw_ground(size, random)
    after = before.copy()
    for outline, subtype in zip(outlines, subtypes, strict=True):
        draw_building(before, outline, "no-damage", random)
        draw_building(after, outline, subtype, random)
    return before, after


def draw_subtypes(count: int, damaged_share: float, random: np.random.Generator) -> list[str]:
    """Return damage for so many buildings, this share of them damaged, exactly."""
    damaged = round(count * damaged_share)
    chosen = [*random.choice(SUBTYPES[2:], damaged), *random.choice(SUBTYPES[:2], count - damaged)]
    return [str(chosen[place]) for place in random.permutation(count)]


@dataclass(frozen=True)
class FakeBuilding:
    """One building and what was drawn for it.

    Attributes:
        name: Its uid in xBD, its id in footprints, its file in ABCD.
        tile: The image it is in; the event and number of an xBD tile.
        subtype: Its damage in xBD's words.
        outline: Where it is, in pixels of its image.
        lon: Of its middle, in degrees.
        lat: Of its middle, in degrees.
    """

    name: str
    tile: str
    subtype: str
    outline: Outline
    lon: float
    lat: float

    @property
    def damaged(self) -> bool:
        """Whether it counts as positive."""
        return self.subtype in ("major-damage", "destroyed")
