"""Which methods a search tries: simple ones first, larger ones as time allows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt, log2, prod, sqrt
from typing import Literal

import numpy as np
from jaxtyping import Int64

from onesided.core.folds import sides
from onesided.data.problem.dataset import PUDataset
from onesided.methods import method_named
from onesided.methods.auto import AutoConfig
from onesided.methods.average import AverageConfig
from onesided.methods.base import MethodConfig
from onesided.methods.forest import BoostingConfig, ForestConfig
from onesided.methods.linear import PENALTIES, LinearConfig
from onesided.nets.efficientnet import FEATURES, SMALLEST, working_size
from onesided.run.config import RunConfig
from onesided.run.presets import Amount, short_run, steps_of

DIRECT = ("linear", "forest", "boosting", "puet", "average")
"""Methods that are fitted in one call, without a network."""
AVERAGED: Mapping[str, str] = {
    "linear": "linear",
    "linear-twice": "linear_twice",
    "forest": "forest",
    "forest-twice": "forest_twice",
    "boosting": "boosting",
}
"""Families that are averaged, each with its field of `AverageConfig`."""
AVERAGED_WORDS: Mapping[str, str] = {
    "linear": "a linear model",
    "linear-twice": "a linear model fitted again",
    "forest": "a forest",
    "forest-twice": "a forest fitted again",
    "boosting": "boosted trees",
}
"""The same in an average's name; the lines of its parts say which penalty, and what again means."""
TRAINED = ("nnpu", "teacher", "ncpu")
"""Methods with a network that a search tries by itself where time allows."""
CHANNELS, MOST_PIXELS = 3, 3072
"""Images of at most 32 x 32 pixels of three colours are also tried as they are."""
SCALINGS: tuple[Literal["each", "common"], ...] = ("each", "common")
COMMON = ", features on one scale"
LAST, OF_LAST = "-last", " of the last layer"
STEPS = ((5.0, 0), (60.0, 1500), (float("inf"), 4000))
"""Training steps of a network by the minutes of the search; in five minutes none is tried, for
models that take seconds are as good on most data."""
STEP_SECONDS: Mapping[str, float] = {"nnpu": 0.004, "teacher": 0.015, "ncpu": 0.06}
"""Of a step on vectors, measured on one core; other methods count as the slowest."""
IMAGE_STEP_SECONDS = 0.15
"""Of a step on 32 x 32 pixels."""
TUNED_FROM = 60.0
"""Minutes of a search above which pretrained blocks are tuned."""
TUNED_BLOCKS, TUNED_STEPS = 3, 400
TUNED_STEP_SECONDS = 1.3
"""Of a step of Teacher with these blocks of EfficientNet-Lite0, 128 images at 96 x 96 pixels: two
views, each through the network and through its average; measured on one core."""


@dataclass(frozen=True)
class Candidate:
    """A method with its settings, as a search tries it.

    Attributes:
        name: Its name in files and tables, such as linear-0.3.
        family: Method and data it trains on; a leaderboard shows the best of each.
        words: What it is, for people.
        config: The run that would train it alone.
        on_images: Whether it trains on the images themselves, rather than on their features.
        seconds: What one training of it takes here, estimated.
        rank: How simple it is: on a tie the lower rank wins.
    """

    name: str
    family: str
    words: str
    config: RunConfig
    on_images: bool
    seconds: float
    rank: float


