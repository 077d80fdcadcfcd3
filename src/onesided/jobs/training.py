"""Train the model of a map on chips: the part that the map of a town and of a region share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64

from onesided.core.monitor import Monitor
from onesided.geo.scene.chips import Chips
from onesided.geo.scene.cutting import write_cutting
from onesided.geo.scene.holdout import (
    copied_rows,
    held_out_rows,
    labelled_rows,
    load_chips,
    out_of_fold_scores,
)
from onesided.geo.scene.sources import MarkedScene
from onesided.jobs.choices import method_lines
from onesided.jobs.fit import watcher
from onesided.jobs.map_request import MapRequest
from onesided.report import write_report
from onesided.run.config import ChipsConfig
from onesided.run.execute import run as run_problem
from onesided.run.folder import SCORED, Place
from onesided.run.load import apply_answers
from onesided.run.presets import Plan
from onesided.run.problem import build_problem
from onesided.run.scored import Scored
from onesided.storage.together import together, write_checksums


@dataclass(frozen=True)
class TrainedOnChips:
    """What training on chips gives beside the model in its run folder.

    Attributes:
        result: The content of `result.json`.
        known: Scores by models that saw none of a building's neighbours; NaN elsewhere.
        held_out: Which buildings have a score of a model that was not trained on them.
        copies: Which buildings look the same as another that counts in figures.
        marked: Which buildings are P: those that were marked, and those that reviewers confirmed.
        rejected: Which buildings reviewers call undamaged.
        notices: What limits the figures.
    """

    result: Mapping[str, Any]
    known: Float64[np.ndarray, "n"]
    held_out: Bool[np.ndarray, "n"]
    copies: Bool[np.ndarray, "n"]
    marked: Bool[np.ndarray, "n"]
    rejected: Bool[np.ndarray, "n"]
    notices: tuple[str, ...]


def train_on_chips(
    prepared: MarkedScene,
    chips: Chips,
    plan: Plan,
    wanted: ChipsConfig,
    place: Place,
    monitor: Monitor,
    *,
    asked: MapRequest,
) -> TrainedOnChips:
    """Train a model on the marked buildings against the others, in its run folder.

    `asked` is kept there, for the next round.
    """
    if 2 * prepared.after_from == prepared.scene.channels:
        plan = plan.with_pairs()
    loaded = load_chips(prepared.scene.buildings, chips, prepared.marked, wanted)
    loaded = apply_answers(loaded, wanted.answers)
    problem = build_problem(plan.for_data(loaded.split), loaded)
    for sentence in loaded.notices:
        monitor.note(sentence)
    with monitor.phase(f"training {problem.config.method.card.title}") as phase:
        result = run_problem(problem, place, watcher(phase, monitor)).content
    # After it: a run that is refused says one sentence and nothing else.
    for sentence in method_lines(problem.config):
        monitor.note(sentence)
    with together(place.path) as new:
        write_cutting(new, prepared.stretches, wanted.margin)
        asked.write(new)
        write_report(place.path, new=new)
        write_checksums(new, place.path)
    scored, count = Scored.load(place.path / SCORED), len(chips.values)
    known = out_of_fold_scores(loaded.split, scored, count)
    held_out = held_out_rows(loaded.split, count) | ~np.isnan(known)
    rejected = np.zeros(count, bool)
    if loaded.known_negatives is not None:
        rejected[loaded.known_negatives.train.values.index] = True
    return TrainedOnChips(
        result,
        known,
        held_out,
        copied_rows(loaded.split, scored, count),
        prepared.marked | labelled_rows(loaded.split, count),
        rejected,
        (*loaded.notices, *result["warnings"]),
    )
