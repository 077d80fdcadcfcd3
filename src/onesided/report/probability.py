"""What probabilities of a run rest on, and how far they are from the truth where it is known."""

from markupsafe import Markup

from onesided.metrics.reliability import Reliability
from onesided.metrics.stored import table
from onesided.pages.render import render
from onesided.report import figures
from onesided.report.audited import audit_of
from onesided.report.plots import Plot
from onesided.report.runfiles import RunFiles


def probabilities(run: RunFiles) -> Markup:
    """Return what they rest on, or why there are none, and a plot of each set of known classes."""
    found = table(run.result.get("calibration"))
    if not found.get("explained"):
        return Markup()
    known = {
        "Probabilities and true classes": table(found.get("reliability")),
        "Probabilities and given labels": table(run.labelled.get("reliability")),
    }
    plots = [
        _plot(title, f"reliability-{number}", Reliability.of(content))
        for number, (title, content) in enumerate(known.items())
        if content
    ]
    return render(
        "report/web/probability.html", explained=found["explained"], plots=plots, any=found["basis"]
    )


def typical(run: RunFiles) -> Markup:
    """Return what an audit says of P, and what the test of P and U found and could have found."""
    audit = audit_of(run)
    by_audit = audit.typical if audit else ""
    by_test = str(table(run.result.get("typical")).get("explained") or "")
    sentences = [said for said in (by_audit, by_test) if said]
    return render("report/web/typical.html", sentences=sentences) if sentences else Markup()


def _plot(title: str, name: str, found: Reliability) -> Plot:
    key = [("dot", "items of similar probability, 95 % interval"), ("threshold", "what they say")]
    svg = figures.reliability_plot(found, name=name, description=found.sentence)
    return Plot(title, found.sentence, svg, key)
