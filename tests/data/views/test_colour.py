"""Colour changes against the documented formulas, one image and one pixel at a time."""

import colorsys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest
from torch import Tensor

from onesided.data.views.colour import (
    OPERATIONS,
    ColourRecipe,
    in_groups,
    random_recipe,
    recolour_,
    turn_hue_,
)

NO_OPERATION = 4


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def loop_gray(image: np.ndarray) -> np.ndarray:
    if len(image) == 1:
        return np.asarray(image[0])
    return np.asarray(0.299 * image[0] + 0.587 * image[1] + 0.114 * image[2])


def loop_hue(image: np.ndarray, turn: float) -> np.ndarray:
    turned = np.empty_like(image)
    for y, x in np.ndindex(image.shape[1:]):
        hue, saturation, value = colorsys.rgb_to_hsv(*image[:, y, x].tolist())
        turned[:, y, x] = colorsys.hsv_to_rgb((hue + turn) % 1, saturation, value)
    return turned


def loop_operation(image: np.ndarray, which: int, factor: float) -> np.ndarray:
    """One operation on one image of one or three channels, as torchvision documents it."""
    if which == 0:
        return np.clip(image * factor, 0, 1)
    if which == 1:
        mean = float(loop_gray(image).mean())
        return np.clip(factor * image + (1 - factor) * mean, 0, 1)
    if len(image) == 1:
        return image
    if which == 2:
        return np.clip(factor * image + (1 - factor) * loop_gray(image), 0, 1)
    return loop_hue(image, factor)


def loop_recolour(images: Tensor, recipe: ColourRecipe) -> np.ndarray:
    """Each image, each group of channels, each operation in the row's own order."""
    result = images.double().numpy().copy()
    size = 3 if images.shape[1] % 3 == 0 else 1
    for row, channel in np.ndindex(len(result), images.shape[1] // size):
        group = result[row, channel * size : (channel + 1) * size]
        for which in recipe.order[row].tolist():
            if which != NO_OPERATION:
                group[:] = loop_operation(group, which, float(recipe.factors[row, which]))
        if recipe.gray[row] and size == 3:
            group[:] = loop_gray(group)
    return result


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.6, 1.4), st.floats(-1 / 6, 1 / 6))
def test_each_operation_follows_its_formula(seed: int, factor: float, turn: float) -> None:
    images = torch.rand(2, 3, 4, 5, generator=seeded(seed))
    for which, operation in enumerate(OPERATIONS):
        amount = turn if operation is turn_hue_ else factor
        changed = images.clone()
        operation(in_groups(changed), torch.full((2, 1, 1, 1, 1), amount))
        for image, seen in zip(images.double().numpy(), changed.numpy(), strict=True):
            np.testing.assert_allclose(seen, loop_operation(image, which, amount), atol=2e-6)


@pytest.mark.parametrize("turn", [-1 / 6, -0.1, 0.0, 0.05, 1 / 6])
def test_hues_of_pure_and_tied_colours_shift_too(turn: float) -> None:
    levels = torch.tensor([0.0, 0.5, 1.0])
    images = torch.cartesian_prod(levels, levels, levels).T.reshape(1, 3, 3, 9).clone()
    expected = loop_hue(images[0].double().numpy(), turn)
    turn_hue_(in_groups(images), torch.full((1, 1, 1, 1, 1), turn))
    np.testing.assert_allclose(images[0].numpy(), expected, atol=2e-6)


@pytest.mark.parametrize("channels", [1, 3, 4, 6])
def test_every_row_follows_its_own_recipe_in_its_own_order(channels: int) -> None:
    images = torch.rand(40, channels, 3, 5, generator=seeded(2))
    recipe = random_recipe(40, seeded(3))
    changed = images.clone()
    recolour_(changed, recipe)
    np.testing.assert_allclose(changed.numpy(), loop_recolour(images, recipe), atol=1e-5)


def test_two_pictures_in_six_channels_change_by_the_same_factors_each_on_its_own() -> None:
    before, later = torch.rand(2, 30, 3, 6, 6, generator=seeded())
    both = torch.cat([before, later], dim=1)
    recipe = random_recipe(30, seeded(1))
    for images in (before, later, both):
        recolour_(images, recipe)
    assert torch.equal(both, torch.cat([before, later], dim=1))


def test_gray_weighs_red_green_and_blue_as_the_eye_does() -> None:
    images = torch.eye(3)[:, :, None, None].repeat(1, 1, 2, 2)
    untouched = torch.full((3, 4), NO_OPERATION)
    recolour_(images, ColourRecipe(torch.ones(3, 4), untouched, torch.ones(3) > 0))
    assert images[:, 0, 0, 0].tolist() == pytest.approx([0.299, 0.587, 0.114])
    assert torch.equal(images[:, 0], images[:, 1])
    assert torch.equal(images[:, 0], images[:, 2])


def test_factors_are_uniform_over_their_published_ranges() -> None:
    factors = random_recipe(10_000, seeded()).factors.double().T.numpy()
    ranges = [(0.6, 1.4), (0.6, 1.4), (0.6, 1.4), (-0.1, 0.1)]
    for factor, (low, high) in zip(factors, ranges, strict=True):
        assert low - 1e-6 <= factor.min() <= factor.max() <= high + 1e-6
        assert kstest(factor, "uniform", args=(low, high - low)).pvalue > 1e-3


def test_eight_rows_in_ten_are_jittered_and_two_in_ten_lose_their_colour() -> None:
    recipe = random_recipe(20_000, seeded())
    jittered = recipe.order[:, 0] != NO_OPERATION
    assert jittered.float().mean().item() == pytest.approx(0.8, abs=0.012)
    assert recipe.gray.float().mean().item() == pytest.approx(0.2, abs=0.012)
    assert (recipe.order[~jittered] == NO_OPERATION).all()


def test_all_twenty_four_orders_are_equally_likely() -> None:
    order = random_recipe(20_000, seeded()).order
    jittered = order[order[:, 0] != NO_OPERATION]
    orders, counts = torch.unique(jittered, dim=0, return_counts=True)
    assert torch.equal(orders.sort(dim=1).values, torch.arange(4).expand(24, 4))
    assert chisquare(counts.numpy()).pvalue > 1e-3
