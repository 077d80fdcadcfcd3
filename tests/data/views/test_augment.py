"""The seam: what each kind of item may become, and that shards see what one process sees."""

from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.stats import chisquare, kstest
from torch import Tensor

from onesided.core.batch import Augment
from onesided.core.errors import DataError
from onesided.data.problem.samples import ImageKind
from onesided.data.views.augment import DIGIT_RANGES, GENTLER, augment, digit_poses, random_patches
from onesided.data.views.colour import random_recipe, recolour_
from onesided.data.views.geometry import blacken_outside_, random_boxes, resample

RAMP_STEP, RAMP_SIDE = 7, 32

each_kind = pytest.mark.parametrize("kind", get_args(ImageKind))
each_image_kind = pytest.mark.parametrize("kind", ["photograph", "remote", "digit"])
each_strength = pytest.mark.parametrize("strength", list(Augment))
each_random_strength = pytest.mark.parametrize("strength", [Augment.WEAK, Augment.STRONG])


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise_images(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=seeded(seed))


def batch_of(kind: ImageKind) -> Tensor:
    if kind == "vector":
        return torch.randn(24, 11, generator=seeded())
    return noise_images(24, 3, 13, 10)


def ramps(count: int) -> Tensor:
    """Two channels that hold x and y: a view then shows where its pixels came from."""
    x = (torch.arange(RAMP_SIDE) * RAMP_STEP).expand(RAMP_SIDE, RAMP_SIDE)
    return torch.stack([x, x.T]).to(torch.uint8).repeat(count, 1, 1, 1)


def where_read(views: Tensor) -> tuple[Tensor, Tensor]:
    """Return linear part (n, 2, 2) and source of the centre (n, 2) of each view of ramps."""
    source = views.double() * 255 / RAMP_STEP + 0.5
    middle = slice(RAMP_SIDE // 2 - 1, RAMP_SIDE // 2 + 1)
    centre = source[:, :, middle, middle]
    across = centre[:, :, 0, 1] - centre[:, :, 0, 0]
    down = centre[:, :, 1, 0] - centre[:, :, 0, 0]
    return torch.stack([across, down], dim=2), centre.mean(dim=(2, 3))


@each_kind
@each_strength
@pytest.mark.parametrize("part", [slice(0, 12), slice(12, 24), slice(5, 6), slice(7, 7)])
def test_a_shard_gets_the_same_rows_as_the_whole_view(
    kind: ImageKind, strength: Augment, part: slice
) -> None:
    values, mine, whole = batch_of(kind), seeded(4), seeded(4)
    shard = augment(values, kind, strength, mine, part=part)
    assert torch.equal(shard, augment(values, kind, strength, whole)[part])
    assert torch.equal(mine.get_state(), whole.get_state())


@each_image_kind
@each_random_strength
@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from([1, 2, 3, 4, 6]),
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.integers(0, 9),
)
def test_views_of_any_shape_keep_it_and_stay_between_black_and_white(
    kind: ImageKind, strength: Augment, channels: int, size: tuple[int, int], row: int
) -> None:
    images = noise_images(10, channels, *size)
    images[0] = 255
    views = augment(images, kind, strength, seeded(row))
    assert (views.shape, views.dtype) == (images.shape, torch.float32)
    assert 0 <= views.min() <= views.max() <= 1
    alone = augment(images, kind, strength, seeded(row), part=slice(row, row + 1))
    assert torch.equal(alone, views[row : row + 1])


@each_kind
@each_random_strength
def test_only_the_generator_decides(kind: ImageKind, strength: Augment) -> None:
    values, untouched = batch_of(kind), torch.get_rng_state()
    view = augment(values, kind, strength, seeded(1))
    assert torch.equal(view, augment(values, kind, strength, seeded(1)))
    assert not torch.equal(view, augment(values, kind, strength, seeded(2)))
    assert torch.equal(torch.get_rng_state(), untouched)
    assert torch.equal(values, batch_of(kind))


