"""The plots of a page with their captions: scores, map of items, curves of training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from onesided.metrics.stored import number, table
from onesided.pages.render import render, visible
from onesided.report import figures
from onesided.report.runfiles import RunFiles

# Together with the size of a thumbnail, this keeps the page under 5 MB for any run.
MOST_CURVES = 12


@dataclass(frozen=True)
class Plot:
    """A drawing with its words; `key` pairs its signs with what they stand for."""

    title: str
    note: str
    svg: Markup
    key: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Described:
    """Title and note above a curve."""

    title: str
    note: str = ""


SHARE_POSITIVE = Described("Share of the pool called positive", "On held-out items of the pool.")
PROXY_AUC = Described("Proxy AUC", "Held-out positives against held-out pool; 50% is chance.")


def score_plots(run: RunFiles) -> Markup:
    """Return the histogram of scores and the map of items."""
    plots = [plot for plot in (_histogram(run), _scatter(run)) if plot is not None]
    return render("report/web/scores.html", plots=plots)


def _histogram(run: RunFiles) -> Plot | None:
    if run.ranking is None:
        return None
    threshold = number(run.result.get("threshold"))
    unlabelled, positive = run.ranking.scores, run.positive_scores
    said = [
        f"Half of the {len(unlabelled):,} unlabelled items score below {np.median(unlabelled):.3f}."
    ]
    key = [("unlabelled", "unlabelled items")]
    if positive is not None:
        # Without figures on held-out items nothing was held out.
        held_out = run.result.get("pu") is not None
        kind, where = ("held-out", "not trained on") if held_out else ("labelled", "trained on")
        said.append(
            f"Half of the {len(positive):,} {kind} positives, below {np.median(positive):.3f}."
        )
        key.append(("positive", f"positives {where}"))
    if threshold is not None:
        said.append(f"Items above {threshold:.3g} are called positive.")
        key.append(("threshold", f"threshold {threshold:.3g}: above it, called positive"))
    svg = figures.histogram(
        positive, unlabelled, name="scores", description=" ".join(said), threshold=threshold
    )
    note = "Share of each group per score; the scale is compressed so that small shares show."
    return Plot("Scores", note, svg, key)


def _scatter(run: RunFiles) -> Plot | None:
    if run.embedding is None or not run.embedding.points.size:
        return None
    count = len(run.embedding.points)
    said = f"{count:,} items as points in a plane; items that look alike to the model are close."
    svg = figures.scatter(run.embedding, name="embedding", description=said)
    key = [
        ("dot", "unlabelled"),
        ("ring", "unlabelled, called positive"),
        ("triangle", "labelled positive"),
    ]
    note = "Close together means alike to the model (t-SNE); the axes mean nothing."
    return Plot("Items as the model sees them", note, svg, key)


def curves(run: RunFiles) -> Markup:
    """Return what was logged after every epoch, as curves."""
    log = run.epochs
    shares = [epoch.share_positive for epoch in log]
    separation = [
        _curve(run, SHARE_POSITIVE, "share", shares, share=True),
        _curve(run, PROXY_AUC, "proxy-auc", [epoch.proxy_auc for epoch in log], share=True),
    ]
    groups = {
        "Does it separate?": separation,
        "Losses": _logged(run, "loss", [epoch.loss for epoch in log]),
        "Inside the method": _logged(run, "watched", [epoch.watched for epoch in log]),
    }
    shown = {title: list(filter(None, plots)) for title, plots in groups.items() if any(plots)}
    if not shown:
        return Markup()
    stages = list(dict.fromkeys(epoch.stage for epoch in log))
    return render("report/web/curves.html", stages=stages, groups=shown)


def _logged(run: RunFiles, kind: str, entries: list[Mapping[str, float]]) -> list[Plot | None]:
    names = list(dict.fromkeys(name for entry in entries for name in entry))[:MOST_CURVES]
    return [
        _curve(run, described(run, name), f"{kind}-{place}", [entry.get(name) for entry in entries])
        for place, name in enumerate(names)
    ]


def described(run: RunFiles, name: str) -> Described:
    """Return how the method described a number it logged, or the number's name."""
    entry = table(table(run.result.get("logs")).get(name))
    words = name.replace("_", " ").strip()
    title = entry.get("title") or words[:1].upper() + words[1:]
    return Described(str(title), str(entry.get("note", "")))


def _curve(
    run: RunFiles,
    described: Described,
    anchor: str,
    values: Sequence[float | None],
    *,
    share: bool = False,
) -> Plot | None:
    known = [value for value in values if value is not None]
    if len(known) < 2:  # one point is no curve
        return None
    prior = (
        number(table(run.result.get("prior")).get("value")) if described is SHARE_POSITIVE else None
    )
    stages = [epoch.stage for epoch in run.epochs]
    starts = [n + 1 for n in range(1, len(stages)) if stages[n] != stages[n - 1]]
    svg = figures.curve(
        values,
        name=anchor,
        description=f"{visible(described.title, 60)}: first {known[0]:.3g}, last {known[-1]:.3g}, "
        f"lowest {min(known):.3g}, highest {max(known):.3g}, in {len(values)} epochs.",
        reference=prior,
        stage_starts=starts,
        percent=share,
    )
    last = f"{100 * known[-1]:.3g}%" if share else f"{known[-1]:.3g}"
    dashed = "Dashed: the class prior." if prior is not None else ""
    note = " ".join(filter(None, (described.note, f"Ends at {last}.", dashed)))
    return Plot(described.title, note, svg)
