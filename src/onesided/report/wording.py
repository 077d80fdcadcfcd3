"""What a page says: safe text, numbers for people, and the sentences at the top.

Text that came from a file passes through `shown` before it meets HTML, without exception.
"""

from collections.abc import Mapping
from html import escape

from onesided.core.leaning import leaning_of
from onesided.report.runfiles import Estimate, RunFiles, number, table

ZERO_WIDTH_JOINERS = "\u200c\u200d"
"""Invisible, but part of Persian words and of many emoji: kept as they are."""

NOT_PERCENTAGES = frozenset({"auc", "proxy_auc", "lee_liu"})

LABELS = {
    "recall": "Recall on held-out positives",
    "precision": "Precision, estimated",
    "f1": "F1, estimated",
    "share_positive": "Share of the pool called positive",
    "prior": "Share of the pool that is positive",
    "false_alarms": "Known negatives called positive",
    "proxy_auc": "Proxy AUC",
    "auc": "AUC, estimated",
    "proxy_accuracy": "Accuracy, estimated",
    "lee_liu": "Lee-Liu score",
}
"""Figures in the order in which a page shows them, with a name for each."""

MEANINGS = {
    "recall": "Of the known positives kept out of training, the model finds this share.",
    "precision": "Of the items called positive, about this share really is positive.",
    "share_positive": "Part of the unlabelled pool that the model calls positive.",
    "prior": "Part of the unlabelled pool that is believed to be positive, whatever is called so.",
    "false_alarms": "Of the items known to be negative, the model wrongly takes this share.",
    "f1": "Recall and precision in one number, low as soon as one of them is low.",
    "auc": "How often a positive scores higher than a negative. 0.5 is chance.",
    "proxy_auc": "How often a known positive scores higher than an unlabelled item. "
    "0.5 is chance; positives hidden in the pool keep it below 1.",
    "proxy_accuracy": "Of all items, about this share is called what it is.",
    "lee_liu": "For comparing models on the same data, without a prior. Higher is better.",
}

TEST_LABELS = {
    "oa": "Accuracy",
    "f1": "F1",
    "precision": "Precision",
    "recall": "Recall",
    "auc": "AUC",
}

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


def percent(share: float) -> str:
    """Return a share as a percentage that never rounds something to nothing or to all."""
    decimals = 1
    while decimals < 6 and share not in (0, 1) and round(share, decimals + 2) in (0, 1):
        decimals += 1
    return f"{100 * share:.{decimals}f}%"


def measured(name: str, value: float) -> str:
    """Return the value of a figure as its name asks for: percentage or plain number."""
    return f"{value:.3f}" if name in NOT_PERCENTAGES else percent(value)


def valued(figure: Estimate) -> str:
    """Return the value of a figure, with `optimistically` before it where it leans so."""
    return f"{leaning_of(figure.label)} {measured(figure.name, figure.value)}".strip()


def meaning(figure: Estimate) -> str:
    """Return what a figure says, in one plain sentence; nothing of one that we do not know."""
    said, leaning = MEANINGS.get(figure.name, ""), leaning_of(figure.label)
    return said.replace("about this share", f"{leaning} this share") if leaning else said


def interval(figure: Estimate) -> str:
    """Return the interval of a figure as `81.2% to 90.4%`, or nothing."""
    if figure.low is None or figure.high is None:
        return ""
    return f"{measured(figure.name, figure.low)} to {measured(figure.name, figure.high)}"


def duration(seconds: float) -> str:
    """Return a time span as people say it."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{seconds:.1f} s"


def headline(run: RunFiles, found: Mapping[str, Estimate]) -> str:
    """Return what was found, in one plain sentence."""
    if run.ranking is not None:
        total = len(run.ranking.scores)
        said = f"{run.ranking.called_positive:,} of {total:,} unlabelled items called positive"
    elif "share_positive" in found:
        pool = _counted(run, "n_unlabelled")
        said = f"About {percent(found['share_positive'].value)} of {pool}unlabelled items "
        said += "called positive"
    else:
        positives, pool = (_counted(run, key) for key in ("n_positive", "n_unlabelled"))
        said = f"A model trained on {positives}positives and {pool}unlabelled items"
    warned = table(run.result.get("pu")).get("degenerate")
    return f"Do not rely on this run: {said[0].lower()}{said[1:]}" if warned else said


def _counted(run: RunFiles, key: str) -> str:
    count = number(run.result.get(key))
    return "" if count is None else f"{count:,.0f} "


def lede(run: RunFiles, found: Mapping[str, Estimate]) -> str:
    """Return how sure one can be, in a few plain sentences."""
    if table(run.result.get("pu")).get("degenerate"):
        return "The model did not learn to tell positives from the rest. The reason is below."
    sentences = []
    if "recall" in found:
        sentences.append(
            f"The model finds {_with_interval(found['recall'])} of the known positives that were "
            "kept out of training."
        )
    if "precision" in found:
        sentences.append(_about_precision(found["precision"]))
    elif "recall" in found:
        sentences.append(
            "How many of the items it calls positive really are could not be estimated: that "
            "needs the share of positives in the pool."
        )
    accuracy = number(table(run.result.get("test")).get("oa"))
    if accuracy is not None:
        sentences.append(f"Checked against the truth, it is right on {percent(accuracy)}.")
    return " ".join(sentences) or "This run holds no figure that says how good it is."


def _about_precision(figure: Estimate) -> str:
    share = _with_interval(figure)
    if not leaning_of(figure.label):
        return f"Of the items it calls positive, an estimated {share} are positive."
    return (
        f"Of the items it calls positive, {share} are positive: the estimate rests on these very "
        "scores, so the truth may also lie below the interval."
    )


def _with_interval(figure: Estimate) -> str:
    between, value = interval(figure), valued(figure)
    return f"{value} (95% interval {between})" if between else value
