"""From samples to a PU problem: which are labelled, unlabelled, held out.

PU data arises in two ways:

* **case-control**: P and U are two samples. U is drawn from the population with a share
  `prior` of positives; P is drawn separately. The paper's setting.
* **single-set**: one sample is drawn, and some of its positives are labelled. U is the rest,
  so it holds fewer positives than the population.

Of a finite data set, a case-control study can be imitated in two ways, `Pool`: no sample is in both
P and U, or U is a whole sample of the population and P is drawn from it, so that U holds P, too.

A split is a pure function of the samples and its recipe, so a run has to store the recipe
only. The hash proves that two runs saw the same split.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, Self

import numpy as np
from jaxtyping import Bool, Int64, Shaped
from pydantic import Field, model_validator

from onesided.core.config import Config
from onesided.core.errors import ConfigError, DataError
from onesided.core.folds import joined_groups
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.problem.content import contents_of
from onesided.data.problem.dataset import (
    Joined,
    LabelledDataset,
    PUDataset,
    PUSplit,
    Scenario,
    Selection,
    at_rows,
)
from onesided.data.problem.samples import Samples, Source

MINIMUM_POSITIVES = 10
MOST_POSITIVES, MOST_UNLABELLED = 1000, 5000
"""Most samples that are held out of people's own: a tenth of a million is needless work."""
POOLED = "pooled"
"""The grouping that ignores the publisher's division: all samples together, one by one."""
GROUP_DRAWS = 100
"""How often groups are drawn until both sides hold positives and unlabelled samples."""
Pool = Literal["apart", "whole"]
"""Whether the labelled positives that are trained on are in U, too, without their label."""
_Deal = Callable[[int, int, Pool], PUDataset]
"""Draws labelled and unlabelled samples, so many of each."""


class SplitRecipe(Config):
    """How to make a PU problem from a labelled data set."""

    positive_classes: tuple[int, ...]
    """Class indices that count as positive."""
    positives: int = Field(ge=MINIMUM_POSITIVES)
    """Labelled positives."""
    unlabelled: int = Field(ge=1)
    """Unlabelled samples."""
    prior: float | None = Field(default=None, gt=0, lt=1)
    """Share of positives: in U (case-control), in the whole set (single-set). None where the
    publisher's own unlabelled part is used, whose share is unknown."""
    held_out_positives: int = Field(default=0, ge=0)
    """Further labelled positives, held out."""
    held_out_unlabelled: int = Field(default=0, ge=0)
    """Further unlabelled samples, held out, with the same prior."""
    clean: int = Field(default=0, ge=0)
    """Held-out samples of each class whose label is known, for methods that need them."""
    scenario: Scenario = "case-control"
    """How P and U were drawn."""
    pool: Pool = "apart"
    """apart: no sample is in both P and U, as in the paper. whole: P is drawn from the positives of
    U and stays in U without its label, as in PU-Bench; case-control only. Held-out P and U are
    apart in both, because intervals take them for independent samples."""
    grouping: str | None = None
    """Kind of group, such as tile or event, that is never both trained and tested on; for data
    sets without a test part. Left out: the publisher's division where there is one, else sample
    by sample. `pooled` is always sample by sample, as in the paper."""
    seed: int = 57
    """Seed of the split, apart from the run's seed: repeats share one split, as in the paper."""

    renamed: ClassVar[Mapping[str, str]] = {
        "validation_positives": "held_out_positives",
        "validation_unlabelled": "held_out_unlabelled",
    }

    @model_validator(mode="after")
    def _hold_out_both_or_neither(self) -> Self:
        if bool(self.held_out_positives) != bool(self.held_out_unlabelled):
            raise ValueError(
                f"held_out_positives is {self.held_out_positives} and held_out_unlabelled "
                f"is {self.held_out_unlabelled}; hold out some of both, or set both to 0"
            )
        return self

    @model_validator(mode="after")
    def _a_single_set_is_divided(self) -> Self:
        if self.pool == "whole" and self.scenario == "single-set":
            raise ValueError(
                "pool is 'whole', but in a single set U is what is left after labelling; set pool "
                "to 'apart', or scenario to 'case-control'"
            )
        return self


@dataclass(frozen=True)
class Division:
    """Rows of the samples to train on and to test on, in the order in which they were drawn."""

    train: Int64[np.ndarray, "n"]
    test: Int64[np.ndarray, "m"]


