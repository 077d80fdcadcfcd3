"""Figures from held-out positives and unlabelled items, without negatives.

    r    recall, P(score > threshold | positive)          estimated on held-out P
    s    share of U called positive                       estimated on held-out U
    A    proxy AUC, P(score of P > score of U)            estimated on both
    pi   prior: share of positives in U, in both scenarios
    l    labelled share n_P / (n_P + n_U), single-set scenario only

Every figure carries the assumption it rests on. Derivations: docs/evaluation.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from onesided.core.errors import DataError
from onesided.core.folds import GroupsOfBoth
from onesided.core.rng import numpy_generator
from onesided.metrics.alarm import (
    Evidence,
    degenerate,
    outside_unit_interval,
    prior_consistency,
    suspicions,
    weak_separation,
)
from onesided.metrics.figure import (
    NO_PRIOR,
    NOTHING_CALLED,
    Figure,
    PUEvaluation,
    Raw,
    Scenario,
    Setting,
    present,
    prior_figure,
)
from onesided.metrics.intervals import (
    DRAWS,
    AucSpread,
    Draws,
    Interval,
    auc_spread,
    clopper_pearson,
    less,
    placements,
    prior_draws,
    share_draws,
    worth,
)
from onesided.metrics.registry import FIGURES, Bias

Rate = TypeVar("Rate", float, NDArray[np.float64])


@dataclass(frozen=True)
class _Counts:
    """Counts on the scores: all that the figures need.

    Attributes:
        found: Positives above the threshold.
        called: Unlabelled items above it.
        worth_positives: How many independent positives give the recall as exactly as these.
        worth_unlabelled: Likewise for the share called.
        optimism: By how much the recall is too high.
        proxy: The proxy AUC, less its own optimism.
    """

    found: int
    positives: int
    called: int
    unlabelled: int
    worth_positives: float
    worth_unlabelled: float
    optimism: float
    proxy: AucSpread

    @property
    def counted_recall(self) -> float:
        return self.found / self.positives

    @property
    def recall(self) -> float:
        return max(self.counted_recall - self.optimism, 0.0)

    @property
    def share(self) -> float:
        return self.called / self.unlabelled

    @property
    def recall_counts(self) -> tuple[float, float]:
        """Successes and trials behind the recall, as many as they are worth."""
        return self.counted_recall * self.worth_positives, self.worth_positives

    @property
    def share_counts(self) -> tuple[float, float]:
        """Successes and trials behind the share called."""
        return self.share * self.worth_unlabelled, self.worth_unlabelled

    def evidence(self, coverage: float) -> Evidence:
        ends = (self.proxy.value, *self.proxy.interval(coverage))
        return Evidence(self.share, self.counted_recall, ends, self.positives, self.unlabelled)


@dataclass(frozen=True)
class Rates:
    """Inputs of the derived figures; one row is one possible truth.

    The labelled share is 0 in a case-control study, where U alone is the population.
    """

    recall: Draws
    share: Draws
    proxy: Draws
    prior: Draws
    labelled_share: Draws


@dataclass(frozen=True)
class Formula:
    """How a figure follows from the rates, and what that assumes.

    Attributes:
        value: The mathematics, row by row. It must not fall with recall, nor rise with the
            share called positive: the intervals need that.
        needs_prior: Whether it rests on the prior.
        is_share: Whether a value outside [0, 1] contradicts an assumption.
        of_population: Whether it is about the whole population, rather than about U.
        assumes: Ids of assumptions besides SCAR, items not trained on and the prior.
    """

    value: Callable[[Rates], Draws]
    needs_prior: bool = True
    is_share: bool = True
    of_population: bool = False
    assumes: tuple[str, ...] = ()


def evaluate_pu(
    positive_scores: Float[np.ndarray, "positives"],
    unlabelled_scores: Float[np.ndarray, "unlabelled"],
    *,
    threshold: float = 0.5,
    scenario: Scenario,
    prior: float | None = None,
    prior_interval: Interval | None = None,
    labelled_share: float | None = None,
    optimism: float = 0.0,
    recall_optimism: float = 0.0,
    groups: GroupsOfBoth | None = None,
    of_pool: bool = False,
    coverage: float = 0.95,
    prior_origin: str | None = None,
    no_prior: str = NO_PRIOR,
) -> PUEvaluation:
    """Estimate how well a scorer works from held-out positives and unlabelled items.

    Args:
        positive_scores: Of positives that were not trained on.
        unlabelled_scores: Of unlabelled items that were not trained on.
        threshold: A score above it means positive; a tie means negative.
        scenario: "case-control" if P was collected apart from U; "single-set" if P was
            labelled inside one set and U is the rest of it.
        prior: Share of positives in U; figures that need it are None without it.
        prior_interval: Interval of the prior at the same coverage; without it the prior
            counts as exactly known.
        labelled_share: Share of labelled items in the whole single set. Needed where P
            and U were held out at different rates; taken from the scores otherwise.
        optimism: By how much the proxy AUC is too high because the model was chosen among
            several by it, see `metrics.selection`.
        recall_optimism: Likewise of the recall, also because the threshold followed these scores.
        groups: Of the positives and of the unlabelled items, in one numbering; None where every
            item stands for itself.
        of_pool: Whether the unlabelled items are the whole pool that the figures are about, whose
            hidden positives have luck of their own.
        coverage: How often the intervals should hold the truth.
        prior_origin: Id of the assumption that says where the prior comes from, such as
            "own_scores" for one that was estimated on these same scores.
        no_prior: Why there is no prior.
    """
    setting = Setting(scenario, prior, prior_interval, labelled_share, coverage)
    _check_scores(positive_scores, "held-out positives")
    _check_scores(unlabelled_scores, "held-out unlabelled items")
    counts = _count(
        positive_scores > threshold,
        unlabelled_scores > threshold,
        proxy=auc_spread(positive_scores, unlabelled_scores, groups).less(optimism),
        optimism=recall_optimism,
        groups=groups,
        # Without a prior all of U may be positive: the luck that there is at least.
        hidden=None if not of_pool else 1.0 if prior is None else prior,
    )
    measured, derived = _measured(counts, coverage), _derived(counts, setting)
    evidence = counts.evidence(coverage)
    alarm = degenerate(evidence)
    warnings = () if alarm else (*suspicions(evidence), *_warnings(counts, derived))
    if prior is not None and not alarm:
        low = prior if prior_interval is None else prior_interval[0]
        warnings += prior_consistency(
            positive_scores,
            unlabelled_scores,
            prior=low,
            threshold=threshold,
            coverage=coverage,
            groups=groups,
        )
    prior_used = prior_figure(prior, prior_interval, origin=prior_origin, missing=no_prior)
    figures = {
        **measured,
        "prior": prior_used,
        **{name: _figure(name, derived[name], counts, setting, prior_used) for name in FORMULAS},
    }
    ordered = {name: figures[name] for name in FIGURES if name in figures}
    return PUEvaluation(ordered, alarm, warnings)


def _count(
    found: Bool[np.ndarray, "positives"],
    called: Bool[np.ndarray, "unlabelled"],
    *,
    proxy: AucSpread,
    optimism: float,
    groups: GroupsOfBoth | None,
    hidden: float | None,
) -> _Counts:
    """Return the counts; `hidden` is the share of U whose recall is meant, None for any sample.

    The recall of the pool is that of its hidden positives, who are a sample themselves: its
    distance from that of P varies with both.
    """
    worth_positives = worth(found, groups and groups[0])
    worth_unlabelled = worth(called, groups and groups[1])
    if hidden:
        worth_positives = 1 / (1 / worth_positives + 1 / (hidden * worth_unlabelled))
    return _Counts(
        found=int(np.count_nonzero(found)),
        positives=len(found),
        called=int(np.count_nonzero(called)),
        unlabelled=len(called),
        worth_positives=worth_positives,
        worth_unlabelled=worth_unlabelled,
        optimism=optimism,
        proxy=proxy,
    )


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


def _accuracy(rates: Rates) -> Draws:
    return proxy_accuracy_single_set(rates.recall, rates.share, rates.prior, rates.labelled_share)


FORMULAS: dict[str, Formula] = {
    "precision": Formula(lambda rates: rates.prior * rates.recall / rates.share),
    "f1": Formula(lambda rates: 2 * rates.prior * rates.recall / (rates.prior + rates.share)),
    "proxy_accuracy": Formula(_accuracy, of_population=True),
    "auc": Formula(lambda rates: (rates.proxy - rates.prior / 2) / (1 - rates.prior)),
    "lee_liu": Formula(
        lambda rates: rates.recall**2 / rates.share,
        needs_prior=False,
        is_share=False,
        assumes=("no_share",),
    ),
}
"""Figures that combine several estimates, by name."""
OF_P = ("recall", "auc")
"""Figures that are too high where P is easier to find than the positives of the pool."""

_ADVANTAGE = Formula(lambda rates: rates.recall - rates.share, needs_prior=False, is_share=False)


def _measured(counts: _Counts, coverage: float) -> dict[str, Figure]:
    """Return the figures that are read off the scores directly."""
    exact = clopper_pearson(*counts.recall_counts, coverage=coverage)
    recall = less(counts.counted_recall, exact, counts.optimism, coverage=coverage)
    share = clopper_pearson(*counts.share_counts, coverage=coverage)
    proxy = counts.proxy
    return {
        "recall": Figure("recall", counts.recall, *recall, assumes=("scar", "held_out")),
        "share_positive": Figure("share_positive", counts.share, *share, assumes=("held_out",)),
        "proxy_auc": Figure(
            "proxy_auc",
            proxy.value,
            *proxy.interval(coverage),
            assumes=("held_out", "not_negatives"),
        ),
    }


def _derived(counts: _Counts, setting: Setting) -> dict[str, Raw]:
    """Return the figures that combine several estimates, with melded intervals."""
    tail = (1 - setting.coverage) / 2
    observed = _observed(counts, setting)
    pessimistic, optimistic = _possible_truths(counts, setting)
    found = {}
    for name, formula in {**FORMULAS, "advantage": _ADVANTAGE}.items():
        with np.errstate(divide="ignore", invalid="ignore"):  # nothing called: inf or NaN
            (value,) = formula.value(observed)
            low = np.quantile(formula.value(pessimistic), tail)
            high = np.quantile(formula.value(optimistic), 1 - tail)
        interval = (float(min(low, value)), float(max(high, value)))
        found[name] = Raw(float(value), interval, _direction(formula, observed))
    return found


def _direction(formula: Formula, observed: Rates) -> Bias:
    """Return "high" where a prior that is too high makes the figure too high, else "low".

    Precision and F1 rise with the prior. Accuracy rises by 2 r - 1 and AUC by as much as
    A - 1/2: a model that misses most positives, or ranks them low, is better than it seems.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        (value,) = formula.value(observed)
        (below,) = formula.value(replace(observed, prior=0.9 * observed.prior))
        return "low" if value - below < -1e-12 else "high"


