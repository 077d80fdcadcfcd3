"""The class prior: given, estimated from the data, or estimated from a model's own scores."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from onesided.core.errors import ConfigError, DataError
from onesided.core.rng import numpy_generator
from onesided.data.problem.dataset import PUSplit
from onesided.engine.fit import Watcher, fit
from onesided.engine.train_config import TrainConfig
from onesided.methods.risk import CEConfig
from onesided.metrics.registry import OWN_SCORES, OWN_SCORES_MEDIAN
from onesided.metrics.stored import prior_origin
from onesided.nets.build import BackboneConfig
from onesided.priors import PriorEstimate, agreement, bbe, binormal, elkan_noto, km1, km2
from onesided.run.build import build_method
from onesided.run.config import Prior
from onesided.run.load import LoadedData

KERNEL_MEANS = {"km2": km2, "km1": km1}
ESTIMATORS = (*KERNEL_MEANS, "bbe")

# Most samples of P and U that the kernel estimators use.
MOST_POSITIVE, MOST_UNLABELLED = 1000, 2000
# Samples that check a given prior. The time grows with the square of the count: all samples
# would take half a minute. Few give a wide interval, so only a clearly wrong prior is reported.
CHECK_POSITIVE, CHECK_UNLABELLED = 200, 400
# Steps of the classifier whose held-out scores BBE reads: BBE needs only positives at the top
# of the ranking, not a finished model, so a minute is enough.
BBE_STEPS = 600
# Fewest held-out P, and fewest held-out U, for BBE: below, its interval is too wide to use.
FEWEST_SCORES = 10


@dataclass(frozen=True)
class PriorUsed:
    """A class prior, as `result.json` records it."""

    value: float
    low: float | None  # of its interval; None where the prior counts as exactly known
    high: float | None
    origin: str  # id of the assumption it rests on, see metrics/registry.py
    notes: tuple[str, ...] = ()  # warnings about it

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval, None where the prior counts as exactly known."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def to_json(self) -> dict[str, Any]:
        """Return the entry `prior` of `result.json`."""
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

    A given number is compared with an estimate from few samples: a wrong one ruins the methods
    that need it, and nothing else would show that before training.
    """
    if prior == "truth":
        true = split.true_prior
        if true is None:
            raise ConfigError(
                "prior = truth needs the true classes of the unlabelled, which are unknown here. "
                "Use auto or a number."
            )
        return PriorUsed(true, None, None, "truth")
    if isinstance(prior, float):
        given = PriorEstimate(prior, prior, prior, "The number given", 0, 0)
        few = _flat_rows(split, seed, CHECK_POSITIVE, CHECK_UNLABELLED)
        notes = tuple(agreement([given, km2(*few, seed=seed)]))
        return PriorUsed(prior, None, None, "given", notes)
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
    method = build_method(
        CEConfig(),
        BackboneConfig(width=0.5),
        loaded,
        split,
        batch_size=batch_size,
        seed=seed,
        coordinates=("bbe-backbone", "bbe"),
    )
    scores = fit(method, split, train, seed=seed, watcher=watcher).scores(held_out.values)
    return bbe(scores[held_out.labelled], scores[~held_out.labelled], seed=seed)


@dataclass(frozen=True)
class NoPrior:
    """Why a model's own scores give no prior."""

    reason: str

    def __str__(self) -> str:
        return (
            "the share of positives among the unlabelled items (the prior) was not given and "
            f"cannot be estimated from this model's held-out scores: {self.reason}"
        )


def own_prior(
    positive: Float[np.ndarray, "p"], unlabelled: Float[np.ndarray, "u"]
) -> PriorUsed | NoPrior:
    """Return the prior by BBE from held-out scores of the model that it helps to evaluate.

    It is right where only positives have the highest scores, and biased high elsewhere. So the
    interval reaches down to where a model says it may be in which negatives have them too
    (`priors.binormal`).
    """
    found = _best_bin(positive, unlabelled)
    if isinstance(found, NoPrior):
        return found
    low = min(found.low, binormal(positive, unlabelled).low)
    return PriorUsed(found.value, low, found.high, OWN_SCORES, tuple(found.notes))


def own_prior_of_three(
    positive: Float[np.ndarray, "p"], unlabelled: Float[np.ndarray, "u"]
) -> PriorUsed | NoPrior:
    """Return the median of three estimates from a model's own out-of-fold scores.

    BBE is too high where negatives are among the highest scores; the share that Elkan and Noto's
    rule calls is often too low; two bell curves are neither, and sometimes wildly wrong. The median
    is never the wildest of them: `benchmarks.threshold_rules` compares the rules. The interval
    spans those of BBE and of Elkan and Noto, and like that of `own_prior` it reaches down to what
    the bell curves allow.
    """
    first = _best_bin(positive, unlabelled)
    if isinstance(first, NoPrior):
        return first
    second, third = elkan_noto(positive, unlabelled), binormal(positive, unlabelled)
    return PriorUsed(
        float(np.median([first.value, second.value, third.value])),
        min(first.low, second.low, third.low),
        max(first.high, second.high),
        OWN_SCORES_MEDIAN,
        tuple(first.notes),
    )


def _best_bin(
    positive: Float[np.ndarray, "p"], unlabelled: Float[np.ndarray, "u"]
) -> PriorEstimate | NoPrior:
    """Return the estimate by BBE, unless the scores say nothing.

    Scores that separate nothing would give a prior near 1, and with it a precision near 1: so an
    interval that reaches 1 is no estimate.
    """
    if min(len(positive), len(unlabelled)) < FEWEST_SCORES:
        return NoPrior(
            f"they are of {len(positive)} positives and {len(unlabelled)} unlabelled items, and "
            f"it takes {FEWEST_SCORES} of each"
        )
    found = bbe(positive, unlabelled)
    if found.high >= 1:
        return NoPrior("they separate so little that every unlabelled item could be positive")
    if found.value <= 0:
        return NoPrior("no unlabelled item scores as high as the positives do")
    return found


def _flat_rows(
    split: PUSplit,
    seed: int,
    most_positive: int = MOST_POSITIVE,
    most_unlabelled: int = MOST_UNLABELLED,
) -> tuple[np.ndarray, np.ndarray]:
    """Return P and U as flat vectors, at most so many of each: images are large."""
    random = numpy_generator(seed, "prior")
    data, parts = split.train, []
    for most, mask in ((most_positive, data.labelled), (most_unlabelled, data.unlabelled)):
        rows = np.flatnonzero(mask)
        if len(rows) > most:
            rows = np.sort(random.choice(rows, most, replace=False))
        parts.append(data.values.take(rows).reshape(len(rows), -1).astype(np.float64))
    return parts[0], parts[1]