def split_source(source: Source, recipe: SplitRecipe) -> PUSplit:
    """Make the PU problem that the recipe describes from a labelled data set.

    The positives' indices are shuffled first, then the negatives', by numpy's legacy
    generator, whose stream never changes: with seed 57 this is the division the
    paper's authors used.
    """
    train = source.train
    division = divide_for_test(source, recipe.grouping, _legacy_generator(recipe.seed))
    rows = np.arange(len(train)) if division is None else division.train
    positive = np.isin(train.classes, recipe.positive_classes)
    negative = ~positive & (train.classes != UNKNOWN)
    random = _legacy_generator(recipe.seed)
    positives = _Deck("positives", rows[positive[rows]], random)
    negatives = _Deck("negatives", rows[negative[rows]], random)

    if source.unlabelled is not None and recipe.prior is None:
        _check_apart(recipe)
        deal = _publishers_unlabelled(train, source.unlabelled, positives, random)
    else:
        truth = np.where(positive, POSITIVE, NEGATIVE)
        deal = _mixed_unlabelled(train, truth, recipe, positives, negatives, random)
    dealt = deal(recipe.positives, recipe.unlabelled, recipe.pool)
    held_out = None
    if recipe.held_out_positives:
        held_out = deal(recipe.held_out_positives, recipe.held_out_unlabelled, "apart")
    if recipe.pool == "whole":
        dealt, held_out = _by_content(dealt, held_out)
    return PUSplit(
        train=dealt,
        test=_test_part(source, recipe, division),
        held_out=held_out,
        clean=_clean(train, recipe, positives, negatives),
        kind=train.kind,
        scenario=recipe.scenario,
    )


def split_one_sided(
    samples: Samples,
    labelled: Bool[np.ndarray, "n"],
    *,
    held_out_share: float,
    scenario: Scenario,
    seed: int,
    test: LabelledDataset | None = None,
    fewest: int = MINIMUM_POSITIVES,
    held_out: Bool[np.ndarray, "n"] | None = None,
    content: Int64[np.ndarray, "n"] | None = None,
) -> PUSplit:
    """Hold a share of people's own P and U out for evaluation; train on the rest.

    Known negatives are not in U. `test` is the caller's test part, or None. Fewer positives
    or unlabelled samples than `fewest` are refused. `held_out` marks the samples to hold out,
    see `held_out_together`; None draws a share of P and of U. `content` is that of the samples,
    see `PUDataset`.
    """
    positives = np.flatnonzero(labelled)
    unlabelled = np.flatnonzero(~labelled & (samples.classes == UNKNOWN))
    _check_enough(samples, positives, unlabelled, content, fewest)
    random = _legacy_generator(seed)
    positives, unlabelled = random.permutation(positives), random.permutation(unlabelled)
    out_p = min(round(len(positives) * held_out_share), MOST_POSITIVES)
    out_u = min(round(len(unlabelled) * held_out_share), MOST_UNLABELLED)
    if not (out_p and out_u):
        out_p = out_u = 0  # one of the two alone measures nothing: train on it
    if held_out is not None:
        positives = np.concatenate(
            [positives[held_out[positives]], positives[~held_out[positives]]]
        )
        unlabelled = np.concatenate(
            [unlabelled[held_out[unlabelled]], unlabelled[~held_out[unlabelled]]]
        )
        out_p, out_u = int(held_out[positives].sum()), int(held_out[unlabelled].sum())
    part = partial(
        _pu,
        samples.values,
        samples.names,
        samples.classes,
        groups=samples.own_groups,
        weights=samples.weights,
        content=content,
    )
    return PUSplit(
        train=part(positives[out_p:], unlabelled[out_u:]),
        test=test,
        held_out=part(positives[:out_p], unlabelled[:out_u]) if out_p else None,
        clean=None,
        kind=samples.kind,
        scenario=scenario,
    )


