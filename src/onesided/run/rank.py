"""A trained model over a folder, in pieces: only names and scores stay in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onesided.core.errors import CheckpointError, DataError, DataNotFound
from onesided.data.files import Found, Unreadable, find_images, printable
from onesided.data.images import Decoded, check_readable, decode, decode_all
from onesided.engine.model_file import load_model
from onesided.run.execute import ranked_rows
from onesided.run.folder import RESULT, read_result

PIECE = 1024


@dataclass(frozen=True)
class Ranking:
    """Rows (path, score, rank, decision), best first, and what could not be read, printable."""

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
    if not run.is_dir():
        raise DataNotFound(
            f"There is no run folder {run}. Give the folder that onesided fit wrote with -o."
        )
    predictor, model = load_model(run)
    if len(model.sample_shape) != 3:
        raise DataError(
            f"The model in {run} was trained on vectors of {model.sample_shape[0]} numbers; "
            "it cannot rank a folder of images."
        )
    found = find_images(folder)
    names: list[str] = []
    scores: list[np.ndarray] = []
    skipped: list[tuple[str, str]] = []
    for start in range(0, len(found), PIECE):
        piece = found[start : start + PIECE]
        decoded = _decode_piece(piece, model.sample_shape, printable(str(folder)))
        names += decoded.kept
        skipped += decoded.skipped
        if len(decoded.values):
            scores.append(_finite(predictor.scores(decoded.values), run))
        if progress:
            progress(start + len(piece), len(found))
    check_readable(printable(str(folder)), len(found), skipped, tolerate)
    return Ranking(
        ranked_rows(names, np.concatenate(scores), predictor.threshold),
        [(printable(name), reason) for name, reason in skipped],
    )


def _decode_piece(piece: Sequence[Found], shape: tuple[int, ...], what: str) -> Decoded:
    channels, height, width = shape
    try:
        return decode_all(piece, channels=channels, size=(height, width), tolerate=1.0, what=what)
    except DataNotFound:
        # Not one file of this piece is readable, but other pieces may be: the whole decides.
        reasons = tuple((file.name, _reason(file, channels, (height, width))) for file in piece)
        return Decoded(np.empty((0, *shape), np.uint8), (), (), reasons, ())


def _reason(file: Found, channels: int, size: tuple[int, int]) -> str:
    try:
        decode(file.path, channels=channels, size=size)
    except Unreadable as error:
        return error.reason
    return "could not be read a moment ago, and now can"


def _finite(scores: np.ndarray, run: Path) -> np.ndarray:
    if not np.isfinite(scores).all():
        raise CheckpointError(
            f"The model in {run} gives scores that are no numbers, so its weights are damaged. "
            "Restore them from a copy, or train again."
        )
    return scores


def alarm_of(run: Path) -> str | None:
    """Return the sentence of a run whose model is degenerate; None also where nobody knows."""
    if not (run / RESULT).exists():
        return None  # model files alone rank as well; someone may have copied just these
    pu = read_result(run)["pu"]
    return None if pu is None else pu.get("degenerate")
