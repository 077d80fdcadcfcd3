"""One self-contained HTML page about a finished run, for people who were not there.

Every piece is a function from the run's files to HTML, and returns "" when its files are
missing: then its heading does not appear either.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from markupsafe import Markup

from onesided.metrics.figure import Figure
from onesided.metrics.stored import read_figures
from onesided.pages.document import document
from onesided.report import tables
from onesided.report.gallery import galleries
from onesided.report.plots import curves, score_plots
from onesided.report.runfiles import Json, RunFiles, read_run, table
from onesided.report.smallprint import MOST_ROWS, about, listed, skipped
from onesided.report.truth import truth
from onesided.report.wording import headline, lede, visible
from onesided.storage.atomic import write_text


def write_report(run: Path, *, labelled: Json | None = None) -> Path:
    """Write `report.html` into the folder of a finished run and return its path.

    The page is written under a temporary name and renamed, so that a full disk or a
    kill leaves the old page, or none, but never half of one.

    Args:
        run: The folder.
        labelled: Figures on items of the pool whose true class became known later, as
            `onesided.run.evaluate.compare_with_labels` returns them.
    """
    target = run / "report.html"
    write_text(target, render(replace(read_run(run), labelled=labelled or {})))
    return target


@dataclass(frozen=True)
class Section:
    """One heading of the page and what stands below it."""

    anchor: str
    title: str
    body: Markup


def render(run: RunFiles) -> str:
    """Return the page as HTML, the same text for the same files."""
    found = read_figures(run.result)
    warnings = [*run.notes, *listed(run.result, "warnings"), *listed(run.result, "notices")]
    more = len(warnings) - MOST_ROWS
    reason = table(run.result.get("pu")).get("degenerate")
    name = visible(run.name)
    return document(
        "report/web/page.html",
        title=f"{name}: onesided report",
        style="report/web/style.css",
        style_attributes=True,
        name=name,
        method=visible(run.result.get("method", "unknown method")),
        headline=headline(run, found),
        lede=lede(run, found),
        alarm=visible(reason, 1000) if reason else "",
        warnings=[visible(text, 500) for text in warnings[:MOST_ROWS]],
        more_warnings=f"{more:,}" if more > 0 else "",
        sections=_sections(run, found),
    )


def _sections(run: RunFiles, found: Mapping[str, Figure]) -> list[Section]:
    parts = {
        "trust": ("How far to trust it", tables.cards(found)),
        "truth": ("Estimate and truth", truth(run, found)),
        "comparison": ("Comparison", tables.comparison(run)),
        "items": ("What it found", galleries(run)),
        "scores": ("How it decides", score_plots(run)),
        "training": ("How training went", curves(run)),
        "skipped": ("Files that were skipped", skipped(run)),
        "run": ("About this run", about(run)),
    }
    # Tables of figures come as text that is HTML already; everything else is Markup.
    return [Section(anchor, title, Markup(body)) for anchor, (title, body) in parts.items() if body]
