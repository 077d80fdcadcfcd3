"""Colour changes of a batch: each row has its own amount and order.

Channels are taken in groups of three. Each group is an RGB image, and all groups of a row get
the same factors: six channels are an image before and an image after. If the number of
channels is no multiple of three, each channel is a group, and what needs three colours
(saturation, hue, gray) does not change it.

`Pixels` are the same memory, divided into groups. Changes are made in place, because new
memory of the size of a batch costs more (page faults) than the arithmetic on it. `geometry`
says why no fused operations are used.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from onesided.data.views.geometry import uniform

GRAY_WEIGHTS = (0.299, 0.587, 0.114)
"""Luma of ITU-R 601, as PIL's mode L; torchvision writes 0.2989 for the first."""
FACTOR = (0.6, 1.4)
"""Range of the factors of brightness, contrast and saturation."""
HUE_TURN = (-0.1, 0.1)
"""Range of the shift of the hue, in parts of the colour circle."""
JITTERED = 0.8
"""Share of rows whose colours are jittered."""
GRAYED = 0.2
"""Share of rows that lose their colour."""

Pixels = Float[Tensor, "n groups colours h w"]
Factors = Float[Tensor, "n 1 1 1 1"]


@dataclass(frozen=True)
class ColourRecipe:
    """The colour change of each row.

    Attributes:
        factors: Brightness, contrast, saturation and shift of the hue.
        order: Which of these four comes first, second, third and fourth; 4 is none.
        gray: Whether the row is made gray at the end.
    """

    factors: Float[Tensor, "n 4"]
    order: Int64[Tensor, "n 4"]
    gray: Bool[Tensor, "n"]

    def of(self, rows: slice, device: torch.device) -> "ColourRecipe":
        """Return the recipe for some of the rows."""
        parts = (part[rows].to(device) for part in (self.factors, self.order, self.gray))
        return ColourRecipe(*parts)


def random_recipe(count: int, generator: torch.Generator) -> ColourRecipe:
    """Draw ColorJitter(.4, .4, .4, .1) with probability .8 and gray with probability .2."""
    factors = uniform((count, 4), *FACTOR, generator)
    factors[:, 3] = uniform((count,), *HUE_TURN, generator)
    order = torch.rand(count, 4, generator=generator).argsort(dim=1)
    order[torch.rand(count, generator=generator) >= JITTERED] = len(OPERATIONS)
    return ColourRecipe(factors, order, torch.rand(count, generator=generator) < GRAYED)


def recolour_(images: Float[Tensor, "n c h w"], recipe: ColourRecipe) -> None:
    """Change the colours of each image by its recipe, in place.

    Rows with the same next operation are changed together, so Python runs sixteen times per
    batch, not once per row.
    """
    pixels = in_groups(images)
    operations = OPERATIONS if pixels.shape[2] == 3 else OPERATIONS[:2]
    for turn in recipe.order.unbind(dim=1):
        counts = turn.bincount(minlength=len(OPERATIONS) + 1).tolist()
        groups = torch.split(turn.argsort(), counts)
        for which, operation in enumerate(operations):
            rows = groups[which]
            # index_select takes a fifth of the time of pixels[rows].
            chosen = pixels.index_select(0, rows)
            factors = recipe.factors[:, which].index_select(0, rows)
            operation(chosen, factors.view(-1, 1, 1, 1, 1))
            pixels.index_copy_(0, rows, chosen)
    if pixels.shape[2] == 3:
        rows = recipe.gray.nonzero()[:, 0]
        chosen = pixels.index_select(0, rows)
        pixels.index_copy_(0, rows, gray(chosen).expand_as(chosen))


def in_groups(images: Float[Tensor, "n c h w"]) -> Pixels:
    """Return contiguous images, without a copy, with channels in groups of three, or of one."""
    count, channels, height, width = images.shape
    colours = 3 if channels % 3 == 0 else 1
    return images.view(count, channels // colours, colours, height, width)


def gray(pixels: Pixels) -> Float[Tensor, "n groups 1 h w"]:
    """Return the brightness that the eye sees; a single channel is its own."""
    if pixels.shape[2] == 1:
        return pixels
    red, green, blue = pixels.chunk(3, dim=2)
    weight_red, weight_green, weight_blue = GRAY_WEIGHTS
    return (red * weight_red).add_(green * weight_green).add_(blue * weight_blue)


def brighten_(pixels: Pixels, factor: Factors) -> None:
    """Multiply by the factor and clip at white, in place."""
    pixels.mul_(factor).clamp_(0, 1)


def contrast_(pixels: Pixels, factor: Factors) -> None:
    """Move every pixel away from the image's mean gray (factor > 1) or towards it."""
    # In two steps: the sum over a single large image would be split among threads, and
    # its last bit would depend on how many rows and threads there are.
    mean = gray(pixels).mean(dim=4, keepdim=True).mean(dim=3, keepdim=True)
    pixels.mul_(factor).add_(mean * (1 - factor)).clamp_(0, 1)


def saturate_(pixels: Pixels, factor: Factors) -> None:
    """Move every pixel away from its own gray (factor > 1) or towards it, in place."""
    faded = gray(pixels).mul_(1 - factor)
    pixels.mul_(factor).add_(faded).clamp_(0, 1)


def turn_hue_(pixels: Pixels, turn: Factors) -> None:
    """Shift the hue by up to a sixth of the circle; HSV's value and saturation stay.

    The hue in sixths is 3 - angle, where angle = copysign(u, G - B) in [-3, 3] and
    u = 2 + R - G - B for channels scaled from [lowest, highest] to [0, 1]: an identity
    on all six edges of the colour hexagon. It avoids the usual choice between three
    cases, whose `torch.where` takes more time than all the rest.
    """
    red, green, blue = pixels.chunk(3, dim=2)
    lowest = torch.minimum(torch.minimum(red, green), blue)
    chroma = torch.maximum(torch.maximum(red, green), blue).sub_(lowest)
    angle = (red - green).sub_(blue - lowest).div_(chroma.clamp(min=1e-8)).add_(2)
    angle.copysign_(green - blue).sub_(turn * 6)
    # Green and blue are red's wave a third of a circle away, folded at its ends.
    for channel, shifted in ((green, angle - 1), (blue, angle + 1)):
        wave = shifted.abs_().sub_(3).abs_().sub_(1).clamp_(0, 1)
        torch.add(wave.mul_(chroma), lowest, out=channel)
    torch.add(angle.abs_().sub_(1).clamp_(0, 1).mul_(chroma), lowest, out=red)


OPERATIONS: tuple[Callable[[Pixels, Factors], None], ...] = (
    brighten_,
    contrast_,
    saturate_,
    turn_hue_,
)
"""In the order of `ColourRecipe.factors`; the first two also suit a channel alone."""
