"""From rows to batches: which rows, in which order, in which views; all depend on the clock."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from onesided.core.batch import Augment, Batching, CleanBatch, Mixed, PUBatch, Stratified
from onesided.core.clock import Clock
from onesided.core.dist import shard
from onesided.core.errors import ConfigError, ContractError
from onesided.core.rng import generator, numpy_generator
from onesided.data.problem.dataset import LabelledDataset, PUDataset, Selection
from onesided.data.problem.samples import ImageKind
from onesided.data.views.bank import view_of


@dataclass(frozen=True)
class Loader:
    """Batches of one training set.

    Attributes:
        batch_size: Rows of the whole batch, over all processes.
        truth: Whether the method declared that it needs the true classes.
        clean: Samples of known class, where the method declared the need.
    """

    data: PUDataset
    kind: ImageKind
    batch_size: int
    device: torch.device
    truth: bool = False
    clean: LabelledDataset | None = None

    def steps(self, batching: Batching, rows: np.ndarray | None = None) -> int:
        """Return how many batches an epoch has; the last incomplete one is dropped."""
        labelled = self.data.labelled if rows is None else self.data.labelled[rows]
        if isinstance(batching, Mixed):
            return len(labelled) // self.batch_size
        per_batch = self.batch_size - self._positives_per_batch(batching, labelled)
        return int((~labelled).sum()) // per_batch

    def epoch(
        self,
        clock: Clock,
        views: Mapping[str, Augment],
        batching: Batching,
        rows: np.ndarray | None = None,
    ) -> Iterator[tuple[Clock, PUBatch]]:
        """Yield (clock, batch) from `clock.step` on; every batch depends on its clock alone.

        An epoch that is longer than the data repeats it in another order.
        """
        per_pass = self.steps(batching, rows)
        if not per_pass:
            raise ConfigError(
                f"A batch of {self.batch_size} is larger than the rows to train on "
                f"({len(self.data) if rows is None else int(rows.sum())}). "
                "Lower train.batch_size."
            )
        order, of_pass = np.empty(0, dtype=np.int64), -1
        for step in range(clock.step, clock.steps):
            now = replace(clock, step=step)
            number, batch = divmod(step, per_pass)
            if number != of_pass:
                order, of_pass = self._order(clock, number, batching, rows), number
            index = order[batch * self.batch_size : (batch + 1) * self.batch_size]
            yield now, self._batch(index, now, views)

    def _batch(self, index: np.ndarray, clock: Clock, views: Mapping[str, Augment]) -> PUBatch:
        part = shard(len(index))
        mine, negative = index[part], self.data.negative
        truth = torch.from_numpy(self.data.truth[mine]).to(self.device) if self.truth else None
        return PUBatch(
            row=torch.from_numpy(mine).to(self.device),
            labelled=torch.from_numpy(self.data.labelled[mine]).to(self.device),
            views=self._views(self.data.values, index, clock, views, part),
            truth=truth,
            clean=self._clean_batch(clock, views),
            negative=None if negative is None else torch.from_numpy(negative[mine]).to(self.device),
        )

    def _views(
        self,
        data: Selection,
        rows: np.ndarray,
        clock: Clock,
        views: Mapping[str, Augment],
        part: slice | None,
    ) -> dict[str, Tensor]:
        place = (clock.stage, clock.epoch, clock.step)
        values, made = torch.from_numpy(data.take(rows)), {}
        for role, strength in views.items():
            random = generator(clock.seed, "view", *place, role)
            view = view_of(data, rows, self.kind, strength, random, values=values, part=part)
            made[role] = view.to(self.device)
        return made

    def _clean_batch(self, clock: Clock, views: Mapping[str, Augment]) -> CleanBatch | None:
        if self.clean is None:
            return None
        random = numpy_generator(clock.seed, "clean", clock.stage, clock.epoch, clock.step)
        size = min(self.batch_size, len(self.clean))
        index = random.choice(len(self.clean), size, replace=False)
        roles = {f"clean-{role}": strength for role, strength in views.items()}
        drawn = self._views(self.clean.values, index, clock, roles, None)
        return CleanBatch(
            views={role.removeprefix("clean-"): view for role, view in drawn.items()},
            truth=torch.from_numpy(self.clean.truth[index]).to(self.device),
        )

    def _order(
        self, clock: Clock, of_pass: int, batching: Batching, rows: np.ndarray | None
    ) -> np.ndarray:
        random = numpy_generator(clock.seed, "order", clock.stage, clock.epoch, of_pass)
        allowed = np.arange(len(self.data)) if rows is None else np.flatnonzero(rows)
        if isinstance(batching, Mixed):
            return random.permutation(allowed)
        return self._stratified_order(random, allowed, batching)

    def _stratified_order(
        self, random: np.random.Generator, allowed: np.ndarray, batching: Stratified
    ) -> np.ndarray:
        """Return one pass over U; the positives are repeated, shuffled each time."""
        labelled = self.data.labelled[allowed]
        share = self._positives_per_batch(batching, labelled)
        unlabelled = random.permutation(allowed[~labelled])
        steps = len(unlabelled) // (self.batch_size - share)
        turns = -(-steps * share // int(labelled.sum()))
        positives = np.concatenate([random.permutation(allowed[labelled]) for _ in range(turns)])
        positives = positives[: steps * share].reshape(steps, share)
        unlabelled = unlabelled[: steps * (self.batch_size - share)].reshape(steps, -1)
        batches = np.concatenate([positives, unlabelled], axis=1)
        # Shuffled inside, so that every process of a distributed run gets both kinds.
        return random.permuted(batches, axis=1).ravel()

    def _positives_per_batch(self, batching: Stratified, labelled: np.ndarray) -> int:
        if not labelled.any():
            raise ContractError(
                "Stratified batches need labelled positives, and the rows to train on hold none. "
                "Add positives to the stage's rows, or use mixed batches."
            )
        natural = round(self.batch_size * float(labelled.mean()))
        wanted = batching.positives or max(natural, 1)
        return max(1, min(wanted, self.batch_size - 1))
