"""Where each pixel of a view is read: windows, flips, rotations, one bilinear resampling.

A view is two affine steps, in pixels from the image's centre, x right and y down:

    frame  = pose(output)       flips, rotation, shear, shift within the frame
    source = window(frame)      the part of the image that the frame shows

An affine map is a (2, 3) matrix: two columns for the linear part, one for the offset. Both
steps are composed first, so that an image is resampled, and blurred, only once.

Pixels go through single additions and products only. Fused ones (`lerp`, `addcmul`,
`add(alpha=)`) round differently in the vectorised middle and the scalar end of a loop, and
a shard's rows would then differ in their last bit from the same rows of a whole batch.
"""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

AREA_SHARE = (0.2, 1.0)
"""Share of the image's area that a window shows."""
ASPECT_RATIO = (3 / 4, 4 / 3)
"""Width over height of a window."""
SHIFT = 1 / 8
"""Largest shift of a gentle view along each axis, as a share of the side."""
TRIES = 10
"""Draws of a window's size before the largest central one is taken."""

AffineMaps = Float[Tensor, "n 2 3"]
Images = Float[Tensor, "n c h w"]

BLOCK = 2**17
"""Numbers worked on at a time: half a megabyte.

The memory stays in the cache, and the allocator uses it again. A whole batch's would come new
from the system each time, and its page faults cost three times the arithmetic.
"""


