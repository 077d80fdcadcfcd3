"""Did it work? Figures from held-out positives and unlabelled items, without negatives.

    r    recall, P(score > threshold | positive)          estimated on held-out P
    s    share of U called positive                       estimated on held-out U
    A    proxy AUC, P(score of P > score of U)            estimated on both
    pi   prior: share of positives in U, in both scenarios
    l    labelled share n_P / (n_P + n_U), single-set scenario only

Every figure carries the assumption it rests on. Derivations: docs/evaluation.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from onesided.core.errors import DataError
from onesided.core.rng import numpy_generator
from onesided.metrics.alarm import (
    degenerate,
    outside_unit_interval,
    prior_consistency,
    weak_separation,
)
from onesided.metrics.figure import (
    LABELS,
    SHARES,
    Estimate,
    Figure,
    PUEvaluation,
    Scenario,
    Setting,
    assumptions,
    present,
)
from onesided.metrics.intervals import (
    DRAWS,
    AucSpread,
    Draws,
    Interval,
    auc_spread,
    clopper_pearson,
    placements,
    prior_draws,
    share_draws,
)

__all__ = [
    "Figure",
    "PUEvaluation",
    "evaluate_pu",
    "population_prior",
    "proxy_accuracy_case_control",
    "proxy_accuracy_single_set",
    "proxy_auc",
]

Rate = TypeVar("Rate", float, NDArray[np.float64])


@dataclass(frozen=True)
class _Counts:
    """What was counted: all that the figures need to know of the scores."""

    found: int
    positives: int
    called: int
    unlabelled: int
    proxy: AucSpread

    @property
    def recall(self) -> float:
        return self.found / self.positives

    @property
    def share(self) -> float:
        return self.called / self.unlabelled


@dataclass(frozen=True)
class _Rates:
    """What the derived figures are computed from; one row is one possible truth."""

    recall: Draws
    share: Draws
    proxy: Draws
    prior: Draws
    labelled_share: Draws


def evaluate_pu(
    positive_scores: Float[np.ndarray, "positives"],
    unlabelled_scores: Float[np.ndarray, "unlabelled"],
    *,
    threshold: float = 0.5,
    scenario: Scenario,
    prior: float | None = None,
    prior_interval: Interval | None = None,
    labelled_share: float | None = None,
    coverage: float = 0.95,
) -> PUEvaluation:
    """Estimate how well a scorer works from held-out positives and unlabelled items.

    Args:
        positive_scores: Scores of positives that were not trained on.
        unlabelled_scores: Scores of unlabelled items that were not trained on.
        threshold: A score above it means positive; a tie means negative.
        scenario: "case-control" if P was collected apart from U; "single-set" if P was
            labelled inside one set and U is the rest of it.
        prior: Share of positives in U; figures that need it are None without it.
        prior_interval: Interval of the prior at the same coverage; without it the prior
            counts as exactly known.
        labelled_share: Share of labelled items in the whole single set. Needed where P
            and U were held out at different rates; taken from the scores otherwise.
        coverage: How often the intervals shall hold the truth.
    """
    setting = Setting(scenario, prior, prior_interval, labelled_share, coverage)
    _check_scores(positive_scores, "held-out positives")
    _check_scores(unlabelled_scores, "held-out unlabelled items")
    counts = _Counts(
        found=int(np.count_nonzero(positive_scores > threshold)),
        positives=len(positive_scores),
        called=int(np.count_nonzero(unlabelled_scores > threshold)),
        unlabelled=len(unlabelled_scores),
        proxy=auc_spread(positive_scores, unlabelled_scores),
    )
    estimates = _measured(counts, coverage) | _derived(counts, setting)
    alarm = degenerate(counts.share, counts.recall)
    warnings = _warnings(counts, estimates)
    if prior is not None:
        low = prior if prior_interval is None else prior_interval[0]
        warnings += prior_consistency(
            positive_scores, unlabelled_scores, prior=low, threshold=threshold, coverage=coverage
        )
    assumed = assumptions(setting, called=counts.called)
    figures = {name: present(name, estimates[name], assumed[name]) for name in LABELS}
    return PUEvaluation(figures, alarm, warnings)


def proxy_auc(
    positive_scores: Float[np.ndarray, "positives"],
    unlabelled_scores: Float[np.ndarray, "unlabelled"],
) -> float:
    """Return how often a positive outscores an unlabelled item, ties counting half.

    The figure that chooses between models: it needs no prior, no threshold and no
    negatives, and under SCAR it orders models as the true AUC does. Costs one sort.
    """
    return float(placements(positive_scores, unlabelled_scores).mean())


def proxy_accuracy_case_control(recall: Rate, share_positive: Rate, prior: Rate) -> Rate:
    """Return the accuracy on U, of which a share `prior` is positive.

    acc = 2 pi r + P_U(negative) - pi, one minus the PU zero-one risk (du Plessis et al.,
    2014). Sampling noise may carry it outside [0, 1].
    """
    return 2 * prior * recall + (1 - share_positive) - prior


def proxy_accuracy_single_set(
    recall: Rate, share_positive: Rate, prior: Rate, labelled_share: Rate
) -> Rate:
    """Return the accuracy on the one set inside which the positives were labelled.

    The same identity with every term taken on P and U together; `share_positive` and
    `prior` are those of U. Taking P(negative) on U alone, from which labelled positives
    were removed, is wrong by l (r - s).
    """
    called = labelled_share * recall + (1 - labelled_share) * share_positive
    return proxy_accuracy_case_control(recall, called, population_prior(prior, labelled_share))


def population_prior(prior: Rate, labelled_share: Rate) -> Rate:
    """Return the share of positives in P and U together: (n_P + pi n_U) / (n_P + n_U)."""
    return labelled_share + (1 - labelled_share) * prior


def _measured(counts: _Counts, coverage: float) -> dict[str, Estimate]:
    """Return the figures that are read off the scores directly."""
    recall = clopper_pearson(counts.found, counts.positives, coverage=coverage)
    share = clopper_pearson(counts.called, counts.unlabelled, coverage=coverage)
    return {
        "recall": Estimate(counts.recall, recall),
        "share_positive": Estimate(counts.share, share),
        "proxy_auc": Estimate(counts.proxy.value, counts.proxy.interval(coverage)),
    }


def _derived(counts: _Counts, setting: Setting) -> dict[str, Estimate]:
    """Return the figures that combine several estimates, with melded intervals."""
    tail = (1 - setting.coverage) / 2
    prior = np.nan if setting.prior is None else setting.prior
    labelled = setting.labelled_share or counts.positives / (counts.positives + counts.unlabelled)
    observed = [counts.recall, counts.share, counts.proxy.value, prior, labelled]
    values = _formulas(_Rates(*np.array(observed)[:, None]), setting.scenario)
    pessimistic, optimistic = _possible_truths(counts, setting)
    lows = _formulas(pessimistic, setting.scenario)
    highs = _formulas(optimistic, setting.scenario)
    estimates = {}
    for name, (value,) in values.items():
        with np.errstate(invalid="ignore"):  # infinite draws where nothing was called positive
            low, high = np.quantile(lows[name], tail), np.quantile(highs[name], 1 - tail)
        estimates[name] = Estimate(float(value), (float(min(low, value)), float(max(high, value))))
    return estimates


def _possible_truths(counts: _Counts, setting: Setting) -> tuple[_Rates, _Rates]:
    """Draw what may be true, for the low ends and for the high ends of intervals.

    No figure falls with recall or rises with the share called positive, so low ends take
    low recalls and high shares. Prior and labelled share have no direction that holds for
    every figure, and are the same at both ends.
    """
    rng = numpy_generator(0, "evaluate_pu")
    recall_low, recall_high = share_draws(counts.found, counts.positives, rng)
    share_low, share_high = share_draws(counts.called, counts.unlabelled, rng)
    labelled = (
        rng.beta(counts.positives + 0.5, counts.unlabelled + 0.5, DRAWS)
        if setting.labelled_share is None
        else np.full(DRAWS, setting.labelled_share)
    )
    prior = (
        np.full(DRAWS, np.nan)
        if setting.prior is None
        else prior_draws(setting.prior, setting.prior_interval, rng, coverage=setting.coverage)
    )
    rest = (counts.proxy.draws(rng), prior, labelled)
    return _Rates(recall_low, share_high, *rest), _Rates(recall_high, share_low, *rest)


def _formulas(rates: _Rates, scenario: Scenario) -> dict[str, Draws]:
    """Compute the derived figures, and the advantage of recall over share, row by row."""
    recall, share, prior = rates.recall, rates.share, rates.prior
    accuracy = (
        proxy_accuracy_case_control(recall, share, prior)
        if scenario == "case-control"
        else proxy_accuracy_single_set(recall, share, prior, rates.labelled_share)
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # nothing called: inf or NaN
        return {
            "precision": prior * recall / share,
            "f1": 2 * prior * recall / (prior + share),
            "proxy_accuracy": accuracy,
            "auc": (rates.proxy - prior / 2) / (1 - prior),
            "lee_liu": recall**2 / share,
            "advantage": recall - share,
        }


def _warnings(counts: _Counts, estimates: Mapping[str, Estimate]) -> tuple[str, ...]:
    computed = {name: estimates[name] for name in SHARES if np.isfinite(estimates[name].value)}
    cut = outside_unit_interval(
        {name: estimate.value for name, estimate in computed.items()},
        {name: estimate.interval for name, estimate in computed.items()},
    )
    unclear = counts.recall > counts.share and estimates["advantage"].interval[0] <= 0
    weak = weak_separation(counts.recall, counts.share, counts.positives) if unclear else None
    return tuple(sentence for sentence in (cut, weak) if sentence is not None)


def _check_scores(scores: Float[np.ndarray, "n"], what: str) -> None:
    if scores.ndim != 1 or scores.size == 0:
        raise DataError(
            f"Scores of {what} must be a list with at least one number; got an array of shape "
            f"{scores.shape}. Hold out a part of the data for evaluation."
        )
    if not np.isfinite(scores).all():
        raise DataError(f"Scores of {what} hold NaN or infinity; they must be finite numbers.")
