"""From samples to a PU problem: who is labelled, who is unlabelled, who is held out.

Two ways in which PU data comes about:

* **case-control**: P and U are two samples. U is drawn from the population with a share
  `prior` of positives; P is drawn apart from it. The paper's setting.
* **single-set**: one sample is drawn, and some of its positives get labelled; U is what
  remains, so it holds fewer positives than the population.

A split is a pure function of the samples and its recipe, so a recipe is all that a run
has to store; the hash proves that two runs saw the same split.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Bool, Int64
from pydantic import Field, model_validator

from onesided.core.config import Config
from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.problem.dataset import (
    Joined,
    LabelledDataset,
    PUDataset,
    PUSplit,
    Scenario,
    Selection,
)
from onesided.data.problem.samples import Samples, Source

MINIMUM_POSITIVES = 10


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
    publisher's own unlabelled part is used and nobody knows."""
    held_out_positives: int = Field(default=0, ge=0)
    """Further labelled positives, held out."""
    held_out_unlabelled: int = Field(default=0, ge=0)
    """Further unlabelled samples, held out, with the same prior."""
    clean: int = Field(default=0, ge=0)
    """Held-out samples of each class whose label is known, for methods that need them."""
    scenario: Scenario = "case-control"
    """How P and U came about."""
    grouping: str | None = None
    """Kind of group, such as tile or event, that is never both trained and tested on; for data
    sets without a test part. Left out: divided sample by sample, as in the paper."""
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


@dataclass(frozen=True)
class Division:
    """Rows of the samples to train on and to test on, in the order in which they were drawn."""

    train: Int64[np.ndarray, "n"]
    test: Int64[np.ndarray, "m"]


def split_source(source: Source, recipe: SplitRecipe) -> PUSplit:
    """Make the PU problem that the recipe describes from a labelled data set.

    The positives' indices are shuffled first, then the negatives', by numpy's legacy
    generator, whose stream is frozen for ever: with seed 57 this is the division the
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

    if (pool := source.unlabelled) is not None and recipe.prior is None:
        deck = _Deck("unlabelled samples", np.arange(len(pool)), random)
        return _with_publishers_unlabelled(source, pool, recipe, positives, negatives, deck)
    if recipe.prior is None:
        raise ConfigError(
            "data.prior is missing: give the share of positives to put into U, for example 0.4."
        )
    deal = _deal_case_control if recipe.scenario == "case-control" else _deal_single_set
    labelled, unlabelled = deal(
        positives, negatives, recipe.positives, recipe.unlabelled, recipe.prior, random
    )
    held_out = None
    if recipe.held_out_positives:
        held_out = deal(
            positives,
            negatives,
            recipe.held_out_positives,
            recipe.held_out_unlabelled,
            recipe.prior,
            random,
        )
    return PUSplit(
        train=_pu(train, positive, labelled, unlabelled),
        test=_test_part(source, recipe, division),
        held_out=_pu(train, positive, *held_out) if held_out else None,
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
) -> PUSplit:
    """Hold a share of people's own P and U out for evaluation; train on the rest.

    Known negatives are kept out of U. With truth for nobody, `test` is what the caller
    has, or None. Fewer positives or unlabelled samples than `fewest` are refused.
    """
    positives = np.flatnonzero(labelled)
    unlabelled = np.flatnonzero(~labelled & (samples.classes == UNKNOWN))
    if len(positives) < fewest:
        raise DataError(
            f"{len(positives)} positives are too few to learn from; at least {fewest} are "
            "needed, and fifty or more are better. Label some more."
        )
    if len(unlabelled) < fewest:
        raise DataError(
            f"{len(unlabelled)} unlabelled samples are too few; at least {fewest} are needed."
        )
    random = _legacy_generator(seed)
    positives, unlabelled = random.permutation(positives), random.permutation(unlabelled)
    # Half of a handful would starve training, a tenth of a million is needless work.
    out_p = min(round(len(positives) * held_out_share), 1000)
    out_u = min(round(len(unlabelled) * held_out_share), 5000)
    if not (out_p and out_u):
        out_p = out_u = 0  # one of the two alone measures nothing: train on it
    known = samples.classes == POSITIVE
    held_out = _pu(samples, known, positives[:out_p], unlabelled[:out_u], samples.classes)
    return PUSplit(
        train=_pu(samples, known, positives[out_p:], unlabelled[out_u:], samples.classes),
        test=test,
        held_out=held_out if out_p else None,
        clean=None,
        kind=samples.kind,
        scenario=scenario,
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


def _deal_case_control(
    positives: _Deck,
    negatives: _Deck,
    n_labelled: int,
    n_unlabelled: int,
    prior: float,
    random: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    hidden = round(n_unlabelled * prior)
    labelled = positives.take(n_labelled)
    unlabelled = np.concatenate([positives.take(hidden), negatives.take(n_unlabelled - hidden)])
    random.shuffle(unlabelled)
    return labelled, unlabelled


def _deal_single_set(
    positives: _Deck,
    negatives: _Deck,
    n_labelled: int,
    n_unlabelled: int,
    prior: float,
    random: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    size = n_labelled + n_unlabelled
    all_positives = round(size * prior)
    if all_positives < n_labelled:
        raise ConfigError(
            f"In the single-set scenario the labelled positives are part of the set: a prior of "
            f"{prior} in {size} samples gives {all_positives} positives, fewer than the "
            f"{n_labelled} to be labelled. Raise data.prior or lower data.positives."
        )
    labelled = positives.take(n_labelled)
    unlabelled = np.concatenate(
        [positives.take(all_positives - n_labelled), negatives.take(size - all_positives)]
    )
    random.shuffle(unlabelled)
    return labelled, unlabelled


def _with_publishers_unlabelled(
    source: Source,
    pool: Samples,
    recipe: SplitRecipe,
    positives: _Deck,
    negatives: _Deck,
    deck: _Deck,
) -> PUSplit:
    """Use the publisher's own unlabelled part (STL-10): nobody knows its truth."""
    train = source.train
    truth = np.concatenate([np.full(len(train), POSITIVE), np.full(len(pool), UNKNOWN)])
    both = Joined(train, pool)

    def rows(n_positive: int, n_unlabelled: int) -> PUDataset:
        labelled, unlabelled = positives.take(n_positive), deck.take(n_unlabelled) + len(train)
        index = np.concatenate([labelled, unlabelled])
        return PUDataset(
            values=Selection(both, index),
            labelled=np.arange(len(index)) < len(labelled),
            truth=truth[index].astype(np.int64),
            names=tuple(both.names[row] for row in index),
        )

    data = rows(recipe.positives, recipe.unlabelled)
    return PUSplit(
        train=data,
        test=_labelled(source.test, recipe),
        held_out=(
            rows(recipe.held_out_positives, recipe.held_out_unlabelled)
            if recipe.held_out_positives
            else None
        ),
        clean=_clean(train, recipe, positives, negatives),
        kind=train.kind,
        scenario=recipe.scenario,
    )


