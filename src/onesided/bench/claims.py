"""Judges claims: inequalities between cells, seed by seed, on every data set and scale.

An inequality is `ncpu.oa > ce.oa`, `ncpu.recall < 5` or `ncpu.oa ~ ce.oa within 2`; figures are
in per cent.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from onesided.bench.results import FIGURES, FINISHED, Key, Record
from onesided.bench.suite import Claim, Suite, Table
from onesided.core.errors import ConfigError

Word = Literal["held", "not held", "mixed", "incomplete", "not run"]
_FORM = re.compile(r"(\S+)\.(\w+) (>|<|~) (?:(\S+)\.([a-z]\w*)|([\d.]+))(?: within ([\d.]+))?")


@dataclass(frozen=True)
class Inequality:
    """A figure of one row against that of another, or against a number."""

    text: str
    row: str
    figure: str
    sign: str
    other: tuple[str, str] | float
    within: float

    @property
    def rows(self) -> list[str]:
        """The rows that it needs."""
        return [self.row] if isinstance(self.other, float) else [self.row, self.other[0]]

    def holds(self, left: float, right: float) -> bool:
        """Return whether it holds between two numbers."""
        if self.sign == "~":
            return abs(left - right) <= self.within
        return left > right if self.sign == ">" else left < right


@dataclass(frozen=True)
class Judged:
    """An inequality on one data set and scale."""

    inequality: Inequality
    seeds: tuple[tuple[int, float, float], ...]  # seed, left and right side

    @property
    def held(self) -> int:
        """For how many seeds it holds."""
        return sum(self.inequality.holds(left, right) for _, left, right in self.seeds)

    @property
    def word(self) -> Word:
        """held: for every seed; not held: for none; else mixed."""
        return _word([self])

    @property
    def words(self) -> str:
        """The inequality with its numbers."""
        return f"{self.inequality.text}: {self.numbers if self.seeds else 'not run'}"

    @property
    def numbers(self) -> str:
        """Means of both sides over seeds, and for how many of them it holds."""
        left = sum(one for _, one, _ in self.seeds) / len(self.seeds)
        right = sum(one for _, _, one in self.seeds) / len(self.seeds)
        return f"{left:.1f} and {right:.1f}, {self.held} of {len(self.seeds)} seeds"


@dataclass(frozen=True)
class Verdict:
    """A claim on one data set and scale; both are empty where no cell was run."""

    claim: Claim
    data: str
    scale: str
    parts: tuple[Judged, ...]

    @property
    def word(self) -> Word:
        """held: every inequality for every seed; not held: none for any; else mixed."""
        return _word(self.parts)

    @property
    def place(self) -> str:
        """Data set and scale."""
        return f"{self.data} at {self.scale}"


@dataclass(frozen=True)
class Told:
    """A claim as pages show it: where some of it was judged, and where none of it was."""

    claim: Claim
    judged: tuple[Verdict, ...]
    not_run: tuple[Verdict, ...]

    @property
    def left(self) -> str:
        """Where none of its inequalities was run though some of its cells were."""
        return ", ".join(verdict.place for verdict in self.not_run if verdict.data)


def _word(parts: Sequence[Judged]) -> Word:
    if not any(part.seeds for part in parts):
        return "not run"
    if not all(part.seeds for part in parts):
        return "incomplete"
    held = sum(part.held for part in parts)
    if held == sum(len(part.seeds) for part in parts):
        return "held"
    return "mixed" if held else "not held"


def by_scale(
    suite: Suite, table: Table, records: Mapping[Key, Record]
) -> dict[str, dict[str, Judged]]:
    """Return every inequality between rows of a table, judged at each of its scales.

    By the inequality's text, then by scale; on the table's first data set.
    """
    done = {key: record for key, record in records.items() if record["status"] == FINISHED}
    found: dict[str, dict[str, Judged]] = {}
    for part in (parse(text) for claim in suite.claims for text in claim.holds):
        if set(part.rows) <= set(table.rows):
            at = {scale: _compare(part, table.data[0], scale, done) for scale in table.scales}
            found[part.text] = at
    return found


def parse(text: str) -> Inequality:
    """Return an inequality, or raise one sentence on what is wrong with it."""
    found = _FORM.fullmatch(text)
    if found is None or (found[3] == "~") != (found[7] is not None):
        raise ConfigError(
            f"The claim '{text}' is not understood; write ROW.FIGURE > ROW.FIGURE, "
            "ROW.FIGURE < NUMBER, or ROW.FIGURE ~ ROW.FIGURE within POINTS."
        )
    row, figure, sign, other_row, other_figure, number, within = found.groups()
    for name in (figure, other_figure):
        if name is not None and name not in FIGURES:
            raise ConfigError(f"The claim '{text}' names '{name}'; known: {', '.join(FIGURES)}.")
    other = float(number) if number else (other_row, other_figure)
    return Inequality(text, row, figure, sign, other, float(within or 0))


def judge(suite: Suite, records: Mapping[Key, Record]) -> list[Verdict]:
    """Return a verdict for every claim on every data set and scale that has one of its cells."""
    done = {key: record for key, record in records.items() if record["status"] == FINISHED}
    return [verdict for claim in suite.claims for verdict in _judge(claim, done)]


def _judge(claim: Claim, done: Mapping[Key, Record]) -> Sequence[Verdict]:
    parts = [parse(text) for text in claim.holds]
    rows = {row for part in parts for row in part.rows}
    places = sorted({(scale, data) for row, data, scale, _ in done if row in rows})
    verdicts = [
        Verdict(claim, data, scale, tuple(_compare(part, data, scale, done) for part in parts))
        for scale, data in places
    ]
    return verdicts or [Verdict(claim, "", "", ())]


def _compare(part: Inequality, data: str, scale: str, done: Mapping[Key, Record]) -> Judged:
    def of(row: str, figure: str, seed: int) -> float | None:
        record = done.get((row, data, scale, seed))
        value = None if record is None else record["figures"][figure]
        return None if value is None else 100 * float(value)

    pairs = []
    for seed in _seeds(done):
        left = of(part.row, part.figure, seed)
        right = part.other if isinstance(part.other, float) else of(*part.other, seed)
        if left is not None and right is not None:
            pairs.append((seed, left, right))
    return Judged(part, tuple(pairs))


def _seeds(done: Iterable[Key]) -> list[int]:
    return sorted({seed for *_, seed in done})


def told(verdicts: Sequence[Verdict]) -> list[Told]:
    """Return verdicts claim by claim."""
    found = []
    for name in dict.fromkeys(verdict.claim.name for verdict in verdicts):
        of_claim = [verdict for verdict in verdicts if verdict.claim.name == name]
        judged = tuple(one for one in of_claim if one.word != "not run")
        not_run = tuple(one for one in of_claim if one.word == "not run")
        found.append(Told(of_claim[0].claim, judged, not_run))
    return found


def claims_page(title: str, source: str, verdicts: Sequence[Verdict], command: str) -> str:
    """Return the page of claims as Markdown."""
    lines = [
        f"<!-- Generated by `{command}`; changes here are overwritten. -->",
        "",
        f"# What the {title} paper claims, and what was measured",
        "",
        f"Source: {source}. The claims were written down before any run, as inequalities between "
        "cells of its tables. The program judges them: *held* if every inequality holds for every "
        "seed, *not held* if none does for any, *mixed* otherwise, *incomplete* where some of its "
        "cells are missing, *not run* where none of its inequalities could be judged. Figures are "
        "in per cent, means over seeds.",
    ]
    for one in told(verdicts):
        lines += ["", f"## {one.claim.says}", ""]
        lines += [f"- `{text}`" for text in one.claim.holds]
        if one.judged:
            lines += ["", "| data | scale | verdict | inequalities |", "| --- | --- | --- | --- |"]
        for verdict in one.judged:
            words = "<br>".join(part.words for part in verdict.parts)
            lines.append(f"| {verdict.data} | {verdict.scale} | **{verdict.word}** | {words} |")
        if one.left:
            lines += ["", f"Not run: {one.left}."]
        elif not one.judged:
            lines += ["", "Not run."]
    return "\n".join(lines) + "\n"
