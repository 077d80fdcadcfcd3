"""`onesided audit`: figures from a random sample that people answered."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onesided.cli.options import Json, Quiet

if TYPE_CHECKING:
    from rich.table import Table

    from onesided.metrics.audit_words import AuditWords


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
            "--for",
            help="Figure to make precise: f1, precision, recall, positives or left; f1 by default.",
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
    from onesided.metrics.audit_words import audit_words

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
    words = audit_words(found)
    console.print(_table(words))
    for sentence in (words.stopping, words.typical, *_sentences(found["calibration"])):
        if sentence:
            say(sentence)


def _sentences(calibration: Mapping[str, Any]) -> list[str]:
    """Return what the audit says of the run's probabilities."""
    from onesided.metrics.reliability import Reliability

    said = [calibration["explained"]]
    for kind, words in (("reliability_before", "Without the answers: "), ("reliability", "")):
        off = calibration.get(kind)
        if off and not (kind == "reliability_before" and off == calibration["reliability"]):
            said.append(f"{words}{Reliability.of(off).sentence}")
    return said


def _table(found: "AuditWords") -> "Table":
    """Return the figures of the audit beside what had been claimed without it."""
    from rich.table import Table

    from onesided.metrics.audit_words import COLUMNS

    table = Table(title=found.title, title_justify="left")
    for number, column in enumerate(COLUMNS):
        table.add_column(column, justify="right" if number else "left")
    for row in found.rows:
        table.add_row(*row)
    table.caption, table.caption_justify = "\n".join(found.remarks), "left"
    return table
