"""Times a few training steps of every kind of run, to say in advance what a table costs."""

import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from onesided.bench.cells import Cell
from onesided.bench.progress import Kind, kind_of
from onesided.bench.suite import read_suite
from onesided.core.clock import Clock
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.core.rng import numpy_generator
from onesided.data.problem.dataset import LabelledDataset, PUDataset, PUSplit, Selection
from onesided.data.problem.samples import ImageKind
from onesided.data.sources import SOURCES, source_named
from onesided.engine.fit import Watcher, fit
from onesided.methods.base import GradientMethod
from onesided.run.build import build_method
from onesided.run.config import RunConfig
from onesided.run.load import LoadedData

STEPS, SKIPPED = 6, 2
"""Steps that are made, and those at the beginning that prepare memory and are not counted."""
MOST_ROWS, MOST_ROWS_OF_RESNET = 64, 16
"""Rows of a batch that is timed: time for a sample hardly depends on it, and steps are short."""
FEATURES = 1280
"""Numbers that EfficientNet-Lite0 gives for an image."""


class _Enough(Exception):
    """Ends a training that is only timed."""


def seconds_per_sample(cell: Cell) -> float | None:
    """Return the seconds of a core for one training sample; None if the method makes no steps.

    Time of the process, not of the clock: other work on the machine does not count. Samples are
    noise of the right shape, because time does not depend on what they show.
    """
    config = _shortened(cell.config())
    data = _noise(cell, config)
    method = build_method(
        config.method,
        config.backbone.learner(),
        data,
        data.split,
        batch_size=config.train.batch_size,
        seed=0,
        prior=0.4,
    )
    if not isinstance(method, GradientMethod):
        return None
    times: list[float] = []

    def note(clock: Clock) -> None:
        times.append(time.process_time())
        if len(times) > STEPS:
            raise _Enough

    with suppress(_Enough):
        fit(method, data.split, config.train, watcher=Watcher(step=note))
    steps = len(times) - 1 - SKIPPED
    return (times[-1] - times[SKIPPED]) / (steps * config.train.batch_size)


def rate(cell: Cell) -> dict[str, Any] | None:
    """Return an entry of the file of costs."""
    seconds = seconds_per_sample(cell)
    return None if seconds is None else {**kind_of(cell)._asdict(), "seconds": seconds}


def kinds(cells: list[Cell]) -> dict[Kind, Cell]:
    """Return one cell of each kind."""
    return {kind_of(cell): cell for cell in reversed(cells)}


def _shortened(config: RunConfig) -> RunConfig:
    """Return the run with a smaller batch, beyond its warm-up, and few epochs."""
    large = config.backbone.name.startswith("resnet")
    size = min(config.train.batch_size, MOST_ROWS_OF_RESNET if large else MOST_ROWS)
    late = {"warmup_epochs": 0} if hasattr(config.method, "warmup_epochs") else {}
    return replace(
        config,
        train=config.train.model_copy(update={"batch_size": size, "epochs": STEPS + 1}),
        method=config.method.model_copy(update=late),
    )


def _noise(cell: Cell, config: RunConfig) -> LoadedData:
    """Return random data of the shape that the network sees."""
    entry = source_named(cell.data)
    shape: tuple[int, ...] = _shape(cell)
    mean, std = entry.mean, entry.std
    if config.backbone.freeze:
        shape, mean, std = (FEATURES,), (0.5,) * FEATURES, (0.3,) * FEATURES
    random = numpy_generator(0, "timing")
    rows = config.train.batch_size * 2 + 32
    values = random.integers(0, 256, (rows, *shape)).astype(np.uint8)
    pool = values.astype(np.float32) / 255 if config.backbone.freeze else values
    truth = np.where(np.arange(rows) % 2 == 0, POSITIVE, NEGATIVE).astype(np.int64)
    names = tuple(map(str, range(rows)))
    index = np.arange(rows)
    both = PUDataset(Selection(pool, index), index < rows // 4, truth, names)
    known = LabelledDataset(Selection(pool, index[:32]), truth[:32], names[:32])
    kind = "vector" if config.backbone.freeze else _kind(cell.data)
    split = PUSplit(both, None, both, known, kind, "case-control")
    return LoadedData(split, mean, std)


def _shape(cell: Cell) -> tuple[int, int, int]:
    published = read_suite(cell.suite).published_data
    if cell.data in published:
        return published[cell.data].shape
    # Embedded sets are read at once.
    shape = SOURCES[cell.data].load(None).train.sample_shape
    return (shape[0], shape[1], shape[2])


def _kind(data: str) -> ImageKind:
    if data in ("abcd", "xbd"):
        return "remote"
    return "digit" if data == "digits" else "photograph"
