"""The receiver of a job's notices, warnings and progress.

A job (`onesided.jobs`) reports to a `Monitor`. This one writes sentences to Python's logging and
shows no progress; the command line has one for the terminal, the estimator one for scikit-learn.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it imports torch
    from onesided.core.clock import Clock

_logger = logging.getLogger("onesided")


class Phase:
    """One part of a job that takes time. This one shows nothing."""

    def __call__(self, done: int, total: int | None) -> None:
        """Show that `done` of `total` are done."""

    def embed(self, done: int, total: int) -> None:
        """Show that `done` of `total` images have their features."""
        self(done, total)

    def step(self, clock: "Clock") -> None:
        """Show a training step as a position in its stage."""
        self(clock.epoch * clock.steps + clock.step + 1, clock.epochs * clock.steps)

    def tried(self, done: int, total: int | None, status: str) -> None:
        """Show what a search does, and how much of its work is done."""
        self(done, total)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Show the log's row of an epoch."""


class Monitor:
    """Receives a job's reports: logs sentences, shows no progress."""

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
