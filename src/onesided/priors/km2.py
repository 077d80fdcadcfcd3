"""Class prior by kernel mean embedding, KM1 and KM2: samples in, estimate out.

Ramaswamy, Scott, Tewari, Mixture proportion estimation via kernel embeddings of
distributions, ICML 2016. The mathematics on a kernel matrix is in `kernel_mean`; here are
the samples that go into it, their principal components, and the interval.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int64, Num
from numpy.typing import ArrayLike
from scipy.stats import t as student
from sklearn.decomposition import PCA

from onesided.core.errors import DataError
from onesided.priors.estimate import PriorEstimate, as_numbers, check_options, range_warning
from onesided.priors.kernel_mean import (
    CELL,
    REACHABLE,
    ThresholdRule,
    distinctness,
    gaussian_kernel,
    km1_threshold,
    km2_threshold,
    prior_from_kernel,
)

ROWS_FOR_PCA = 10_000
ROWS_PER_REPLICATE = 600
FEW = 20
DISTINCT = 1.5
"""Distance between the means, in units of chance. On the toy problem of the tests it was below 1.4
for priors of 0.97 and 1, where the search gives arbitrary values, and above 1.6 at 0.9."""


@dataclass(frozen=True)
class KernelMean:
    """Estimates the class prior by kernel means; `km1` and `km2` differ in their rule alone.

    Assumes that labelled positives are typical of all positives and that some region holds
    positives only. Where the classes overlap, as in raw pixels, the value is biased high.
    `rule` gives the slope of d from which no positives are left.
    """

    name: str
    rule: ThresholdRule

    def __call__(
        self,
        positive: ArrayLike,
        unlabelled: ArrayLike,
        *,
        max_positive: int = 1000,
        max_unlabelled: int = 2000,
        dimensions: int = 50,
        seed: int = 0,
        repeats: int = 1,
        replicates: int = 20,
        coverage: float = 0.95,
    ) -> PriorEstimate:
        """Estimate the class prior, with an interval.

        The interval comes from `replicates` sub-samples without replacement, a share b of
        the samples used, at most 0.5 and 600 rows: their spread times sqrt(b / (1 - b)) is
        the spread at full size if noise falls with the square root of the size. It covers
        sampling noise and the grid of the search, not the bias of the method.

        Memory: with n = N + M samples used, three arrays of 8 n^2 bytes (216 MB at 3000);
        before that, for D > `dimensions` features, two or three of 8 D bytes times 10 000 rows.

        Args:
            positive: Labelled positives, one row or image per sample.
            unlabelled: Unlabelled samples of the same shape.
            max_positive: Positives to use; a random part is taken if there are more.
            max_unlabelled: Unlabelled samples to use, likewise.
            dimensions: Principal components to use if there are more features.
            seed: Seed of sub-samples and components.
            repeats: Sub-samples over which the value is averaged, if not all are used.
            replicates: Smaller sub-samples for the interval; 0 leaves the grid cell.
            coverage: Intended coverage of the interval.
        """
        options = _Options(
            max_positive, max_unlabelled, dimensions, seed, repeats, replicates, coverage
        )
        return _estimate(self.name, self.rule, positive, unlabelled, options)


km2 = KernelMean("KM2", km2_threshold)
"""KM2 of Ramaswamy et al. (2016): no positives are left where the slope of d is a fifth of the way
from its first to its last."""
km1 = KernelMean("KM1", km1_threshold)
"""KM1 of the same paper: no positives are left where the slope of d passes 1 / sqrt(min(N, M))."""


@dataclass(frozen=True)
class _Options:
    max_positive: int
    max_unlabelled: int
    dimensions: int
    seed: int
    repeats: int
    replicates: int
    coverage: float

    def __post_init__(self) -> None:
        names = ("max_positive", "max_unlabelled", "dimensions", "repeats")
        counts = [(name, getattr(self, name), 1) for name in names]
        counts += [("seed", self.seed, 0), ("replicates", self.replicates, 0)]
        check_options(coverage=self.coverage, at_least=counts)


def _estimate(
    method: str, rule: ThresholdRule, positive: ArrayLike, unlabelled: ArrayLike, options: _Options
) -> PriorEstimate:
    samples = _Samples.of(positive, unlabelled)
    n_positive = min(len(samples.positive), options.max_positive)
    n_unlabelled = min(len(samples.unlabelled), options.max_unlabelled)
    all_used = n_positive + n_unlabelled == len(samples.positive) + len(samples.unlabelled)
    values: list[float] = []
    spread, is_distinct = 0.0, True
    for repeat in range(1 if all_used else options.repeats):
        # Not core.rng, which imports torch.
        rng = np.random.default_rng([options.seed, repeat])
        features = samples.draw(n_unlabelled, n_positive, options.dimensions, rng)
        kernel = gaussian_kernel(features, n_unlabelled)
        values.append(prior_from_kernel(kernel, n_unlabelled, rule))
        if repeat == 0:
            spread = _spread(kernel, n_unlabelled, rule, options.replicates, rng)
            is_distinct = distinctness(kernel, n_unlabelled) >= DISTINCT
    value = float(np.mean(values))
    dof = max(options.replicates - 1, 1)
    low, high = _interval(value, spread * float(student.ppf((1 + options.coverage) / 2, dof)))
    estimate = PriorEstimate(
        value,
        low,
        high if is_distinct else 1.0,
        method,
        n_positive,
        n_unlabelled,
        reachable=REACHABLE,
        is_distinct=is_distinct,
    )
    return replace(estimate, notes=_notes(estimate, samples, options))


def _spread(
    kernel: Float[np.ndarray, "n n"],
    n_unlabelled: int,
    rule: ThresholdRule,
    replicates: int,
    rng: np.random.Generator,
) -> float:
    """Return the standard deviation of the estimate, from smaller sub-samples.

    The variance of a part b of n rows, drawn without replacement, is sigma^2 (1/bn - 1/n); that
    of the estimate is sigma^2 / n. The kernel is computed once.
    """
    if replicates < 2:
        return 0.0
    part = min(0.5, ROWS_PER_REPLICATE / len(kernel))
    n_positive = len(kernel) - n_unlabelled
    few_unlabelled, few_positive = (max(1, round(part * n)) for n in (n_unlabelled, n_positive))
    values = []
    for _ in range(replicates):
        unlabelled = _random_rows(n_unlabelled, few_unlabelled, rng)
        positive = n_unlabelled + _random_rows(n_positive, few_positive, rng)
        rows = np.concatenate([unlabelled, positive])
        values.append(prior_from_kernel(kernel[np.ix_(rows, rows)], few_unlabelled, rule))
    return float(np.std(values, ddof=1) * np.sqrt(part / (1 - part)))


def _interval(value: float, margin: float) -> tuple[float, float]:
    """Return value -+ margin, at least the search cell, and 0 or 1 at the end of the range."""
    stretch = 1 / (1 - value)
    low = min(value - margin, 1 - 1 / max(stretch - CELL / 2, 1.0))
    high = max(value + margin, 1 - 1 / (stretch + CELL / 2))
    return (
        0.0 if value <= REACHABLE[0] + 1e-9 else max(low, 0.0),
        1.0 if value >= REACHABLE[1] - 1e-9 else min(high, 1.0),
    )


def _notes(estimate: PriorEstimate, samples: "_Samples", options: _Options) -> tuple[str, ...]:
    notes = [range_warning(estimate)]
    if not estimate.is_distinct:
        notes.append(
            "The unlabelled samples hardly differ from the positives, by chance or because nearly "
            "all are positive: the true prior may be anything from the lower end to 1."
        )
    for name, used, given in (
        ("positives", estimate.n_positive, len(samples.positive)),
        ("unlabelled samples", estimate.n_unlabelled, len(samples.unlabelled)),
    ):
        if used < given:
            notes.append(f"Used {used} of {given} {name}, chosen at random (seed {options.seed}).")
        if used < FEW:
            notes.append(f"Only {used} {name}: the value is little more than a guess.")
    if options.replicates < 2:
        notes.append("No replicates: the interval is the cell of the search, not the noise.")
    return tuple(note for note in notes if note)


@dataclass(frozen=True)
class _Samples:
    """Positives and unlabelled samples as rows of numbers, not yet copied."""

    positive: Num[np.ndarray, "m d"]
    unlabelled: Num[np.ndarray, "n d"]

    @staticmethod
    def of(positive: ArrayLike, unlabelled: ArrayLike) -> "_Samples":
        """Return both as rows, or refuse samples of different shapes."""
        one, other = as_numbers(positive, "positives"), as_numbers(unlabelled, "unlabelled samples")
        if one.shape[1:] != other.shape[1:]:
            raise DataError(
                f"Positives and unlabelled samples must have the same shape; one positive has "
                f"{one.shape[1:]}, one unlabelled sample {other.shape[1:]}."
            )
        return _Samples(one.reshape(len(one), -1), other.reshape(len(other), -1))

    def draw(
        self, n_unlabelled: int, n_positive: int, dimensions: int, rng: np.random.Generator
    ) -> Float[np.ndarray, "n k"]:
        """Return features of random rows, unlabelled first, by principal components of both.

        The components are fitted to at most 10 000 rows: at 3072 features that is 250 MB
        instead of gigabytes.
        """
        both = self.unlabelled, self.positive
        ends = [float(end) for part in both for end in (part.min(), part.max())]
        scale = max(map(abs, ends)) or 1.0  # squares of 1e200 overflow
        cut, total = len(self.unlabelled), len(self.unlabelled) + len(self.positive)
        unlabelled_rows = _random_rows(cut, n_unlabelled, rng)
        positive_rows = cut + _random_rows(total - cut, n_positive, rng)
        chosen = self._rows(np.concatenate([unlabelled_rows, positive_rows])) / scale
        if (chosen == chosen[0]).all():
            raise DataError(
                "All positives and unlabelled samples are equal, so nothing can be estimated. "
                "Check that the features were read."
            )
        if chosen.shape[1] <= dimensions:
            return chosen
        pool = self._rows(_random_rows(total, ROWS_FOR_PCA, rng)) / scale
        components = PCA(min(dimensions, *pool.shape), random_state=int(rng.integers(2**31)))
        return np.asarray(components.fit(pool).transform(chosen))

    def _rows(self, rows: Int64[np.ndarray, "k"]) -> Float[np.ndarray, "k d"]:
        cut = len(self.unlabelled)
        parts = [self.unlabelled[rows[rows < cut]], self.positive[rows[rows >= cut] - cut]]
        return np.concatenate(parts, dtype=np.float64)


def _random_rows(among: int, count: int, rng: np.random.Generator) -> Int64[np.ndarray, "k"]:
    """Return `count` different rows in ascending order, or all if there are fewer."""
    return np.sort(rng.permutation(among)[:count])
