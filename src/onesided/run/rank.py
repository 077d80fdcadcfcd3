"""A trained model over a folder, in pieces: only names and scores stay in memory."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onesided.core.errors import DataError
from onesided.data.files import find_images
from onesided.data.images import check_readable, decode_all
from onesided.engine.model_file import load_model
from onesided.run.execute import ranked_rows

PIECE = 1024


@dataclass(frozen=True)
class Ranking:
    """Rows (path, score, rank, decision), best first, and what could not be read."""

    rows: list[tuple[str, str, int, str]]
    skipped: list[tuple[str, str]]


def rank_folder(
    run: Path,
    folder: Path,
    *,
    tolerate: float,
    progress: Callable[[int, int], None] | None = None,
) -> Ranking:
    """Score every image of a folder with the model of a run."""
    predictor, model = load_model(run)
    if len(model.sample_shape) != 3:
        raise DataError(
            f"The model in {run} was trained on vectors of {model.sample_shape[0]} numbers; "
            "it cannot rank a folder of images."
        )
    channels, height, width = model.sample_shape
    found = find_images(folder)
    names: list[str] = []
    scores: list[np.ndarray] = []
    skipped: list[tuple[str, str]] = []
    for start in range(0, len(found), PIECE):
        piece = found[start : start + PIECE]
        decoded = decode_all(
            piece, channels=channels, size=(height, width), tolerate=1.0, what=str(folder)
        )
        names += decoded.kept
        skipped += decoded.skipped
        if len(decoded.values):
            scores.append(predictor.scores(decoded.values))
        if progress:
            progress(start + len(piece), len(found))
    check_readable(str(folder), len(found), skipped, tolerate)
    return Ranking(ranked_rows(names, np.concatenate(scores), predictor.threshold), skipped)