def _check_enough(
    samples: Samples,
    positives: np.ndarray,
    unlabelled: np.ndarray,
    content: np.ndarray | None,
    fewest: int,
) -> None:
    """Refuse too few positives or unlabelled samples; copies of an image or text are one."""
    # Equal rows of a table may be different things: two people of one age and town.
    distinguished = samples.values.ndim == 4 or any(one.kind == "text" for one in samples.columns)
    for rows, what, remedy in (
        (positives, "positives", "are needed, and fifty or more are better. Label some more."),
        (unlabelled, "unlabelled samples", "are needed."),
    ):
        learned = " to learn from" if what == "positives" else ""
        if len(rows) < fewest:
            raise DataError(f"{len(rows)} {what} are too few{learned}; at least {fewest} {remedy}")
        if content is None or not distinguished:
            continue
        count = len(np.unique(content[rows]))
        if count < fewest:
            raise DataError(
                f"Only {count} of the {len(rows)} {what} differ, the others are copies: too few"
                f"{learned}; at least {fewest} {remedy}"
            )


def held_out_together(
    samples: Samples,
    labelled: Bool[np.ndarray, "n"],
    *,
    content: Int64[np.ndarray, "n"] | None,
    share: float,
    seed: int,
) -> Bool[np.ndarray, "n"] | None:
    """Return which samples to hold out so that every group and every content is on one side.

    None where there are no groups and all samples differ: any share will do.
    """
    groups = samples.own_groups
    if not share or (groups is None and content is None):
        return None
    if groups is None:
        assert content is not None
        return whole_contents(samples, labelled, content, share=share, seed=seed)
    if content is not None:
        groups = joined_groups(groups, content)
    return whole_groups(samples, labelled, groups, share=share, seed=seed)


def whole_contents(
    samples: Samples,
    labelled: Bool[np.ndarray, "n"],
    content: Int64[np.ndarray, "n"],
    *,
    share: float,
    seed: int,
) -> Bool[np.ndarray, "n"]:
    """Return which samples to hold out: a share of the contents of P, of U, of known negatives.

    What shows the same thing is on one side; P decides, then U. Nothing is held out where too few
    contents differ to hold out some of P and some of U.
    """
    random = _legacy_generator(seed)
    decided: np.ndarray = np.zeros(0, np.int64)
    out: list[np.ndarray] = []
    kinds = (labelled, ~labelled & (samples.classes == UNKNOWN), samples.classes == NEGATIVE)
    for kind, most in zip(kinds, (MOST_POSITIVES, MOST_UNLABELLED, MOST_UNLABELLED), strict=True):
        own = np.setdiff1d(content[kind], decided)
        taken = random.permutation(own)[: min(round(len(own) * share), most)]
        out.append(taken)
        decided = np.concatenate([decided, own])
    held_out = np.isin(content, np.concatenate(out))
    if not all((held_out & kind).any() for kind in kinds[:2]):
        return np.zeros(len(content), bool)  # one of the two alone measures nothing
    return held_out


def whole_groups(
    samples: Samples,
    labelled: Bool[np.ndarray, "n"],
    groups: Shaped[np.ndarray, "n"],
    *,
    share: float,
    seed: int,
) -> Bool[np.ndarray, "n"]:
    """Return which samples to hold out so that every group is whole.

    The groups are drawn in a random order, and the first ones are held out: as many as bring
    the shares of P and of U nearest to `share`. Both sides hold positives and unlabelled samples.
    """
    names, group_of = np.unique(groups, return_inverse=True)
    random = _legacy_generator(seed)
    kinds = (labelled, ~labelled & (samples.classes == UNKNOWN))
    for _ in range(GROUP_DRAWS):
        order = random.permutation(len(names))
        counts = [np.bincount(group_of[kind], minlength=len(names))[order] for kind in kinds]
        # The share of P and of U that is held out, if the first groups are.
        shares = np.array([count.cumsum()[:-1] / count.sum() for count in counts])
        off = np.abs(shares - share).sum(axis=0)
        off[((shares == 0) | (shares == 1)).any(axis=0)] = np.inf
        if np.isfinite(off).any():
            held_out: np.ndarray = np.isin(group_of, order[: off.argmin() + 1])
            return held_out
    raise DataError(
        f"The {len(names)} groups cannot be divided into two parts that both hold positives and "
        "unlabelled samples. Choose smaller groups, hold nothing out (data.held_out=0), or leave "
        "the groups out."
    )


def _legacy_generator(seed: int) -> np.random.RandomState:
    if not 0 <= seed < 2**32:
        raise ConfigError(f"data.seed is {seed}; expected a whole number from 0 to {2**32 - 1}.")
    return np.random.RandomState(seed)


