"""What the map found, in numbers with intervals and with what they rest on."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onesided.core.errors import DataError
from onesided.core.leaning import OPTIMISTIC, OWN_SCORES, leaning_of
from onesided.geo.output.table import MapTable
from onesided.metrics.alarm import EVERYTHING, NOTHING, degenerate
from onesided.metrics.pu import PUEvaluation, evaluate_pu
from onesided.metrics.truth import truth_metrics
from onesided.run.own_scores import READ_OFF, Untold, own_prior, told_by
from onesided.run.prior import PriorUsed
from onesided.storage.atomic import write_text
from onesided.storage.table import csv_text

NOT_ESTIMATED = "Not estimated"
FEW = 20
"""Buildings of which all may be damaged without a fault of the model."""
METRIC_LABELS = {
    "oa": "overall accuracy",
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "auc": "AUC",
}


@dataclass(frozen=True)
class Line:
    """One number of the summary.

    Attributes:
        figure: Its name.
        value: None where it cannot be told; `rests_on` tells why.
        low: Lower end of the interval.
        high: Upper end of the interval.
        rests_on: What must be true for it to mean anything.
        leaning: "optimistically" or "pessimistically" where it leans, otherwise nothing.
    """

    figure: str
    value: float | None
    low: float | None = None
    high: float | None = None
    rests_on: str = ""
    leaning: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the line as text."""
        numbers = (self.value, self.low, self.high)
        return (self.figure, *("" if n is None else f"{n:.6g}" for n in numbers), self.rests_on)


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
    prior: PriorUsed | None = None,
    truth: Mapping[str, int] | None = None,
    unseen: bool = False,
) -> Summary:
    """Return what a map says, and how far to trust it.

    Args:
        table: The map.
        prior: Share of damaged among the unmarked; None reads it off the held-out scores.
        truth: Class of some buildings by name, for reporting only.
        unseen: Whether the model was trained elsewhere, so that every building is held out.
    """
    out = table.scored & (table.held_out | unseen)
    positive, unlabelled = table.scores[out & table.marked], table.scores[out & ~table.marked]
    counts = _counts(table)
    checks = _truth_lines(table, truth) if truth is not None else []
    if not len(positive) or not len(unlabelled):
        return Summary((*counts, *checks), *_alarm(table, unseen=unseen))
    share = prior or own_prior(positive, unlabelled)
    known = share if isinstance(share, PriorUsed) else None
    evaluation = evaluate_pu(
        positive,
        unlabelled,
        threshold=table.threshold,
        scenario="single-set",
        prior=known.value if known else None,
        prior_interval=known.interval if known else None,
        labelled_share=float(table.marked[table.scored].mean()),
    )
    figures = _figures(told_by(evaluation, share))
    lines = (*counts, *_share_lines(table, share), *figures, *checks)
    return Summary(lines, evaluation.degenerate, evaluation.warnings)


def _alarm(table: MapTable, *, unseen: bool) -> tuple[str | None, tuple[str, ...]]:
    """Return what decisions alone tell where no marked building is held out: alarm, warnings.

    A place where a model from elsewhere finds nothing may be sound, and a handful of buildings
    may all be damaged: that is told, no alarm.
    """
    unmarked = table.scores[table.scored & ~table.marked]
    if not len(unmarked):
        return None, ()
    share = float((unmarked > table.threshold).mean())
    if unseen and share < NOTHING:
        told = (
            f"{'None' if share == 0 else 'Hardly any'} of {len(unmarked)} buildings is called "
            "damaged. Either the place is sound, or the model does not know such images."
        )
        return None, (told,)
    if unseen and len(unmarked) < FEW and share > EVERYTHING:
        told = (
            f"All {len(unmarked)} buildings are called damaged. Look at them: so few do not tell "
            "whether the model knows such images."
        )
        return None, (told,)
    return degenerate(share), ()


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


def _share_lines(table: MapTable, share: PriorUsed | Untold) -> list[Line]:
    unmarked = "damaged among the unmarked, share"
    if isinstance(share, Untold):
        return [Line(unmarked, None, rests_on=f"{NOT_ESTIMATED}: it {share.words}")]
    own = share.origin == OWN_SCORES
    leaning = OPTIMISTIC if own else ""
    if own:
        rests_on = f"It is {READ_OFF}. The truth may also lie below the interval."
    elif share.interval is None:
        rests_on = "The share was given."
    else:
        rests_on = f"The share was estimated by {share.origin} before training."
    marked = float(table.marked[table.scored].mean())

    def of_all(value: float | None) -> float | None:
        return None if value is None else marked + (1 - marked) * value

    return [
        Line(unmarked, share.value, share.low, share.high, rests_on, leaning),
        Line("damaged among all, share", of_all(share.value), of_all(share.low),
             of_all(share.high), f"{rests_on} Every marked building counts as damaged.", leaning),
    ]  # fmt: skip


def _figures(evaluation: PUEvaluation) -> list[Line]:
    shown = ("recall", "share_positive", "precision", "f1", "proxy_auc", "auc")
    found = [evaluation.figures[name] for name in shown]
    return [
        Line(each.name, each.value, each.low, each.high, each.assumes, leaning_of(each.label))
        for each in found
    ]


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
    write_text(path, csv_text(columns, (line.cells() for line in lines)))
