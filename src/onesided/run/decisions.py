"""The decision threshold of a run: chosen by a rule, stored with the model, open to change.

Everything that depends on it (decisions, figures, alarms) is computed from stored scores. So a
finished run gets another threshold in a second, without its data and without true classes.
"""

import csv
import io
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from onesided.core.config import read_toml
from onesided.core.errors import ConfigError, DataError
from onesided.core.folds import Groups
from onesided.engine.model_file import DESCRIPTION, ModelDescription, write_description
from onesided.metrics.figure import VAGUE
from onesided.metrics.intervals import share_interval
from onesided.metrics.registry import FROM_OWN_SCORES, OWN_SCORES_MEDIAN
from onesided.metrics.selection import Optimism
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
from onesided.run.cards import write_cards
from onesided.run.folder import CONFIG, REPORT_DATA, RESULT, SCORED, SCORES, read_result
from onesided.run.gallery import map_roles
from onesided.run.prior import NoPrior, PriorUsed
from onesided.run.scored import Scored, entries_at, figures_at, prior_by_scores
from onesided.storage.atomic import read_json, write_arrays, write_json, write_text
from onesided.storage.own_file import AGAIN, read_arrays, read_own
from onesided.storage.table import csv_lines

SAME_ITEMS = "Figures from the same items are biased slightly high."


@dataclass(frozen=True)
class Chosen:
    """A threshold, the rule that chose it, and the reason in a sentence.

    Attributes:
        by_rule: Whether the rule gave it, and not another one for now.
    """

    value: float
    rule: ThresholdRule
    reason: str
    by_rule: bool = True

    @property
    def sentence(self) -> str:
        """Threshold, rule and reason."""
        if not self.by_rule:
            return self.reason
        return f"Threshold {self.value:.6g} by the rule {self.rule}: {self.reason}"

    @property
    def notices(self) -> tuple[str, ...]:
        """The sentence, but none for the usual threshold of 0.5."""
        return () if self.rule == HALF else (self.sentence,)

    def to_json(self, chosen_by: str) -> dict[str, str]:
        """Return the entry `threshold_rule` of `result.json`."""
        return {"rule": str(self.rule), "explained": self.sentence, "chosen_by": chosen_by}