@each_kind
def test_a_plain_view_is_the_item_itself_and_draws_nothing(kind: ImageKind) -> None:
    values, generator = batch_of(kind), seeded()
    plain = augment(values, kind, Augment.PLAIN, generator)
    assert torch.equal(plain, values if kind == "vector" else values.float() / 255)
    assert torch.equal(generator.get_state(), seeded().get_state())
    plain.zero_()
    assert torch.equal(values, batch_of(kind))


@pytest.mark.parametrize(
    ("kind", "values", "remedy"),
    [
        ("photograph", torch.zeros(4, 7), "set the kind to 'vector'"),
        ("digit", torch.zeros(4, 1, 8, 8), "uint8"),
        ("vector", torch.zeros(4, 1, 8, 8, dtype=torch.uint8), "another kind than 'vector'"),
    ],
)
def test_items_of_another_kind_are_refused_with_a_remedy(
    kind: ImageKind, values: Tensor, remedy: str
) -> None:
    with pytest.raises(DataError, match=remedy):
        augment(values, kind, Augment.WEAK, seeded())


@each_random_strength
def test_photographs_equal_pil_image_by_image(strength: Augment) -> None:
    images = noise_images(16, 3, 12, 17)
    views = augment(images, "photograph", strength, seeded(9))
    generator = seeded(9)
    boxes = random_boxes(16, 12, 17, generator).tolist()
    mirrored = (torch.rand(16, generator=generator) < 0.5).tolist()
    expected = torch.empty(16, 3, 12, 17)
    for row, channel in np.ndindex(16, 3):
        left, top, width, height = boxes[row]
        picture = Image.fromarray((images[row, channel].float() / 255).numpy())
        box = (left, top, left + width, top + height)
        seen = picture.resize((17, 12), Image.Resampling.BILINEAR, box=box)
        seen = seen.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored[row] else seen
        expected[row, channel] = torch.from_numpy(np.array(seen))
    if strength == Augment.STRONG:
        recolour_(expected, random_recipe(16, generator))
    torch.testing.assert_close(views, expected, atol=1e-4, rtol=0)


def test_photographs_are_cropped_to_whole_pixels_and_half_are_mirrored() -> None:
    views = augment(ramps(3000), "photograph", Augment.WEAK, seeded())
    linear, centre = where_read(views)
    assert linear[:, [0, 1], [1, 0]].abs().max() < 1e-3
    assert (linear[:, 1, 1] > 0).all()
    assert (linear[:, 0, 0] < 0).double().mean().item() == pytest.approx(0.5, abs=0.03)
    size = torch.diagonal(linear, dim1=1, dim2=2).abs() * RAMP_SIDE
    corner = centre - size / 2
    for length in (size, corner):
        assert (length - length.round()).abs().max() < 0.01
    assert corner.min() > -0.01
    assert (corner + size).max() < RAMP_SIDE + 0.01
    assert size.prod(dim=1).min().item() == pytest.approx(0.2 * RAMP_SIDE**2, rel=0.05)


