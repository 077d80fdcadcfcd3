"""The decision threshold of a run: chosen by a rule, stored with the model, open to change.

Everything that depends on it (decisions, figures, alarms) is made from stored scores, so a
finished run gets another threshold in a second, without its data and without its truth.
"""

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from onesided.core.config import read_toml
from onesided.core.errors import ConfigError, DataError, OnesidedError
from onesided.engine.model_file import DESCRIPTION, ModelDescription, write_description
from onesided.metrics.intervals import clopper_pearson
from onesided.metrics.registry import OWN_SCORES
from onesided.metrics.threshold_rules import (
    HALF,
    NoThreshold,
    ThresholdRule,
    lee_liu,
    lee_liu_threshold,
    prior_threshold,
    recall_threshold,
    top_k_threshold,
)
from onesided.run.folder import CONFIG, REPORT_DATA, RESULT, SCORED, SCORES, read_result
from onesided.run.gallery import map_roles
from onesided.run.own_scores import NoPrior, own_prior
from onesided.run.prior import PriorUsed
from onesided.run.scored import UNREADABLE, Scored, arrays_of, entries_at, figures_at
from onesided.storage.atomic import read_json, write_arrays, write_json, write_text
from onesided.storage.table import csv_lines


@dataclass(frozen=True)
class Chosen:
    """A threshold, the rule that chose it, and the reason in a sentence."""

    value: float
    rule: ThresholdRule
    reason: str

    @property
    def sentence(self) -> str:
        """What people are told."""
        return f"Threshold {self.value:.6g} by the rule {self.rule}: {self.reason}"

    @property
    def notices(self) -> tuple[str, ...]:
        """What has to be told: nothing where the model's own half decides."""
        return () if self.rule == HALF else (self.sentence,)

    def to_json(self, chosen_by: str) -> dict[str, str]:
        """Return the entry `threshold_rule` of `result.json`."""
        return {"rule": str(self.rule), "explained": self.sentence, "chosen_by": chosen_by}


def check_rule(rule: ThresholdRule, *, unlabelled: int, held_out: bool) -> None:
    """Refuse a rule that this data cannot follow; before training rather than after."""
    if rule.needs_held_out and not held_out:
        remedy = "Give a prior, as in prior=0.3, or set" if rule.name == "prior" else "Set"
        raise ConfigError(
            f"The threshold {rule} is found on held-out positives and unlabelled samples, and "
            f"this run holds none out. {remedy} data.held_out, or data.held_out_positives and "
            "data.held_out_unlabelled."
        )
    if rule.name == "top-k" and rule.value is not None and rule.value > unlabelled:
        raise ConfigError(
            f"The threshold {rule} asks for more items than there are unlabelled ones: "
            f"{unlabelled}. Use a smaller number."
        )


def choose_threshold(rule: ThresholdRule, scored: Scored, prior: float | None) -> Chosen:
    """Return the threshold of a rule, from scores of P and U alone.

    Args:
        rule: How to choose.
        scored: The scores; test and known negatives are not looked at.
        prior: Class prior that the method or the user named; None estimates one by BBE on
            the held-out scores of this very model, where the rule needs one.
    """
    unlabelled = scored.unlabelled
    check_rule(rule, unlabelled=len(unlabelled), held_out=scored.held_out is not None)
    pair = scored.held_out_pair()
    match rule.name:
        case "fixed":
            assert rule.value is not None
            return Chosen(rule.value, rule, _fixed_words(rule.value))
        case "top-k":
            assert rule.value is not None
            return _top_k(rule, unlabelled, int(rule.value))
        case "prior":
            return _by_prior(rule, unlabelled, pair, prior)
        case "max-f1":
            assert pair is not None
            return _max_f1(rule, *pair)
        case "recall":
            assert pair is not None
            return _by_recall(rule, *pair)


