"""Class prior by best bin estimation, from the scores of a trained scorer.

Garg, Wu, Smola, Balakrishnan, Lipton, Mixture proportion estimation and PU learning: a
modern approach, NeurIPS 2021. In words: take only samples scored above some threshold. If
almost all of them are positive, the share of U above it, divided by the share of P above it,
is the prior. The best threshold is the one with the smallest upper bound of that ratio.

| formula | here |
|---|---|
| c | `threshold` |
| q_u(c), q_p(c) | `share_unlabelled`, `share_positive` with a score of at least c |
| (1 + gamma)(sqrt(ln(4/delta)/2n_u) + sqrt(ln(4/delta)/2n_p)) | `penalty` |
| alpha = q_u / q_p | `ratio`, the class prior |
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int64
from numpy.typing import ArrayLike

from onesided.core.errors import ConfigError, DataError
from onesided.priors.estimate import PriorEstimate, as_numbers, check_options

Ties = Literal["exact", "reference"]
"""How equal scores are counted.

exact: as the formula says, a sample is in the bin if its score is at least the threshold.
reference: as the authors' code does: thresholds are U scores only, the last U of each run
of equal scores is left out, bins with fewer than two P or U and the lowest U score are
left out; 0 if no bin is left. Without equal scores both give the same value.
"""

ENTRIES_AT_ONCE = 1_000_000
"""Resampled scores in a chunk: about ten arrays of 8 MB."""
TIED_SHARE = 0.1
FEW = 20


@dataclass(frozen=True)
class BestBin:
    """The bin with the smallest upper bound, and its estimate of the prior."""

    threshold: float
    share_unlabelled: float
    share_positive: float
    ratio: float
    penalty: float
    bound: float


def best_bin(
    positive_scores: ArrayLike,
    unlabelled_scores: ArrayLike,
    *,
    delta: float = 0.1,
    gamma: float = 0.01,
    ties: Ties = "exact",
) -> BestBin:
    """Return the bin of top scores with the smallest upper bound of the prior.

    BBE (Garg et al. 2021, Algorithm 1): c minimises (q_u(c) + penalty) / q_p(c), and the
    prior is q_u(c) / q_p(c). Only the order of the scores matters. Candidates are all
    scores; the lowest gives ratio 1, so the ratio never exceeds 1.

    Args:
        positive_scores: Scores of held-out positives; higher is positive.
        unlabelled_scores: Scores of held-out unlabelled samples.
        delta: Probability that the bound behind the penalty fails.
        gamma: Slack of the penalty.
        ties: How equal scores are counted.
    """
    return _best(_Bins.of(positive_scores, unlabelled_scores, delta=delta, gamma=gamma, ties=ties))


def bbe(
    positive_scores: ArrayLike,
    unlabelled_scores: ArrayLike,
    *,
    delta: float = 0.1,
    gamma: float = 0.01,
    ties: Ties = "exact",
    resamples: int = 200,
    coverage: float = 0.95,
    seed: int = 0,
) -> PriorEstimate:
    """Estimate the class prior from scores of held-out positives and unlabelled samples.

    BBE (Garg et al. 2021, Algorithm 1), see `best_bin`. Do not pass scores of samples that the
    scorer was trained on: it is overconfident there, and the value is biased low. Pass logits in
    float64 rather than probabilities, which round to 1 and make ties.

    The interval spans the middle `coverage` of the values from `resamples` bootstrap samples of P
    and of U, each with its own best bin, and the mirror image of that about the estimate. The
    choice of the best bin is biased to one side, bootstrap samples are biased once more to the
    same side, and the mirror image corrects that. The interval covers sampling noise of the
    scored samples if only positives have top scores. It does not cover the noise of training, nor
    negatives among the top scores. 40 000 scores and 200 resamples take about a second and 100 MB.
    """
    check_options(coverage=coverage, at_least=[("resamples", resamples, 1), ("seed", seed, 0)])
    bins = _Bins.of(positive_scores, unlabelled_scores, delta=delta, gamma=gamma, ties=ties)
    found = _best(bins)
    values = bins.resampled(resamples, np.random.default_rng(seed))
    ends = np.quantile(values, [(1 - coverage) / 2, (1 + coverage) / 2])
    spanned = np.clip([*ends, *(2 * found.ratio - ends), found.ratio], 0, 1)
    return PriorEstimate(
        value=found.ratio,
        low=float(spanned.min()),
        high=float(spanned.max()),
        method="BBE",
        n_positive=len(bins.positive),
        n_unlabelled=len(bins.unlabelled),
        notes=_notes(found, bins),
    )


def _best(bins: "_Bins") -> BestBin:
    positive, unlabelled = bins.counts(bins.positive[None]), bins.counts(bins.unlabelled[None])
    (ratio,), (place,) = bins.choose(positive, unlabelled)
    if place < 0:
        return BestBin(np.inf, 0.0, 0.0, 0.0, bins.penalty, np.inf)
    share_positive = float(positive[0, place:].sum() / len(bins.positive))
    return BestBin(
        threshold=float(bins.levels[place]),
        share_unlabelled=float(ratio) * share_positive,
        share_positive=share_positive,
        ratio=float(ratio),
        penalty=bins.penalty,
        bound=float(ratio) + bins.penalty / share_positive,
    )


def _notes(found: BestBin, bins: "_Bins") -> tuple[str, ...]:
    notes = []
    largest_run = int(np.bincount(bins.positive).max())
    if len(bins.levels) == 1:
        notes.append(
            "All scores are equal: the scorer separates nothing, and the value is no estimate."
        )
    elif largest_run > TIED_SHARE * len(bins.positive):
        notes.append(
            f"{largest_run} of {len(bins.positive)} positives share one score: pass logits in "
            "float64, not rounded probabilities."
        )
    if found.ratio == 0:
        notes.append("No unlabelled score lies among the top positives: the value 0 is a guess.")
    for name, count in (("positives", len(bins.positive)), ("unlabelled", len(bins.unlabelled))):
        if count < FEW:
            notes.append(f"Only {count} {name} were scored: the bound behind the bin is loose.")
    return tuple(notes)


@dataclass(frozen=True)
class _Bins:
    """Scores as positions in the sorted list of all distinct scores, lowest first."""

    levels: Float[np.ndarray, "levels"]
    positive: Int64[np.ndarray, "n_positive"]
    unlabelled: Int64[np.ndarray, "n_unlabelled"]
    penalty: float
    ties: Ties

    @staticmethod
    def of(
        positive_scores: ArrayLike,
        unlabelled_scores: ArrayLike,
        *,
        delta: float,
        gamma: float,
        ties: Ties,
    ) -> "_Bins":
        if not 0 < delta < 1 or gamma < 0:
            raise ConfigError(
                f"delta must lie between 0 and 1 and gamma not below 0; got {delta} and {gamma}."
            )
        if ties not in get_args(Ties):
            raise ConfigError(f"ties must be one of {', '.join(get_args(Ties))}; got {ties!r}.")
        positive = _one_score_each(positive_scores, "positive scores")
        unlabelled = _one_score_each(unlabelled_scores, "unlabelled scores")
        levels, place = np.unique(np.concatenate([positive, unlabelled]), return_inverse=True)
        spread = np.log(4 / delta) / 2
        penalty = (1 + gamma) * (
            np.sqrt(spread / len(unlabelled)) + np.sqrt(spread / len(positive))
        )
        cut = len(positive)
        return _Bins(levels, place[:cut], place[cut:], float(penalty), ties)

    def counts(self, places: Int64[np.ndarray, "draws n"]) -> Int64[np.ndarray, "draws levels"]:
        """Return how many positions of each row fall on each level."""
        rows, size = len(places), len(self.levels)
        offsets = np.arange(rows)[:, None] * size
        return np.bincount((places + offsets).ravel(), minlength=rows * size).reshape(rows, size)

    def choose(
        self,
        positive: Int64[np.ndarray, "draws levels"],
        unlabelled: Int64[np.ndarray, "draws levels"],
    ) -> tuple[Float[np.ndarray, "draws"], Int64[np.ndarray, "draws"]]:
        """Return the ratio and the level of the best bin of each row; 0 and -1 if none."""
        above_positive, above_unlabelled = _from_the_top(positive), _from_the_top(unlabelled)
        if self.ties == "exact":
            admitted = above_positive > 0
        else:
            not_lowest = above_unlabelled < len(self.unlabelled)
            above_unlabelled = above_unlabelled - 1
            admitted = (unlabelled > 0) & not_lowest & (above_unlabelled > 1) & (above_positive > 1)
        share_positive = np.maximum(above_positive, 1) / len(self.positive)
        ratio = above_unlabelled / len(self.unlabelled) / share_positive
        bound = np.where(admitted, ratio + self.penalty / share_positive, np.inf)
        place = bound.argmin(axis=1)
        rows = np.arange(len(place))
        found = admitted[rows, place]
        # The reference leaves out the whole sample, whose ratio is 1, so it can exceed 1.
        value = np.minimum(ratio[rows, place], 1.0)
        return np.where(found, value, 0.0), np.where(found, place, -1)

    def resampled(self, resamples: int, rng: np.random.Generator) -> Float[np.ndarray, "draws"]:
        """Return the ratios of bootstrap samples, computed in chunks."""
        n_positive, n_unlabelled = len(self.positive), len(self.unlabelled)
        at_once = max(1, ENTRIES_AT_ONCE // (n_positive + n_unlabelled))
        values = []
        for done in range(0, resamples, at_once):
            rows = min(at_once, resamples - done)
            positive = self.positive[rng.integers(n_positive, size=(rows, n_positive))]
            unlabelled = self.unlabelled[rng.integers(n_unlabelled, size=(rows, n_unlabelled))]
            values.append(self.choose(self.counts(positive), self.counts(unlabelled))[0])
        return np.concatenate(values)


def _from_the_top(counts: Int64[np.ndarray, "draws levels"]) -> Int64[np.ndarray, "draws levels"]:
    """Return how many lie on each level or above."""
    return counts[:, ::-1].cumsum(axis=1)[:, ::-1]


def _one_score_each(scores: ArrayLike, name: str) -> Float[np.ndarray, "n"]:
    values = as_numbers(scores, name)
    if values.ndim != 1:
        raise DataError(f"The {name} must be one number per sample; got shape {values.shape}.")
    return values.astype(np.float64)
