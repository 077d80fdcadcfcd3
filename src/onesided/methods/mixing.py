"""Random draws and pairs of mixup. A draw belongs to a step, so every process finds it again."""

import numpy as np
from jaxtyping import Float, Int64
from torch import Tensor

from onesided.core.clock import Clock
from onesided.core.rng import numpy_generator
from onesided.losses.mixup import draw_share, mix, partner


def mixup_generator(clock: Clock) -> np.random.Generator:
    """Return the random generator of this step's mixup."""
    return numpy_generator(clock.seed, "mixup", clock.stage, clock.epoch, clock.step)


def mix_pairs(
    values: Float[Tensor, "n *sample"],
    offset: Int64[Tensor, "n"],
    concentration: float,
    clock: Clock,
) -> Float[Tensor, "n *sample"]:
    """Return each row mixed with its partner (`partner_offset`), its own share the larger one.

    Images and targets of one step are mixed with the same share.
    """
    share = draw_share(concentration, mixup_generator(clock))
    return mix(values, partner(values, offset), max(share, 1 - share))
