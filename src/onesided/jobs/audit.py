"""A random sample of the pool, answered by people: the jobs of `onesided audit`.

`audit_draw` writes `audit.csv`, which a person fills in, and `audit_draw.json`, from which the draw
is made again; `audit_estimate` writes `audit.json`. None of the three belongs to the files that
`--overwrite` removes: answers are work of people.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np

from onesided.core.errors import ConfigError, DataError, DataNotFound
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.core.monitor import Monitor
from onesided.jobs.settings import PathLike
from onesided.jobs.words import count
from onesided.metrics import audit
from onesided.metrics.audit import UNANSWERED, answers_to_halve, counted_answers
from onesided.metrics.audit_design import AuditDesign, Target, audit_sample
from onesided.metrics.audit_words import FILE as FOUND
from onesided.metrics.audit_words import pool_hash
from onesided.metrics.calibration import Calibration
from onesided.metrics.stored import read_figures
from onesided.report import write_report
from onesided.review.session import AUDIT
from onesided.run.answers import Answers, answers_in
from onesided.run.audited import (
    AuditedProbabilities,
    curve_of,
    examine_by_audit,
    write_probabilities,
)
from onesided.run.evaluate import read_pool, read_scores
from onesided.run.folder import SCORES, read_result, working_in
from onesided.storage.answer_journal import AnswerJournal, standing
from onesided.storage.answers import Answer
from onesided.storage.atomic import read_json, write_json, write_text
from onesided.storage.names import name_in_cell, spreadsheet_safe
from onesided.storage.table import csv_lines, read_rows
from onesided.storage.together import together, write_checksums

SHEET, DRAW = "audit.csv", "audit_draw.json"
FARTHEST_FORECAST = 1600
"""Answers beyond which the forecast of the stopping rule does not look."""
THRESHOLDS = tuple(round(0.1 * tenth, 1) for tenth in range(1, 10))


@dataclass(frozen=True)
class Drawn:
    """What was drawn from which pool; everything follows from it and from `scores.csv`."""

    seed: int
    target: str
    threshold: float
    size: int
    pool: str  # hash of items and scores

    def design(self, scores: np.ndarray, *, more: int = 0) -> AuditDesign:
        """Return the draw, or one that continues it."""
        return audit_sample(
            scores,
            size=self.size + more,
            threshold=self.threshold,
            target=self.target,
            seed=self.seed,
        )

    @classmethod
    def of(cls, run: Path) -> Self | None:
        """Return the draw of a run; None where there is none."""
        path = run / DRAW
        if not path.exists():
            return None
        content = read_json(path)
        try:
            drawn = cls(**content)
        except TypeError:
            drawn = None
        sound = (
            drawn is not None
            and all(type(number) is int and number >= 0 for number in (drawn.seed, drawn.size))
            and drawn.target in get_args(Target)
            and type(drawn.threshold) is float
            and isinstance(drawn.pool, str)
        )
        if not sound or drawn is None:
            raise DataError(
                f"{path} was changed or damaged, and the draw cannot be made again. Restore it "
                f"from a copy, or move it and {SHEET} away and draw again."
            )
        return drawn


def audit_draw(
    run: PathLike,
    *,
    size: int = 200,
    target: str | None = None,
    seed: int | None = None,
    blind: bool = False,
    monitor: Monitor | None = None,
) -> Path:
    """Draw items of the pool at random, and return the CSV file to fill in.

    Drawn again with a larger size, the file grows and keeps its answers.

    Examples:
        >>> import onesided
        >>> sheet = onesided.audit_draw("runs/toy", size=20)
        >>> sheet.name
        'audit.csv'

    Args:
        run: Folder of a finished run.
        size: How many items.
        target: The figure whose interval should be short: f1 (default), precision, recall,
            positives or left.
        seed: Of the draw; 0 by default.
        blind: Leave score and stratum out, so that they cannot influence the answers.
        monitor: Receives notices.
    """
    run, monitor = Path(run), monitor or Monitor()
    result = read_result(run)
    with working_in(run):
        items, scores = _pool(run)
        before, kept = Drawn.of(run), _kept_rows(run)
        if before is None and kept:
            raise DataError(
                f"{run / SHEET} holds {count(len(kept), 'answer')}, but {DRAW}, which says how its "
                "items were drawn, is missing. Restore it from a copy, or move the sheet away to "
                "begin another."
            )
        answered = bool(kept or _reviewed(run))
        drawn = _next_draw(run, before, result, items, scores, size, target, seed, answered)
        design = drawn.design(scores)
        with together(run) as new:
            _write_sheet(new / SHEET, design, items, scores, kept, blind)
            write_json(new / DRAW, vars(drawn))
    monitor.note(
        f"Write positive, negative, unsure or skip into the column answer of {run / SHEET}, from "
        "the first line on and in this order. You may look at the figures at any time."
    )
    if kept:
        monitor.note(f"Kept {count(len(kept), 'line')} with answers.")
    return run / SHEET


def audit_estimate(
    run: PathLike,
    *,
    answers: PathLike | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
    monitor: Monitor | None = None,
) -> dict[str, Any]:
    """Return figures of the pool from the answers so far, and write them to `audit.json`.

    Examples:
        >>> import onesided, pandas
        >>> sheet = pandas.read_csv("runs/toy/audit.csv")
        >>> sheet["answer"] = ["positive", "negative"] * 10  # what a person saw in 20 items
        >>> sheet.to_csv("runs/toy/audit.csv", index=False)
        >>> found = onesided.audit_estimate("runs/toy")
        >>> "stopping" in found
        True

    Args:
        run: Folder of a finished run, from which `audit_draw` drew.
        answers: CSV file of answers: item, answer, reviewer, time. None reads `audit.csv`.
        thresholds: For further figures, besides those at the run's own threshold.
        monitor: Receives notices and warnings.
    """
    run, monitor = Path(run), monitor or Monitor()
    result = read_result(run)
    with working_in(run):
        drawn = Drawn.of(run)
        if drawn is None:
            raise DataNotFound(f"Nothing was drawn from {run}. Draw first: onesided audit RUN draw")
        items, scores = _pool(run)
        _check_pool(run, drawn, items, scores)
        design = drawn.design(scores)
        given = _given(run, answers, items, design, monitor)
        decided = read_scores(run / SCORES, threshold=result["threshold"])
        now = np.array([decided[item] for item in items])
        content = _content(result, drawn, now, design, given, thresholds)
        content["stopping"] = _stopping(content, scores, now, drawn, given)
        before = _curve_without_answers(run)
        found, typical, reason = examine_by_audit(run, scores, design, given, before)
        content["calibration"] = (
            found.to_json() if found else {"basis": None, "explained": reason, "reliability": None}
        )
        content["typical"] = typical.to_json() if typical else None
        _write(run, content, found, result)
    return content


def _curve_without_answers(run: Path) -> Calibration | None:
    """Return the curve of a run from P, U and the prior, also after an audit has replaced it."""
    curve = curve_of(run)
    if curve is not None and curve.basis == "prior":
        return curve
    if not (run / FOUND).exists():
        return None
    before = (read_json(run / FOUND).get("calibration") or {}).get("before")
    return None if before is None else Calibration.from_settings(before, FOUND)


def _write(
    run: Path,
    content: Mapping[str, Any],
    found: AuditedProbabilities | None,
    result: dict[str, Any],
) -> None:
    """Write `audit.json` and the run's page; with it, where they change, its probabilities."""
    with together(run) as new:
        write_json(new / FOUND, content)
        if found is not None and found.now != curve_of(run):
            write_probabilities(new, run, found, result)
        write_report(run, new=new)
        write_checksums(new, run)


