"""The sentences at the top of a page."""

from collections.abc import Mapping

from onesided.metrics.figure import Figure
from onesided.metrics.stored import number, table
from onesided.metrics.words import percent, sentence, value_text
from onesided.report.audited import audit_sentence
from onesided.report.runfiles import RunFiles


def headline(run: RunFiles, found: Mapping[str, Figure]) -> str:
    """Return what was found, in one plain sentence."""
    positives, pool = (_counted(run, key) for key in ("n_positive", "n_unlabelled"))
    if run.ranking is not None:
        total = len(run.ranking.scores)
        said = f"{run.ranking.called_positive:,} of {total:,} unlabelled items called positive"
    elif "share_positive" in found:
        share = value_text(found["share_positive"])
        said = f"About {share} of {pool}unlabelled items called positive"
    else:
        said = f"A model trained on {positives}positives and {pool}unlabelled items"
    return f"Do not rely on this run: {said[0].lower()}{said[1:]}" if run.degenerate else said


def _counted(run: RunFiles, key: str) -> str:
    count = number(run.result.get(key))
    return "" if count is None else f"{count:,.0f} "


def lede(run: RunFiles, found: Mapping[str, Figure]) -> str:
    """Return how sure one can be, in a few plain sentences."""
    if run.degenerate:
        return "The model did not learn to separate positives from the rest. The reason is below."
    if said := audit_sentence(run):
        return said  # it rests on less than the estimates, which the cards below show
    known = {name for name, figure in found.items() if figure.is_known}
    sentences = [
        sentence(found[name], interval=True) for name in ("recall", "precision") if name in known
    ]
    if "recall" in known and "precision" not in known:
        sentences.append(
            "How many of the items it calls positive really are could not be estimated: that "
            "needs the share of positives among the unlabelled items (the prior)."
        )
    accuracy = number(table(run.result.get("test")).get("oa"))
    if accuracy is not None:
        sentences.append(f"On a test set of known classes, it is right on {percent(accuracy)}.")
    return " ".join(sentences) or "This run holds no figure that says how good it is."