class _Deck:
    """Indices of one class, shuffled once and dealt without replacement."""

    def __init__(self, what: str, indices: np.ndarray, random: np.random.RandomState) -> None:
        self.what = what
        self.left = indices.copy()
        random.shuffle(self.left)
        self.total = len(indices)

    def take(self, count: int) -> np.ndarray:
        if count > len(self.left):
            raise ConfigError(
                f"The split asks for more {self.what} than there are: {count} wanted, "
                f"{len(self.left)} of {self.total} left. Lower data.positives, data.unlabelled, "
                "data.clean or the held-out sizes, or change data.prior."
            )
        taken, self.left = self.left[:count], self.left[count:]
        return taken


def _mixed_unlabelled(
    samples: Samples,
    truth: np.ndarray,
    recipe: SplitRecipe,
    positives: _Deck,
    negatives: _Deck,
    random: np.random.RandomState,
) -> _Deal:
    """Return what draws P, and U as a mixture of hidden positives and negatives."""
    prior = recipe.prior
    if prior is None:
        raise ConfigError(
            "data.prior is missing: give the share of positives to put into U, for example 0.4."
        )

    def deal(n_labelled: int, n_unlabelled: int, pool: Pool) -> PUDataset:
        # In a single set the labelled positives are part of the prior's share.
        size = n_unlabelled + (n_labelled if recipe.scenario == "single-set" else 0)
        hidden = round(size * prior) - (size - n_unlabelled)
        if hidden < 0:
            raise ConfigError(
                f"In the single-set scenario the labelled positives are part of the set: a prior "
                f"of {prior} in {size} samples gives {hidden + n_labelled} positives, fewer than "
                f"the {n_labelled} to be labelled. Raise data.prior or lower data.positives."
            )
        if pool == "whole":
            _check_enough_to_label(n_labelled, hidden)
        own = positives.take(n_labelled if pool == "apart" else 0)
        parts = [positives.take(hidden), negatives.take(n_unlabelled - hidden)]
        # The deck is shuffled, so the first of a whole pool's positives are a random draw.
        labelled = own if pool == "apart" else parts[0][:n_labelled]
        unlabelled = np.concatenate(parts)
        random.shuffle(unlabelled)
        return _pu(samples.values, samples.names, truth, labelled, unlabelled)

    return deal


def _check_enough_to_label(n_labelled: int, hidden: int) -> None:
    if n_labelled > hidden:
        raise ConfigError(
            f"data.pool is 'whole', so P is drawn from the positives of U: {n_labelled} wanted, "
            f"{hidden} there. Lower data.positives, or raise data.unlabelled or data.prior."
        )


def _check_apart(recipe: SplitRecipe) -> None:
    if recipe.pool == "whole":
        raise ConfigError(
            "data.pool is 'whole', but U is the publisher's own unlabelled part here, which holds "
            "no labelled positives. Leave data.pool out, or give data.prior."
        )


def _by_content(train: PUDataset, held_out: PUDataset | None) -> tuple[PUDataset, PUDataset | None]:
    """Return both parts with their contents; nothing held out shows what is trained on.

    In a whole pool each labelled sample is in U, too: those two rows have one content, so folds
    keep them together. All of the data set being in the pool, its copies and near copies are, too.
    """
    parts = [train] if held_out is None else [train, held_out]
    number = contents_of([part.values for part in parts]).number
    trained, others = number[: len(train)], number[len(train) :]
    train = replace(train, content=trained)
    if held_out is None:
        return train, None
    unseen = np.flatnonzero(~np.isin(others, trained))
    left = replace(held_out, content=others).some(unseen)
    if left.labelled.all() or not left.labelled.any():
        raise ConfigError(
            "All held-out positives, or all held-out unlabelled samples, look like samples that "
            "are trained on. Raise data.held_out_positives and data.held_out_unlabelled."
        )
    return train, left


def _publishers_unlabelled(
    samples: Samples, pool: Samples, positives: _Deck, random: np.random.RandomState
) -> _Deal:
    """Return what draws P, and U from the publisher's own part, whose truth is unknown (STL-10)."""
    deck = _Deck("unlabelled samples", np.arange(len(pool)), random)
    truth = np.concatenate([np.full(len(samples), POSITIVE), np.full(len(pool), UNKNOWN)])
    both = Joined(samples, pool)

    def deal(n_labelled: int, n_unlabelled: int, pool: Pool) -> PUDataset:
        labelled, unlabelled = positives.take(n_labelled), deck.take(n_unlabelled) + len(samples)
        return _pu(both, both.names, truth, labelled, unlabelled)

    return deal


