"""Where the class prior comes from, for the methods that cannot do without one."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from onesided.core.errors import ConfigError
from onesided.data.dataset import PUSplit
from onesided.priors import km1, km2
from onesided.run.config import Prior

ROWS = {"positive": 1000, "unlabelled": 2000}


@dataclass(frozen=True)
class PriorUsed:
    """A class prior with its origin, as `result.json` records it."""

    value: float
    low: float | None
    high: float | None
    origin: str
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "notes": list(self.notes)}


def find_prior(prior: Prior, split: PUSplit, seed: int) -> PriorUsed:
    """Return the prior the user gave, or estimate it from P and U by kernel means."""
    if isinstance(prior, float):
        return PriorUsed(prior, None, None, "given")
    if prior == "truth":
        true = split.true_prior
        if true is None:
            raise ConfigError(
                "prior = truth needs the true classes of the unlabelled, which nobody knows here. "
                "Use auto or a number."
            )
        return PriorUsed(true, None, None, "truth (an oracle, for experiments)")
    estimator = km1 if prior == "km1" else km2
    estimate = estimator(*_flat_rows(split, seed), seed=seed)
    return PriorUsed(
        estimate.value, estimate.low, estimate.high, estimate.method, tuple(estimate.notes)
    )


def _flat_rows(split: PUSplit, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return flattened P and U, no more than the estimator would keep: images are large."""
    random = np.random.default_rng(seed)
    parts = []
    for wanted, mask in (("positive", split.train.labelled), ("unlabelled", ~split.train.labelled)):
        rows = np.flatnonzero(mask)
        if len(rows) > ROWS[wanted]:
            rows = np.sort(random.choice(rows, ROWS[wanted], replace=False))
        values = split.train.values.take(rows).reshape(len(rows), -1)
        parts.append(values.astype(np.float64))
    return parts[0], parts[1]