class Menu:
    """The candidates for one problem, stage by stage.

    Args:
        config: The settings of the search.
        amount: All training data.
        part: The least that a fold leaves to train on: its batches must be full, too.
        width: Numbers per sample.
        folds: How many folds there are.
        weighed: Whether samples have weights; methods that cannot weigh are then left out.
    """

    def __init__(
        self,
        config: RunConfig,
        amount: Amount,
        part: Amount,
        width: int,
        folds: int,
        *,
        weighed: bool = False,
    ) -> None:
        assert isinstance(config.method, AutoConfig)
        self.config, self.search = config, config.method
        self.amount, self.width, self.folds = amount, width, folds
        self.part, self.weighed = part, weighed
        self.tried: set[str] = set()
        self.left = self.search.minutes * 60

    def first(self) -> list[Candidate]:
        """Return methods that take seconds: a path over the penalty, and trees."""
        rows, width = self.amount.rows, self.width
        fit = 2.5e-8 * rows * width + 0.01
        path = [
            self._direct(
                f"linear-{penalty:g}{'' if scaling == 'each' else '-common'}{LAST * bool(first)}",
                "linear",
                LinearConfig(penalty=penalty, scaling=scaling, first=first),
                f"a linear model{OF_LAST if first else ''}, penalty {penalty:g}"
                f"{COMMON if scaling == 'common' else ''}",
                seconds=fit,
                rank=number / 100,
            )
            for first in self._first_numbers()
            for scaling in SCALINGS
            for number, penalty in enumerate(PENALTIES)
        ]
        forest = self._direct(
            "forest",
            "forest",
            ForestConfig(),
            "a forest",
            seconds=self._forest_seconds(),
            rank=2,
        )
        boosting = self._direct(
            "boosting",
            "boosting",
            BoostingConfig(),
            "boosted trees",
            seconds=1e-5 * rows * sqrt(width) + 0.2,
            rank=3,
        )
        return self._affordable([*path, forest, boosting, *self._pixels()])

    def _first_numbers(self) -> tuple[int, ...]:
        """Return which parts of the features linear models take: all, and the last layer's alone.

        Texture tells satellite images apart; among photographs of things it is mostly noise.
        """
        backbone = self.config.backbone
        several = self.amount.images and backbone.layers == "several" and not backbone.pair
        return (0, FEATURES) if several else (0,)

    def _pixels(self) -> list[Candidate]:
        """Return a forest on the pixels of small images.

        A pretrained network knows photographs. Digits, icons and the like are often told apart
        by their pixels alone, which costs a second to try.
        """
        numbers = CHANNELS * self.amount.pixels
        small = self.amount.images and self.config.backbone.freeze and numbers <= MOST_PIXELS
        if not small:
            return []
        forest = self._direct(
            "forest-pixels",
            "forest-pixels",
            ForestConfig(),
            "a forest on the pixels",
            seconds=self._forest_seconds(numbers),
            rank=2.5,
        )
        return [self._on_images(forest)]

    def _on_images(self, candidate: Candidate) -> Candidate:
        """Return the candidate on the images themselves, without the pretrained network."""
        backbone = self.config.backbone.from_scratch()
        config = replace(candidate.config, backbone=backbone)
        return replace(candidate, config=config, on_images=True)

    def second(self, best: Mapping[str, Candidate], near: Sequence[str]) -> list[Candidate]:
        """Return second passes of the first.

        Args:
            best: The best candidate so far of each family.
            near: Families whose best is not clearly worse than the best of all.
        """
        found = []
        for family, rank in (("linear", 1.0), ("forest", 4.0), ("forest-pixels", 4.5)):
            if family in near:
                first = best[family]
                again = self._direct(
                    f"{first.name}-twice",
                    f"{family}-twice",
                    first.config.method.model_copy(update={"passes": 2}),
                    f"{first.words}, fitted again with its likely positives",
                    seconds=(6 if family == "linear" else 2.5) * first.seconds,
                    rank=rank,
                )
                found.append(self._on_images(again) if first.on_images else again)
        return self._affordable(found)

    def average(self, parts: Mapping[str, Candidate], spreads: Mapping[str, float]) -> Candidate:
        """Return the average of the best of some families; its scores need no training.

        Args:
            parts: A candidate for each of these families of `AVERAGED`.
            spreads: The spread of each one's out-of-fold log odds.
        """
        settings = {
            field: parts[family].config.method.model_dump(mode="json") if family in parts else None
            for family, field in AVERAGED.items()
        }
        self.tried.add("average")
        measured = {AVERAGED[family]: value for family, value in spreads.items()}
        *others, last = (AVERAGED_WORDS[family] for family in parts)
        return self._direct(
            "average",
            "average",
            AverageConfig(**settings, spreads=measured),
            f"the average of {', '.join(others)} and {last}",
            seconds=sum(part.seconds for part in parts.values()),
            rank=5,
        )

    @property
    def may_average(self) -> bool:
        """Whether an average may be made, where the user names candidates."""
        return not self.search.candidates or "average" in self._asked

    def third(self, prior: float | None) -> list[Candidate]:
        """Return networks, and what was asked for and not tried yet.

        Those that need a prior get this one, and are left out without.
        """
        steps = next(count for minutes, count in STEPS if self.search.minutes <= minutes)
        names = self._named(TRAINED if steps else ())
        steps = steps or STEPS[1][1]  # of methods that were asked for
        on_features = [self._network(name, steps, rank=10 + n) for n, name in enumerate(names)]
        from_scratch = []
        if self.amount.images and self.config.backbone.freeze:
            images = [name for name in ("teacher", "ncpu") if name in names]
            from_scratch = [
                self._network(name, steps, rank=20 + n, on_images=True)
                for n, name in enumerate(images)
            ]
        able = [
            candidate
            for candidate in (*on_features, *self._tuned(names), *from_scratch)
            if prior is not None or not candidate.config.method.needs.prior
        ]
        return self._affordable(
            replace(candidate, config=replace(candidate.config, prior=prior))
            if candidate.config.method.needs.prior and prior is not None
            else candidate
            for candidate in able
        )

    def _forest_seconds(self, width: int | None = None) -> float:
        rows = self.amount.rows
        return 1.5e-6 * rows * log2(rows + 1) * sqrt(width or self.width) + 0.1

    def _named(self, usual: Sequence[str]) -> list[str]:
        """Return the usual methods, or those asked for, and those asked for beside them."""
        asked = self.search.candidates or usual
        names = dict.fromkeys((*asked, *self.search.also))
        return [name for name in names if name not in self.tried]

    @property
    def wants_prior(self) -> bool:
        """Whether a method that was asked for needs the class prior."""
        return any(method_named(name).needs.prior for name in self._asked)

    @property
    def _asked(self) -> tuple[str, ...]:
        return (*self.search.candidates, *self.search.also)

    def _direct(
        self,
        name: str,
        family: str,
        method: MethodConfig,
        words: str,
        *,
        seconds: float,
        rank: float,
    ) -> Candidate:
        config = replace(self.config, method_name=family.partition("-")[0], method=method)
        return Candidate(name, family, words, config, False, seconds, rank)

    def _network(self, name: str, steps: int, *, rank: float, on_images: bool = False) -> Candidate:
        if name in DIRECT:
            return self._direct(
                name,
                name,
                method_named(name)(),
                method_named(name).card.title,
                seconds=2 * self._forest_seconds(),
                rank=rank,
            )
        backbone = self.config.backbone
        if on_images:
            backbone = backbone.from_scratch()
        images = self.amount.images and (on_images or not backbone.freeze)
        config = short_run(replace(self.config, backbone=backbone), name, steps, self.part)
        title, suffix = config.method.card.title, "-images" if on_images else ""
        slowest = max(STEP_SECONDS.values())
        of_images = IMAGE_STEP_SECONDS * self.amount.pixels / 1024
        step = of_images if images else STEP_SECONDS.get(name, slowest)
        trained = "on the images" if images else "on the features" if self.amount.images else ""
        return Candidate(
            name + suffix,
            name + suffix,
            f"{title} {trained}".strip(),
            config,
            on_images,
            steps * step,
            rank,
        )

    def _tuned(self, names: Sequence[str]) -> list[Candidate]:
        """Return Teacher with the last blocks of the pretrained network, which learn on images.

        Before the networks from scratch, as far as time goes: it starts from features that are
        good already, and those need more steps than most budgets hold.
        """
        backbone, name = self.config.backbone, "teacher"
        able = self.amount.images and backbone.freeze and backbone.name == "efficientnet_lite0"
        if not able or name not in names or self.search.minutes <= TUNED_FROM:
            return []
        tuned = replace(self.config, backbone=backbone.tuned(TUNED_BLOCKS))
        config = short_run(tuned, name, TUNED_STEPS, self.amount)
        side = isqrt(self.amount.pixels)
        pixels = prod(working_size(side, side, backbone.resize))
        images = config.train.batch_size * steps_of(config, self.amount)
        seconds = TUNED_STEP_SECONDS * images / 128 * pixels / SMALLEST**2
        words = f"{config.method.card.title} with the last blocks of the pretrained network"
        family = f"{name}-tuned"
        return [Candidate(family, family, words, config, True, seconds, rank=30)]

    def _affordable(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Return those that are asked for or that the time left allows, and take their time."""
        chosen = []
        for candidate in candidates:
            method = candidate.config.method_name
            whole = (self.folds + 1) * candidate.seconds
            forced = method in self._asked
            if self.search.candidates and not forced:
                continue
            if self.weighed and not candidate.config.method.uses_weights:
                continue
            if forced or whole <= self.left:
                self.left -= whole
                self.tried.add(method)
                chosen.append(candidate)
        return chosen


def smallest_part(data: PUDataset, fold: Int64[np.ndarray, "n"], *, images: bool) -> Amount:
    """Return the fewest positives and the fewest unlabelled items that a fold leaves to train on.

    A batch that is full with all the data may not be without a fold.
    """
    counts = [
        (int(data.labelled[rest].sum()), int(data.unlabelled[rest].sum()))
        for _, rest, _ in sides(fold)
    ]
    labelled, unlabelled = (min(column) for column in zip(*counts, strict=True))
    return Amount(labelled + unlabelled, labelled, images)
