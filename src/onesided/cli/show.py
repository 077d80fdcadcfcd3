"""What a person sees in the terminal: progress with time left, tables, sentences."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

if TYPE_CHECKING:
    from onesided.core.clock import Clock

# Progress and notices go to stderr, so that stdout holds results only.
console = Console()
notes = Console(stderr=True)


def note(sentence: str, *, quiet: bool) -> None:
    """Tell something on the way, unless quiet."""
    if not quiet:
        notes.print(sentence, markup=False, highlight=False)


def warn(sentence: str) -> None:
    """Tell something that should not be missed, also when quiet."""
    notes.print(f"Warning: {sentence}", style="yellow", markup=False, highlight=False)


def print_json(content: object) -> None:
    """Print one JSON object to stdout."""
    sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")


@contextmanager
def counting(what: str, *, quiet: bool) -> Iterator["Counter"]:
    """Show how far something has come, with the time left."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[told]}"),
    )
    with Progress(*columns, console=notes, disable=quiet, transient=True) as progress:
        yield Counter(progress, progress.add_task(what, total=None, told=""))


class Counter:
    """One line of progress."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self.progress, self.task = progress, task

    def __call__(self, done: int, total: int | None) -> None:
        """Show `done` of `total`."""
        self.progress.update(self.task, completed=done, total=total)

    def step(self, clock: "Clock") -> None:
        """Show a training step as a position in its stage."""
        self(clock.epoch * clock.steps + clock.step + 1, clock.epochs * clock.steps)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Show what held-out P and U said after an epoch, and ring the live alarm."""
        share, auc = row.get("share_positive"), row.get("proxy_auc")
        told = f"epoch {row['epoch'] + 1}"
        if share is not None and auc is not None:
            told += f" · proxy AUC {auc:.3f} · {share:.0%} of U called positive"
            if not 0.001 <= share <= 0.99:
                told += " · everything or nothing!"
        self.progress.update(self.task, told=told)


def result_tables(result: Mapping[str, Any]) -> list[Table]:
    """Return the tables of one finished run."""
    tables = []
    if result["test"] is not None:
        tables.append(truth_table([result]))
    if result["pu"] is not None:
        table = Table(title="Without negatives, from held-out P and U", title_justify="left")
        table.add_column("figure")
        table.add_column("value", justify="right")
        table.add_column("95 % interval", justify="right")
        for figure in result["pu"]["figures"].values():
            if figure["value"] is not None:
                interval = (
                    "" if figure["low"] is None else f"{figure['low']:.3f} to {figure['high']:.3f}"
                )
                table.add_row(figure["label"], f"{figure['value']:.3f}", interval)
        tables.append(table)
    return tables


def truth_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Return metrics against the truth, one row per run."""
    table = Table(title="Against the truth of the test part", title_justify="left")
    table.add_column("method")
    table.add_column("seed", justify="right")
    for name in ("OA", "F1", "precision", "recall", "AUC"):
        table.add_column(name, justify="right")
    table.add_column("seconds", justify="right")
    for result in results:
        test = result["test"]
        numbers = [percent(test[key]) for key in ("oa", "f1", "precision", "recall", "auc")]
        seconds = f"{result['seconds']:.0f}" if result.get("seconds") is not None else ""
        table.add_row(result["method"], str(result.get("seed", "")), *numbers, seconds)
    return table


def percent(value: float | None) -> str:
    """Return a fraction as a percentage, or a dash."""
    return "-" if value is None else f"{100 * value:.1f}"
