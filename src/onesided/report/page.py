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
from onesided.metrics.stored import Json, listed, read_figures, table
from onesided.pages.document import document
from onesided.pages.render import visible
from onesided.report import rounds, tables
from onesided.report.audited import audit_sentence, audit_warnings, audited
from onesided.report.gallery import galleries
from onesided.report.plots import curves, score_plots
from onesided.report.probability import probabilities, typical
from onesided.report.runfiles import RunFiles, made_from, read_run
from onesided.report.smallprint import MOST_ROWS, about, skipped
from onesided.report.wording import headline, lede
from onesided.storage.atomic import write_text
from onesided.storage.own_file import CHECKSUMS, open_own
from onesided.storage.together import together, write_checksums

REPORT = "report.html"


def write_report(run: Path, *, labelled: Json | None = None, new: Path | None = None) -> Path:
    """Write `report.html` of a finished run and return its path.

    The caller holds the lock of the folder.

    Args:
        run: The folder of the run.
        labelled: Figures on items of the pool whose true class became known later, as
            `onesided.run.evaluate.compare_with_labels` returns them.
        new: Folder of a change of the run (`storage/together.py`) that the page belongs to: its
            files count instead of those they will replace. None makes the page the only change.
    """
    page = render(replace(read_run(run, new), labelled=labelled or {}))
    if new is not None:
        write_text(new / REPORT, page)
        return run / REPORT
    with together(run) as alone:
        write_text(alone / REPORT, page)
        if (run / CHECKSUMS).exists():
            write_checksums(alone, run)
    return run / REPORT


def is_fresh(run: Path) -> bool:
    """Return whether the page was made from the files that the folder holds now.

    By content: a copied folder has other times, and a clock may be set back.
    """
    try:
        with open_own(run / REPORT) as file:
            return f'content="{made_from(run)}"'.encode() in file.read(4096)
    except OSError:
        return False


def render(run: RunFiles) -> str:
    """Return the page as HTML, the same text for the same files."""
    found = read_figures(run.result)
    precision = found.get("precision", Figure("precision", None))
    lists = (listed(run.result.get(key)) for key in ("warnings", "notices"))
    # How the threshold was found is told among the facts of the run, in the words of its rule.
    rule = table(run.result.get("threshold_rule")).get("explained")
    told = [sentence for sentence in chain.from_iterable(lists) if sentence != rule]
    return document(
        "report/web/page.html",
        title=f"{visible(run.name)}: onesided report",
        made_from=run.made_from,
        style="report/web/style.css",
        style_attributes=True,
        name=run.name,
        method=run.result.get("method", "unknown method"),
        title_of_method=run.result.get("title") or run.result.get("method", "unknown method"),
        summary=run.result.get("summary", ""),
        headline=headline(run, found),
        lede=lede(run, found),
        alarm=run.degenerate,
        warnings=[*run.notes, *audit_warnings(run), *told],
        groups=list(run.thumbnails),
        most_warnings=MOST_ROWS,
        ranked=run.ranking is not None,
        audited=bool(audit_sentence(run)),
        unsure=not run.labelled and (precision.value is None or precision.bias is not None),
        of_map=run.result.get("data") == "chips",
        sections=_sections(run, found),
    )


def _sections(run: RunFiles, found: Mapping[str, Figure]) -> list[tuple[str, str, Markup]]:
    """Return anchor, title and body of each section that has something to show."""
    parts = (
        ("items", "What it found", galleries(run)),
        ("audit", "What an audit says", audited(run)),
        ("trust", "How far to trust it", tables.cards(found)),
        ("truth", "Estimate and truth", tables.truth(run, found)),
        ("review", "What the review changed", rounds.changed(run)),
        ("leaderboard", "What was tried", tables.leaderboard(run)),
        ("comparison", "Comparison", tables.comparison(run)),
        ("scores", "How it decides", score_plots(run)),
        ("probability", "Probabilities", probabilities(run)),
        ("typical", "Is P typical?", typical(run)),
        ("training", "How training went", curves(run)),
        ("skipped", "Files that were skipped", skipped(run)),
        ("run", "About this run", about(run)),
    )
    return [part for part in parts if part[2]]
