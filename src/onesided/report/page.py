"""One self-contained HTML page about a finished run, for people who did not make it.

Every section is a function from the run's files to HTML. It returns "" when its files are
missing; then its heading does not appear either.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from markupsafe import Markup

from onesided.metrics.figure import Figure
from onesided.metrics.stored import Json, listed, read_figures
from onesided.pages.document import document
from onesided.pages.render import visible
from onesided.report import tables
from onesided.report.gallery import galleries
from onesided.report.plots import curves, score_plots
from onesided.report.runfiles import RunFiles, read_run
from onesided.report.smallprint import MOST_ROWS, about, skipped
from onesided.report.wording import headline, lede
from onesided.storage.atomic import write_text


def write_report(run: Path, *, labelled: Json | None = None) -> Path:
    """Write `report.html` into the folder of a finished run and return its path.

    `labelled` holds figures on items of the pool whose true class became known later, as
    `onesided.run.evaluate.compare_with_labels` returns them.
    """
    target = run / "report.html"
    write_text(target, render(replace(read_run(run), labelled=labelled or {})))
    return target


def render(run: RunFiles) -> str:
    """Return the page as HTML, the same text for the same files."""
    found = read_figures(run.result)
    precision = found.get("precision", Figure("precision", None))
    lists = (listed(run.result.get(key)) for key in ("warnings", "notices"))
    return document(
        "report/web/page.html",
        title=f"{visible(run.name)}: onesided report",
        style="report/web/style.css",
        style_attributes=True,
        name=run.name,
        method=run.result.get("method", "unknown method"),
        title_of_method=run.result.get("title") or run.result.get("method", "unknown method"),
        summary=run.result.get("summary", ""),
        headline=headline(run, found),
        lede=lede(run, found),
        alarm=run.degenerate,
        warnings=[*run.notes, *chain.from_iterable(lists)],
        most_warnings=MOST_ROWS,
        ranked=run.ranking is not None,
        unsure=not run.labelled and (precision.value is None or precision.bias is not None),
        of_map=run.result.get("data") == "chips",
        sections=_sections(run, found),
    )


def _sections(run: RunFiles, found: Mapping[str, Figure]) -> list[tuple[str, str, Markup]]:
    """Return anchor, title and body of each section that has something to show."""
    parts = (
        ("trust", "How far to trust it", tables.cards(found)),
        ("truth", "Estimate and truth", tables.truth(run, found)),
        ("leaderboard", "What was tried", tables.leaderboard(run)),
        ("comparison", "Comparison", tables.comparison(run)),
        ("items", "What it found", galleries(run)),
        ("scores", "How it decides", score_plots(run)),
        ("training", "How training went", curves(run)),
        ("skipped", "Files that were skipped", skipped(run)),
        ("run", "About this run", about(run)),
    )
    return [part for part in parts if part[2]]