def threshold_after_training(rule: ThresholdRule, scored: Scored, prior: float | None) -> Chosen:
    """Return the threshold of a rule, or a half where these scores do not tell it.

    A refusal would cost the training that came before, and the threshold can be moved later.
    """
    try:
        return choose_threshold(rule, scored, prior)
    except NoThreshold as untold:
        half = choose_threshold(HALF, scored, None)
        return replace(half, rule=rule, reason=f"{untold} For now a half decides.")


def _fixed_words(value: float) -> str:
    if value == 0.5:
        return "A score above 0.5 means positive: the model finds it likelier than negative."
    return f"A score above {value:g} means positive, as given."


def _top_k(rule: ThresholdRule, scores: np.ndarray, count: int) -> Chosen:
    value = top_k_threshold(scores, count)
    called = int((scores > value).sum())
    words = f"{called} of {len(scores)} unlabelled items that were scored lie above it."
    if called < count:
        below = scores[scores <= value]
        tied = int((scores == below.max()).sum())
        words = (
            f"{words[:-1]}, not {count}: {tied} items have the same score at the cut, and all of "
            "them stay below."
        )
    return Chosen(value, rule, words)


def _by_prior(
    rule: ThresholdRule,
    unlabelled: np.ndarray,
    pair: tuple[np.ndarray, np.ndarray] | None,
    known: float | None,
) -> Chosen:
    # Held-out items where there are some: of those it was trained on, a model that learns
    # labels by heart calls too few positive.
    scores, what = (unlabelled, "") if pair is None else (pair[1], "held-out ")
    prior, origin = rule.value, "as given"
    if prior is None and known is not None:
        prior, origin = known, "the prior of this run"
    if prior is None:
        assert pair is not None
        estimate = own_prior(*pair)
        if isinstance(estimate, NoPrior):
            raise NoThreshold(
                f"No threshold by the prior: {estimate}. Name it, as in prior=0.3, or choose by "
                "another rule, as recall=0.9."
            )
        prior = estimate.value
        origin = (
            "estimated by BBE on this model's held-out scores, biased high, 95 % interval "
            f"{estimate.low:.3f} to {estimate.high:.3f}"
        )
    value = prior_threshold(scores, prior)
    called = int((scores > value).sum())
    return Chosen(
        value,
        rule,
        f"{called} of {len(scores)} {what}unlabelled items lie above it, a share of "
        f"{called / len(scores):.3f}; the prior is {prior:.3f} ({origin}).",
    )


def _max_f1(rule: ThresholdRule, positive: np.ndarray, unlabelled: np.ndarray) -> Chosen:
    value = lee_liu_threshold(positive, unlabelled)
    lowest = min(part[part > value].min(initial=np.inf) for part in (positive, unlabelled))
    reached = float(lee_liu(positive, unlabelled, np.array([lowest]))[0])
    return Chosen(
        value,
        rule,
        f"It maximises recall^2 / share of U called positive (Lee and Liu, no prior needed) at "
        f"{reached:.3f} on {len(positive)} held-out positives and {len(unlabelled)} held-out "
        "unlabelled items. Figures from the same items are a little too good.",
    )


def _by_recall(rule: ThresholdRule, positive: np.ndarray, unlabelled: np.ndarray) -> Chosen:
    assert rule.value is not None
    value = recall_threshold(positive, unlabelled, rule.value)
    found = int((positive > value).sum())
    low, high = clopper_pearson(found, len(positive))
    return Chosen(
        value,
        rule,
        f"{found} of {len(positive)} held-out positives lie above it: a recall of "
        f"{found / len(positive):.3f}, 95 % interval {low:.3f} to {high:.3f}.",
    )


def set_threshold(run: Path, rule: ThresholdRule) -> dict[str, Any]:
    """Give a finished run another threshold; return its new `result.json`.

    The result is written last: killed before, the same command does everything again.
    """
    result, scored = read_result(run), Scored.load(run / SCORED)
    prior = PriorUsed.of_result(result)
    chosen = new_threshold(run, rule)
    told = (result.get("threshold_rule") or {}).get("explained")
    notices = [text for text in result.get("notices", []) if text != told]
    evaluation = figures_at(scored, chosen.value, scenario=result["scenario"], prior=prior)
    StoredFiles.read(run, scored).write(scored, chosen.value)
    changed = {
        **result,
        **entries_at(scored, chosen.value, evaluation, prior),
        "threshold_rule": chosen.to_json("onesided evaluate"),
        "notices": [*notices, *chosen.notices],
    }
    write_json(run / RESULT, changed)
    return changed


