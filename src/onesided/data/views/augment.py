"""Views of a batch: the same items, shifted, rotated and recoloured at random.

One function, `augment`, serves all items. What it may do depends on their kind: a photograph
may be mirrored and recoloured, an aerial image may also be rotated, a digit may not be
mirrored, and the meaning of a vector's numbers is unknown.

Random numbers are always drawn for the whole batch, on the CPU and in a fixed order. So a
process that transforms only its shard gets the same rows as one process would.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from onesided.core.batch import Augment
from onesided.core.errors import DataError
from onesided.data.problem.samples import ImageKind
from onesided.data.views.colour import brighten_, contrast_, in_groups, random_recipe, recolour_
from onesided.data.views.geometry import (
    AffineMaps,
    affine_maps,
    after,
    blacken_boxes_,
    blacken_outside_,
    flips,
    hide_boxes_,
    in_unit_range,
    quarter_turns,
    random_boxes,
    resample,
    rotations,
    shifted_boxes,
    uniform,
    windows,
)

RawImages = UInt8[Tensor, "batch c h w"]
Images = Float[Tensor, "part c h w"]


def augment(
    values: Tensor,
    kind: ImageKind,
    strength: Augment,
    generator: torch.Generator,
    *,
    part: slice | None = None,
) -> Tensor:
    """Return one view of a batch in float32; images come out in [0, 1].

    NcPU, App. F: weak views train the classifier, strong ones the alignment. A plain
    view is the item itself and draws nothing. Only photographs and aerial images have gentle
    views: the published views of digits and vectors are gentle already.

    Args:
        values: The whole batch: uint8 images (B, C, H, W) or float32 vectors (B, D).
        kind: Decides what may be done to the items.
        strength: Decides how much is done.
        generator: A CPU generator; it draws the same amount whatever `part` is.
        part: Rows to return; equal to the bit to the same rows of the whole view.
    """
    _check(values, kind)
    rows = slice(None) if part is None else part
    if strength == Augment.PLAIN:
        return in_unit_range(values[rows]) if values.ndim == 4 else _copy(values[rows])
    if kind in ("digit", "vector"):
        strength = AS_PUBLISHED.get(strength, strength)
    return _VIEWS[kind](values, strength, generator, rows)


GENTLER: Mapping[Augment, Augment] = {
    Augment.WEAK: Augment.GENTLE,
    Augment.STRONG: Augment.PATCHED,
}
"""What replaces a published view in a short run."""
AS_PUBLISHED = {gentle: published for published, gentle in GENTLER.items()}


def _check(values: Tensor, kind: ImageKind) -> None:
    if kind == "vector" and not (values.ndim == 2 and values.is_floating_point()):
        raise DataError(
            f"Vectors must be float32 of shape (B, D); got {values.dtype} of shape "
            f"{tuple(values.shape)}. For images, choose another kind than 'vector'."
        )
    if kind != "vector" and not (values.ndim == 4 and values.dtype == torch.uint8):
        raise DataError(
            f"Items of kind '{kind}' must be uint8 images (B, C, H, W); got {values.dtype} "
            f"of shape {tuple(values.shape)}. For rows of numbers, set the kind to 'vector'."
        )


def _crops(values: RawImages, strength: Augment, generator: torch.Generator) -> AffineMaps:
    """Draw which part of an image the view shows: nearly all of it in a gentle view."""
    boxes = shifted_boxes if strength in AS_PUBLISHED else random_boxes
    count, _, height, width = values.shape
    return windows(boxes(count, height, width, generator), height, width)


HIDDEN_SIDE = 3 / 8
"""Side of the patch that a patched view hides, as a share of the image's."""


def hidden_patches(values: RawImages, generator: torch.Generator) -> Float[Tensor, "batch 4"]:
    """Draw left, top, width and height of the patch to hide (Cutout, DeVries & Taylor, 2017).

    Its centre may lie anywhere in the image, so part of it may lie outside.
    """
    count, _, height, width = values.shape
    image = torch.tensor([width, height], dtype=torch.float32)
    size = (image * HIDDEN_SIDE).round().expand(count, 2)
    centre = torch.rand(count, 2, generator=generator) * image
    return torch.cat([(centre - size / 2).round(), size], dim=1)


def _copy(vectors: Tensor) -> Float[Tensor, "part d"]:
    return vectors.to(torch.float32, copy=True)


