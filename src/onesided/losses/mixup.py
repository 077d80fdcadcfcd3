"""Mixup: weighted means of two samples.

| symbol         | code            | meaning                                                 |
|----------------|-----------------|---------------------------------------------------------|
| a, lambda      | `share`         | share of the first sample in the mixture                |
| Beta(al, al)   | `concentration` | al: near 0 a is close to 0 or 1, at 1 uniform, large 1/2 |
| pi(i) - i      | `offset`        | how far a row's partner is from it in the batch         |

A network trained to be linear between samples cannot have large gradients around a few of them
(Zhang et al., mixup: Beyond Empirical Risk Minimization, ICLR 2018). Random numbers come from the
caller's generator, so a draw does not depend on the order of calls.
"""

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from onesided.core.errors import ConfigError


def draw_share(concentration: float, random: np.random.Generator) -> float:
    """Return the share a of the first sample, from Beta(concentration, concentration).

    Small concentrations give exactly 0 and 1 by rounding: formulas with log a or log(1 - a)
    must handle both.
    """
    if not concentration > 0:
        raise ConfigError(
            f"Mixup got concentration {concentration}. A Beta distribution needs a number above "
            "0; 0.3 keeps most mixtures close to one of the two samples."
        )
    return float(random.beta(concentration, concentration))


def mix(
    first: Float[Tensor, "n *sample"], second: Float[Tensor, "n *sample"], share: float
) -> Float[Tensor, "n *sample"]:
    """Return share x first + (1 - share) x second, row by row.

    Images may be standardised before or after: the shares sum to 1.
    """
    return share * first + (1 - share) * second


def partner_offset(batch: int, device: torch.device) -> Int64[Tensor, "batch"]:
    """Return how far each row's partner is; neighbours are partners, a last odd row has none.

    Neighbours in a shuffled batch are random partners, and both are in one process's shard.
    Offsets stay correct when shards are gathered.
    """
    offset = 1 - 2 * (torch.arange(batch, device=device) % 2)
    if batch % 2:
        offset[-1] = 0
    return offset


def partner(values: Float[Tensor, "n *sample"], offset: Int64[Tensor, "n"]) -> Tensor:
    """Return the values of each row's partner."""
    return values[torch.arange(len(offset), device=offset.device) + offset]