def items_to_audit(run: Path) -> list[str]:
    """Return the drawn items that have no answer in the sheet, in the order of the draw."""
    drawn = Drawn.of(run)
    if drawn is None:
        raise DataNotFound(f"Nothing was drawn from {run}. Draw first: onesided audit RUN draw")
    items, scores = _pool(run)
    _check_pool(run, drawn, items, scores)
    answered = answers_in(run / SHEET).meant if (run / SHEET).exists() else {}
    order = (items[row] for row in drawn.design(scores).order.tolist())
    return [item for item in order if item not in answered]


def _check_pool(run: Path, drawn: Drawn, items: Sequence[str], scores: np.ndarray) -> None:
    if drawn.pool != pool_hash(items, scores.tolist()):
        raise DataError(
            f"{run / SCORES} changed since the audit was drawn, so the answers are not a "
            "random sample of it. Restore it, or move the audit files away and draw again."
        )


def _pool(run: Path) -> tuple[list[str], np.ndarray]:
    scores = read_pool(run)
    return list(scores), np.array(list(scores.values()))


def _next_draw(
    run: Path,
    before: Drawn | None,
    result: Mapping[str, Any],
    items: Sequence[str],
    scores: np.ndarray,
    size: int,
    target: str | None,
    seed: int | None,
    answered: bool,
) -> Drawn:
    """Return the draw that was asked for; refuse one that would lose answers."""
    if seed is not None and seed < 0:
        raise ConfigError(f"A seed is a number from 0 on; got {seed}.")
    pool, size = pool_hash(items, scores.tolist()), min(size, len(items))
    if before is None or not answered:
        threshold = float(result["threshold"])
        return Drawn(seed or 0, target or "f1", threshold, size, pool)
    same = (
        before.pool == pool
        and target in (None, before.target)
        and seed in (None, before.seed)
        and size >= before.size
    )
    if not same:
        raise DataError(
            f"{run} holds answers of another draw ({before.size} items for {before.target}, seed "
            f"{before.seed}). Draw at least as many items with the same settings to continue it. "
            f"To begin another, move {SHEET} away, and answers.jsonl too if they were given on the "
            "page."
        )
    return Drawn(before.seed, before.target, before.threshold, size, pool)