def _pu(
    samples: Samples,
    positive: np.ndarray,
    labelled: np.ndarray,
    unlabelled: np.ndarray,
    known: np.ndarray | None = None,
) -> PUDataset:
    index = np.concatenate([labelled, unlabelled])
    truth = np.where(positive[index], POSITIVE, NEGATIVE) if known is None else known[index]
    return PUDataset(
        values=Selection(samples.values, index),
        labelled=np.arange(len(index)) < len(labelled),
        truth=np.asarray(truth, dtype=np.int64),
        names=tuple(samples.names[row] for row in index),
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
    if division is None:
        return _labelled(source.test, recipe)
    known = source.train.classes[division.test] != UNKNOWN
    return _known(source.train, recipe, division.test[known])


def _labelled(samples: Samples | None, recipe: SplitRecipe) -> LabelledDataset | None:
    if samples is None:
        return None
    return _known(samples, recipe, np.flatnonzero(samples.classes != UNKNOWN))


def divide_for_test(
    source: Source, grouping: str | None, random: np.random.RandomState
) -> Division | None:
    """Divide the samples of a source into training and test, or None if it has a test part.

    Samples that belong together must not be divided: a neighbour of a training building shows
    the same roofs, the same light and the same flood, so a network that knows the one has half
    seen the other, and the test would measure memory. `data.grouping` keeps groups whole.

    Args:
        source: The data set.
        grouping: Kind of group that stays whole, or None to shuffle sample by sample.
        random: Numpy's legacy generator, whose stream is frozen for ever.
    """
    if source.test is not None or source.train_share is None:
        if grouping is not None:
            raise ConfigError(
                f"data.grouping is {grouping!r}, but this data set comes divided by its "
                "publisher. Leave data.grouping out."
            )
        return None
    if grouping is None:
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
    """Shuffle, and cut after the share, rounded down: the paper's authors' division."""
    order = np.arange(count)
    random.shuffle(order)
    cut = math.floor(count * share + 1e-9)  # 0.6 of 94205 is 56523, whatever floats make of it
    return Division(order[:cut], order[cut:])


def _divide_groups(
    groups: np.ndarray, kind: str, share: float, random: np.random.RandomState
) -> Division:
    """Shuffle the groups, and cut between the two where the share is met most nearly."""
    names, group_of = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise ConfigError(
            f"All samples are of one {kind}, {names[0]}, so no other {kind} is left to test on. "
            "Choose another data.grouping, or leave it out."
        )
    order = np.arange(len(names))
    random.shuffle(order)
    reached = np.cumsum(np.bincount(group_of)[order])[:-1]
    cut = int(np.abs(reached - share * len(groups)).argmin()) + 1
    in_train = np.isin(group_of, order[:cut])
    return Division(np.flatnonzero(in_train), np.flatnonzero(~in_train))
