"""What a person sees in the terminal: progress with time left, tables, sentences."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

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

from onesided.core.monitor import Phase

# Progress and notices go to stderr, so that stdout holds results only. A file may be called
# [red] or :smile:, so nothing in a text is taken for markup.
console = Console(markup=False, emoji=False, highlight=False)
notes = Console(markup=False, emoji=False, highlight=False, stderr=True)

CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code != ord("\n")}


def visible(text: str) -> str:
    """Return the text with control characters spelled out.

    A file name in a message must not steer the terminal that shows it.
    """
    return text.translate(CONTROL)


def say(sentence: str) -> None:
    """Print a result to stdout; long paths are not broken into lines."""
    console.print(visible(sentence), soft_wrap=True)


def note(sentence: str, *, quiet: bool) -> None:
    """Tell something on the way, unless quiet."""
    if not quiet:
        notes.print(visible(sentence), soft_wrap=not notes.is_terminal)


def warn(sentence: str) -> None:
    """Tell something that should not be missed, also when quiet."""
    notes.print(f"Warning: {visible(sentence)}", style="yellow", soft_wrap=not notes.is_terminal)


def warn_of(result: Mapping[str, Any]) -> None:
    """Print the alarm and the warnings of a finished run."""
    alarm = None if result["pu"] is None else result["pu"].get("degenerate")
    for sentence in (*([alarm] if alarm else []), *result["warnings"]):
        warn(sentence)


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
    # Into a file or pipe, a bar that moves would only leave blank lines.
    hidden = quiet or not notes.is_terminal
    with Progress(*columns, console=notes, disable=hidden, transient=True) as progress:
        yield Counter(progress, progress.add_task(what, total=None, told=""))


class Counter(Phase):
    """One line of progress."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self.progress, self.task = progress, task

    def __call__(self, done: int, total: int | None) -> None:
        """Show `done` of `total`."""
        self.progress.update(self.task, completed=done, total=total)

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
        table.caption, table.caption_justify = _about_prior(result), "left"
        tables.append(table)
    return tables


def _about_prior(result: Mapping[str, Any]) -> str | None:
    """Return what the estimates rest on, or why there are none."""
    prior = result.get("prior")
    if prior is not None:
        return f"Estimates rest on a prior of {prior['value']:.3f}: {prior['origin']}."
    missing = result["pu"]["figures"].get("f1", {}).get("assumes", "").partition("Not computed: ")
    told = f"Not estimated: precision, F1, accuracy, AUC. Reason: {missing[2]}"
    return told if missing[2] else None


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


def comparison_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return runs of several methods on one split, one row each; truth only where it is known."""
    table = Table(title="Methods on the same split", title_justify="left")
    table.add_column("method")
    known = any(row["test"] is not None for row in rows)
    tests = {"oa": "OA", "f1": "F1", "auc": "AUC"} if known else {}
    found = {
        "recall": "recall, held out",
        "share_positive": "U called positive",
        "proxy_auc": "proxy AUC",
        "lee_liu": "Lee-Liu",
    }
    for title in (*tests.values(), *found.values(), "seconds"):
        table.add_column(title, justify="right")
    for row in rows:
        figures = (row["pu"] or {}).get("figures", {})
        values = [figures.get(name, {}).get("value") for name in found]
        alarm = " (degenerate)" if (row["pu"] or {}).get("degenerate") else ""
        table.add_row(
            row["method"] + alarm,
            *(percent((row["test"] or {}).get(key)) for key in tests),
            *("-" if value is None else f"{value:.3f}" for value in values),
            f"{row['seconds']:.0f}",
        )
    return table


def beside_truth(comparison: Mapping[str, Any], title: str) -> Table:
    """Return what was estimated without negatives beside what the true labels say."""
    table = Table(title=title, title_justify="left")
    table.add_column("figure")
    for column in ("estimated", "95 % interval", "true"):
        table.add_column(column, justify="right")
    for row in comparison["figures"]:
        interval = "" if row["low"] is None else f"{row['low']:.3f} to {row['high']:.3f}"
        numbers = ["-" if row[key] is None else f"{row[key]:.3f}" for key in ("estimated", "true")]
        estimated = f"{row['leaning']} {numbers[0]}".strip()
        table.add_row(row["label"], estimated, interval, numbers[1])
    return table


def percent(value: float | None) -> str:
    """Return a fraction as a percentage, or a dash."""
    return "-" if value is None else f"{100 * value:.1f}"
