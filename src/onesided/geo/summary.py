"""What the map found, in numbers with intervals and with what they rest on."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from onesided.core.errors import DataError
from onesided.engine.checkpoint import replacing
from onesided.geo.table import MapTable
from onesided.metrics.pu import PUEvaluation, evaluate_pu
from onesided.metrics.truth import truth_metrics
from onesided.priors import bbe
from onesided.run.folder import csv_text

FROM_SCORES = (
    "The share of damaged buildings among the unmarked comes from the same held-out scores "
    "(best bin estimate); it assumes that the highest scores are all damaged."
)
METRIC_LABELS = {
    "oa": "overall accuracy",
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "auc": "AUC",
}


@dataclass(frozen=True)
class Line:
    """One number of the summary."""

    figure: str
    value: float | None
    low: float | None = None
    high: float | None = None
    rests_on: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the line as text."""
        numbers = (self.value, self.low, self.high)
        return (self.figure, *("" if n is None else f"{n:.6g}" for n in numbers), self.rests_on)


@dataclass(frozen=True)
class Share:
    """Share of damaged buildings among the unmarked."""

    value: float
    low: float | None
    high: float | None
    rests_on: str


@dataclass(frozen=True)
class Summary:
    """All numbers, and what should not be missed."""

    lines: tuple[Line, ...]
    degenerate: str | None
    warnings: tuple[str, ...]

    def value(self, figure: str) -> float | None:
        """Return a number by its name."""
        return next(line.value for line in self.lines if line.figure == figure)


def summarise(
    table: MapTable,
    *,
    prior: float | None = None,
    truth: Mapping[str, int] | None = None,
    unseen: bool = False,
) -> Summary:
    """Return what a map says, and how far to trust it.

    Args:
        table: The map.
        prior: Share of damaged among the unmarked where somebody knows it.
        truth: Class of some buildings by name, for reporting only.
        unseen: Whether the model was trained elsewhere, so that every building is held out.
    """
    out = table.scored & (table.held_out | unseen)
    positive, unlabelled = table.scores[out & table.marked], table.scores[out & ~table.marked]
    counts = _counts(table)
    checks = _truth_lines(table, truth) if truth is not None else []
    if not len(positive) or not len(unlabelled):
        return Summary((*counts, *checks), None, ())
    share = _share(positive, unlabelled, prior)
    evaluation = evaluate_pu(
        positive,
        unlabelled,
        threshold=table.threshold,
        scenario="single-set",
        prior=share.value if share else None,
        prior_interval=(share.low, share.high)
        if share and share.low is not None and share.high is not None
        else None,
        labelled_share=float(table.marked[table.scored].mean()),
    )
    lines = (*counts, *_share_lines(table, share), *_figures(evaluation, share), *checks)
    return Summary(lines, evaluation.degenerate, evaluation.warnings)


def _counts(table: MapTable) -> list[Line]:
    decisions = Counter(
        word for word, marked in zip(table.decisions, table.marked, strict=True) if not marked
    )
    skipped = Counter(table.reasons.values())
    return [
        Line("buildings", len(table)),
        Line("marked", int(table.marked.sum())),
        Line("marked, held out", int((table.marked & table.held_out).sum())),
        Line("unmarked, called positive", decisions["positive"]),
        Line("unmarked, called negative", decisions["negative"]),
        Line("threshold", table.threshold, rests_on="a score above it means positive"),
        Line("skipped", len(table.reasons)),
        *(Line(f"skipped: {why}", count) for why, count in skipped.most_common(20)),
    ]


def _share(positive: np.ndarray, unlabelled: np.ndarray, prior: float | None) -> Share | None:
    if prior is not None:
        return Share(prior, None, None, "The share was given.")
    estimate = bbe(positive, unlabelled)
    if not 0 < estimate.value < 1:
        return None
    return Share(estimate.value, estimate.low, estimate.high, FROM_SCORES)


def _share_lines(table: MapTable, share: Share | None) -> list[Line]:
    if share is None:
        why = "Not estimated: the held-out scores do not separate."
        return [Line("damaged among the unmarked, share", None, rests_on=why)]
    marked = float(table.marked[table.scored].mean())

    def of_all(value: float | None) -> float | None:
        return None if value is None else marked + (1 - marked) * value

    return [
        Line("damaged among the unmarked, share", share.value, share.low, share.high,
             share.rests_on),
        Line("damaged among all, share", of_all(share.value), of_all(share.low),
             of_all(share.high), share.rests_on + " Every marked building counts as damaged."),
    ]  # fmt: skip


def _figures(evaluation: PUEvaluation, share: Share | None) -> list[Line]:
    shown = ("recall", "share_positive", "precision", "f1", "proxy_auc", "auc")
    lines = []
    for name in shown:
        figure = evaluation.figures[name]
        line = Line(name, figure.value, figure.low, figure.high, figure.assumes)
        if share and share.rests_on == FROM_SCORES and name in ("precision", "f1", "auc"):
            assumes = figure.assumes.replace(", an estimate independent of these scores", "")
            line = replace(line, rests_on=f"{assumes} {FROM_SCORES}")
        lines.append(line)
    return lines


def _truth_lines(table: MapTable, truth: Mapping[str, int]) -> list[Line]:
    classes = np.array([truth.get(name, -1) for name in table.buildings.names])
    known = (classes >= 0) & table.scored & ~table.marked
    if not known.any():
        raise DataError(
            f"None of the {len(truth)} ids with a true label is an unmarked building with a "
            f"score. The buildings have ids such as '{table.buildings.names[0]}'."
        )
    parts = {
        "truth": (known, "All unmarked buildings whose true label is listed."),
        "truth, held-out places": (
            known & table.held_out,
            "Those of them in neighbourhoods that were not trained on.",
        ),
    }
    lines = []
    for what, (rows, rests_on) in parts.items():
        if not rows.any():
            continue
        metrics = truth_metrics(classes[rows], table.scores[rows], threshold=table.threshold)
        lines.append(Line(f"{what}: buildings", int(rows.sum()), rests_on=rests_on))
        for key, value in metrics.to_json().items():
            lines.append(Line(f"{what}: {METRIC_LABELS[key]}", value, rests_on=rests_on))
    return lines


def write_summary(lines: Sequence[Line], path: Path) -> None:
    """Write the summary as CSV."""
    columns = ("figure", "value", "low", "high", "rests on")
    with replacing(path) as file:
        file.write(csv_text(columns, (line.cells() for line in lines)).encode())