def _kept_rows(run: Path) -> dict[str, dict[str, str]]:
    """Return the lines of the sheet that have an answer, by item."""
    if not (run / SHEET).exists():
        return {}
    answers_in(run / SHEET)  # refuses what is no answer, before the file is written again
    rows = read_rows(run / SHEET, ("item", "answer"))
    kept = {
        name_in_cell(row.cells["item"]): row.cells for row in rows if row.cells["answer"].strip()
    }
    if len(kept) != sum(bool(row.cells["answer"].strip()) for row in rows):
        raise DataError(
            f"{run / SHEET} holds two answers for one item in two lines. "
            "Keep one line per item there; give a file of several reviewers with --answers."
        )
    return {item: dict(cells) for item, cells in kept.items()}


def _write_sheet(
    path: Path,
    design: AuditDesign,
    items: Sequence[str],
    scores: np.ndarray,
    kept: Mapping[str, Mapping[str, str]],
    blind: bool,
) -> None:
    columns = ["item", "answer", "reviewer", "time"]
    rows = []
    for row in design.order.tolist():
        before = kept.get(items[row], {})
        # The items have their printable names already, as in scores.csv.
        name = spreadsheet_safe(items[row])
        cells: list[object] = [name, *(before.get(column, "") for column in columns[1:])]
        rows.append(
            cells if blind else [*cells, f"{scores[row]:.9g}", int(design.stratum[row]) + 1]
        )
    shown = columns if blind else [*columns, "score", "stratum"]
    write_text(path, csv_lines([shown, *rows]))


