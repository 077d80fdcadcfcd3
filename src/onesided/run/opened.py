"""A trained model, ready to score: of a run folder, or of an exported file.

Imports no torch: an exported file is run without it, and a run folder loads it when it is opened.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onesided.core.errors import ConfigError, DataNotFound
from onesided.data.columns.cells import Column
from onesided.engine.exported import is_exported, load_exported
from onesided.engine.files import REFERENCE, WEIGHTS
from onesided.metrics.calibration import Calibration
from onesided.metrics.reference import Reference
from onesided.storage.names import shown_path
from onesided.storage.together import settle

if TYPE_CHECKING:  # it imports torch
    from onesided.engine.model_file import ModelDescription
    from onesided.engine.predict import Predictor


@dataclass(frozen=True)
class Opened:
    """A trained model, ready to score.

    Attributes:
        called: What messages call it.
        method: Name of its method.
        scores: From samples to scores from 0 to 1.
        threshold: A score above it means positive.
        sample_shape: (C, H, W) of an image or (D,) of a vector.
        feature_names: Of the numbers of a vector, where they have names.
        columns: Of raw rows of a table, where the model takes those.
        identity: Hash of all that decides scores.
        unknown: Counts cells of raw rows whose value the model does not know, by column.
        calibration: From scores to probabilities, if they are known.
        reference: What it was trained on, in a few numbers; exported files have none.
        counted: Scores and counts by the reference.
    """

    called: str
    method: str
    scores: Callable[[np.ndarray], np.ndarray]
    threshold: float
    sample_shape: tuple[int, ...]
    feature_names: tuple[str, ...]
    columns: Sequence[Column]
    identity: str
    unknown: Callable[[np.ndarray], Counter[str]] | None = None
    calibration: Calibration | None = None
    reference: Reference | None = None
    counted: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]] | None = None

    def scores_and_counts(self, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return scores, and how many items lie between the edges of the model's reference."""
        return (self.scores(samples), None) if self.counted is None else self.counted(samples)


def open_model(path: Path, *, threads: int = 0) -> Opened:
    """Return the model of a run folder or of an exported file.

    Args:
        path: The folder or file.
        threads: Of onnxruntime, for an exported file; 0 leaves their number to it.
    """
    if is_exported(path) and not path.is_dir():
        return _of_file(path, threads)
    if not path.is_dir():
        raise DataNotFound(
            f"There is no run folder {path}. Give the folder that onesided fit wrote with -o."
        )
    settle(path)
    from onesided.engine.model_file import load_model

    predictor, model = load_model(path)
    encoder = predictor.encoder
    return Opened(
        called=f"The model in {path}",
        method=model.method,
        scores=predictor.scores,
        threshold=predictor.threshold,
        sample_shape=model.sample_shape,
        feature_names=model.feature_names,
        columns=model.encoder.columns if model.encoder else (),
        identity=identity_of(path, model),
        unknown=None if encoder is None else encoder.unknown,
        calibration=predictor.calibration,
        reference=predictor.reference,
        counted=partial(_score_and_count, predictor),
    )


def _score_and_count(
    predictor: "Predictor", values: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return scores, and how many items lie between the edges of the model's reference."""
    from onesided.engine.predict import compared_numbers

    inputs = predictor.inputs(values)
    reference = predictor.reference
    counts = None if reference is None else reference.counts(compared_numbers(inputs))
    return predictor.scores_of(inputs), counts


def _of_file(path: Path, threads: int) -> Opened:
    exported = load_exported(path, threads=threads)
    facts = exported.facts
    if facts.output != "scores":
        raise ConfigError(
            f"{shown_path(path)} was exported for Deepness and returns maps. Export the model "
            "again without --deepness, or give its run folder."
        )
    return Opened(
        called=f"The model {path}",
        method=facts.method,
        scores=exported.scores,
        threshold=facts.threshold,
        sample_shape=facts.sample_shape,
        feature_names=facts.feature_names,
        columns=(),
        identity=exported.identity,
        calibration=facts.calibration,
    )


def identity_of(run: Path, model: "ModelDescription") -> str:
    """Return a hash of all that decides scores; threshold and probabilities follow from them."""
    with (run / WEIGHTS).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(model.model_dump_json(exclude={"threshold", "calibration"}).encode())
    if (run / REFERENCE).exists():
        digest.update((run / REFERENCE).read_bytes())  # what else a stopped command counted by
    return digest.hexdigest()