def _figure(name: str, found: Raw, counts: _Counts, setting: Setting, prior: Figure) -> Figure:
    """Return a derived figure with what it assumes, or with the reason why it is missing."""
    formula = FORMULAS[name]
    where = "same_rate" if setting.labelled_share is None else "like_all"
    where = "like_unlabelled" if setting.scenario == "case-control" else where
    population = (where,) if formula.of_population else ()
    assumes = ("scar", "held_out", *population, *formula.assumes)
    bias, missing = None, NOTHING_CALLED if counts.called == 0 else None
    if formula.needs_prior:
        assumes = tuple(dict.fromkeys((*assumes, *prior.assumes)))
        bias = found.rises if prior.bias == "high" else None
        missing = prior.missing or missing
    return present(
        name, found, is_share=formula.is_share, assumes=assumes, bias=bias, missing=missing
    )


def after_review(evaluation: PUEvaluation) -> PUEvaluation:
    """Return the evaluation of a pool from which a review took the positives that it found.

    Recall and AUC are measured on P, which is then typical of easier positives than are left.
    """
    return replace(
        evaluation,
        figures={
            name: replace(
                figure,
                assumes=(*figure.assumes, "easy_first"),
                bias="high" if name in OF_P else figure.bias,
            )
            if "scar" in figure.assumes
            else figure
            for name, figure in evaluation.figures.items()
        },
    )