def _given(
    run: Path,
    path: PathLike | None,
    items: Sequence[str],
    design: AuditDesign,
    monitor: Monitor,
) -> np.ndarray:
    """Return the answer of every item of the pool."""
    file = run / SHEET if path is None else Path(path)
    answers = answers_in(file, also=_reviewed(run) if path is None else ())
    row_of = {item: row for row, item in enumerate(items)}
    unknown = [item for item in answers.listed if item not in row_of]
    if unknown:
        raise DataError(
            f"{file} names '{unknown[0]}', which is not in {run / SCORES}"
            f"{_others(len(unknown))}. Correct the name, or remove the line."
        )
    drawn = {items[row] for row in design.order.tolist()}
    if path is None:
        _check_sheet(file, answers, drawn)
    beside = [item for item in answers.meant if item not in drawn]
    if beside:
        monitor.note(
            f"Answers to {count(len(beside), 'item')} that the audit did not draw do not count: "
            "chosen items are no random sample."
        )
    if answers.contradictory:
        monitor.warn(
            f"Reviewers contradict each other on {count(len(answers.contradictory), 'item')}, such "
            f"as '{answers.contradictory[0]}'. What they dispute counts as unsure until one of "
            "them changes."
        )
    given = np.full(len(items), UNANSWERED)
    for item, meant in answers.meant.items():
        given[row_of[item]] = meant if item in drawn else UNANSWERED
    if not (given != UNANSWERED).any():
        raise DataError(f"{file} holds no answer to a drawn item yet. Fill in the column answer.")
    return given


def _reviewed(run: Path) -> list[Answer]:
    """Return the answers of an audit in the review page.

    Only those: an item that was shown because of its score may be one of the drawn ones, but who
    answers some of them early passes over others.
    """
    return [each for each in standing(AnswerJournal(run).entries()) if each.strategy == AUDIT]


def _check_sheet(file: Path, answers: Answers, drawn: set[str]) -> None:
    added = [item for item in answers.listed if item not in drawn]
    if added:
        raise DataError(
            f"{file} names '{added[0]}', which was not drawn{_others(len(added))}: figures of "
            "chosen items would be biased. Remove the line; draw more with onesided audit draw."
        )
    lost = drawn - set(answers.listed)
    if lost:
        raise DataError(
            f"{file} lacks {len(lost)} of the drawn items, such as '{min(lost)}': without them "
            "the sample is not random. Give the same draw command, which keeps the answers."
        )


def _others(count: int) -> str:
    return f" (nor are {count - 1} others)" if count > 1 else ""


def _content(
    result: Mapping[str, Any],
    drawn: Drawn,
    scores: np.ndarray,
    design: AuditDesign,
    given: np.ndarray,
    thresholds: Sequence[float],
) -> dict[str, Any]:
    at = float(result["threshold"])
    own, *others = audit.audit_estimate(scores, design, given, thresholds=[at, *thresholds])
    asked, counted = counted_answers(design, given)
    figures = read_figures(result)
    claimed = {
        name: figures[name].to_json()
        for name in ("precision", "recall", "f1", "prior")
        if name in figures
    }
    return {
        "draw": vars(drawn),
        "pool": len(scores),
        "answers": {
            "counted": len(asked),
            "positive": int((counted == POSITIVE).sum()),
            "negative": int((counted == NEGATIVE).sum()),
            "unsure": int((counted == UNKNOWN).sum()),
            "passed_over": int((given[asked] == UNANSWERED).sum()),
        },
        "coverage": 0.95,
        "at_threshold": own.to_json(),
        "thresholds": [each.to_json() for each in others],
        "claimed": claimed,
    }


def _stopping(
    content: Mapping[str, Any],
    drawn_scores: np.ndarray,
    scores: np.ndarray,
    drawn: Drawn,
    given: np.ndarray,
) -> str:
    """Return how many positives may be left below the threshold, and what halves that."""
    own = content["at_threshold"]
    high, found = own["figures"]["left"]["high"], own["found_below"]
    besides = f" (besides the {found} that the audit found there)" if found else ""
    said = f"With 95 % confidence at most {high - found:.0f} positives are left below the threshold"
    longer = drawn.design(drawn_scores, more=FARTHEST_FORECAST)
    more = answers_to_halve(scores, longer, given, threshold=own["threshold"])
    outlook = f"about {more} more answers would halve that"
    if more is None:
        outlook = f"{FARTHEST_FORECAST} more answers would not be expected to halve that"
    if high - found <= 0:
        return f"{said}{besides}."
    return f"{said}{besides}; {outlook}."
