"""What a person sees in the terminal: tables and sentences."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from onesided.metrics.figure import Figure

# Progress and notices go to stderr, so that stdout holds results only. A file may be called
# [red] or :smile:, so nothing in a text is taken for markup.
console = Console(markup=False, emoji=False, highlight=False)
notes = Console(markup=False, emoji=False, highlight=False, stderr=True)

WIDEST = 10_000
"""Columns that a line of a table may have in a file."""
NEXT_ITEMS = 3
"""Items of each kind that the end of a run names."""

CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code != ord("\n")}


def visible(text: str) -> str:
    """Return the text with control characters spelled out.

    A file name in a message must not steer the terminal that shows it.
    """
    return text.translate(CONTROL)


def say(sentence: str) -> None:
    """Print a result to stdout; long paths are not broken into lines."""
    console.print(visible(sentence), soft_wrap=True)


def print_table(table: Table) -> None:
    """Print a table to stdout; into a file as wide as it needs, so that no word is broken."""
    if not console.is_terminal:
        wide = console.options.update(max_width=WIDEST)
        table.width = console.measure(table, options=wide).maximum
    console.print(table, crop=False)


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


def result_tables(result: Mapping[str, Any], *, first_only: bool = False) -> list[Table]:
    """Return the tables of one finished run; `first_only` leaves figures for a second look out."""
    from onesided.metrics.stored import read_figures
    from onesided.report.tables import first_and_rest

    tables = [] if result["test"] is None else [truth_table([result])]
    figures = list(read_figures(result).values())
    if first_only:
        missing = [figure for figure in figures if not figure.is_known]
        known = [figure for figure in figures if figure.is_known]
        figures = [*first_and_rest(known)[0], *missing]
    if figures:
        tables.append(_figure_table(figures))
    return tables


def what_next(result: Mapping[str, Any], folder: Path) -> list[str]:
    """Return where the ranked items are, which to look at first, and the commands for more."""
    from onesided.metrics.stored import degenerate_reason
    from onesided.report.runfiles import read_ranking

    scores, run = folder / "scores.csv", shlex.quote(str(folder))
    pool = read_ranking(scores) if scores.exists() else None
    lines = [f"Report: {folder / 'report.html'}"]
    if pool is not None:
        lines += [
            f"Ranked items: {scores} ({pool.called_positive} of {len(pool.scores)} called "
            "positive)",
            f"Look first at the most likely: {_items(pool.best(NEXT_ITEMS))}",
            f"and at the least sure: {_items(pool.nearest(result['threshold'], NEXT_ITEMS))}",
        ]
    if calibration := result.get("calibration"):
        lines.append(calibration["explained"])
    if typical := result.get("typical"):
        lines.append(typical["explained"])
    if degenerate_reason(result):
        return lines[:2]
    return [
        *lines,
        f"Score other items: onesided rank {run} {_others(result)}",
        f"More figures, another threshold: onesided evaluate {run} --threshold recall=0.9",
    ]


def _others(result: Mapping[str, Any]) -> str:
    """Return what `rank` takes for a model of such items."""
    return "FILE" if result["data"] == "table" else "FOLDER"


def _items(items: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name} ({score:.3f})" for name, score in items)


def _figure_table(figures: Sequence["Figure"]) -> Table:
    """Return the figures, and below them what is missing and what all of them assume."""
    from onesided.metrics.registry import entry
    from onesided.metrics.words import (
        assumptions_of,
        bounds_explained,
        interval_text,
        missing_texts,
        value_text,
    )

    table = Table(
        title="Without negatives, from P and U that were not trained on", title_justify="left"
    )
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("95 % interval", justify="right")
    known = [figure for figure in figures if figure.is_known]
    for figure in known:
        table.add_row(entry(figure.name).label, value_text(figure), interval_text(figure))
    lines = [
        *missing_texts(figures),
        *(f"{bound.capitalize()}: {text}." for bound, text in bounds_explained(known).items()),
        "Assumptions:",
        *(f"- {each.text}" for each in assumptions_of(known)),
    ]
    table.caption, table.caption_justify = "\n".join(map(visible, lines)), "left"
    return table


def leaderboard_table(result: Mapping[str, Any]) -> Table:
    """Return what a search tried, the best first, and which one it kept."""
    from onesided.metrics.stored import search_sentence
    from onesided.metrics.words import number_text
    from onesided.report.tables import time_spent

    table = Table(title="What auto tried, on the same folds", title_justify="left")
    table.add_column("model")
    for column in ("proxy AUC", "95 % interval", "folds", "seconds"):
        table.add_column(column, justify="right")
    for row in result["leaderboard"]:
        if "proxy_auc" not in row:
            continue
        table.add_row(
            visible(row["words"]) + (" (kept)" if row["won"] else ""),
            number_text("proxy_auc", row["proxy_auc"]),
            " to ".join(number_text("proxy_auc", row[end]) for end in ("low", "high")),
            str(row["folds"]) + ("" if row["folds"] == result["folds"] else ", given up"),
            f"{row['seconds']:.1f}",
        )
    said = f"{search_sentence(result)} {time_spent(result)}"
    table.caption, table.caption_justify = visible(said), "left"
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
        numbers = [number_text(name, result["test"].get(name)) for name in shown("truth")]
        seconds = f"{result['seconds']:.0f}" if result.get("seconds") is not None else ""
        table.add_row(method_words(result), str(result.get("seed", "")), *numbers, seconds)
    return table


def comparison_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return runs of several methods on one split, one row each; truth only where it is known."""
    from onesided.core.former import result_today
    from onesided.metrics.figure import Figure
    from onesided.metrics.registry import entry, shown
    from onesided.metrics.stored import method_words, read_figures
    from onesided.metrics.words import cell_text, number_text

    table = Table(title="Methods on the same split, with one prior", title_justify="left")
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
            *map(cell_text, cells),
            "" if row.get("seconds") is None else f"{row['seconds']:.0f}",
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
        estimated = "-" if not figure.is_known else value_text(figure)
        table.add_row(
            entry(name).label, estimated, interval_text(figure), number_text(name, row["true"])
        )
    return table