def _photograph(
    values: RawImages, strength: Augment, generator: torch.Generator, rows: slice
) -> Images:
    """Crop or shift, and mirror; strong views also change in colour (SimCLR's recipe)."""
    count = len(values)
    mirrored = torch.zeros(count, 2, dtype=torch.bool)
    crops = _crops(values, strength, generator)
    mirrored[:, 0] = torch.rand(count, generator=generator) < 0.5
    views = resample(values[rows], after(crops, flips(mirrored))[rows])
    if strength in (Augment.STRONG, Augment.PATCHED):
        recolour_(views, random_recipe(count, generator).of(rows, views.device))
    if strength == Augment.PATCHED:
        hide_boxes_(views, hidden_patches(values, generator)[rows])
    return views


def _remote(
    values: RawImages, strength: Augment, generator: torch.Generator, rows: slice
) -> Images:
    """Crop, then mirror and rotate; colours, which carry meaning in aerial images, stay.

    Parts that a rotation adds from outside the crop are black, as by torchvision's default.
    Differs: the rotation is bilinear; torchvision's default is nearest neighbour.
    """
    crops = _crops(values, strength, generator)
    poses = remote_poses(len(values), strength, generator)
    views = resample(values[rows], after(crops, poses)[rows])
    if strength in GENTLER:
        blacken_outside_(views, poses[rows])
    if strength == Augment.PATCHED:
        hide_boxes_(views, hidden_patches(values, generator)[rows])
    return views


def remote_poses(count: int, strength: Augment, generator: torch.Generator) -> AffineMaps:
    """Draw flips (each with probability .5) and a rotation: one of the three, or all (strong).

    No order is drawn for a strong view. A flip before a rotation equals the same flip after
    the opposite rotation, and opposite rotations are equally likely: every order gives the
    same distribution.
    """
    mirrored = torch.rand(count, 2, generator=generator) < 0.5
    if strength in AS_PUBLISHED:
        # Right angles move whole pixels, and leave no black corners.
        return after(
            quarter_turns(torch.randint(4, (count,), generator=generator)), flips(mirrored)
        )
    degrees = uniform((count,), -180.0, 180.0, generator)
    if strength == Augment.WEAK:
        chosen = torch.randint(3, (count, 1), generator=generator)
        mirrored &= chosen == torch.arange(2)
        degrees *= chosen[:, 0] == 2
    return after(rotations(degrees), flips(mirrored))


@dataclass(frozen=True)
class DigitRanges:
    """How far a digit may move; little, since these images have no background to spare.

    Attributes:
        degrees: Largest rotation to either side.
        scale: Largest change of size, as a share.
        shear: Largest shear, in pixels per pixel.
        shift: Largest shift along each axis, as a share of the side.
    """

    degrees: float
    scale: float
    shear: float
    shift: float


DIGIT_RANGES: Mapping[Augment, DigitRanges] = {
    Augment.WEAK: DigitRanges(degrees=10.0, scale=0.1, shear=0.0, shift=1 / 10),
    Augment.STRONG: DigitRanges(degrees=20.0, scale=0.2, shear=0.2, shift=1 / 8),
}
ERASED = 0.5
"""Share of strong digit views with a patch set to black."""
ERASED_SIDE = (1 / 8, 1 / 4)
"""Sides of that patch, as shares of the image's: 1 or 2 pixels of an 8 x 8 digit."""
DIGIT_FACTOR = (0.6, 1.4)
"""Range of the factors of brightness and contrast of strong digit views."""


def _digit(values: RawImages, strength: Augment, generator: torch.Generator, rows: slice) -> Images:
    """Shift, rotate and shear a little, never mirror; parts from outside are black.

    A strong view also varies brightness and contrast, and a small patch is erased.
    """
    count, _, height, width = values.shape
    poses = digit_poses(count, (height, width), DIGIT_RANGES[strength], generator)
    views = resample(values[rows], poses[rows])
    blacken_outside_(views, poses[rows])
    if strength == Augment.STRONG:
        factors = uniform((2, count, 1, 1, 1, 1), *DIGIT_FACTOR, generator)[:, rows]
        brightness, contrast = factors.to(views.device)
        brighten_(in_groups(views), brightness)
        contrast_(in_groups(views), contrast)
        blacken_boxes_(views, random_patches(count, height, width, generator)[rows])
    return views


def digit_poses(
    count: int, size: tuple[int, int], ranges: DigitRanges, generator: torch.Generator
) -> AffineMaps:
    """Draw rotation, shear, size and shift, each uniform and symmetric around no change."""
    turns = rotations(uniform((count,), -ranges.degrees, ranges.degrees, generator))
    scale = uniform((count, 1, 1), 1 - ranges.scale, 1 + ranges.scale, generator)
    slant = torch.eye(2).repeat(count, 1, 1)
    slant[:, 0, 1] = uniform((count,), -ranges.shear, ranges.shear, generator)
    height, width = size
    shift = uniform((count, 2), -ranges.shift, ranges.shift, generator)
    # Maps go from the view back to the image, hence the division.
    return affine_maps(turns[:, :, :2] @ slant / scale, shift * torch.tensor([width, height]))