def _pu(
    values: np.ndarray | Joined,
    names: tuple[str, ...],
    truth: np.ndarray,
    labelled: np.ndarray,
    unlabelled: np.ndarray,
    *,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    content: np.ndarray | None = None,
) -> PUDataset:
    index = np.concatenate([labelled, unlabelled])
    return PUDataset(
        values=Selection(values, index),
        labelled=np.arange(len(index)) < len(labelled),
        truth=truth[index].astype(np.int64),
        names=tuple(names[row] for row in index),
        groups=at_rows(groups, index),
        weights=at_rows(weights, index),
        content=at_rows(content, index),
    )


def _clean(
    samples: Samples, recipe: SplitRecipe, positives: _Deck, negatives: _Deck
) -> LabelledDataset | None:
    if not recipe.clean:
        return None
    index = np.concatenate([positives.take(recipe.clean), negatives.take(recipe.clean)])
    return _known(samples, recipe, index)


def _known(samples: Samples, recipe: SplitRecipe, index: np.ndarray) -> LabelledDataset:
    positive = np.isin(samples.classes[index], recipe.positive_classes)
    return LabelledDataset(
        values=Selection(samples.values, index),
        truth=np.where(positive, POSITIVE, NEGATIVE).astype(np.int64),
        names=tuple(samples.names[row] for row in index),
    )


def _test_part(
    source: Source, recipe: SplitRecipe, division: Division | None
) -> LabelledDataset | None:
    samples = source.test if division is None else source.train
    if samples is None:
        return None
    rows = np.arange(len(samples)) if division is None else division.test
    return _known(samples, recipe, rows[samples.classes[rows] != UNKNOWN])


def divide_for_test(
    source: Source, grouping: str | None, random: np.random.RandomState
) -> Division | None:
    """Divide the samples of a source into training and test, or None if it has a test part.

    Samples that belong together should not be divided. A neighbour of a training building shows
    the same roofs, the same light and the same flood, so a test on it would partly measure what
    the network memorised. `grouping` names the kind of group that stays whole; None takes the
    publisher's division, and without one shuffles sample by sample, as `POOLED` always does.
    """
    if source.test is not None or source.train_share is None:
        if grouping is not None:
            raise ConfigError(
                f"data.grouping is {grouping!r}, but this data set comes divided by its "
                "publisher. Leave data.grouping out."
            )
        return None
    if grouping is None and source.side is not None:
        trained, tested = (np.flatnonzero(source.side == side) for side in ("train", "test"))
        if len(trained) and len(tested):
            return Division(trained, tested)
    if grouping in (None, POOLED):
        return _divide_samples(len(source.train), source.train_share, random)
    known = source.train.groups
    if grouping not in known:
        kinds = " or ".join(repr(kind) for kind in known)
        remedy = f"Choose {kinds}, or leave" if known else "Leave"
        raise ConfigError(
            f"data.grouping is {grouping!r}, but this data set has no such groups. "
            f"{remedy} data.grouping out to divide sample by sample."
        )
    return _divide_groups(known[grouping], grouping, source.train_share, random)


def _divide_samples(count: int, share: float, random: np.random.RandomState) -> Division:
    """Shuffle and take the share, rounded down: the division of the paper's authors."""
    order = np.arange(count)
    random.shuffle(order)
    end = math.floor(count * share + 1e-9)  # 0.6 of 94205 is 56523, also in floating point
    return Division(order[:end], order[end:])


def _divide_groups(
    groups: np.ndarray, kind: str, share: float, random: np.random.RandomState
) -> Division:
    """Shuffle the groups, and take the first ones whose share is nearest to the wanted one."""
    names, group_of = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise ConfigError(
            f"All samples are of one {kind}, {names[0]}, so no other {kind} is left to test on. "
            "Choose another data.grouping, or leave it out."
        )
    order = np.arange(len(names))
    random.shuffle(order)
    reached = np.cumsum(np.bincount(group_of)[order])[:-1]
    end = int(np.abs(reached - share * len(groups)).argmin()) + 1
    in_train = np.isin(group_of, order[:end])
    return Division(np.flatnonzero(in_train), np.flatnonzero(~in_train))
