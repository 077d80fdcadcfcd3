"""What a new network is shown of the data before it is trained: some samples, no labels."""

from math import prod

import numpy as np
import torch

from onesided.core.batch import Augment
from onesided.core.rng import generator, numpy_generator
from onesided.data.problem.dataset import PUSplit
from onesided.data.views.augment import augment
from onesided.nets.standardise import Backbone

PIXELS, FEWEST = 2**20, 64
"""Pixels that are shown: a thousand images of 32x32, fewer of larger ones, so memory stays."""


def show_samples(backbone: Backbone, split: PUSplit, seed: int) -> None:
    """Let a backbone look at training samples; the same ones for the same seed."""
    data = split.train
    count = max(FEWEST, PIXELS // prod(split.sample_shape[1:]))
    chosen = numpy_generator(seed, "first-look").permutation(len(data))[:count]
    values = torch.from_numpy(data.values.take(np.sort(chosen)))
    backbone.initialise_from(augment(values, split.kind, Augment.PLAIN, generator(seed)))
