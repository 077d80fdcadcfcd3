"""An image that is turned, mirrored, cropped, brightened or framed is still the same image."""

from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageOps

from onesided.data.problem.content import contents_of
from onesided.data.problem.looks import TURNS, Waves, fitted, thumbnails
from tests.data.problem.test_content import encoded_again, everything, photographs

Change = Callable[[Image.Image], Image.Image]


def changed(images: np.ndarray, change: Change) -> np.ndarray:
    done = [change(Image.fromarray(image.transpose(1, 2, 0))) for image in images]
    return np.stack([np.asarray(image.resize((32, 32))).transpose(2, 0, 1) for image in done])


def brightened(by: float) -> Change:
    return lambda image: Image.fromarray(
        np.clip(np.asarray(image).astype(float) * by, 0, 255).astype(np.uint8)
    )


def turned(turn: Image.Transpose) -> Change:
    return lambda image: image.transpose(turn)


CHANGES: dict[str, Change] = {
    **{turn.name.lower(): turned(turn) for turn in Image.Transpose},
    "brighter": brightened(1.15),
    "darker": brightened(0.85),
    "less contrast": lambda image: Image.blend(image, Image.new("RGB", image.size, "grey"), 0.3),
    "cropped": lambda image: image.crop((2, 1, 31, 30)),
    "moved": lambda image: image.crop((2, 2, 34, 34)),
    "grey": lambda image: image.convert("L").convert("RGB"),
    "framed": lambda image: ImageOps.expand(image.resize((28, 28)), 2, "black"),
    "all at once": lambda image: brightened(0.9)(
        image.transpose(Image.Transpose.ROTATE_90).crop((1, 2, 32, 31))
    ),
}


HARDER = {"moved": 0.75, "framed": 0.6}
"""Least share that is found where an edge of the frame is encoded with the image."""


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_image_is_the_same_image(name: str) -> None:
    images = photographs(100)
    again = encoded_again(changed(images[:30], CHANGES[name]), quality=85)
    number = contents_of([everything(images), everything(again)]).number
    assert (number[:30] == number[100:]).mean() >= HARDER.get(name, 0.9)
    assert len(np.unique(number[:100])) == 100


def test_many_variants_of_eight_images_are_eight_images() -> None:
    images = photographs(108)
    variants = [changed(images[:8], change) for change in CHANGES.values()]
    number = contents_of([everything(images), everything(np.concatenate(variants))]).number
    assert len(np.unique(number)) <= 112


def test_a_drawing_on_plain_ground_has_no_frame() -> None:
    ground = np.zeros((1, 1, 32, 32), np.uint8)
    ground[:, :, 8:24, 14:18] = 200
    wider = np.pad(ground[:, :, 4:-4, 4:-4], [(0, 0), (0, 0), (4, 4), (4, 4)])
    assert np.array_equal(thumbnails(ground), thumbnails(wider))
    assert np.allclose(thumbnails(ground)[0, 0, 0], 0)


def test_what_is_compared_first_is_the_same_for_all_turns_of_an_image() -> None:
    small = thumbnails(photographs(20))
    basis = Waves.of(1, 16)
    waves = basis.of_thumbnails(small)
    for (swap, down, across), by_formula in zip(TURNS, basis.turned(waves), strict=True):
        image = small.swapaxes(2, 3) if swap else small
        turned = image[:, :, :: -1 if down else 1, :: -1 if across else 1]
        found = basis.of_thumbnails(turned)
        assert np.allclose(found, by_formula, atol=1e-4)
        assert np.allclose(basis.turnless(found), basis.turnless(waves), atol=1e-4)


def test_the_place_of_a_moved_image_is_found() -> None:
    wide = thumbnails(photographs(10).repeat(2, axis=2).repeat(2, axis=3), 64)
    one, other = wide[:, :, 8:40, 8:40], wide[:, :, 6:38, 9:41]
    left, place = fitted(one, other, rounds=8)
    assert left.max() < 1e-3
    assert np.allclose(place[:, [0, 2]], [2, -1], atol=0.1)
    assert np.allclose(place[:, [1, 3]], 0, atol=0.02)


def test_images_of_several_bands_are_turned_as_a_whole() -> None:
    images = np.concatenate([photographs(60), photographs(60, seed=1)], axis=1)
    mirrored = images[:20, :, :, ::-1]
    number = contents_of([everything(images), everything(mirrored)]).number
    assert np.array_equal(number[:20], number[60:])
    only_half = np.concatenate([mirrored[:, :3], images[:20, 3:]], axis=1)
    assert contents_of([everything(images), everything(only_half)]).near == 0
