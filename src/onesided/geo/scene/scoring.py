"""Scores of a region, piece by piece: chips live in memory for a moment and are not stored.

A finished piece is a small file. A command that was stopped finds the finished ones and does the
others; commands on several machines do different pieces.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64, Int64

from onesided.core.errors import CheckpointError, DataError
from onesided.engine.model_file import DESCRIPTION, WEIGHTS
from onesided.engine.predict import Predictor
from onesided.geo.scene.chips import RULES, file_identity
from onesided.geo.scene.footprint_scene import FootprintScene, SceneImage, outlined_scene
from onesided.geo.scene.pieces import Division
from onesided.storage.atomic import replacing
from onesided.storage.own_file import read_arrays
from onesided.storage.progress import Progress

SCORES = "scores"
AT_ONCE = 256
"""Chips in memory at a time."""


@dataclass(frozen=True)
class PieceScores:
    """What is known of the buildings of one piece after scoring.

    Attributes:
        scores: From 0 to 1, NaN where a building was skipped.
        reasons: Why it was skipped, empty where it was not.
    """

    numbers: Int64[np.ndarray, "n"]
    scores: Float64[np.ndarray, "n"]
    reasons: np.ndarray


@dataclass(frozen=True)
class RegionScores:
    """Scores of all buildings of a region, by their number."""

    scores: Float64[np.ndarray, "n"]
    reasons: dict[int, str]

    @property
    def scored(self) -> Bool[np.ndarray, "n"]:
        """Which buildings have a score."""
        scored: Bool[np.ndarray, n] = ~np.isnan(self.scores)
        return scored


@dataclass(frozen=True)
class Scoring:
    """How the pieces of a region are scored, and where their scores are kept."""

    division: Division
    images: Sequence[SceneImage]
    predictor: Predictor
    model: Path
    folder: Path
    size: int
    margin: float
    shift: tuple[float, float] = (0.0, 0.0)

    def identity(self) -> str:
        """Return a hash of the buildings, the images and the model."""
        images = [
            [file_identity(each.image.path), each.stretch.low, each.stretch.high]
            for each in self.images
        ]
        words = [RULES, self.division.content, self.size, self.margin, self.shift, images]
        digest = hashlib.sha256(repr(words).encode())
        for name in (DESCRIPTION, WEIGHTS):
            path = self.model / name
            digest.update(path.read_bytes() if path.is_file() else b"")
        return digest.hexdigest()

    def run(self, pieces: Iterable[int], progress: Progress | None = None) -> None:
        """Score the pieces that are not scored yet."""
        self.folder.mkdir(parents=True, exist_ok=True)
        identity, wanted = self.identity(), list(pieces)
        for done, number in enumerate(wanted, start=1):
            path = self.folder / f"{number:05d}.npz"
            if not path.is_file() or str(read_arrays(path).get("identity")) != identity:
                found = self._piece(number)
                with replacing(path) as file:
                    np.savez(
                        file,
                        identity=np.array(identity),
                        numbers=found.numbers,
                        scores=found.scores,
                        reasons=found.reasons,
                    )
            if progress is not None:
                progress(done, len(wanted))

    def _piece(self, number: int) -> PieceScores:
        piece = self.division.read(number)
        scene = outlined_scene(piece.buildings, self.images, margin=self.margin, shift=self.shift)
        scores = np.full(len(piece.numbers), np.nan)
        reasons = np.full(len(piece.numbers), "", object)
        order = scene.order()
        for start in range(0, len(order), AT_ONCE):
            rows = order[start : start + AT_ONCE]
            self._some(scene, rows, scores, reasons)
        return PieceScores(piece.numbers, scores, reasons.astype(np.str_))

    def _some(
        self,
        scene: FootprintScene,
        rows: Int64[np.ndarray, "m"],
        scores: Float64[np.ndarray, "n"],
        reasons: np.ndarray,
    ) -> None:
        seen, chips = [], []
        for row, chip in zip(rows, scene.chips(rows.tolist(), self.size), strict=True):
            if isinstance(chip, str):
                reasons[row] = chip
            else:
                seen.append(row)
                chips.append(chip)
        if not seen:
            return
        scores[seen] = self.predictor.scores(np.stack(chips))
        if not np.isfinite(scores[seen]).all():
            raise CheckpointError(
                f"The model in {self.model} gives scores that are no numbers, so its weights are "
                "damaged. Restore them from a copy, or train again."
            )


def read_scores(division: Division, folders: Sequence[Path]) -> RegionScores:
    """Return the scores of all pieces, each from the first folder that has it.

    Folders are those of several machines; a piece that none has, or pieces of different
    models, are refused.
    """
    scores, reasons = np.full(division.count, np.nan), dict[int, str]()
    missing, identity = [], ""
    for number in range(division.pieces):
        paths = [folder / f"{number:05d}.npz" for folder in folders]
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            missing.append(number)
            continue
        arrays = read_arrays(path, "Delete it, and give the command of its part again.")
        identity = identity or str(arrays["identity"])
        if str(arrays["identity"]) != identity:
            raise DataError(
                f"{path} was scored by another model or from other images than the pieces before "
                "it. Give the command of its part again, with the same model and images."
            )
        numbers = arrays["numbers"]
        scores[numbers] = arrays["scores"]
        for place in np.flatnonzero(arrays["reasons"] != ""):
            reasons[int(numbers[place])] = str(arrays["reasons"][place])
    if missing:
        raise DataError(
            f"{len(missing)} of {division.pieces} pieces are not scored yet; the first is number "
            f"{missing[0] + 1}. Give the command of their parts, then merge again."
        )
    return RegionScores(scores, reasons)
