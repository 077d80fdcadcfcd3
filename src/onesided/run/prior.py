"""Where the class prior comes from, for the methods that cannot do without one."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from onesided.core.batch import DataFacts
from onesided.core.errors import ConfigError, DataError
from onesided.core.rng import generator, numpy_generator
from onesided.data.problem.dataset import PUSplit
from onesided.engine.fit import Watcher, fit
from onesided.engine.train_config import TrainConfig
from onesided.methods.risk import CEConfig
from onesided.metrics.stored import prior_origin
from onesided.nets.build import BackboneConfig, build_backbone, seeded
from onesided.priors import PriorEstimate, agreement, bbe, km1, km2
from onesided.run.config import Prior
from onesided.run.first_look import show_samples
from onesided.run.load import LoadedData

KERNEL_MEANS = {"km2": km2, "km1": km1}
ESTIMATORS = (*KERNEL_MEANS, "bbe")

# What the kernel estimators keep of P and U; more would only be thrown away.
MOST_POSITIVE, MOST_UNLABELLED = 1000, 2000
# What is enough to contradict a number that a person gave: the time grows with the square,
# and nobody waits half a minute for a second opinion. Its interval is wider, so it objects
# only to numbers that are clearly off.
CHECK_POSITIVE, CHECK_UNLABELLED = 200, 400
# Steps of the classifier whose held-out scores BBE reads: BBE needs the top of a ranking
# to be pure, not a finished model, so a minute is enough.
BBE_STEPS = 600


@dataclass(frozen=True)
class PriorUsed:
    """A class prior, as `result.json` records it.

    Attributes:
        value: The prior.
        low: Lower end of its interval, None where it counts as exactly known.
        high: Upper end.
        origin: Id of the assumption that says where it comes from, see `metrics/registry.py`.
        notes: What a person should know about it.
    """

    value: float
    low: float | None
    high: float | None
    origin: str
    notes: tuple[str, ...] = ()

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends of the interval, None where the prior counts as exactly known."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "notes": list(self.notes)}

    @classmethod
    def of_result(cls, result: Mapping[str, Any]) -> "PriorUsed | None":
        """Return the prior that a `result.json` records, None where it records none."""
        known = result.get("prior")
        if known is None:
            return None
        return cls(**{**known, "origin": prior_origin(known), "notes": tuple(known["notes"])})


def find_prior(prior: Prior, split: PUSplit, seed: int) -> PriorUsed:
    """Return the prior the user gave, or estimate it from P and U by kernel means.

    A given number is compared with an estimate from few samples, because a wrong one ruins
    the methods that need it without any other sign before they are trained.
    """
    if prior == "truth":
        true = split.true_prior
        if true is None:
            raise ConfigError(
                "prior = truth needs the true classes of the unlabelled, which nobody knows here. "
                "Use auto or a number."
            )
        return PriorUsed(true, None, None, "truth")
    if isinstance(prior, float):
        given = PriorEstimate(prior, prior, prior, "The number given", 0, 0)
        few = _flat_rows(
            split, seed, most_positive=CHECK_POSITIVE, most_unlabelled=CHECK_UNLABELLED
        )
        second_opinion = km2(*few, seed=seed)
        return PriorUsed(prior, None, None, "given", tuple(agreement([given, second_opinion])))
    estimate = kernel_prior("km1" if prior == "km1" else "km2", split, seed)
    notes = (*estimate.notes, *agreement([estimate]))
    return PriorUsed(estimate.value, estimate.low, estimate.high, estimate.method, notes)


def kernel_prior(name: str, split: PUSplit, seed: int) -> PriorEstimate:
    """Return the estimate by kernel means on raw pixels or features."""
    return KERNEL_MEANS[name](*_flat_rows(split, seed), seed=seed)


def bbe_prior(loaded: LoadedData, seed: int, watcher: Watcher | None = None) -> PriorEstimate:
    """Return the best-bin estimate on held-out scores of a short P-against-U classifier."""
    split = loaded.split
    held_out = split.held_out
    if held_out is None:
        raise DataError(
            "BBE needs held-out positives and unlabelled samples, and this split has none. "
            "Set data.held_out, or data.held_out_positives and data.held_out_unlabelled."
        )
    rows = len(split.train)
    batch_size = min(128, max(16, rows // 8), rows)
    train = TrainConfig(
        epochs=max(3, round(BBE_STEPS / (rows // batch_size))),
        batch_size=batch_size,
        learning_rate=0.02,
    )
    facts = DataFacts(rows, int(split.train.labelled.sum()), split.sample_shape, seed=seed)
    backbone = build_backbone(
        BackboneConfig(width=0.5),
        split.sample_shape,
        loaded.mean,
        loaded.std,
        generator(seed, "bbe-backbone"),
    )
    show_samples(backbone, split, seed)
    with seeded(seed, "bbe"):
        method = CEConfig().build(facts, backbone)
    scores = fit(method, split, train, seed=seed, watcher=watcher).scores(held_out.values)
    return bbe(scores[held_out.labelled], scores[~held_out.labelled], seed=seed)


def _flat_rows(
    split: PUSplit,
    seed: int,
    *,
    most_positive: int = MOST_POSITIVE,
    most_unlabelled: int = MOST_UNLABELLED,
) -> tuple[np.ndarray, np.ndarray]:
    """Return flattened P and U, no more than the estimator would keep: images are large."""
    random = numpy_generator(seed, "prior")
    data, parts = split.train, []
    for most, mask in ((most_positive, data.labelled), (most_unlabelled, data.unlabelled)):
        rows = np.flatnonzero(mask)
        if len(rows) > most:
            rows = np.sort(random.choice(rows, most, replace=False))
        parts.append(data.values.take(rows).reshape(len(rows), -1).astype(np.float64))
    return parts[0], parts[1]
