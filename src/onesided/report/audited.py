"""What people said of a random sample of the pool, as HTML: figures that assume nothing of P."""

from markupsafe import Markup

from onesided.metrics.audit_words import COLUMNS, AuditWords, audit_words, pool_hash
from onesided.metrics.stored import number, table
from onesided.pages.render import render
from onesided.report.runfiles import RunFiles
from onesided.storage.names import name_in_cell

ANOTHER_RANKING = (
    "audit.json was estimated from another ranking than this one and is left out. Draw anew: move "
    "audit.csv, audit_draw.json and audit.json away, then onesided audit RUN draw."
)


def audit_of(run: RunFiles) -> AuditWords | None:
    """Return the audit of this run's ranking; None where there is none, or of another one."""
    drawn = table(run.audit.get("draw")).get("pool")
    if run.ranking is None or not drawn:
        return None
    names = map(name_in_cell, run.ranking.names)
    return (
        audit_words(run.audit) if drawn == pool_hash(names, run.ranking.scores.tolist()) else None
    )


def audited(run: RunFiles) -> Markup:
    """Return the figures of the audit beside the claims; "" where there is none."""
    found = audit_of(run)
    if found is None:
        return Markup()
    at, now = _thresholds(run)
    moved = at is not None and now is not None and at != now
    return render(
        "report/web/audit.html", found=found, columns=COLUMNS, at=at if moved else None, now=now
    )


def audit_sentence(run: RunFiles) -> str:
    """Return what an audit says of the run's decisions; "" where none speaks of them."""
    found = audit_of(run)
    at, now = _thresholds(run)
    return found.summary if found and at == now else ""


def _thresholds(run: RunFiles) -> tuple[float | None, float | None]:
    """Return the threshold of the audit, and that of the run now."""
    at = table(run.audit.get("at_threshold")).get("threshold")
    return number(at), number(run.result.get("threshold"))


def audit_warnings(run: RunFiles) -> list[str]:
    """Return what an audit makes worth knowing at the top of the page."""
    found = audit_of(run)
    if found is None:
        return [ANOTHER_RANKING] if run.audit else []
    return [found.typical] if found.untypical else []