def blocks(images: Tensor) -> Iterator[slice]:
    """Divide the rows into blocks of bounded size, each of one image at least."""
    step = max(1, BLOCK // max(1, images[:1].numel()))
    return (slice(start, start + step) for start in range(0, len(images), step))


def uniform(shape: tuple[int, ...], low: float, high: float, generator: torch.Generator) -> Tensor:
    """Return uniform random numbers in [low, high)."""
    return torch.rand(shape, generator=generator) * (high - low) + low


def affine_maps(linear: Float[Tensor, "n 2 2"], offset: Float[Tensor, "n 2"]) -> AffineMaps:
    """Return the maps position -> linear @ position + offset."""
    return torch.cat([linear, offset[:, :, None]], dim=2)


def after(outer: AffineMaps, inner: AffineMaps) -> AffineMaps:
    """Return the maps that apply `inner` first and `outer` to its result."""
    linear = outer[:, :, :2] @ inner
    return affine_maps(linear[:, :, :2], linear[:, :, 2] + outer[:, :, 2])


def random_boxes(
    count: int, height: int, width: int, generator: torch.Generator
) -> Float[Tensor, "count 4"]:
    """Return left, top, width and height of whole-pixel windows for RandomResizedCrop.

    torchvision's documented procedure: area uniform, aspect ratio log-uniform, sides
    rounded; the first of ten draws that fits is placed uniformly. If none fits, the
    largest central window of an allowed ratio is taken. All draws are made at once,
    needed or not: that costs less than finding the rows that still lack a window.
    """
    area = uniform((TRIES, count), *AREA_SHARE, generator) * (height * width)
    low, high = (math.log(ratio) for ratio in ASPECT_RATIO)
    ratio = uniform((TRIES, count), low, high, generator).exp()
    place = torch.rand(2, count, generator=generator)
    image = torch.tensor([[width], [height]], dtype=torch.float32)

    sizes = torch.stack([(area * ratio).sqrt().round(), (area / ratio).sqrt().round()])
    fits = ((sizes >= 1) & (sizes <= image[:, None])).all(dim=0)
    first = fits.to(torch.uint8).argmax(dim=0)
    size = sizes.gather(1, first.expand(2, 1, count))[:, 0]
    room = image - size
    # A product with a number below 1 may still round up to the next whole one.
    corner = torch.minimum((place * (room + 1)).floor(), room)

    central = torch.tensor(_largest_allowed(height, width))[:, None]
    found = fits.any(dim=0)
    size = torch.where(found, size, central)
    corner = torch.where(found, corner, ((image - central) / 2).floor())
    return torch.cat([corner, size]).T


def _largest_allowed(height: int, width: int) -> tuple[float, float]:
    """Return width and height of the largest window with an allowed aspect ratio."""
    narrowest, widest = ASPECT_RATIO
    if width / height < narrowest:
        return float(width), float(round(width / narrowest))
    if width / height > widest:
        return float(round(height * widest)), float(height)
    return float(width), float(height)


def shifted_boxes(
    count: int, height: int, width: int, generator: torch.Generator
) -> Float[Tensor, "count 4"]:
    """Return windows of the image's own size, moved by whole pixels, an eighth at most.

    Whole pixels are copied, not mixed, so nothing is blurred. Parts beyond the edge repeat it.
    """
    image = torch.tensor([width, height], dtype=torch.float32)
    most = (image * SHIFT).floor()
    draws = torch.rand(count, 2, generator=generator)
    corner = torch.minimum((draws * (2 * most + 1)).floor(), 2 * most) - most
    return torch.cat([corner, image.expand(count, 2)], dim=1)


def windows(boxes: Float[Tensor, "n 4"], height: int, width: int) -> AffineMaps:
    """Return the maps that stretch each box to the whole frame."""
    image = torch.tensor([width, height], dtype=torch.float32)
    corner, size = boxes[:, :2], boxes[:, 2:]
    return affine_maps(torch.diag_embed(size / image), corner + (size - image) / 2)


def flips(mirrored: Bool[Tensor, "n 2"]) -> AffineMaps:
    """Return maps that mirror left-right (first column) and top-bottom (second)."""
    signs = 1 - 2 * mirrored.to(torch.float32)
    return affine_maps(torch.diag_embed(signs), torch.zeros_like(signs))


def rotations(degrees: Float[Tensor, "n"]) -> AffineMaps:
    """Return the maps that rotate the frame anticlockwise, as torchvision does."""
    cosine, sine = torch.deg2rad(degrees).cos(), torch.deg2rad(degrees).sin()
    linear = torch.stack([cosine, -sine, sine, cosine], dim=1).view(-1, 2, 2)
    return affine_maps(linear, linear.new_zeros(len(linear), 2))


def quarter_turns(number: Int64[Tensor, "n"]) -> AffineMaps:
    """Return the maps that rotate the frame by so many right angles, without rounding."""
    right_angle = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    powers = torch.stack([torch.linalg.matrix_power(right_angle, k) for k in range(4)])
    linear = powers[number % 4]
    return affine_maps(linear, linear.new_zeros(len(linear), 2))


def positions(maps: AffineMaps, height: int, width: int) -> Float[Tensor, "n 2 h w"]:
    """Return x and y that the maps give to the centre of every output pixel."""
    x = torch.arange(width, device=maps.device) + (0.5 - width / 2)
    y = torch.arange(height, device=maps.device) + (0.5 - height / 2)
    across = maps[:, :, 0, None] * x
    down = maps[:, :, 1, None] * y + maps[:, :, 2, None]
    return across[:, :, None, :] + down[:, :, :, None]


def in_unit_range(images: UInt8[Tensor, "n c h w"]) -> Images:
    """Return the images as numbers from 0 to 1."""
    return images.to(torch.float32, memory_format=torch.contiguous_format).div_(255)


def resample(images: UInt8[Tensor, "n c h w"], maps: AffineMaps) -> Images:
    """Return each image, in [0, 1], read bilinearly where its map points.

    Half-pixel centres and the image's edge beyond it, as PIL's `resize(box=...)`.
    `grid_sample` beats two products with interpolation matrices at 32 x 32 already, and
    takes a seventh of their time at 128.
    Differs: torchvision cuts the window out first and repeats its rim; here, as in PIL,
    the outermost half pixel mixes with the true neighbour.
    """
    height, width = images.shape[-2:]
    maps = (maps * torch.tensor([[2 / width], [2 / height]])).to(images.device)
    views = torch.empty(images.shape, device=images.device)
    for rows in blocks(images):
        grid = positions(maps[rows], height, width).permute(0, 2, 3, 1)
        source = in_unit_range(images[rows])
        view = F.grid_sample(source, grid, padding_mode="border", align_corners=False)
        # The weights of four neighbours sum to 1 only up to rounding.
        torch.clamp(view, 0, 1, out=views[rows])
    return views


def blacken_outside_(images: Images, poses: AffineMaps) -> None:
    """Set to 0 every pixel whose pose lies outside the frame, in place."""
    height, width = images.shape[-2:]
    half = torch.tensor([[[width / 2]], [[height / 2]]], device=images.device)
    poses = poses.to(images.device)
    for rows in blocks(images):
        distance = positions(poses[rows], height, width).abs_().sub_(half)
        inside = torch.maximum(*distance.chunk(2, dim=1)) <= 0
        images[rows].mul_(inside.to(images.dtype))


def blacken_boxes_(images: Images, boxes: Float[Tensor, "n 4"]) -> None:
    """Set to 0 every pixel whose centre lies in the row's box, in place."""
    images.mul_(1 - _covered(images, boxes))


def hide_boxes_(images: Images, boxes: Float[Tensor, "n 4"]) -> None:
    """Set every pixel in the row's box to the image's mean, in place.

    To a network that standardises its input, the mean is zero; black would be an edge.
    """
    hidden = _covered(images, boxes)
    mean = images.mean(dim=(2, 3), keepdim=True)
    images.mul_(1 - hidden).add_(hidden * mean)


def _covered(images: Images, boxes: Float[Tensor, "n 4"]) -> Float[Tensor, "n 1 h w"]:
    """Return 1 where a pixel's centre lies in the row's box, 0 elsewhere."""
    covered = []
    for axis, length in enumerate((images.shape[3], images.shape[2])):
        start, size = boxes[:, axis, None], boxes[:, axis + 2, None]
        distance = torch.arange(length) + 0.5 - start
        covered.append(((distance >= 0) & (distance < size)).to(images.device, images.dtype))
    across, down = covered
    return (down[:, :, None] * across[:, None, :])[:, None]
