"""One self-contained HTML page about a finished run, for people who were not there.

Every piece is a function from the run's files to HTML, and returns "" when its files are
missing: then its heading does not appear either.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files as package_files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from onesided.core.errors import DataError
from onesided.report import figures, tables
from onesided.report.runfiles import (
    RunFiles,
    Thumbnails,
    estimates,
    number,
    read_run,
    table,
)
from onesided.report.wording import THUMBNAIL_WORDS, curve_title, headline, lede, shown

# Together with the size of a thumbnail, these keep the page under 5 MB for any run.
MOST_THUMBNAILS = 16
MOST_CURVES = 12

SMALL_IMAGE = 64
"""Pixels; up to this size enlarging keeps the pixels sharp, as people who know them expect."""

SWATCH = {
    name: f'<svg viewBox="0 0 16 12" aria-hidden="true">{shape}</svg>'
    for name, shape in {
        "unlabelled": '<path d="M0 1H16V11H0Z" fill="var(--muted)" opacity=".45"/>',
        "positive": '<path d="M0 1H16V11H0Z" fill="var(--accent)" opacity=".55"/>',
        "threshold": '<path d="M0 6H6M10 6H16" stroke="var(--muted)" stroke-width="2"/>',
        "dot": '<circle cx="8" cy="6" r="3" fill="var(--muted)" opacity=".6"/>',
        "ring": '<circle cx="8" cy="6" r="4" fill="none" stroke="var(--accent)"/>',
        "triangle": '<path d="M8 1 13 11H3Z" fill="var(--accent)"/>',
    }.items()
}


def write_report(run: Path) -> Path:
    """Write `report.html` into the folder of a finished run and return its path.

    The page is written under a temporary name and renamed, so that a full disk or a
    kill leaves the old page, or none, but never half of one.
    """
    target, temporary = run / "report.html", run / f".report.html.{os.getpid()}"
    page = render(read_run(run)).encode("utf-8")
    try:
        temporary.write_bytes(page)
        temporary.replace(target)
    except OSError as error:
        raise DataError(
            f"{target} cannot be written ({error.strerror}). "
            f"Make room or give write permission, then: onesided report {run}"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)
    return target


def render(run: RunFiles) -> str:
    """Return the page as HTML, the same text for the same files."""
    found = estimates(run.result.get("pu"))
    parts = {
        "trust": ("How far to trust it", tables.cards(run, found)),
        "truth": ("Against the truth", tables.truth(run)),
        "comparison": ("Comparison", tables.comparison(run)),
        "items": ("What it found", _galleries(run)),
        "scores": ("How it decides", _score_plots(run)),
        "training": ("How training went", _curves(run)),
        "run": ("About this run", tables.facts(run)),
    }
    present = {anchor: part for anchor, part in parts.items() if part[1]}
    name, method = shown(run.name), shown(run.result.get("method", "unknown method"))
    resources = package_files("onesided.report")
    return Template(resources.joinpath("page.html").read_text("utf-8")).substitute(
        title=f"{name}: onesided report",
        style=resources.joinpath("style.css").read_text("utf-8"),
        kicker=f"<b>onesided</b> report · <bdi>{name}</bdi> · {method}",
        headline=escape(headline(run, found)),
        lede=escape(lede(run, found)),
        alarm=_alarm(run),
        warnings=_warnings(run),
        contents="".join(
            f'<li><a href="#{key}">{part[0]}</a></li>' for key, part in present.items()
        ),
        sections="\n".join(
            f'<section aria-labelledby="{anchor}"><h2 id="{anchor}">{title}</h2>{body}</section>'
            for anchor, (title, body) in present.items()
        ),
    )


def _alarm(run: RunFiles) -> str:
    reason = table(run.result.get("pu")).get("degenerate")
    if not reason:
        return ""
    return (
        '<section class="alarm" aria-labelledby="alarm"><h2 id="alarm">Degenerate model</h2>'
        f"<p><strong>{shown(reason, 1000)}</strong></p>"
        "<p>What follows is shown to find the cause, not for use. What helps most often: look for "
        "wrong labels among the positives, train for more epochs, take another seed, or give "
        "the share of positives with <code>--prior</code>.</p></section>"
    )


def _warnings(run: RunFiles) -> str:
    texts = [*run.notes, *_listed(run, "warnings"), *_listed(run, "notices")]
    for item in _listed(run, "skipped"):
        name, reason = item if isinstance(item, list) and len(item) == 2 else (item, "was skipped")
        texts.append(f"{name} {reason}.")
    if not texts:
        return ""
    rows = [shown(text, 500) for text in texts[: tables.MOST_ROWS]]
    if len(texts) > tables.MOST_ROWS:
        rows.append(f"and {len(texts) - tables.MOST_ROWS:,} more, in result.json")
    items = "".join(f"<li>{row}</li>" for row in rows)
    return (
        '<section class="warnings" aria-labelledby="warnings">'
        f'<h2 id="warnings">Worth knowing</h2><ul>{items}</ul></section>'
    )


def _listed(run: RunFiles, key: str) -> list[Any]:
    value = run.result.get(key)
    return value if isinstance(value, list) else []


def _galleries(run: RunFiles) -> str:
    return "".join(_gallery(group, some) for group, some in run.thumbnails.items())


def _gallery(group: str, some: Thumbnails) -> str:
    title, note = THUMBNAIL_WORDS[group]
    items = "".join(
        _thumbnail(image, float(score), name)
        for image, score, name in zip(
            some.images[:MOST_THUMBNAILS], some.scores, some.names, strict=False
        )
    )
    return (
        f'<div class="part"><h3>{title}</h3><p class="note">{note}</p>'
        f'<ul class="thumbs">{items}</ul></div>'
    )


def _thumbnail(image: np.ndarray, score: float, name: str) -> str:
    picture = figures.thumbnail(image)
    small = ' class="tiny"' if max(picture.width, picture.height) <= SMALL_IMAGE else ""
    last_part = name.rstrip("/").rpartition("/")[2] or name
    return (
        f'<li><img{small} src="{picture.address}" width="{picture.width}" height="{picture.height}"'
        f' alt="{shown(name)}, score {score:.3f}"><span class="score">{score:.3f}</span>'
        f'<bdi title="{shown(name)}">{shown(last_part, 80)}</bdi></li>'
    )


def _score_plots(run: RunFiles) -> str:
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
        told.append(f"Half of the {len(positive):,} held-out positives, below {_median(positive)}.")
        key.append((SWATCH["positive"], "positives kept out of training"))
    if threshold is not None:
        key.append((SWATCH["threshold"], f"threshold {threshold:.3g}"))
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


def _curves(run: RunFiles) -> str:
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
    return _figure(title, svg, note="Dashed: the class prior." if prior is not None else "")
