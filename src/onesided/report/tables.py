"""The figures of a run as HTML: cards, estimates beside the truth, and a table of methods.

Every function returns "" when the run has nothing for it.
"""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from onesided.core.duration import duration
from onesided.metrics import words
from onesided.metrics.figure import Figure
from onesided.metrics.registry import FIGURES, entry, shown
from onesided.metrics.stored import (
    Json,
    degenerate_reason,
    listed,
    method_words,
    number,
    numbers,
    read_figures,
    search_sentence,
    table,
)
from onesided.pages.render import render
from onesided.report.runfiles import RunFiles

# Limits that keep the page small when a file is absurdly long.
MOST_ROWS = 200
MOST_UNKNOWN = 20

FIRST = ("recall", "precision", "prior")
"""How many are found, how many of the found are right, how many there are."""


def cards(found: Mapping[str, Figure]) -> Markup:
    """Return the figures estimated without negatives as cards, and below them what they assume."""
    too_many = [name for name in found if name not in FIGURES][MOST_UNKNOWN:]
    figures = [figure for name, figure in found.items() if name not in too_many]
    estimated = [figure for figure in figures if figure.is_known]
    first, rest = first_and_rest(estimated)
    return render(
        "report/web/cards.html",
        first=first,
        rest=rest,
        missing=words.missing_texts(figures),
        biased=words.bounds_explained(estimated),
        assumptions=[
            (each, _labels(names, of=len(estimated)))
            for each, names in words.assumptions_with_figures(estimated)
        ],
        words=words,
        entry=entry,
    )


def _labels(names: Sequence[str], *, of: int) -> str:
    return "all figures" if len(names) == of else ", ".join(entry(name).label for name in names)


def first_and_rest(figures: Sequence[Figure]) -> tuple[list[Figure], list[Figure]]:
    """Return the figures that a person needs to act, and those for a second look."""
    first = [figure for name in FIRST for figure in figures if figure.name == name]
    if not first:
        first = list(figures[: len(FIRST)])
    return first, [figure for figure in figures if figure not in first]


def truth(run: RunFiles, found: Mapping[str, Figure]) -> Markup:
    """Return the estimates beside figures on items of known class.

    The estimates are why a person without negatives can act at all; this table checks them.
    """
    matched = number(run.labelled.get("tested", run.labelled.get("matched")))
    count = "" if matched is None else f"{matched:,.0f} "
    sources = {"True, test set": run.result, f"True, {count}labelled items": run.labelled}
    true = {title: numbers(source.get("test")) for title, source in sources.items()}
    names = [name for name, each in FIGURES.items() if each.truth]
    checks = {
        title: {name: values.get(FIGURES[name].truth) for name in names}
        for title, values in true.items()
        if any(FIGURES[name].truth in values for name in names)
    }
    rows = [
        (found.get(name, Figure(name, None)), [check[name] for check in checks.values()])
        for name in names
        if any(check[name] is not None for check in checks.values())
    ]
    if not rows:
        return Markup()
    return render("report/web/truth.html", titles=list(checks), rows=rows, words=words, entry=entry)


def comparison(run: RunFiles) -> Markup:
    """Return one row per run that was compared; columns that no row fills are left out."""
    rows = [(row, _measurements(row)) for row in run.comparison[:MOST_ROWS]]
    titles = {
        "Against the truth": [("test", name) for name in shown("truth")],
        "Without negatives": [("pu", name) for name in shown("comparison")],
    }
    groups = {
        title: [key for key in keys if any(key in values for _, values in rows)]
        for title, keys in titles.items()
    }
    columns = [key for keys in groups.values() for key in keys]
    several_seeds = len({str(row.get("seed", "")) for row, _ in rows}) > 1
    if not columns:
        return Markup()
    return render(
        "report/web/comparison.html",
        groups={title: len(keys) for title, keys in groups.items() if keys},
        labels=[entry(name).label for _, name in columns],
        several_seeds=several_seeds,
        rows=[
            {
                "method": method_words(row) if row.get("method") else "",
                "seed": row.get("seed", "") if several_seeds else None,
                "degenerate": degenerate_reason(row),
                "own": all(row.get(key) == run.result.get(key) for key in ("method", "seed")),
                "cells": [values.get(key, "-") for key in columns],
            }
            for row, values in rows
        ],
    )


def leaderboard(run: RunFiles) -> Markup:
    """Return what a search tried, best first, and why the model that was kept is believable."""
    rows = [row for row in map(table, listed(run.result.get("leaderboard"))) if numbers(row)]
    if not rows:
        return Markup()
    return render(
        "report/web/leaderboard.html",
        sentence=search_sentence(run.result),
        spent=time_spent(run.result),
        given_up=any(number(row.get("folds")) != number(run.result.get("folds")) for row in rows),
        rows=[
            {
                "words": row.get("words", row.get("name", "")),
                "won": row.get("won") is True,
                "auc": words.number_text("proxy_auc", number(row.get("proxy_auc"))),
                "low": words.number_text("proxy_auc", number(row.get("low"))),
                "high": words.number_text("proxy_auc", number(row.get("high"))),
                "folds": _folds(row, run.result),
                "seconds": duration(number(row.get("seconds")) or 0.0),
            }
            for row in rows[:MOST_ROWS]
        ],
    )


def time_spent(result: Json) -> str:
    """Return how long a run with a search trained, as a sentence; "" where that is not known."""
    whole, search = number(result.get("seconds")), number(result.get("search_seconds"))
    if whole is None or search is None or search > whole:  # older files counted them apart
        return ""
    return (
        f"Training took {duration(whole)} in all, of which comparing models took "
        f"{duration(search)}."
    )


def _folds(row: Json, result: Json) -> str:
    done, every = number(row.get("folds")), number(result.get("folds"))
    return f"{done or 0:.0f}" + ("" if done == every else ", given up")


def _measurements(row: Json) -> dict[tuple[str, str], str]:
    figures = read_figures(row).values()
    return {
        **{
            ("test", key): words.number_text(key, each)
            for key, each in numbers(row.get("test")).items()
        },
        **{("pu", each.name): words.cell_text(each) for each in figures if each.is_known},
    }
