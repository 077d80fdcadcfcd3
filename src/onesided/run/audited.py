"""What an audit says of a run's probabilities and of its P, and probabilities from its answers.

They assume neither that P is typical nor a prior: only that the items were drawn at random, that
the answers are right, and that unsure ones are like the others of their stratum.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from onesided.core.folds import sides
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.engine.model_file import DESCRIPTION, ModelDescription, write_description
from onesided.metrics.audit import Decided, decided_answers
from onesided.metrics.audit_design import AuditDesign
from onesided.metrics.calibration import Calibration, PUCalibrator
from onesided.metrics.reliability import FEWEST, Reliability, reliability
from onesided.metrics.typical import TypicalByAudit, compare_with_audit
from onesided.run.cards import write_cards
from onesided.run.columns import columns_of, numbers_of
from onesided.run.decisions import read_decisions
from onesided.run.folder import RESULT, SCORED, SCORES
from onesided.run.scored import Scored
from onesided.storage.atomic import read_json, write_json, write_text
from onesided.storage.table import csv_lines

FEWEST_OF_A_CLASS = 10
"""Answers of either class below which a curve through them would be chance."""
FOLDS = 5
STAY = " Those from P, U and the prior stay."
NEEDS_SEARCH = (
    "a method by name scores items that it was trained on as unlabelled. Leave --method out: auto "
    "scores every item by a model that was not trained on it."
)


@dataclass(frozen=True)
class AuditedProbabilities:
    """Probabilities of a run in the light of an audit.

    Attributes:
        curve: From the answers; None where there are too few.
        explained: What the run's probabilities rest on now, or why there are none.
        reliability: How far they are off by the answers: those of the curve by answers that it
            was not fitted to.
        before: The curve that the run had without the answers.
        reliability_before: How far that one is off.
        refuted: Whether that one rests on a P that the audit shows not to be typical.
    """

    curve: Calibration | None
    explained: str
    reliability: Reliability | None
    before: Calibration | None
    reliability_before: Reliability | None
    refuted: bool = False

    @property
    def now(self) -> Calibration | None:
        """The curve that counts: that of the answers, where there are enough."""
        return self.curve or (None if self.refuted else self.before)

    def to_json(self) -> dict[str, Any]:
        """Return the entry `calibration` of `audit.json`."""
        off, off_before = self.reliability, self.reliability_before
        return {
            "basis": self.now.basis if self.now else None,
            "explained": self.explained,
            "reliability": off.to_json() if off else None,
            "before": self.before.model_dump(mode="json") if self.before else None,
            "reliability_before": off_before.to_json() if off_before else None,
        }


def audited_probabilities(
    scores: Float[np.ndarray, "n"],
    design: AuditDesign,
    answers: Int64[np.ndarray, "n"],
    before: Calibration | None,
) -> AuditedProbabilities:
    """Return probabilities from the answers, and how far both curves are off."""
    found = decided_answers(design, answers)
    asked = scores[found.rows]
    enough = len(asked) >= FEWEST
    off = None
    if before is not None and enough:
        off = reliability(before.of(asked), found.positive, found.weights)
    fewest = min(int(found.positive.sum()), int((~found.positive).sum()))
    if not enough or fewest < FEWEST_OF_A_CLASS:
        reason = (
            f"Probabilities from answers take {FEWEST} decided answers and {FEWEST_OF_A_CLASS} of "
            f"either class; there are {len(asked)}, {int(found.positive.sum())} of them positive."
        )
        return AuditedProbabilities(None, f"{reason}{STAY if before else ''}", off, before, off)
    curve = _fitted(asked, found).calibration("answers")
    own = reliability(_out_of_fold(asked, found), found.positive, found.weights)
    explained = (
        f"A probability is about items like those of the pool. It rests on {len(asked)} random "
        "items that people answered, each counted as often as it stands for others; neither on a "
        "typical P nor on a prior. The answers must be right, and unsure ones like the others."
    )
    return AuditedProbabilities(curve, explained, own, before, off)


def _fitted(scores: Float[np.ndarray, "m"], found: Decided) -> PUCalibrator:
    classes = np.where(found.positive, POSITIVE, NEGATIVE).astype(np.int64)
    return PUCalibrator().fit_answers(scores, classes, found.weights)


def _out_of_fold(scores: Float[np.ndarray, "m"], found: Decided) -> Float[np.ndarray, "m"]:
    """Return probabilities of the answered items by curves that did not see their answers."""
    fold = np.empty(len(scores), np.int64)
    for mask in (found.positive, ~found.positive):  # so that every curve sees both classes
        fold[mask] = np.arange(int(mask.sum())) % FOLDS
    probabilities = np.empty(len(scores))
    for _, rest, part in sides(fold):
        seen = Decided(found.rows[rest], found.positive[rest], found.weights[rest])
        curve = _fitted(scores[rest], seen).calibration("answers")
        probabilities[part] = curve.of(scores[part])
    return probabilities


def examine_by_audit(
    run: Path,
    scores: Float[np.ndarray, "n"],
    design: AuditDesign,
    answers: Int64[np.ndarray, "n"],
    before: Calibration | None,
) -> tuple[AuditedProbabilities | None, TypicalByAudit | None, str]:
    """Return probabilities and the test of P by an audit, or why there are none, in a sentence."""
    if not ((run / SCORED).exists() and (run / DESCRIPTION).exists()):
        return None, None, f"{run} holds no model, so the audit says nothing of its probabilities."
    scored = Scored.load(run / SCORED)
    pair = scored.held_out_pair()
    if scored.fold is None or pair is None:
        return None, None, f"The audit gives no probabilities: {NEEDS_SEARCH}"
    found = audited_probabilities(scores, design, answers, before)
    typical = compare_with_audit(pair[0], scores, design, answers)
    if typical is not None and typical.rejected and found.curve is None and before is not None:
        reason = f"There are no probabilities, because they rest on a typical P. {found.explained}"
        found = replace(found, explained=reason.removesuffix(STAY), reliability=None, refuted=True)
    return found, typical, ""


def curve_of(run: Path) -> Calibration | None:
    """Return the curve of a run's model; None where it has none, or there is no model."""
    if not (run / DESCRIPTION).exists():
        return None
    return ModelDescription.from_settings(read_json(run / DESCRIPTION), DESCRIPTION).calibration


def write_probabilities(
    new: Path, run: Path, found: AuditedProbabilities, result: dict[str, Any]
) -> None:
    """Write the run's files with these probabilities into the folder of a change.

    Scores, threshold and decisions stay; `rank`, maps and the page take the curve from there.
    """
    curve = found.now
    model = ModelDescription.from_settings(read_json(run / DESCRIPTION), DESCRIPTION)
    write_description(new, model.model_copy(update={"calibration": curve}))
    # In full and best first, as the run wrote them: nine digits would give other probabilities.
    scores = np.sort(Scored.load(run / SCORED).unlabelled)[::-1].tolist()
    columns, rows = read_decisions(run / SCORES, len(scores))
    item, rank, decision = (columns.index(name) for name in ("item", "rank", "decision"))
    lines = [
        (row[item], *numbers_of(score, curve), row[rank], row[decision])
        for score, row in zip(scores, rows, strict=True)
    ]
    write_text(new / SCORES, csv_lines([columns_of(curve), *lines]))
    entry = {key: found.to_json()[key] for key in ("basis", "explained", "reliability")}
    changed = {**result, "calibration": entry}
    write_json(new / RESULT, changed)
    write_cards(new, run, changed, kind=model.kind)
