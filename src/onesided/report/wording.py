"""What a page says: safe text, numbers for people, and the sentences at the top.

Text that came from a file passes through `shown` before it meets HTML, without exception.
"""

from collections.abc import Mapping
from html import escape

from onesided.metrics.figure import Figure
from onesided.metrics.stored import number, table
from onesided.metrics.words import percent, sentence, value_text
from onesided.report.runfiles import RunFiles

ZERO_WIDTH_JOINERS = "\u200c\u200d"
"""Invisible, but part of Persian words and of many emoji: kept as they are."""

THUMBNAIL_WORDS = {
    "top": ("Most likely positive", "The highest scores among the unlabelled items."),
    "threshold": ("On the fence", "Nearest to the threshold: a second look pays most here."),
    "bottom": ("Least likely positive", "The lowest scores among the unlabelled items."),
    "doubted": (
        "Labelled positives the model doubts",
        "Known positives with the lowest scores: a rare kind, or a wrong label.",
    ),
}


def visible(value: object, limit: int = 300) -> str:
    """Return text of bounded length in which every character can be seen.

    Newlines, control characters, reversed writing and bytes that were no UTF-8 are
    spelled as escapes; with the last of these a page could not even be encoded.
    """
    text = "".join(
        letter if letter.isprintable() or letter in ZERO_WIDTH_JOINERS else _spelled(letter)
        for letter in str(value)
    )
    if len(text) <= limit:
        return text
    # Both ends are kept: a path is told by its last part, a sentence by its first.
    return f"{text[: limit // 2]}…{text[-(limit // 2) :]}"


def _spelled(letter: str) -> str:
    if 0xDC80 <= ord(letter) <= 0xDCFF:  # how Python carries a byte that is not UTF-8
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode("ascii")


def shown(value: object, limit: int = 300) -> str:
    """Return text from a file in a form that is safe as HTML, also inside attributes."""
    return escape(visible(value, limit), quote=True)


def duration(seconds: float) -> str:
    """Return a time span as people say it."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{seconds:.1f} s"


def headline(run: RunFiles, found: Mapping[str, Figure]) -> str:
    """Return what was found, in one plain sentence."""
    if run.ranking is not None:
        total = len(run.ranking.scores)
        said = f"{run.ranking.called_positive:,} of {total:,} unlabelled items called positive"
    elif "share_positive" in found:
        pool = _counted(run, "n_unlabelled")
        said = f"About {value_text(found['share_positive'])} of {pool}unlabelled items "
        said += "called positive"
    else:
        positives, pool = (_counted(run, key) for key in ("n_positive", "n_unlabelled"))
        said = f"A model trained on {positives}positives and {pool}unlabelled items"
    warned = table(run.result.get("pu")).get("degenerate")
    return f"Do not rely on this run: {said[0].lower()}{said[1:]}" if warned else said


def _counted(run: RunFiles, key: str) -> str:
    count = number(run.result.get(key))
    return "" if count is None else f"{count:,.0f} "


def lede(run: RunFiles, found: Mapping[str, Figure]) -> str:
    """Return how sure one can be, in a few plain sentences."""
    if table(run.result.get("pu")).get("degenerate"):
        return "The model did not learn to tell positives from the rest. The reason is below."
    recall, precision = found.get("recall"), found.get("precision")
    told = [each for each in (recall, precision) if each is not None and each.value is not None]
    sentences = [sentence(figure, interval=True) for figure in told]
    if recall in told and precision not in told:
        sentences.append(
            "How many of the items it calls positive really are could not be estimated: that "
            "needs the share of positives among the unlabelled items (the prior)."
        )
    accuracy = number(table(run.result.get("test")).get("oa"))
    if accuracy is not None:
        sentences.append(f"Checked against the truth, it is right on {percent(accuracy)}.")
    return " ".join(sentences) or "This run holds no figure that says how good it is."
