"""`onesided audit`: figures from a random sample that people answered."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onesided.cli.options import Json, Quiet

if TYPE_CHECKING:
    from rich.table import Table

LABELS = {
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "positives": "Positives in the pool",
    "left": "Positives below the threshold",
}


class Step(StrEnum):
    """What an audit does."""

    DRAW = "draw"
    ESTIMATE = "estimate"


def audit(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.")],
    step: Annotated[Step, typer.Argument(help="draw items to look at, or estimate from answers.")],
    size: Annotated[int, typer.Option("--size", min=1, help="Items to draw.")] = 200,
    target: Annotated[
        str | None,
        typer.Option(
            "--for", help="Figure to make precise: f1, precision, recall, positives or left."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the draw.")] = None,
    blind: Annotated[bool, typer.Option("--blind", help="Leave scores out of audit.csv.")] = False,
    answers: Annotated[
        Path | None, typer.Option("--answers", help="CSV: item, answer, reviewer, time.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check a run by a random sample that people answer; assumes nothing about P.

    draw writes audit.csv into the run; fill in its column answer with positive, negative, unsure
    or skip. estimate may be repeated after any number of answers: its intervals hold at all looks
    together.

    Example: onesided audit runs/quake draw --size 200
    """
    from onesided.cli.show import console, print_json, say
    from onesided.cli.terminal import Terminal
    from onesided.jobs.early import check_finished

    check_finished(run)
    from onesided.jobs.audit import audit_draw, audit_estimate

    monitor = Terminal(quiet=quiet or as_json)
    if step is Step.DRAW:
        sheet = audit_draw(run, size=size, target=target, seed=seed, blind=blind, monitor=monitor)
        if as_json:
            print_json({"sheet": str(sheet)})
        else:
            say(f"Items to look at: {sheet}")
        return
    found = audit_estimate(run, answers=answers, monitor=monitor)
    if as_json:
        print_json(found)
        return
    console.print(_table(found))
    say(found["stopping"])
    for sentence in _sentences(found):
        say(sentence)


def _sentences(found: Mapping[str, Any]) -> list[str]:
    """Return what the audit says of P, and of the run's probabilities."""
    from onesided.metrics.reliability import Reliability

    calibration, typical = found["calibration"], found["typical"]
    said = [typical["explained"]] if typical else []
    said.append(calibration["explained"])
    for kind, words in (("reliability_before", "Without the answers: "), ("reliability", "")):
        off = calibration.get(kind)
        if off and not (kind == "reliability_before" and off == calibration["reliability"]):
            said.append(f"{words}{Reliability.of(off).sentence}")
    return said


def _table(found: Mapping[str, Any]) -> "Table":
    """Return the figures of the audit beside what had been claimed without it."""
    from rich.table import Table

    from onesided.metrics.stored import read_figure
    from onesided.metrics.words import interval_text, percent, value_text

    def shown(name: str, value: float | None) -> str:
        if value is None:
            return "-"
        return f"{value:,.0f}" if name in ("positives", "left") else percent(value)

    counts, own = found["answers"], found["at_threshold"]
    title = f"From {counts['counted']} random items of a pool of {found['pool']:,}"
    table = Table(title=title, title_justify="left")
    table.add_column("figure")
    for column in ("value", "95 % interval", "claimed without the audit"):
        table.add_column(column, justify="right")
    for name, label in LABELS.items():
        each = own["figures"][name]
        claim = found["claimed"].get(name)
        claimed = "-"
        if claim is not None and claim["value"] is not None:
            figure = read_figure(name, claim)
            between = interval_text(figure)
            claimed = value_text(figure) + (f" ({between})" if between else "")
        ends = "-"
        if each["low"] is not None:
            ends = " to ".join(shown(name, each[end]) for end in ("low", "high"))
        table.add_row(label, shown(name, each["value"]), ends, claimed)
    lines = [
        f"{own['called']:,} items are called positive. The intervals hold at all looks together "
        "and assume only that the items were drawn at random and answered rightly.",
    ]
    if counts["unsure"]:
        passed = f" ({counts['passed_over']} passed over)" if counts["passed_over"] else ""
        lines.append(
            f"Unsure answers: {counts['unsure']}{passed}. Intervals reach from the worst to the "
            "best case of what they may be."
        )
    table.caption, table.caption_justify = "\n".join(lines), "left"
    return table