def check_rule(rule: ThresholdRule, *, unlabelled: int, held_out: bool) -> None:
    """Refuse a rule that this data cannot follow, before training rather than after."""
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
        scored: The scores; those of the test part and of known negatives are not used.
        prior: Class prior of the method or the user; None estimates one by BBE on the held-out
            scores of this model, where the rule needs one.
    """
    unlabelled = scored.unlabelled
    check_rule(rule, unlabelled=len(unlabelled), held_out=scored.held_out_pair() is not None)
    pair, number = scored.held_out_pair(), rule.value
    match rule.name:
        case "fixed":
            assert number is not None
            found = number, _fixed_words(number)
        case "top-k":
            assert number is not None
            found = _top_k(unlabelled, int(number))
        case "prior":
            found = _by_prior(number, scored, prior)
        case "max-f1":
            assert pair is not None
            found = _max_f1(*pair)
        case "recall":
            assert number is not None
            assert pair is not None
            groups = scored.held_out_groups()
            found = _by_recall(number, *pair, groups and groups[0])
    return Chosen(found[0], rule, found[1])


def _fixed_words(value: float) -> str:
    if value == 0.5:
        return "A score above 0.5 means positive: the model finds it likelier than negative."
    return f"A score above {value:g} means positive, as given."


def threshold_after_training(rule: ThresholdRule, scored: Scored, prior: float | None) -> Chosen:
    """Return the threshold of a rule, or another one where these scores give none.

    An error would lose the training that came before, and the threshold can be moved later. After
    a search a score of 0.5 has no meaning of its own, so the criterion of Lee and Liu stands in.
    """
    try:
        return choose_threshold(rule, scored, prior)
    except NoThreshold as error:
        found = _meanwhile(rule, scored)
        words = f"For now the threshold is {found.value:.6g}"
        words += "." if found.rule == HALF else f", that of the rule {found.rule}."
        return replace(found, rule=rule, reason=f"{error} {words}", by_rule=False)


def _meanwhile(rule: ThresholdRule, scored: Scored) -> Chosen:
    if scored.fold is not None and rule.name == "prior":
        with suppress(NoThreshold):
            return choose_threshold(ThresholdRule("max-f1"), scored, None)
    return choose_threshold(HALF, scored, None)


def _top_k(scores: np.ndarray, count: int) -> tuple[float, str]:
    value = top_k_threshold(scores, count)
    called = int((scores > value).sum())
    words = f"{called} of {len(scores)} unlabelled items that were scored lie above it."
    if called < count:
        below = scores[scores <= value]
        tied = int((scores == below.max()).sum())
        words = (
            f"{words[:-1]}, not {count}: {tied} items have the same score at the threshold, and "
            "all of them stay below."
        )
    return value, words


def _by_prior(given: float | None, scored: Scored, known: float | None) -> tuple[float, str]:
    pair = scored.held_out_pair()
    # On held-out items where there are some: a model that memorises labels calls too few of its
    # training items positive.
    scores, what = (scored.unlabelled, "") if pair is None else (pair[1], "held-out ")
    if scored.fold is not None:
        what = ""
    prior, origin, chosen_by_them = given, "as given", ""
    if prior is None and known is not None:
        prior, origin = known, "the prior of this run"
    if prior is None:
        estimate = prior_by_scores(scored)
        if isinstance(estimate, NoPrior):
            raise NoThreshold(
                f"There is no threshold by the prior: {estimate}. Give it, as in prior=0.3, or "
                "choose another rule, such as recall=0.9."
            )
        prior = estimate.value
        how = "by BBE on this model's held-out scores, biased high"
        if estimate.origin == OWN_SCORES_MEDIAN:
            how = "as the middle one of three estimates from out-of-fold scores"
        ends = estimate.interval
        assert ends is not None, "an estimate has one"
        interval = f"{ends[0]:.3f} to {ends[1]:.3f}"
        origin = f"estimated {how}, 95 % interval {interval}"
        if ends[1] - ends[0] > VAGUE:
            origin = f"estimated {how}, but it cannot be told: all from {interval} fits"
        # BBE takes the bin in which these positives, by chance too, are many.
        chosen_by_them = f" {SAME_ITEMS}"
    value = prior_threshold(scores, prior)
    called = int((scores > value).sum())
    return value, (
        f"{called} of {len(scores)} {what}unlabelled items lie above it, a share of "
        f"{called / len(scores):.3f}, for a prior of {prior:.3f} ({origin}).{chosen_by_them}"
    )


def _max_f1(positive: np.ndarray, unlabelled: np.ndarray) -> tuple[float, str]:
    value = lee_liu_threshold(positive, unlabelled)
    lowest = min(part[part > value].min(initial=np.inf) for part in (positive, unlabelled))
    reached = float(lee_liu(positive, unlabelled, np.array([lowest]))[0])
    return value, (
        f"It maximises recall^2 / share of U called positive (Lee and Liu, no prior needed) at "
        f"{reached:.3f} on {len(positive)} held-out positives and {len(unlabelled)} held-out "
        f"unlabelled items. {SAME_ITEMS}"
    )


def _by_recall(
    recall: float, positive: np.ndarray, unlabelled: np.ndarray, groups: Groups | None
) -> tuple[float, str]:
    value = recall_threshold(positive, unlabelled, recall)
    found = int((positive > value).sum())
    low, high = share_interval(positive > value, groups)
    return value, (
        f"{found} of {len(positive)} held-out positives lie above it: a recall of "
        f"{found / len(positive):.3f}, 95 % interval {low:.3f} to {high:.3f}."
    )


@dataclass(frozen=True)
class NewThreshold:
    """Another threshold for a finished run: all is read and checked, and nothing yet written.

    A damaged file is refused before any other is changed.
    """

    run: Path
    result: dict[str, Any]  # result.json
    scored: Scored  # scores.npz
    prior: PriorUsed | None
    chosen: Chosen
    model: ModelDescription  # model.json
    columns: list[str]  # first line of scores.csv
    rows: list[list[str]]  # its other lines, best score first
    arrays: dict[str, np.ndarray] | None  # report.npz

    @classmethod
    def of(cls, run: Path, rule: ThresholdRule) -> Self:
        """Read the run and choose its threshold, or raise."""
        result, scored = read_result(run), Scored.load(run / SCORED)
        prior = PriorUsed.of_result(result)
        known = _given_prior(run) if prior is None else prior.value
        if prior is not None and prior.origin in FROM_OWN_SCORES:
            known = None  # it was not given; the rule estimates it again, and says so
        model = ModelDescription.from_settings(read_json(run / DESCRIPTION), DESCRIPTION)
        columns, rows = read_decisions(run / SCORES, len(scored.unlabelled))
        arrays = read_arrays(run / REPORT_DATA) if (run / REPORT_DATA).exists() else None
        chosen = choose_threshold(rule, scored, known)
        return cls(run, result, scored, prior, chosen, model, columns, rows, arrays)

    def write(self, new: Path) -> dict[str, Any]:
        """Write the run's changed files into the folder of a change; return `result.json`."""
        result, scored, threshold = self.result, self.scored, self.chosen.value
        evaluation = figures_at(
            scored,
            threshold,
            scenario=result["scenario"],
            prior=self.prior,
            optimism=Optimism.of_result(result),
        )
        old = (result.get("threshold_rule") or {}).get("explained")
        notices = [text for text in result.get("notices", []) if text != old]
        write_description(new, self.model.model_copy(update={"threshold": threshold}))
        called = int((scored.unlabelled > threshold).sum())
        write_text(new / SCORES, self._decisions(called))
        if self.arrays is not None:
            # The pictures nearest the old threshold go: the run holds none nearest the new one.
            kept = {name: part for name, part in self.arrays.items() if name[:10] != "threshold_"}
            if "embedding_role" in kept:
                kept["embedding_role"] = map_roles(scored.train_labelled, scored.train, threshold)
            write_arrays(new / REPORT_DATA, kept)
        changed = {
            **result,
            **entries_at(
                scored,
                threshold,
                evaluation,
                self.prior,
                training_warnings=result.get(
                    "training_warnings", ()
                ),  # older runs looked at no curve
            ),
            "threshold_rule": self.chosen.to_json("onesided evaluate"),
            "notices": [*notices, *self.chosen.notices],
        }
        write_json(new / RESULT, changed)
        write_cards(new, self.run, changed, kind=self.model.kind)
        return changed

    def _decisions(self, called: int) -> str:
        """Return `scores.csv` with so many items called positive."""
        at = self.columns.index("decision")
        decided = [
            [*row[:at], "positive" if number < called else "negative", *row[at + 1 :]]
            for number, row in enumerate(self.rows)
        ]
        return csv_lines([self.columns, *decided])


def _given_prior(run: Path) -> float | None:
    """Return the prior that the user gave to a method that does not need it, if any."""
    prior = read_toml(run / CONFIG).get("prior") if (run / CONFIG).exists() else None
    return prior if isinstance(prior, float) else None


def read_decisions(path: Path, items: int) -> tuple[list[str], list[list[str]]]:
    """Return the first line of a `scores.csv` of so many items, and the others, best first."""
    try:
        text = io.StringIO(read_own(path).decode("utf-8"), newline="")
        columns, *rows = csv.reader(text, strict=True)
        columns.index("decision")
        if len(rows) != items or any(len(row) != len(columns) for row in rows):
            raise ValueError(f"expected {items} rows of {len(columns)} cells, as the run wrote it")
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path} cannot be read ({error}). {AGAIN}") from None
    return columns, rows
