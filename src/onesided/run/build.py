"""An untrained method with its backbone; the same seed gives the same initial weights."""

from math import prod

import numpy as np
import torch

from onesided.core.batch import Augment, DataFacts
from onesided.core.rng import generator, numpy_generator
from onesided.data.problem.dataset import PUSplit
from onesided.data.views.augment import augment
from onesided.methods.base import Method, MethodConfig
from onesided.nets.build import BackboneConfig, build_backbone, load_initial_weights, seeded
from onesided.run.load import LoadedData

PIXELS, FEWEST_SAMPLES = 2**20, 64
"""How much a new backbone is shown: a thousand images of 32x32, fewer of larger ones."""


def build_method(
    config: MethodConfig,
    backbone: BackboneConfig,
    data: LoadedData,
    training: PUSplit,
    *,
    batch_size: int,
    seed: int,
    prior: float | None = None,
    coordinates: tuple[str, str] = ("backbone", "method"),
) -> Method:
    """Return the untrained method; its initial weights depend on the seed alone.

    `data` gives mean and standard deviation, `training` the samples; `coordinates` are those of
    the random generators of backbone and method.
    """
    shape = training.sample_shape
    facts = DataFacts(
        rows=len(training.train),
        labelled=int(training.train.labelled.sum()),
        sample_shape=shape,
        prior=prior,
        batch_size=batch_size,
        seed=seed,
    )
    random = generator(seed, coordinates[0])
    network = build_backbone(backbone, shape, data.mean, data.std, random)
    network.initialise_from(_some_samples(training, seed))
    load_initial_weights(backbone, network)
    with seeded(seed, coordinates[1]):
        return config.build(facts, network)


def _some_samples(split: PUSplit, seed: int) -> torch.Tensor:
    """Return training samples without labels, few enough for memory."""
    count = max(FEWEST_SAMPLES, PIXELS // prod(split.sample_shape[1:]))
    chosen = numpy_generator(seed, "first-look").permutation(len(split.train))[:count]
    values = torch.from_numpy(split.train.values.take(np.sort(chosen)))
    return augment(values, split.kind, Augment.PLAIN, generator(seed))