def mirrored_and_rotated(strength: Augment) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return signs of x, y and determinant, and whether the view is rotated."""
    linear, _ = where_read(augment(ramps(3000), "remote", strength, seeded()))
    across, down = torch.diagonal(linear, dim1=1, dim2=2).sign().T
    rotated = linear[:, [0, 1], [1, 0]].abs().amax(dim=1) > 1e-3
    return across, down, torch.linalg.det(linear).sign(), rotated


def test_a_weak_remote_view_is_mirrored_or_flipped_or_rotated_but_never_two_of_them() -> None:
    across, down, orientation, rotated = mirrored_and_rotated(Augment.WEAK)
    assert (orientation[rotated] > 0).all()
    assert ((across > 0) | (down > 0))[~rotated].all()
    assert rotated.double().mean().item() == pytest.approx(1 / 3, abs=0.03)
    for sign in (across, down):
        assert ((sign < 0) & ~rotated).double().mean().item() == pytest.approx(1 / 6, abs=0.025)


def test_a_strong_remote_view_is_always_rotated_and_half_are_mirror_images() -> None:
    _, _, orientation, rotated = mirrored_and_rotated(Augment.STRONG)
    assert rotated.double().mean() > 0.99
    assert (orientation < 0).double().mean().item() == pytest.approx(0.5, abs=0.03)


def test_a_gentle_photograph_is_moved_by_whole_pixels_and_half_are_mirrored() -> None:
    views = augment(ramps(2000), "photograph", Augment.GENTLE, seeded())
    linear, centre = where_read(views)
    shift = centre - RAMP_SIDE / 2
    mirrored = linear[:, 0, 0] < 0
    assert torch.allclose(linear.abs(), torch.eye(2).double(), atol=1e-3)
    assert 0.45 < mirrored.double().mean() < 0.55
    assert not (linear[:, 1, 1] < 0).any()
    assert torch.allclose(shift, shift.round(), atol=1e-3)
    counts = torch.histc(shift.round().flatten(), bins=9, min=-4.5, max=4.5)
    assert chisquare(counts.numpy()).pvalue > 1e-3, "shifts up to an eighth are equally likely"


def test_a_gentle_remote_view_is_one_of_the_eight_poses_of_a_square() -> None:
    views = augment(ramps(2000), "remote", Augment.GENTLE, seeded())
    poses = where_read(views)[0].round().to(torch.int64).reshape(-1, 4)
    seen, counts = np.unique(poses.numpy(), axis=0, return_counts=True)
    assert len(seen) == 8
    assert chisquare(counts).pvalue > 1e-3


def test_a_patched_view_is_the_gentle_one_recoloured_with_a_square_of_its_mean() -> None:
    images = noise_images(300, 3, 32, 32)
    random = seeded()
    gentle = augment(images, "photograph", Augment.GENTLE, random)
    recolour_(gentle, random_recipe(len(images), random))
    hides_a_square(gentle, augment(images, "photograph", Augment.PATCHED, seeded()))


def test_a_patched_remote_view_keeps_its_colours() -> None:
    images = noise_images(300, 3, 32, 32)
    gentle = augment(images, "remote", Augment.GENTLE, seeded())
    hides_a_square(gentle, augment(images, "remote", Augment.PATCHED, seeded()))


def hides_a_square(whole: Tensor, patched: Tensor) -> None:
    hidden = (patched != whole).any(dim=1)
    for before, after, covered in zip(whole, patched, hidden, strict=True):
        expected = before.mean(dim=(1, 2))[:, None].expand_as(after[:, covered])
        assert torch.allclose(after[:, covered], expected, atol=1e-6)
        assert 36 <= int(covered.sum()) <= 144, "12 x 12 pixels, up to half of each side outside"


@pytest.mark.parametrize("kind", ["digit", "vector"])
def test_digits_and_vectors_are_changed_little_as_it_is(kind: ImageKind) -> None:
    for published, gentler in GENTLER.items():
        as_published = augment(batch_of(kind), kind, published, seeded())
        assert torch.equal(augment(batch_of(kind), kind, gentler, seeded()), as_published)


def test_rotations_are_uniform_over_the_whole_circle() -> None:
    linear, _ = where_read(augment(ramps(6000), "remote", Augment.WEAK, seeded()))
    # The crop stretches each axis by its own positive factor, which a row's norm undoes.
    cosine, sine = (linear[:, 0] / linear[:, 0].norm(dim=1, keepdim=True)).T
    degrees = torch.rad2deg(torch.atan2(sine, cosine))[sine.abs() > 1e-3]
    assert kstest(degrees.numpy(), "uniform", args=(-180, 360)).pvalue > 1e-3


@each_random_strength
def test_remote_colours_stay_and_only_rotated_corners_are_black(strength: Augment) -> None:
    colour = torch.tensor([40, 90, 200, 10, 120, 250], dtype=torch.uint8)[:, None, None]
    views = augment(colour.repeat(200, 1, 20, 20), "remote", strength, seeded())
    black = views == 0
    kept = torch.isclose(views, colour.float() / 255, atol=1e-6)
    assert (black ^ kept).all()
    assert not black[:, :, 4:16, 4:16].any()
    rotated = 1 / 3 if strength == Augment.WEAK else 1
    assert black.flatten(1).any(dim=1).double().mean().item() == pytest.approx(rotated, abs=0.1)


@each_random_strength
def test_digits_move_within_their_ranges_and_are_never_mirrored(strength: Augment) -> None:
    ranges = DIGIT_RANGES[strength]
    poses = digit_poses(3000, (28, 20), ranges, seeded())
    determinant = torch.linalg.det(poses[:, :, :2])
    assert determinant.rsqrt().min().item() == pytest.approx(1 - ranges.scale, abs=0.01)
    assert determinant.rsqrt().max().item() == pytest.approx(1 + ranges.scale, abs=0.01)
    # The first column is the rotated x axis; the slant only moves the second.
    degrees = torch.rad2deg(torch.atan2(poses[:, 1, 0], poses[:, 0, 0]))
    assert degrees.abs().max().item() == pytest.approx(ranges.degrees, abs=0.1)
    shift = poses[:, :, 2].abs().amax(dim=0)
    assert shift.tolist() == pytest.approx([20 * ranges.shift, 28 * ranges.shift], abs=0.02)


def test_weak_digits_are_read_where_their_pose_points() -> None:
    linear, centre = where_read(augment(ramps(500), "digit", Augment.WEAK, seeded(2)))
    poses = digit_poses(500, (RAMP_SIDE, RAMP_SIDE), DIGIT_RANGES[Augment.WEAK], seeded(2)).double()
    torch.testing.assert_close(linear, poses[:, :, :2], atol=1e-3, rtol=0)
    torch.testing.assert_close(centre, poses[:, :, 2] + RAMP_SIDE / 2, atol=1e-3, rtol=0)


@each_random_strength
def test_the_dark_background_of_digits_stays_dark(strength: Augment) -> None:
    black = torch.zeros(50, 1, 8, 8, dtype=torch.uint8)
    assert not augment(black, "digit", strength, seeded()).any()


def test_what_comes_into_a_digit_from_outside_is_black() -> None:
    white = torch.full((50, 1, 28, 28), 255, dtype=torch.uint8)
    views = augment(white, "digit", Augment.WEAK, seeded())
    assert ((views == 0) | (views > 0.999)).all()
    assert (views == 0).any()
    assert (views[:, :, 8:20, 8:20] > 0.999).all()


@pytest.mark.parametrize("side", [8, 28])
def test_half_the_strong_digits_lose_a_patch_that_is_small_and_inside(side: int) -> None:
    left, top, width, height = random_patches(4000, side, side, seeded()).T
    erased = width > 0
    assert erased.double().mean().item() == pytest.approx(0.5, abs=0.03)
    assert torch.stack([left, top]).min() >= 0
    assert torch.stack([left + width, top + height]).max() <= side
    for length in (width[erased], height[erased]):
        assert [length.min().item(), length.max().item()] == [round(side / 8), side / 4]


def test_strong_digits_change_brightness_then_contrast_and_lose_their_patch() -> None:
    images, generator = noise_images(30, 1, 28, 28), seeded(3)
    poses = digit_poses(30, (28, 28), DIGIT_RANGES[Augment.STRONG], generator)
    factors = torch.rand(2, 30, generator=generator) * 0.8 + 0.6
    patches = random_patches(30, 28, 28, generator).int().tolist()
    expected = resample(images, poses)
    blacken_outside_(expected, poses)
    for image, brightness, contrast, patch in zip(expected, *factors, patches, strict=True):
        left, top, width, height = patch
        bright = (image * brightness).clamp(0, 1)
        image[:] = (contrast * bright + (1 - contrast) * bright.mean()).clamp(0, 1)
        image[:, top : top + height, left : left + width] = 0
    views = augment(images, "digit", Augment.STRONG, seeded(3))
    torch.testing.assert_close(views, expected, atol=1e-6, rtol=0)


def test_a_weak_vector_takes_a_tenth_of_its_features_from_the_same_features_of_others() -> None:
    own, feature = torch.arange(50.0)[:, None], torch.arange(400.0) * 1000
    donors = augment(own + feature, "vector", Augment.WEAK, seeded()) - feature
    steps = ((donors - own) % 50).long()
    assert torch.equal((own + steps) % 50, donors)
    assert (steps > 0).float().mean().item() == pytest.approx(0.1, abs=0.01)
    counts = torch.bincount(steps.flatten())[1:]
    assert len(counts) == 49
    assert chisquare(counts.numpy()).pvalue > 1e-3


def test_a_strong_vector_is_dropped_out_mixed_and_noisy_in_this_order() -> None:
    values, generator = torch.randn(20, 60, generator=seeded(5)), seeded(6)
    draws = torch.rand(20, 60, generator=generator).numpy()
    steps = (torch.rand(20, generator=generator) * 19).long().tolist()
    weights = (torch.rand(20, generator=generator) * 0.2).tolist()
    noise = torch.randn(20, 60, generator=generator).numpy()
    expected = np.empty((20, 60), np.float32)
    for row, column in np.ndindex(20, 60):
        draw, feature, weight = draws[row, column], values.numpy()[:, column], weights[row]
        donor = (row + int(draw / np.float32(0.3) * 19) + 1) % 20 if draw < 0.3 else row
        partner = (row + steps[row] + 1) % 20
        mixed = (1 - weight) * feature[donor] + weight * feature[partner]
        shaken = mixed + 0.05 * feature.std() * noise[row, column]
        expected[row, column] = np.clip(shaken, feature.min(), feature.max())
    view = augment(values, "vector", Augment.STRONG, seeded(6))
    np.testing.assert_allclose(view.numpy(), expected, atol=1e-5)
    assert (draws < 0.3).mean() == pytest.approx(0.3, abs=0.04)


def test_a_feature_that_never_varies_gets_no_noise() -> None:
    values = torch.randn(40, 9, generator=seeded(1))
    values[:, 4] = 7.0
    view = augment(values, "vector", Augment.STRONG, seeded())
    assert (view[:, 4] == 7.0).all()
    assert (view[:, 3] != values[:, 3]).all()


@each_random_strength
def test_vectors_stay_in_the_range_of_each_feature_and_follow_its_scale(strength: Augment) -> None:
    values = torch.randn(40, 9, generator=seeded(1))
    view = augment(values, "vector", strength, seeded())
    assert torch.equal(view.clamp(values.amin(dim=0) - 1e-6, values.amax(dim=0) + 1e-6), view)
    scale = torch.logspace(-4, 4, 9)
    scaled = augment(values * scale, "vector", strength, seeded())
    torch.testing.assert_close(scaled / scale, view, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_noise_follows_features_whose_squares_are_no_single_precision_numbers(scale: float) -> None:
    values = torch.randn(40, 9, generator=seeded(1))
    view = augment(values, "vector", Augment.STRONG, seeded())
    scaled = augment(values * scale, "vector", Augment.STRONG, seeded())
    torch.testing.assert_close(scaled.double() / scale, view.double(), atol=1e-6, rtol=1e-5)


def test_vectors_may_lie_anyhow_in_memory() -> None:
    values = torch.randn(9, 40, generator=seeded(1)).T
    view = augment(values, "vector", Augment.STRONG, seeded())
    assert torch.equal(view, augment(values.contiguous(), "vector", Augment.STRONG, seeded()))


@each_random_strength
def test_a_single_vector_has_no_donor_and_stays(strength: Augment) -> None:
    values = torch.randn(1, 9, generator=seeded())
    assert torch.equal(augment(values, "vector", strength, seeded()), values)
