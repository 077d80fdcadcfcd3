"""One self-contained HTML page about a finished run, for people who were not there.

Every piece is a function from the run's files to HTML, and returns "" when its files are
missing: then its heading does not appear either.
"""

import os
from dataclasses import replace
from html import escape
from importlib.resources import files as package_files
from pathlib import Path
from string import Template

import numpy as np

from onesided.core.errors import DataError
from onesided.metrics.stored import read_figures
from onesided.report import figures, tables
from onesided.report.plots import curves, score_plots
from onesided.report.runfiles import Json, RunFiles, Thumbnails, read_run, table
from onesided.report.smallprint import MOST_ROWS, about, listed, skipped
from onesided.report.truth import truth
from onesided.report.wording import THUMBNAIL_WORDS, headline, lede, shown

# Together with the size of a thumbnail, this keeps the page under 5 MB for any run.
MOST_THUMBNAILS = 16

SMALL_IMAGE = 64
"""Pixels; up to this size enlarging keeps the pixels sharp, as people who know them expect."""


def write_report(run: Path, *, labelled: Json | None = None) -> Path:
    """Write `report.html` into the folder of a finished run and return its path.

    The page is written under a temporary name and renamed, so that a full disk or a
    kill leaves the old page, or none, but never half of one.

    Args:
        run: The folder.
        labelled: Figures on items of the pool whose true class became known later, as
            `onesided.run.evaluate.compare_with_labels` returns them.
    """
    target, temporary = run / "report.html", run / f".report.html.{os.getpid()}"
    page = render(replace(read_run(run), labelled=labelled or {})).encode("utf-8")
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
    found = read_figures(run.result)
    parts = {
        "trust": ("How far to trust it", tables.cards(found)),
        "truth": ("Estimate and truth", truth(run, found)),
        "comparison": ("Comparison", tables.comparison(run)),
        "items": ("What it found", _galleries(run)),
        "scores": ("How it decides", score_plots(run)),
        "training": ("How training went", curves(run)),
        "skipped": ("Files that were skipped", skipped(run)),
        "run": ("About this run", about(run)),
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
    texts = [*run.notes, *listed(run.result, "warnings"), *listed(run.result, "notices")]
    if not texts:
        return ""
    rows = [shown(text, 500) for text in texts[:MOST_ROWS]]
    if len(texts) > MOST_ROWS:
        rows.append(f"and {len(texts) - MOST_ROWS:,} more, in result.json")
    items = "".join(f"<li>{row}</li>" for row in rows)
    return (
        '<section class="warnings" aria-labelledby="warnings">'
        f'<h2 id="warnings">Worth knowing</h2><ul>{items}</ul></section>'
    )


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