def random_patches(
    count: int, height: int, width: int, generator: torch.Generator
) -> Float[Tensor, "batch 4"]:
    """Draw left, top, width and height of the patch to erase; width 0 erases nothing."""
    image = torch.tensor([width, height])
    size = (uniform((count, 2), *ERASED_SIDE, generator) * image).round()
    corner = (torch.rand(count, 2, generator=generator) * (image - size + 1)).floor()
    size *= torch.rand(count, 1, generator=generator) < ERASED
    return torch.cat([corner, size], dim=1)


REPLACED: Mapping[Augment, float] = {Augment.WEAK: 0.1, Augment.STRONG: 0.3}
"""Share of a vector's features that are taken from other rows."""
MIXED = (0.0, 0.2)
"""Weight of another row in a strong view of a vector."""
NOISE = 0.05
"""Standard deviation of the noise in a strong view of a vector, as a share of the feature's."""


def _vector(
    values: Float[Tensor, "batch d"], strength: Augment, generator: torch.Generator, rows: slice
) -> Float[Tensor, "part d"]:
    """Replace features by those of other rows; a strong view is also mixed and noisy.

    SCARF's corruption (Bahri et al., 2022), a dropout that needs no scale: a feature is
    replaced by a value that it takes in the data. Each feature has a donor of its own.
    Differs: each feature is drawn by itself, where SCARF fixes the number per row; a tenth
    of two or three features would be none. A strong view then moves towards one other row
    and gets noise of each feature's own scale, inside the batch's range.
    """
    count = len(values)
    draws = torch.rand(values.shape, generator=generator)
    vectors = values.to(torch.float32).contiguous()
    views = _some_exchanged(vectors, draws, REPLACED[strength], rows)
    if strength == Augment.WEAK:
        return views
    own = torch.arange(count)
    partners = (own + _steps(torch.rand(count, 1, generator=generator)[:, 0], count)) % count
    weight = uniform((count, 1), *MIXED, generator)[rows].to(values.device)
    noise = torch.randn(values.shape, generator=generator)[rows].to(values.device)
    views.lerp_(vectors.index_select(0, partners[rows].to(values.device)), weight)
    least, most = vectors.amin(dim=0), vectors.amax(dim=0)
    views.addcmul_(noise, _deviation(vectors, least, most - least).mul_(NOISE))
    return views.clamp_(least, most)


def _deviation(
    vectors: Float[Tensor, "batch d"], least: Float[Tensor, "d"], width: Float[Tensor, "d"]
) -> Float[Tensor, "d"]:
    """Return the standard deviation of each feature, which has this least value and this range.

    Torch's own is slow along the first dimension. Squares are taken of shares of the range, so that
    features of any scale have one.
    """
    shares = (vectors - least).div_(width.clamp(min=torch.finfo(vectors.dtype).tiny))
    return shares.sub_(shares.mean(dim=0)).square_().mean(dim=0).sqrt_().mul_(width)


def _some_exchanged(
    vectors: Float[Tensor, "batch d"], draws: Float[Tensor, "batch d"], rate: float, rows: slice
) -> Float[Tensor, "part d"]:
    """Return rows in which each feature with a draw below the rate is that of another row.

    Places are numbers of the flattened batch, and only the exchanged ones are computed.
    """
    count, features = vectors.shape
    exchanged = np.zeros(draws.shape, dtype=bool)
    exchanged[rows] = draws[rows].numpy() < np.float32(rate)
    place = torch.from_numpy(np.flatnonzero(exchanged))  # torch's nonzero is slower
    # A draw below the rate, divided by it, is uniform again: one number serves twice.
    steps = _steps(draws.view(-1).index_select(0, place) / rate, count)
    donors = steps.mul_(features).add_(place).remainder_(count * features)
    taken = vectors.view(-1).index_select(0, donors.to(vectors.device))
    views = vectors.clone()
    views.view(-1).index_copy_(0, place.to(vectors.device), taken)
    return views[rows]


def _steps(draws: Float[Tensor, "n"], count: int) -> Int64[Tensor, "n"]:
    """Return how far the other row is, from draws in [0, 1), equally likely.

    In a ring of so many rows; a single row gives itself.
    """
    others = count - 1
    return (draws * others).to(torch.int64).clamp_(max=others - 1).add_(1)


_VIEWS: Mapping[ImageKind, Callable[[Tensor, Augment, torch.Generator, slice], Tensor]] = {
    "photograph": _photograph,
    "remote": _remote,
    "digit": _digit,
    "vector": _vector,
}
