"""How far a job has come: a bar with the time left in a terminal, a line a minute elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from onesided.cli.show import note, notes, visible
from onesided.core.duration import duration
from onesided.core.monitor import Phase

EVERY = 60.0
"""Seconds between two lines where the output is no terminal."""


@contextmanager
def counting(title: str, *, quiet: bool) -> Iterator[Phase]:
    """Show how far something has come, with the time left; nothing if quiet."""
    if quiet:
        yield Phase()
    elif notes.is_terminal:
        with bars() as shown:
            yield Bar(title, shown)
    else:
        # Into a file or pipe, a bar that moves would only leave blank lines.
        with minute_by_minute(Lines(title)) as lines:
            yield lines


class Counter(Phase):
    """Turns what a phase reports into a title, a count and a status."""

    def __init__(self, title: str) -> None:
        self.phase = self.title = title
        self.done, self.status, self.as_share = 0, "", False
        self.total: int | None = None

    def began(self) -> None:
        """Show that something begins, under `title`."""

    def moved(self) -> None:
        """Show `done`, `total` and `status`."""

    def __call__(self, done: int, total: int | None) -> None:
        """Show `done` of `total`."""
        same = self.title == self.phase
        self._show(self.phase, done, total, self.status if same else "")

    def embed(self, done: int, total: int) -> None:
        """Show how many images have their features."""
        self._show("computing features", done, total, "")

    def tried(self, done: int, total: int | None, status: str) -> None:
        """Show which candidate a search tries, and which is the best so far.

        Its work is counted in estimated time, which people would take for items: they see a share.
        """
        self._show("comparing models", done, total, status, as_share=True)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Show what held-out P and U said after an epoch, and ring the live alarm."""
        share, auc = row.get("share_positive"), row.get("proxy_auc")
        self.status = f"epoch {row['epoch'] + 1}"
        if share is not None and auc is not None:
            self.status += f" · proxy AUC {auc:.1%} · {share:.0%} of U called positive"
            if not 0.001 <= share <= 0.99:
                self.status += " · everything or nothing!"
        self.moved()

    def count(self) -> str:
        """Return how much is done, as 256/1650 or 15%; nothing while that is not known."""
        if not self.total:
            return ""
        if self.as_share:
            return f"{min(1.0, self.done / self.total):.0%}"
        return f"{self.done}/{self.total}"

    def _show(
        self, title: str, done: int, total: int | None, status: str, *, as_share: bool = False
    ) -> None:
        begins = title != self.title
        self.title, self.done, self.total = title, done, total
        self.status, self.as_share = status, as_share
        if begins:
            self.began()
        self.moved()


class _Bars(Progress):
    """A bar, and below it a status that may take several lines: nothing is cut off."""

    def get_renderables(self) -> Iterator[RenderableType]:
        """Give the line of the bar, and what stands below it."""
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            if task.fields["status"]:
                yield Padding(Text(task.fields["status"]), (0, 0, 0, 2))


def bars() -> Progress:
    """Return the display of a bar on stderr, which it leaves clean at the end."""
    return _Bars(
        TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=notes,
        transient=True,
    )


class Bar(Counter):
    """A bar in a terminal."""

    def __init__(self, title: str, shown: Progress) -> None:
        super().__init__(title)
        self.shown = shown
        self.task: TaskID = shown.add_task(visible(title), total=None, status="", count="")

    def began(self) -> None:
        """Start the bar and its clock anew."""
        self.shown.reset(self.task, description=visible(self.title), status="", count="")

    def moved(self) -> None:
        """Move the bar."""
        self.shown.update(
            self.task,
            completed=self.done,
            total=self.total,
            status=visible(self.status),
            count=self.count(),
        )


class Lines(Counter):
    """A line at the start, and one whenever `tell` is called."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.began()

    def began(self) -> None:
        """Print what begins."""
        self.start = time.monotonic()
        note(f"{self.title} ...", quiet=False)

    def tell(self) -> None:
        """Print how far it has come."""
        note(self.line(time.monotonic() - self.start), quiet=False)

    def line(self, seconds: float) -> str:
        """Return how far it has come after so many seconds, and how long the rest may take."""
        parts = [self.count(), self.status.replace("\n", ", "), f"{duration(seconds)} so far"]
        if self.total and 0 < self.done <= self.total:
            left = seconds * (self.total - self.done) / self.done
            parts.append(f"about {duration(left)} left")
        return f"{self.title}: {', '.join(filter(None, parts))}"


@contextmanager
def minute_by_minute(lines: Lines, ended: Callable[[float], bool] | None = None) -> Iterator[Lines]:
    """Tell of a phase once a minute, from a thread: one step of a job may take an hour.

    `ended` waits so many seconds and returns whether the phase ended meanwhile.
    """
    end = threading.Event()
    wait = ended or end.wait

    def tell() -> None:
        while not wait(EVERY):
            lines.tell()

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield lines
    finally:
        end.set()
        thread.join()
