"""What a round of review changed, as HTML: answers, figures before and after, the ranking."""

from markupsafe import Markup

from onesided.core.duration import duration
from onesided.metrics import words
from onesided.metrics.registry import entry
from onesided.metrics.stored import Json, listed, number, numbers, read_figure, table
from onesided.pages.render import render
from onesided.report.runfiles import RunFiles

MOST_ROWS = 30
COUNTED = ("positive", "negative", "unsure", "skip", "contested")


def changed(run: RunFiles) -> Markup:
    """Return what changed since the run that was reviewed; "" where there was no review."""
    review = run.review
    if not review:
        return Markup()
    answers, ranking = table(review.get("answers")), table(review.get("ranking"))
    seconds = number(answers.get("seconds")) or 0.0
    return render(
        "report/web/rounds.html",
        round=int(number(review.get("round")) or 0),
        parent=str(table(review.get("parent")).get("folder", "another run")),
        start=str(review.get("start", "")),
        counts={word: int(number(answers.get(word)) or 0) for word in COUNTED},
        reviewers=[str(name) for name in listed(answers.get("reviewers"))[:MOST_ROWS]],
        time=duration(seconds),
        per_hour=number(answers.get("found_per_hour")),
        strategies=_strategies(answers),
        agreement=[_agreement(table(pair)) for pair in listed(review.get("agreement"))[:MOST_ROWS]],
        figures=_figures(table(review.get("figures"))),
        correlation=number(ranking.get("correlation")),
        **{key: int(number(ranking.get(key)) or 0) for key in ("common", "top", "kept")},
        rose=[
            (str(each.get("item", "")), int(now["before"]), int(now["after"]))
            for each in map(table, listed(ranking.get("rose"))[:MOST_ROWS])
            if {"before", "after"} <= (now := numbers(each)).keys()
        ],
    )


def _strategies(answers: Json) -> list[tuple[str, int, int]]:
    rows = list(table(answers.get("by_strategy")).items())[:MOST_ROWS]
    found = [(str(name), numbers(counts)) for name, counts in rows]
    return [
        (name, int(counts.get("answers", 0)), int(counts.get("positive", 0)))
        for name, counts in found
    ]


def _agreement(pair: Json) -> str:
    names = " and ".join(str(name) for name in listed(pair.get("reviewers"))[:2])
    both, agreed, kappa = (number(pair.get(key)) for key in ("items", "agreed", "kappa"))
    told = f"{names} agree on {agreed or 0:.0f} of {both or 0:.0f} items"
    return told if kappa is None else f"{told}; Cohen's kappa {kappa:.2f}"


def _figures(stored: Json) -> list[tuple[str, str, str]]:
    """Return label, value before and value after of each figure that one of the runs has."""
    rows = []
    for name, pair in list(stored.items())[:MOST_ROWS]:
        cells = []
        for when in ("before", "after"):
            figure = read_figure(name, table(table(pair).get(when)))
            cells.append("-" if not figure.is_known else words.cell_text(figure))
        if cells != ["-", "-"]:
            rows.append((entry(name).label, *cells))
    return [(label, before, after) for label, before, after in rows]
