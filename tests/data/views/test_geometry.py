"""Windows against torchvision's documented procedure, resampling and turns against PIL."""

import math
import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.stats import ks_2samp
from torch import Tensor

from onesided.data.views.geometry import (
    BLOCK,
    after,
    blacken_boxes_,
    blacken_outside_,
    flips,
    random_boxes,
    resample,
    rotations,
    windows,
)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise_images(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=seeded(seed))


def documented_box(height: int, width: int) -> tuple[int, int, int, int]:
    """RandomResizedCrop's procedure as torchvision documents it, one image at a time."""
    for _ in range(10):
        area = height * width * random.uniform(0.2, 1.0)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    w, h = width, height
    if width / height < 3 / 4:
        h = round(width / (3 / 4))
    elif width / height > 4 / 3:
        w = round(height * (4 / 3))
    return (width - w) // 2, (height - h) // 2, w, h


@pytest.mark.parametrize(("height", "width"), [(32, 32), (8, 8), (20, 47), (96, 31)])
def test_windows_are_distributed_as_torchvision_documents(height: int, width: int) -> None:
    random.seed(5)
    ours = random_boxes(4000, height, width, seeded(1)).numpy()
    theirs = np.array([documented_box(height, width) for _ in range(4000)], dtype=np.float32)
    for column in range(4):
        assert ks_2samp(ours[:, column], theirs[:, column]).pvalue > 1e-3
    assert ks_2samp(ours[:, 2] * ours[:, 3], theirs[:, 2] * theirs[:, 3]).pvalue > 1e-3
    assert ks_2samp(ours[:, 2] / ours[:, 3], theirs[:, 2] / theirs[:, 3]).pvalue > 1e-3


def test_window_areas_and_ratios_stay_in_their_ranges() -> None:
    left, top, width, height = random_boxes(5000, 128, 128, seeded()).T
    share = width * height / 128**2
    assert share.min().item() == pytest.approx(0.2, abs=0.01)
    assert share.max() <= 1
    assert (width / height).min().item() == pytest.approx(3 / 4, abs=0.02)
    assert (width / height).max().item() == pytest.approx(4 / 3, abs=0.02)
    assert torch.stack([left, top, 128 - left - width, 128 - top - height]).min() == 0


def test_an_image_that_no_window_fits_shows_its_centre() -> None:
    assert random_boxes(3, 8, 200, seeded()).tolist() == [[94, 0, 11, 8]] * 3
    assert random_boxes(3, 200, 8, seeded()).tolist() == [[0, 94, 8, 11]] * 3


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3, 4]), st.integers(0, 10**6))
def test_cropping_equals_pil(height: int, width: int, channels: int, seed: int) -> None:
    images = noise_images(3, channels, height, width, seed=seed)
    boxes = random_boxes(3, height, width, seeded(seed))
    views = resample(images, windows(boxes, height, width))
    for image, view, (left, top, w, h) in zip(images, views, boxes.tolist(), strict=True):
        for channel, seen in zip(image, view, strict=True):
            picture = Image.fromarray((channel.float() / 255).numpy())
            box = (left, top, left + w, top + h)
            expected = picture.resize((width, height), Image.Resampling.BILINEAR, box=box)
            np.testing.assert_allclose(seen.numpy(), np.asarray(expected), atol=1e-4)


def test_large_batches_worked_on_in_blocks_equal_single_rows() -> None:
    images = noise_images(11, 6, 81, 83)
    assert images[0].numel() < BLOCK / 2 < BLOCK < images.numel()
    maps = windows(random_boxes(11, 81, 83, seeded()), 81, 83)
    rows = [resample(images[row : row + 1], maps[row : row + 1]) for row in range(11)]
    assert torch.equal(resample(images, maps), torch.cat(rows))


def test_flips_mirror_pixel_by_pixel() -> None:
    images = noise_images(4, 3, 7, 12)
    mirrored = torch.tensor([[False, False], [True, False], [False, True], [True, True]])
    plain = images.float() / 255
    expected = [plain[0], plain[1].flip(2), plain[2].flip(1), plain[3].flip(1, 2)]
    views = resample(images, flips(mirrored))
    torch.testing.assert_close(views, torch.stack(expected), atol=1e-5, rtol=0)


@pytest.mark.parametrize("degrees", [-171.3, -33.0, 12.5, 77.7, 140.2])
@pytest.mark.parametrize(("height", "width"), [(16, 16), (9, 20)])
def test_rotations_and_black_corners_equal_pil(degrees: float, height: int, width: int) -> None:
    images = noise_images(1, 1, height, width).clamp(min=1)
    turn = rotations(torch.tensor([degrees]))
    view = resample(images, turn)
    blacken_outside_(view, turn)
    picture = Image.fromarray((images[0, 0].float() / 255).numpy())
    expected = np.asarray(picture.rotate(degrees, Image.Resampling.BILINEAR))
    np.testing.assert_allclose(view[0, 0].numpy(), expected, atol=1e-4)
    assert (expected == 0).any()


def test_maps_compose_like_functions() -> None:
    outer, inner = torch.randn(2, 5, 2, 3, generator=seeded())
    point = torch.tensor([0.3, -2.0])
    between = inner[:, :, :2] @ point + inner[:, :, 2]
    expected = (outer[:, :, :2] @ between[:, :, None])[:, :, 0] + outer[:, :, 2]
    both = after(outer, inner)
    torch.testing.assert_close(both[:, :, :2] @ point + both[:, :, 2], expected)


def test_erased_boxes_are_black_and_nothing_else_is() -> None:
    boxes = torch.tensor([[1.0, 2.0, 3.0, 1.0], [4.0, 0.0, 0.0, 2.0]])
    images = torch.ones(2, 2, 6, 5)
    blacken_boxes_(images, boxes)
    expected = torch.ones(2, 2, 6, 5)
    expected[0, :, 2:3, 1:4] = 0
    assert torch.equal(images, expected)
