"""The plots of a page with their captions: scores, map of items, curves of training."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np

from onesided.report import figures
from onesided.report.runfiles import RunFiles, number, table
from onesided.report.wording import CURVE_NOTES, curve_title, shown

# Together with the size of a thumbnail, this keeps the page under 5 MB for any run.
MOST_CURVES = 12

SWATCH = {
    name: f'<svg viewBox="0 0 16 12" aria-hidden="true">{shape}</svg>'
    for name, shape in {
        "unlabelled": '<path d="M0 1H16V11H0Z" fill="var(--muted)" opacity=".45"/>',
        "positive": '<path d="M0 1H16V11H0Z" fill="var(--known)" opacity=".55"/>',
        "threshold": '<path d="M0 6H6M10 6H16" stroke="var(--ink)" stroke-width="2"/>',
        "dot": '<circle cx="8" cy="6" r="3" fill="var(--muted)" opacity=".6"/>',
        "ring": '<circle cx="8" cy="6" r="4" fill="none" stroke="var(--accent)"/>',
        "triangle": '<path d="M8 1 13 11H3Z" fill="var(--known)"/>',
    }.items()
}


def score_plots(run: RunFiles) -> str:
    """Return the histogram of scores and the map of items."""
    plots = f"{_histogram(run)}{_scatter(run)}"
    return f'<div class="pair">{plots}</div>' if plots else ""


def _histogram(run: RunFiles) -> str:
    if run.ranking is None:
        return ""
    threshold = number(run.result.get("threshold"))
    unlabelled, positive = run.ranking.scores, run.positive_scores
    told = [f"Half of the {len(unlabelled):,} unlabelled items score below {_median(unlabelled)}."]
    key = [(SWATCH["unlabelled"], "unlabelled items")]
    if positive is not None:
        # Without figures on held-out items nothing was held out.
        held_out = run.result.get("pu") is not None
        kind, words = (
            ("held-out", "kept out of training") if held_out else ("labelled", "trained on")
        )
        told.append(f"Half of the {len(positive):,} {kind} positives, below {_median(positive)}.")
        key.append((SWATCH["positive"], f"positives {words}"))
    if threshold is not None:
        told.append(f"Items above {threshold:.3g} are called positive.")
        key.append((SWATCH["threshold"], f"threshold {threshold:.3g}: above it, called positive"))
    svg = figures.histogram(
        positive, unlabelled, name="scores", description=" ".join(told), threshold=threshold
    )
    note = "Share of each group per score; the scale is compressed so that small shares show."
    return _figure("Scores", svg, note=note, key=key)


def _median(scores: np.ndarray) -> str:
    return f"{np.median(scores):.3f}"


def _scatter(run: RunFiles) -> str:
    if run.embedding is None or not run.embedding.points.size:
        return ""
    count = len(run.embedding.points)
    told = f"{count:,} items as points in a plane; items that look alike to the model are close."
    svg = figures.scatter(run.embedding, name="embedding", description=told)
    key = [
        (SWATCH["dot"], "unlabelled"),
        (SWATCH["ring"], "unlabelled, called positive"),
        (SWATCH["triangle"], "labelled positive"),
    ]
    note = "Close together means alike to the model (t-SNE); the axes mean nothing."
    return _figure("Items as the model sees them", svg, note=note, key=key)


def _figure(title: str, svg: str, *, note: str = "", key: Sequence[tuple[str, str]] = ()) -> str:
    explained = f"<span>{note}</span>" if note else ""
    entries = "".join(f"<li>{swatch}{escape(label)}</li>" for swatch, label in key)
    listed = f'<ul class="key">{entries}</ul>' if key else ""
    return (
        f"<figure><figcaption><b>{escape(title)}</b>{explained}{listed}</figcaption>{svg}</figure>"
    )


def curves(run: RunFiles) -> str:
    """Return what was logged after every epoch: merit, losses, and what the method watches."""
    log = run.epochs
    merit = [
        _curve(run, "share_positive", "share", [epoch.share_positive for epoch in log]),
        _curve(run, "proxy_auc", "proxy-auc", [epoch.proxy_auc for epoch in log]),
    ]
    losses = [
        _curve(run, name, f"loss-{place}", [epoch.loss.get(name) for epoch in log])
        for place, name in enumerate(_names(epoch.loss for epoch in log))
    ]
    watched = [
        _curve(run, name, f"watched-{place}", [epoch.watched.get(name) for epoch in log])
        for place, name in enumerate(_names(epoch.watched for epoch in log))
    ]
    stages = list(dict.fromkeys(shown(epoch.stage, 60) for epoch in log))
    note = f"Dotted lines divide the stages of training: {', '.join(stages)}."
    groups = {"Does it separate?": merit, "Losses": losses, "Inside the method": watched}
    told = f'<p class="note">{note}</p>' if len(stages) > 1 else ""
    return told + "".join(
        f'<div class="part"><h3>{title}</h3><div class="curves">{"".join(plots)}</div></div>'
        for title, plots in groups.items()
        if any(plots)
    )


def _names(entries: Iterable[Mapping[str, float]]) -> list[str]:
    seen = dict.fromkeys(name for entry in entries for name in entry)
    return list(seen)[:MOST_CURVES]


def _curve(run: RunFiles, name: str, anchor: str, values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    title = curve_title(name)
    share = name == "share_positive"
    prior = number(table(run.result.get("prior")).get("value")) if share else None
    stages = [epoch.stage for epoch in run.epochs]
    starts = [n + 1 for n in range(1, len(stages)) if stages[n] != stages[n - 1]]
    svg = figures.curve(
        values,
        name=anchor,
        description=f"{title}: first {known[0]:.3g}, last {known[-1]:.3g}, "
        f"lowest {min(known):.3g}, highest {max(known):.3g}, in {len(values)} epochs.",
        reference=prior,
        stage_starts=starts,
        percent=share,
    )
    last = f"{100 * known[-1]:.3g}%" if share else f"{known[-1]:.3g}"
    dashed = "Dashed: the class prior." if prior is not None else ""
    note = " ".join(filter(None, (CURVE_NOTES.get(name, ""), f"Ends at {last}.", dashed)))
    return _figure(title, svg, note=note)
