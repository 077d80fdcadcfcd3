"""Folders of small images: reddish ones are positive, bluish ones are not."""

from pathlib import Path

import numpy as np
from PIL import Image

RED, BLUE = 0, 2


def picture(seed: int, channel: int = RED, side: int = 8) -> Image.Image:
    """Return a dark noisy image in which one channel is bright."""
    pixels = np.random.default_rng(seed).integers(0, 60, (side, side, 3), dtype=np.uint8)
    pixels[..., channel] += 170
    return Image.fromarray(pixels)


def draw(path: Path, seed: int, channel: int = RED, side: int = 8) -> Path:
    """Write one image, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture(seed, channel, side).save(path, "PNG")
    return path


def draw_data(folder: Path, positives: int = 30, unlabelled: int = 60) -> Path:
    """Write P of red images and U, of which four in ten are red; return the folder."""
    for number in range(positives):
        draw(folder / "P" / f"red{number:02}.png", number)
    for number in range(unlabelled):
        channel = RED if number < 0.4 * unlabelled else BLUE
        draw(folder / "U" / f"item{number:02}.png", 1000 + number, channel)
    return folder
