"""Who is told what a job does: notices, warnings and how far it has come. One type for all.

A job (`onesided.jobs`) tells a `Monitor`. This one writes sentences to Python's logging and shows
no progress; the command line has one for the terminal, the estimator one for scikit-learn.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

_logger = logging.getLogger("onesided")


class TrainingClock(Protocol):
    """As much of a `Clock` as tells how far training is."""

    @property
    def epoch(self) -> int: ...  # noqa: D102
    @property
    def epochs(self) -> int: ...  # noqa: D102
    @property
    def step(self) -> int: ...  # noqa: D102
    @property
    def steps(self) -> int: ...  # noqa: D102


class Phase:
    """One part of a job that takes its time. This one shows nothing."""

    def __call__(self, done: int, total: int | None) -> None:
        """Show that `done` of `total` things are done."""

    def step(self, clock: TrainingClock) -> None:
        """Show a training step as a position in its stage."""
        self(clock.epoch * clock.steps + clock.step + 1, clock.epochs * clock.steps)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Show what the log says of an epoch."""


class Monitor:
    """Receives what a job tells: logging for sentences, nothing for progress."""

    def note(self, sentence: str) -> None:
        """Take a sentence that a person may want to know."""
        _logger.info(sentence)

    def warn(self, sentence: str) -> None:
        """Take a sentence that must not be missed."""
        _logger.warning(sentence)

    @contextmanager
    def phase(self, title: str) -> Iterator[Phase]:
        """Show that a phase of the job begins, and its progress until it ends."""
        yield Phase()
