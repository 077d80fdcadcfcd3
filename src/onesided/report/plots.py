"""The plots of a page with their captions: scores, map of items, curves of training."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from onesided.pages.render import render
from onesided.report import figures
from onesided.report.runfiles import RunFiles, number, table
from onesided.report.wording import visible

# Together with the size of a thumbnail, this keeps the page under 5 MB for any run.
MOST_CURVES = 12

Key = Sequence[tuple[str, str]]
"""Signs of a plot, as `figure.html` draws them, and what each stands for."""


@dataclass(frozen=True)
class Described:
    """Title and note above a curve."""

    title: str
    note: str = ""


SHARE_POSITIVE = Described("Share of the pool called positive", "On held-out items of the pool.")
PROXY_AUC = Described("Proxy AUC", "Held-out positives against held-out pool; 0.5 is chance.")


def score_plots(run: RunFiles) -> Markup:
    """Return the histogram of scores and the map of items."""
    plots = _histogram(run) + _scatter(run)
    return Markup('<div class="pair">{}</div>').format(plots) if plots else Markup()


def _histogram(run: RunFiles) -> Markup:
    if run.ranking is None:
        return Markup()
    threshold = number(run.result.get("threshold"))
    unlabelled, positive = run.ranking.scores, run.positive_scores
    told = [f"Half of the {len(unlabelled):,} unlabelled items score below {_median(unlabelled)}."]
    key = [("unlabelled", "unlabelled items")]
    if positive is not None:
        # Without figures on held-out items nothing was held out.
        held_out = run.result.get("pu") is not None
        kind, words = (
            ("held-out", "kept out of training") if held_out else ("labelled", "trained on")
        )
        told.append(f"Half of the {len(positive):,} {kind} positives, below {_median(positive)}.")
        key.append(("positive", f"positives {words}"))
    if threshold is not None:
        told.append(f"Items above {threshold:.3g} are called positive.")
        key.append(("threshold", f"threshold {threshold:.3g}: above it, called positive"))
    svg = figures.histogram(
        positive, unlabelled, name="scores", description=" ".join(told), threshold=threshold
    )
    note = "Share of each group per score; the scale is compressed so that small shares show."
    return _figure("Scores", note, svg, key)


def _median(scores: np.ndarray) -> str:
    return f"{np.median(scores):.3f}"


def _scatter(run: RunFiles) -> Markup:
    if run.embedding is None or not run.embedding.points.size:
        return Markup()
    count = len(run.embedding.points)
    told = f"{count:,} items as points in a plane; items that look alike to the model are close."
    svg = figures.scatter(run.embedding, name="embedding", description=told)
    key = [
        ("dot", "unlabelled"),
        ("ring", "unlabelled, called positive"),
        ("triangle", "labelled positive"),
    ]
    note = "Close together means alike to the model (t-SNE); the axes mean nothing."
    return _figure("Items as the model sees them", note, svg, key)


def _figure(title: str, note: str, plot: Markup, key: Key = ()) -> Markup:
    return render("report/web/figure.html", title=title, note=note, plot=plot, key=key)


def curves(run: RunFiles) -> Markup:
    """Return what was logged after every epoch: merit, losses, and what the method watches."""
    log = run.epochs
    merit = [
        _curve(run, SHARE_POSITIVE, "share", [epoch.share_positive for epoch in log], share=True),
        _curve(run, PROXY_AUC, "proxy-auc", [epoch.proxy_auc for epoch in log]),
    ]
    losses = [
        _curve(run, described(run, name), f"loss-{place}", [epoch.loss.get(name) for epoch in log])
        for place, name in enumerate(_names(epoch.loss for epoch in log))
    ]
    watched = [
        _curve(
            run,
            described(run, name),
            f"watched-{place}",
            [epoch.watched.get(name) for epoch in log],
        )
        for place, name in enumerate(_names(epoch.watched for epoch in log))
    ]
    groups = {"Does it separate?": merit, "Losses": losses, "Inside the method": watched}
    shown = [(title, list(filter(None, plots))) for title, plots in groups.items() if any(plots)]
    stages = list(dict.fromkeys(visible(epoch.stage, 60) for epoch in log))
    if not shown:
        return Markup()
    return render("report/web/curves.html", stages=stages, groups=shown)


def described(run: RunFiles, name: str) -> Described:
    """Return what the method said of a number it logged; its name where it said nothing."""
    entry = table(table(run.result.get("logs")).get(name))
    words = visible(name, 60).replace("_", " ").strip()
    title = entry.get("title") or words[:1].upper() + words[1:]
    return Described(visible(title, 60), visible(entry.get("note", "")))


def _names(entries: Iterable[Mapping[str, float]]) -> list[str]:
    seen = dict.fromkeys(name for entry in entries for name in entry)
    return list(seen)[:MOST_CURVES]


def _curve(
    run: RunFiles,
    described: Described,
    anchor: str,
    values: Sequence[float | None],
    *,
    share: bool = False,
) -> Markup:
    known = [value for value in values if value is not None]
    if not known:
        return Markup()
    prior = number(table(run.result.get("prior")).get("value")) if share else None
    stages = [epoch.stage for epoch in run.epochs]
    starts = [n + 1 for n in range(1, len(stages)) if stages[n] != stages[n - 1]]
    svg = figures.curve(
        values,
        name=anchor,
        description=f"{described.title}: first {known[0]:.3g}, last {known[-1]:.3g}, "
        f"lowest {min(known):.3g}, highest {max(known):.3g}, in {len(values)} epochs.",
        reference=prior,
        stage_starts=starts,
        percent=share,
    )
    last = f"{100 * known[-1]:.3g}%" if share else f"{known[-1]:.3g}"
    dashed = "Dashed: the class prior." if prior is not None else ""
    note = " ".join(filter(None, (described.note, f"Ends at {last}.", dashed)))
    return _figure(described.title, note, svg)