def _observed(counts: _Counts, setting: Setting) -> Rates:
    """Return the rates as they were counted or given, in a single row."""
    prior = np.nan if setting.prior is None else setting.prior
    labelled = setting.labelled_share or counts.positives / (counts.positives + counts.unlabelled)
    labelled = 0.0 if setting.scenario == "case-control" else labelled
    return Rates(
        *np.array([counts.recall, counts.share, counts.proxy.value, prior, labelled])[:, None]
    )


def _possible_truths(counts: _Counts, setting: Setting) -> tuple[Rates, Rates]:
    """Draw what may be true, for the low ends and for the high ends of intervals.

    No figure falls with recall or rises with the share called positive, so low ends take
    low recalls and high shares. Prior and labelled share have no direction that holds for
    every figure, and are the same at both ends.
    """
    rng = numpy_generator(0, "evaluate_pu")
    recall_low, recall_high = share_draws(*counts.recall_counts, rng)
    share_low, share_high = share_draws(*counts.share_counts, rng)
    labelled = (
        rng.beta(counts.positives + 0.5, counts.unlabelled + 0.5, DRAWS)
        if setting.labelled_share is None
        else np.full(DRAWS, setting.labelled_share)
    )
    if setting.scenario == "case-control":
        labelled = np.zeros(DRAWS)
    prior = (
        np.full(DRAWS, np.nan)
        if setting.prior is None
        else prior_draws(setting.prior, setting.prior_interval, rng, coverage=setting.coverage)
    )
    rest = (counts.proxy.draws(rng), prior, labelled)
    if counts.optimism:
        less_by = counts.optimism * (1 + rng.standard_normal(DRAWS))
        recall_low, recall_high = (
            np.clip(drawn - less_by, 0, 1) for drawn in (recall_low, recall_high)
        )
    return Rates(recall_low, share_high, *rest), Rates(recall_high, share_low, *rest)


def _warnings(counts: _Counts, derived: Mapping[str, Raw]) -> tuple[str, ...]:
    shares = {name: derived[name] for name, formula in FORMULAS.items() if formula.is_share}
    clipped = outside_unit_interval(shares)
    unclear = counts.counted_recall > counts.share and derived["advantage"].interval[0] <= 0
    weak = weak_separation(counts.recall, counts.share, counts.positives) if unclear else None
    return tuple(sentence for sentence in (clipped, weak) if sentence is not None)


def _check_scores(scores: Float[np.ndarray, "n"], what: str) -> None:
    if scores.ndim != 1 or scores.size == 0:
        raise DataError(
            f"Scores of {what} must be a list with at least one number; got an array of shape "
            f"{scores.shape}. Hold out a part of the data for evaluation."
        )
    if not np.isfinite(scores).all():
        raise DataError(f"Scores of {what} hold NaN or infinity; they must be finite numbers.")
