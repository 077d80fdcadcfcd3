"""The training loop, without hooks and callbacks; it knows no method by name."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from onesided.core.batch import Batching, Mixed, Stratified
from onesided.core.clock import Clock, Stage
from onesided.core.dist import gather_batch, gather_outputs, rank
from onesided.core.errors import ConfigError, Interrupted
from onesided.core.rng import numpy_generator
from onesided.core.threads import using_threads
from onesided.data.loader import Loader
from onesided.data.problem.dataset import PUDataset, PUSplit
from onesided.data.views.augment import GENTLER
from onesided.engine.checkpoint import (
    Checkpoints,
    Position,
    TrainingState,
    check_fits,
    check_kinds,
)
from onesided.engine.interrupt import StopRequest, stop_requests
from onesided.engine.kept_epoch import CHOSEN_BY, KeptEpoch, delivers_last
from onesided.engine.log import EpochLog, Row, Tally
from onesided.engine.optimise import (
    build_optimizer,
    descend,
    distribute,
    learn_only,
    set_learning_rate,
)
from onesided.engine.predict import Predictor, arrange
from onesided.engine.prefetch import has_room, prefetched
from onesided.engine.sweep import MethodSweep
from onesided.engine.train_config import TrainConfig, choose_device, choose_precision
from onesided.methods.base import DirectMethod, GradientMethod, InformedMethod, Method
from onesided.metrics.pu import proxy_accuracy_single_set, proxy_auc
from onesided.storage.progress import Progress


@dataclass(frozen=True)
class Memory:
    """The files that a run keeps: checkpoint and log; by default none."""

    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    log: EpochLog = field(default_factory=EpochLog)


@dataclass(frozen=True)
class Watcher:
    """Functions that receive the progress of training; the defaults do nothing."""

    step: Callable[[Clock], None] = lambda clock: None
    epoch: Callable[[Row], None] = lambda row: None
    embed: Progress = lambda done, total: None
    tried: Callable[[int, int | None, str], None] = lambda done, total, status: None
    resumed: Callable[[str], None] = lambda sentence: None
    """Receives what a run found done already, in a sentence."""
    measure: Callable[[Clock, Predictor], Mapping[str, float]] = lambda clock, predictor: {}
    """Returns numbers about the model after an epoch; the log gets them, and no method does."""


def fit(
    method: Method,
    split: PUSplit,
    train: TrainConfig,
    *,
    seed: int = 0,
    memory: Memory | None = None,
    watcher: Watcher | None = None,
    prior: float | None = None,
) -> Predictor:
    """Train a method on a split and return its predictor.

    The same call with the same memory resumes a stopped run, equal to the bit. Where
    `train.threads` is auto, training has as many threads as torch has now. `prior` is the share of
    positives in U by which `train.keep = "best-accuracy"` chooses; the method has its own.
    """
    if train.keep == "best-accuracy" and prior is None:
        raise ConfigError(
            "train.keep is best-accuracy, and proxy accuracy needs the share of positives in U, "
            "but no prior was given. Give fit a prior, or set train.keep to best."
        )
    with using_threads(train.threads_given):
        return _fit(method, split, train, seed, memory or Memory(), watcher or Watcher(), prior)


def _fit(
    method: Method,
    split: PUSplit,
    train: TrainConfig,
    seed: int,
    memory: Memory,
    watcher: Watcher,
    prior: float | None,
) -> Predictor:
    device = choose_device(train.device)
    if not isinstance(method, GradientMethod):
        _fit_direct(method, split.train, numpy_generator(seed, "direct"))
        return Predictor(method, device)
    method.to(device)
    arrange(method, split.sample_shape, device)
    loader = Loader(
        split.train,
        split.kind,
        train.batch_size,
        device,
        truth=method.needs.truth,
        clean=split.clean if method.needs.clean else None,
    )
    with stop_requests() as request:
        _Training(method, split, train, seed, device, loader, memory, watcher, request, prior).run()
    return Predictor(method, device)


def _fit_direct(method: DirectMethod, data: PUDataset, random: np.random.Generator) -> None:
    """Fit a method in one call; only one that declared their use is given more than P and U."""
    flat = data.values.take(slice(None)).reshape(len(data), -1)
    if data.negative is None and data.weights is None:
        method.fit(flat, data.labelled, random)
        return
    informed = cast("InformedMethod", method)
    informed.fit(flat, data.labelled, random, negative=data.negative, weights=data.weights)


def _labelled_share(split: PUSplit) -> float:
    """Return the share of P in P and U together, trained on and held out."""
    parts = [part for part in (split.train, split.held_out) if part is not None]
    labelled = sum(int(part.labelled.sum()) for part in parts)
    return labelled / (labelled + sum(int(part.unlabelled.sum()) for part in parts))


@dataclass
class _Training:
    """One call of `fit`: what every step needs, and the loop."""

    method: GradientMethod
    split: PUSplit
    train: TrainConfig
    seed: int
    device: torch.device
    loader: Loader
    memory: Memory
    watcher: Watcher
    request: StopRequest
    prior: float | None
    kept: KeptEpoch = field(default_factory=KeptEpoch)

    def run(self) -> None:
        trainable = {name for name, p in self.method.named_parameters() if p.requires_grad}
        stages = self.method.plan(self.train.epochs)
        state = self.memory.checkpoints.load()
        self.began = time.monotonic() - (state.seconds if state else 0.0)
        here = state.position if state else Position()
        if state is not None:
            # A step within the epoch after the last one is beyond the end, too.
            begun = here.epoch + (here.step > 0)
            if here.stage >= len(stages) or begun > stages[here.stage].epochs:
                raise self.memory.checkpoints.damaged("it claims more epochs than the run has")
            self.kept, own = KeptEpoch.taken_from(state.method)
            self._restore(self.method, own)
        self.method.train()
        for number in range(here.stage, len(stages)):
            stage = stages[number]
            if (number, 0, 0) == (here.stage, here.epoch, here.step) or number > here.stage:
                self.method.begin_stage(stage, self._sweep(self._clock(stage, 0)))
            learn_only(self.method, stage.learns, trainable)
            optimizer = build_optimizer(self.method, self.train.at_pace(stage.pace))
            resuming = state is not None and number == here.stage
            if resuming and state is not None and state.optimizer is not None:
                self._restore(optimizer, state.optimizer)
            best = self.train.keep in CHOSEN_BY and delivers_last(self.method)
            self.chooses = best and number == len(stages) - 1
            self._run_stage(stage, number, optimizer, state if resuming else None)
        self.kept.restore(self.method)
        # Without a checkpoint: a run that is killed here finishes again, with the same result.
        self.method.finish(self._sweep(self._clock(stages[-1], stages[-1].epochs)))

    def _restore(self, owner: GradientMethod | Optimizer, state: dict[str, Any]) -> None:
        try:
            if isinstance(owner, Optimizer):
                check_fits(owner, state)
            else:
                check_kinds(owner, state)
            owner.load_state_dict(state)
        except Exception as error:  # a stranger's file: every refusal is one sentence
            # The first line of torch's message names our class, the last one what does not fit.
            reason = (str(error).splitlines() or [type(error).__name__])[-1]
            reason = shorten(reason, 200, placeholder=" ...")
            raise self.memory.checkpoints.damaged(reason) from None

    def _run_stage(
        self, stage: Stage, number: int, optimizer: Optimizer, state: TrainingState | None
    ) -> None:
        network = distribute(self.method)
        start = state.position if state else Position(number)
        for epoch in range(start.epoch, stage.epochs):
            resumed = state is not None and epoch == start.epoch
            clock = self._clock(stage, epoch, start.step if resumed else 0)
            if clock.step > clock.steps:
                raise self.memory.checkpoints.damaged("it claims more steps than an epoch has")
            tally = Tally(state.tally) if resumed and state else Tally()
            if epoch == start.epoch and rank() == 0:
                # Also for a first epoch: its row is written before the checkpoint that ends it.
                self.memory.log.rewind(clock)
            if clock.step == 0:
                self.method.begin_epoch(clock, self._sweep(clock))
            self._run_epoch(network, stage, number, clock, optimizer, tally)
            self._end_epoch(stage, clock, tally)
            self._save(Position(number, epoch + 1), optimizer, Tally())

    def _run_epoch(
        self,
        network: nn.Module,
        stage: Stage,
        number: int,
        clock: Clock,
        optimizer: Optimizer,
        tally: Tally,
    ) -> None:
        saved = time.monotonic()
        views = stage.views or self.method.views
        if self.train.views == "gentle":
            views = {role: GENTLER.get(strength, strength) for role, strength in views.items()}
        rows = None if stage.rows is None else stage.rows.cpu().numpy()
        batches = self.loader.epoch(clock, views, self._batching(stage), rows)
        for now, batch in prefetched(batches) if has_room(self.device) else batches:
            with self._autocast():
                outputs = network(batch, now)
            outputs, whole = gather_outputs(outputs), gather_batch(batch)
            losses = self.method.loss(outputs.in_full_precision(), whole, now)
            set_learning_rate(optimizer, self._learning_rate(stage, now))
            descend(losses, optimizer, self.train.clip)
            tally.add(losses)
            self.watcher.step(now)
            done = Position(number, now.epoch, now.step + 1)
            stopped = self.request.agreed()
            if stopped:
                self._save(done, optimizer, tally)
                raise Interrupted(
                    f"Stopped after epoch {now.epoch + 1}, step {now.step + 1}; the state is "
                    "saved, and the same command resumes there.",
                    stopped,
                )
            if time.monotonic() - saved > self.train.save_minutes * 60:
                self._save(done, optimizer, tally)
                saved = time.monotonic()

    def _end_epoch(self, stage: Stage, clock: Clock, tally: Tally) -> None:
        if self.chooses:  # held-out items judge this epoch as it would be delivered
            self.method.finish(self._sweep(clock))
        held_out = self._held_out()
        if self.chooses:
            self.kept.offer(self.method, clock.epoch, held_out[CHOSEN_BY[self.train.keep]])
        row: Row = {
            "stage": clock.stage,
            "epoch": clock.epoch,
            "lr": self._learning_rate(stage, replace(clock, step=0)),
            "seconds": round(time.monotonic() - self.began, 3),
            **tally.means(),
            **held_out,
        }
        if measured := self.watcher.measure(clock, Predictor(self.method, self.device)):
            row["measured"] = dict(measured)
        if rank() == 0:
            self.memory.log.write(row)
        self.watcher.epoch(row)

    def _held_out(self) -> dict[str, float | None]:
        """Return the figures of held-out P and U after an epoch, which the live alarm reads.

        Proxy accuracy is among them where it chooses the epoch.
        """
        data = self.split.held_out
        by_accuracy = self.train.keep == "best-accuracy"
        if data is None:
            names = ("share_positive", "recall", "proxy_auc")
            return dict.fromkeys((*names, "proxy_accuracy") if by_accuracy else names)
        scores = Predictor(self.method, self.device).scores(data.values)
        unlabelled, positive = scores[~data.labelled], scores[data.labelled]
        share, recall = float((unlabelled > 0.5).mean()), float((positive > 0.5).mean())
        found: dict[str, float | None] = {
            "share_positive": share,
            "recall": recall,
            "proxy_auc": proxy_auc(positive, unlabelled),
        }
        if by_accuracy:
            found["proxy_accuracy"] = self._proxy_accuracy(recall, share)
        return found

    def _proxy_accuracy(self, recall: float, share: float) -> float:
        """Return the estimated accuracy: on U, or on the single set that P was labelled in."""
        assert self.prior is not None, "`fit` refuses to choose by accuracy without one"
        labelled = _labelled_share(self.split) if self.split.scenario == "single-set" else 0.0
        return proxy_accuracy_single_set(recall, share, self.prior, labelled)

    def _save(self, position: Position, optimizer: Optimizer, tally: Tally) -> None:
        if rank() == 0:
            seconds = time.monotonic() - self.began
            method = {**self.method.state_dict(), **self.kept.to_state()}
            steps = optimizer.state_dict()
            state = TrainingState(position, method, steps, tally.sums, seconds)
            self.memory.checkpoints.save(state)

    def _clock(self, stage: Stage, epoch: int, step: int = 0) -> Clock:
        rows = None if stage.rows is None else stage.rows.cpu().numpy()
        steps = stage.steps or self.loader.steps(self._batching(stage), rows)
        if steps == 0:
            raise ConfigError(
                f"The data is too small for one batch of {self.train.batch_size} "
                f"({len(self.split.train)} rows, of which {int(self.split.train.unlabelled.sum())} "
                "are unlabelled). Lower train.batch_size."
            )
        return Clock(self.seed, stage.name, epoch, stage.epochs, step, steps)

    def _learning_rate(self, stage: Stage, clock: Clock) -> float:
        span = stage.epochs if stage.pace.span is None else stage.pace.span
        return self.train.at_pace(stage.pace).learning_rate_during(clock, span)

    def _batching(self, stage: Stage) -> Batching:
        match self.train.batching:
            case "mixed":
                return Mixed()
            case "stratified":
                return Stratified(self.train.positives_per_batch)
            case _:
                return stage.batching or self.method.batching

    def _sweep(self, clock: Clock) -> MethodSweep:
        parts: dict[str, PUDataset] = {"train": self.split.train}
        if self.split.held_out is not None:
            parts["held_out"] = self.split.held_out
        return MethodSweep(self.method, parts, self.split.kind, self.device, clock)

    def _autocast(self) -> AbstractContextManager[None]:
        half = choose_precision(self.train.precision, self.device) == torch.bfloat16
        context: AbstractContextManager[None] = torch.autocast(
            self.device.type, dtype=torch.bfloat16, enabled=half
        )
        return context
