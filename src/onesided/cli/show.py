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

from onesided.core.monitor import Phase

if TYPE_CHECKING:
    from onesided.metrics.figure import Figure

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
    from onesided.metrics.stored import degenerate_reason

    alarm = degenerate_reason(result)
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
        TextColumn("{task.fields[status]}"),
    )
    # Into a file or pipe, a bar that moves would only leave blank lines.
    hidden = quiet or not notes.is_terminal
    with Progress(*columns, console=notes, disable=hidden, transient=True) as progress:
        yield Counter(progress, progress.add_task(what, total=None, status=""))


class Counter(Phase):
    """One line of progress."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self.progress, self.task = progress, task

    def __call__(self, done: int, total: int | None) -> None:
        """Show `done` of `total`."""
        self.progress.update(self.task, completed=done, total=total)

    def tried(self, done: int, total: int | None, status: str) -> None:
        """Show which candidate a search tries, and which is the best so far."""
        self.progress.update(self.task, completed=done, total=total, status=status)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Show what held-out P and U said after an epoch, and ring the live alarm."""
        share, auc = row.get("share_positive"), row.get("proxy_auc")
        status = f"epoch {row['epoch'] + 1}"
        if share is not None and auc is not None:
            status += f" · proxy AUC {auc:.3f} · {share:.0%} of U called positive"
            if not 0.001 <= share <= 0.99:
                status += " · everything or nothing!"
        self.progress.update(self.task, status=status)


def result_tables(result: Mapping[str, Any]) -> list[Table]:
    """Return the tables of one finished run."""
    from onesided.metrics.stored import read_figures

    tables = [] if result["test"] is None else [truth_table([result])]
    figures = list(read_figures(result).values())
    if figures:
        tables.append(_figure_table(figures))
    return tables


def _figure_table(figures: Sequence["Figure"]) -> Table:
    """Return the figures, and below them what is missing and what all of them assume."""
    from onesided.metrics.registry import entry
    from onesided.metrics.words import (
        BOUND,
        assumptions_of,
        bias_text,
        interval_text,
        missing_texts,
        value_text,
    )

    table = Table(title="Without negatives, from held-out P and U", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("95 % interval", justify="right")
    known = [figure for figure in figures if figure.value is not None]
    for figure in known:
        table.add_row(entry(figure.name).label, value_text(figure), interval_text(figure))
    biased = {figure.bias: bias_text(figure) for figure in known if figure.bias}
    lines = [
        *missing_texts(figures),
        *(f"{BOUND[bias].strip().capitalize()}: {text}." for bias, text in biased.items()),
        "Assumptions:",
        *(f"- {each.text}" for each in assumptions_of(known)),
    ]
    table.caption, table.caption_justify = "\n".join(map(visible, lines)), "left"
    return table


def leaderboard_table(result: Mapping[str, Any]) -> Table:
    """Return what a search tried, the best first, and which one it kept."""
    from onesided.metrics.stored import search_sentence

    table = Table(title="What auto tried, on the same folds", title_justify="left")
    table.add_column("model")
    for column in ("proxy AUC", "95 % interval", "folds", "seconds"):
        table.add_column(column, justify="right")
    for row in result["leaderboard"]:
        if "proxy_auc" not in row:
            continue
        table.add_row(
            visible(row["words"]) + (" (kept)" if row["won"] else ""),
            f"{row['proxy_auc']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
            str(row["folds"]) + ("" if row["folds"] == result["folds"] else ", given up"),
            f"{row['seconds']:.1f}",
        )
    table.caption, table.caption_justify = visible(search_sentence(result)), "left"
    return table


def truth_table(results: Sequence[Mapping[str, Any]]) -> Table:
    """Return metrics against the truth, one row per run."""
    from onesided.core.former import result_today
    from onesided.metrics.registry import entry, shown
    from onesided.metrics.stored import method_words
    from onesided.metrics.words import number_text

    table = Table(title="Against the truth of the test part", title_justify="left")
    table.add_column("method")
    table.add_column("seed", justify="right")
    for name in shown("truth"):
        table.add_column(entry(name).label, justify="right")
    table.add_column("seconds", justify="right")
    for result in map(result_today, results):
        numbers = [number_text(name, result["test"][name]) for name in shown("truth")]
        seconds = f"{result['seconds']:.0f}" if result.get("seconds") is not None else ""
        table.add_row(method_words(result), str(result.get("seed", "")), *numbers, seconds)
    return table


def comparison_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return runs of several methods on one split, one row each; truth only where it is known."""
    from onesided.core.former import result_today
    from onesided.metrics.figure import Figure
    from onesided.metrics.registry import entry, shown
    from onesided.metrics.stored import method_words, read_figures
    from onesided.metrics.words import number_text, value_text

    table = Table(title="Methods on the same split", title_justify="left")
    table.add_column("method")
    tests = ("oa", "f1", "auc") if any(row["test"] is not None for row in rows) else ()
    for name in tests:
        table.add_column(f"{entry(name).label}, true", justify="right")
    names = shown("comparison")
    for title in (*(entry(name).label for name in names), "seconds"):
        table.add_column(title, justify="right")
    for row in map(result_today, rows):
        figures = read_figures(row)
        cells = [figures.get(name, Figure(name, None)) for name in names]
        alarm = " (degenerate)" if (row["pu"] or {}).get("degenerate") else ""
        table.add_row(
            method_words(row) + alarm,
            *(number_text(name, (row["test"] or {}).get(name)) for name in tests),
            *("-" if figure.value is None else value_text(figure) for figure in cells),
            f"{row['seconds']:.0f}",
        )
    return table


def beside_truth(comparison: Mapping[str, Any], title: str) -> Table:
    """Return what was estimated without negatives beside what the true labels say."""
    from onesided.metrics.registry import entry
    from onesided.metrics.stored import read_figure
    from onesided.metrics.words import interval_text, number_text, value_text

    table = Table(title=title, title_justify="left")
    table.add_column("figure")
    for column in ("estimated", "95 % interval", "true"):
        table.add_column(column, justify="right")
    for row in comparison["figures"]:
        name, figure = row["name"], read_figure(row["name"], row)
        estimated = "-" if figure.value is None else value_text(figure)
        table.add_row(
            entry(name).label, estimated, interval_text(figure), number_text(name, row["true"])
        )
    return table
