"""What an audit found, as terminal and report show it: rows and sentences from `audit.json`.

No value is trusted, because the file lies in a folder of people.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from onesided.metrics.stored import Json, number, read_figure, table
from onesided.metrics.words import interval_text, percent, value_text

FILE = "audit.json"
LABELS = {
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "positives": "Positives in the pool",
    "left": "Positives below the threshold",
}
COLUMNS = ("figure", "value", "95 % interval", "claimed without the audit")


@dataclass(frozen=True)
class AuditWords:
    """The figures of an audit in words.

    Attributes:
        title: How many items were answered, of how many.
        summary: Precision and recall by their intervals; "" where one of them is not defined.
        rows: Label, value, interval and earlier claim of each figure, as `COLUMNS` says.
        remarks: What the intervals rest on, and how unsure answers count.
        stopping: How many positives may be left, and what halves that.
        typical: What it says of P; "" where it says nothing.
        untypical: Whether it shows that P is not typical.
    """

    title: str
    summary: str
    rows: list[tuple[str, str, str, str]]
    remarks: list[str]
    stopping: str
    typical: str
    untypical: bool


def audit_words(content: Json) -> AuditWords:
    """Return the words for the content of `audit.json`."""
    counts, own = table(content.get("answers")), table(content.get("at_threshold"))
    typical = table(content.get("typical"))
    claims, figures = table(content.get("claimed")), table(own.get("figures"))
    return AuditWords(
        title=f"From {_count(counts, 'counted')} random items of a pool of "
        f"{_count(content, 'pool')}",
        summary=_summary(_count(counts, "counted"), figures),
        rows=[
            (label, *_found(name, table(figures.get(name))), _claim(name, claims))
            for name, label in LABELS.items()
        ],
        remarks=_remarks(counts, own),
        stopping=str(content.get("stopping") or ""),
        typical=str(typical.get("explained") or ""),
        untypical=typical.get("rejected") is True,
    )


def pool_hash(items: Iterable[str], scores: Iterable[float]) -> str:
    """Return a digest of a pool, by which an audit knows the ranking that it was drawn from."""
    lines = "".join(f"{item}\0{score!r}\0" for item, score in zip(items, scores, strict=True))
    return hashlib.blake2b(lines.encode(errors="surrogateescape"), digest_size=16).hexdigest()


def _summary(answered: str, figures: Json) -> str:
    """Return the answer that one can defend, in a sentence."""
    precision, recall = (
        _found(name, table(figures.get(name)))[1] for name in ("precision", "recall")
    )
    if "-" in (precision, recall):
        return ""
    return (
        f"By an audit of {answered} random items, {precision} of the items called positive are "
        f"positive, and these are {recall} of all positives of the pool."
    )


def _count(counts: Json, name: str) -> str:
    return f"{number(counts.get(name)) or 0:,.0f}"


def _found(name: str, stored: Json) -> tuple[str, str]:
    """Return value and interval of a figure of the audit."""

    def shown(key: str) -> str:
        value = number(stored.get(key))
        if value is None:
            return "-"
        return f"{value:,.0f}" if name in ("positives", "left") else percent(value)

    ends = "-" if number(stored.get("low")) is None else f"{shown('low')} to {shown('high')}"
    return shown("value"), ends


def _claim(name: str, claims: Json) -> str:
    """Return what the run had said; of the number of positives, as a share of the pool."""
    source = "prior" if name == "positives" else name
    figure = read_figure(source, table(claims.get(source)))
    if not figure.is_known:
        return "-"
    between = interval_text(figure)
    said = value_text(figure) + (f" ({between})" if between else "")
    return f"{said} of the pool" if source == "prior" else said


def _remarks(counts: Json, own: Json) -> list[str]:
    said = [
        f"{_count(own, 'called')} items are called positive. The intervals hold at all looks "
        "together and assume only that the items were drawn at random and answered rightly."
    ]
    if number(counts.get("unsure")):
        passed = _count(counts, "passed_over")
        told = f" ({passed} passed over)" if passed != "0" else ""
        said.append(
            f"Unsure answers: {_count(counts, 'unsure')}{told}. Intervals reach from the worst to "
            "the best case of what they may be."
        )
    return said
