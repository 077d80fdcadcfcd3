"""The figures of a map, with intervals and assumptions."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool

from onesided.core.errors import DataError
from onesided.core.folds import GroupsOfBoth
from onesided.geo.output.table import MapTable
from onesided.geo.scene.halving import middles, with_middle_for_none
from onesided.geo.scene.holdout import neighbourhoods
from onesided.metrics.alarm import EVERYTHING, NOTHING, Evidence, degenerate
from onesided.metrics.figure import Figure
from onesided.metrics.pu import population_prior
from onesided.metrics.registry import assumption, entry, shown
from onesided.metrics.selection import Optimism
from onesided.metrics.truth import truth_metrics
from onesided.run.prior import PriorUsed, own_prior
from onesided.run.scored import evaluate_by
from onesided.storage.atomic import write_text
from onesided.storage.table import csv_text

FEW = 20
"""So few buildings may all be damaged; no fault of the model."""
COLUMNS = ("figure", "part", "label", "value", "low", "high", "bias", "missing", "assumes")
"""Of `summary.csv`."""
LISTED_HELD_OUT = "true labels, held-out places"
"""The buildings whose class is known, and that were not trained on."""


@dataclass(frozen=True)
class Summary:
    """All figures, the alarm if the model is of no use, and warnings."""

    figures: tuple[Figure, ...]
    degenerate: str | None
    warnings: tuple[str, ...]

    def figure(self, name: str, part: str = "") -> Figure:
        """Return a figure by its name and its part of the buildings."""
        return next(each for each in self.figures if (each.name, each.part) == (name, part))

    def to_json(self) -> list[dict[str, Any]]:
        """Return the figures as plain values."""
        return [figure.to_json() for figure in self.figures]


def summarise(
    table: MapTable,
    *,
    prior: PriorUsed | None = None,
    truth: Mapping[str, int] | None = None,
    unseen: bool = False,
    optimism: Optimism | None = None,
) -> Summary:
    """Return the figures of a map.

    Args:
        table: The map.
        prior: Share of damaged among the unmarked; None estimates it from held-out scores.
        truth: Class of some buildings by name, for reporting only.
        unseen: Whether the model was trained elsewhere, so that every building is held out.
        optimism: By how much figures are too high because the model was chosen by them.
    """
    out = table.scored & (table.counted | unseen)
    positive, unlabelled = table.scores[out & table.marked], table.scores[out & table.open]
    counts = _counts(table)
    checks: list[Figure] = []
    told: tuple[str, ...] = ()
    if truth is not None:
        checks, told = _true_figures(table, truth, unseen=unseen)
    if not len(positive) or not len(unlabelled):
        alarm, warnings = _alarm(table, unseen=unseen)
        return Summary((*counts, *checks), alarm, (*warnings, *told))
    marked = float(table.marked[table.scored].mean())
    evaluation = evaluate_by(
        prior or own_prior(positive, unlabelled),
        positive,
        unlabelled,
        threshold=table.threshold,
        scenario="single-set",
        labelled_share=marked,
        optimism=optimism,
        groups=_neighbourhoods_of_both(table, out),
        of_pool=bool((unseen | table.held_out)[table.scored].all()),
    )
    found = {**evaluation.figures, **_share_of_all(evaluation.figures["prior"], marked)}
    figures = [found[name] for name in shown("map") if name in found]
    warnings = (*evaluation.warnings, *told)
    return Summary((*counts, *figures, *checks), evaluation.degenerate, warnings)


def _neighbourhoods_of_both(table: MapTable, out: Bool[np.ndarray, "n"]) -> GroupsOfBoth | None:
    """Return the neighbourhoods of marked and of open buildings; None where places are unknown."""
    places = middles(table.buildings.geometries[out])
    if not np.isfinite(places).any():
        return None
    group = neighbourhoods(with_middle_for_none(places))
    return group[table.marked[out]], group[table.open[out]]


def _alarm(table: MapTable, *, unseen: bool) -> tuple[str | None, tuple[str, ...]]:
    """Return alarm and warnings from the decisions alone, where no marked building is held out.

    Where a model from elsewhere finds nothing, the place may be undamaged, and a handful of
    buildings may all be damaged: both give a warning and no alarm.
    """
    unmarked = table.scores[table.scored & table.open]
    if not len(unmarked):
        return None, ()
    share = float((unmarked > table.threshold).mean())
    if unseen and share < NOTHING:
        warning = (
            f"{'None' if share == 0 else 'Hardly any'} of {len(unmarked)} buildings is called "
            "damaged. Either the place is undamaged, or the model was not trained on such images."
        )
        return None, (warning,)
    if unseen and len(unmarked) < FEW and share > EVERYTHING:
        warning = (
            f"All {len(unmarked)} buildings are called damaged. Check them: so few do not show "
            "whether the model works on such images."
        )
        return None, (warning,)
    return degenerate(Evidence(share)), ()


def _counts(table: MapTable) -> list[Figure]:
    decisions = Counter(
        word for word, is_open in zip(table.decisions, table.open, strict=True) if is_open
    )
    skipped = Counter(table.reasons.values())
    return [
        Figure("buildings", len(table)),
        Figure("marked", int(table.marked.sum())),
        Figure("marked_held_out", int((table.marked & table.held_out).sum())),
        *([] if table.rejected is None else [Figure("rejected", int(table.rejected.sum()))]),
        Figure("called_positive", decisions["positive"]),
        Figure("called_negative", decisions["negative"]),
        Figure("threshold", table.threshold),
        Figure("skipped", len(table.reasons)),
        *(Figure("skipped", count, part=why) for why, count in skipped.most_common(20)),
    ]


def _share_of_all(prior: Figure, marked: float) -> dict[str, Figure]:
    """Return the share of damaged among all buildings from that among the unmarked."""
    if prior.value is None:
        return {}
    value, low, high = (
        None if share is None else population_prior(share, marked)
        for share in (prior.value, prior.low, prior.high)
    )
    assumes = (*prior.assumes, "marked_positive")
    name = "positive_all"
    return {name: replace(prior, name=name, value=value, low=low, high=high, assumes=assumes)}


def _true_figures(
    table: MapTable, truth: Mapping[str, int], *, unseen: bool
) -> tuple[list[Figure], tuple[str, ...]]:
    """Return figures on listed buildings that were not trained on, and who was left out."""
    classes = np.array([truth.get(name, -1) for name in table.buildings.names])
    known = (classes >= 0) & table.scored & ~table.marked
    if not known.any():
        raise DataError(
            f"None of the {len(truth)} ids with a true label is an unmarked building with a "
            f"score. The buildings have ids such as '{table.buildings.names[0]}'."
        )
    rows = known & (table.counted | unseen)
    left_out = int((known & ~rows).sum())
    told: tuple[str, ...] = ()
    if left_out:
        told = (
            f"{left_out} of {known.sum()} unmarked buildings with a true label were trained on, or "
            "look the same as another; they are left out of the figures on true labels.",
        )
    if not rows.any():
        return [], told
    metrics = truth_metrics(classes[rows], table.scores[rows], threshold=table.threshold)
    values = {"known_class": int(rows.sum()), **metrics.to_json()}
    return [
        Figure(name, value, assumes=("listed_held_out",), part=LISTED_HELD_OUT)
        for name, value in values.items()
    ], told


def label(figure: Figure) -> str:
    """Return the label of a figure on a map: `skipped: far away`."""
    words = entry(figure.name)
    if figure.part:
        return f"{words.label}: {figure.part}"
    return words.on_map or words.label


def write_summary(summary: Summary, path: Path) -> None:
    """Write the summary as CSV."""
    write_text(path, csv_text(COLUMNS, map(_cells, summary.figures)))


def _cells(figure: Figure) -> tuple[str, ...]:
    numbers = (figure.told, figure.low, figure.high)
    return (
        figure.name,
        figure.part,
        label(figure),
        *("" if number is None else f"{number:.6g}" for number in numbers),
        figure.bias or "",
        figure.reason or "",
        " ".join(assumption(key).text for key in figure.assumes),
    )