def new_threshold(run: Path, rule: ThresholdRule) -> Chosen:
    """Return the threshold that a finished run would get, or refuse; writes nothing."""
    prior = PriorUsed.of_result(read_result(run))
    named = _given_prior(run) if prior is None else prior.value
    if prior is not None and prior.origin == OWN_SCORES:
        named = None  # nobody named it; the rule estimates it again, and says so
    scored = Scored.load(run / SCORED)
    StoredFiles.read(run, scored)  # refuses what could not be written again
    return choose_threshold(rule, scored, named)


def _given_prior(run: Path) -> float | None:
    """Return the number that the user named for a method that did not need it, if any."""
    prior = read_toml(run / CONFIG).get("prior") if (run / CONFIG).exists() else None
    return prior if isinstance(prior, float) else None


@dataclass(frozen=True)
class StoredFiles:
    """The files of a finished run that follow its threshold: all are read before one is written.

    Attributes:
        run: The folder.
        model: `model.json`.
        columns: First line of `scores.csv`.
        rows: Its other lines, in the order of their full scores.
        arrays: `report.npz`, None where there is none.
    """

    run: Path
    model: ModelDescription
    columns: list[str]
    rows: list[list[str]]
    arrays: dict[str, np.ndarray] | None

    @classmethod
    def read(cls, run: Path, scored: Scored) -> Self:
        """Read them, or refuse: a damaged file must not leave the others half moved."""
        model = ModelDescription.from_settings(read_json(run / DESCRIPTION), DESCRIPTION)
        columns, rows = _read_decisions(run / SCORES, len(scored.unlabelled))
        return cls(run, model, columns, rows, _read_report_data(run / REPORT_DATA))

    def write(self, scored: Scored, threshold: float) -> None:
        """Write them for another threshold."""
        changed = self.model.model_copy(update={"threshold": threshold})
        write_description(self.run, changed)
        called = int((scored.unlabelled > threshold).sum())
        place = self.columns.index("decision")
        decided = [list(row) for row in self.rows]
        for number, row in enumerate(decided):
            row[place] = "positive" if number < called else "negative"
        write_text(self.run / SCORES, csv_lines([self.columns, *decided]))
        if self.arrays is not None:
            self._write_report_data(self.arrays, scored, threshold)

    def _write_report_data(
        self, arrays: dict[str, np.ndarray], scored: Scored, threshold: float
    ) -> None:
        """Bring the map of features up to date, and leave out the pictures nearest the threshold.

        Those were chosen for the old one, and the pictures of the others are not in the run.
        """
        kept = {name: array for name, array in arrays.items() if not name.startswith("threshold_")}
        if "embedding_role" in kept:
            kept["embedding_role"] = map_roles(scored.train_labelled, scored.train, threshold)
        write_arrays(self.run / REPORT_DATA, kept)


def _read_decisions(path: Path, items: int) -> tuple[list[str], list[list[str]]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            columns, *rows = csv.reader(file, strict=True)
        columns.index("decision")
        if len(rows) != items or any(len(row) != len(columns) for row in rows):
            raise ValueError(f"expected {items} rows of {len(columns)} cells, as the run wrote it")
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(
            f"{path} cannot be read ({error}). Restore it, or train again with --overwrite."
        ) from None
    return columns, rows


def _read_report_data(path: Path) -> dict[str, np.ndarray] | None:
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as archive:
            return arrays_of(archive)
    except UNREADABLE as error:
        raise OnesidedError(
            f"{path} cannot be read ({error}). Restore it, or train again with --overwrite."
        ) from None
