"""Scores of a region, piece by piece: chips live in memory for a moment and are not stored.

A finished piece is a small file. A command that was stopped finds the finished ones and does the
others; commands on several machines do different pieces.
"""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64

from onesided.core.errors import CheckpointError, DataError
from onesided.engine.model_file import DESCRIPTION, WEIGHTS, load_model
from onesided.engine.predict import Predictor
from onesided.geo.input.image import Stretch
from onesided.geo.input.imagery import Imagery
from onesided.geo.scene.chips import RULES, file_identity
from onesided.geo.scene.footprint_scene import (
    FootprintScene,
    SceneImage,
    open_images,
    outlined_scene,
)
from onesided.geo.scene.pieces import Division, read_division
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

    @cached_property
    def identity(self) -> str:
        """A hash of the buildings, the images and the model."""
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

    def path(self, number: int) -> Path:
        """Return the file of a piece's scores."""
        return self.folder / f"{number:05d}.npz"

    def left(self, pieces: Iterable[int]) -> list[int]:
        """Return those of some pieces that are not scored yet."""
        return [one for one in pieces if not _is_scored(self.path(one), self.identity)]

    def run(self, pieces: Sequence[int], progress: Progress | None = None) -> None:
        """Score the pieces that are not scored yet."""
        left = self.left(pieces)
        for done, number in enumerate(left, start=len(pieces) - len(left) + 1):
            self.score(number)
            if progress is not None:
                progress(done, len(pieces))

    def score(self, number: int) -> None:
        """Score a piece, into its file."""
        found = self._piece(number)
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.path(number)) as file:
            np.savez(
                file,
                identity=np.array(self.identity),
                numbers=found.numbers,
                scores=found.scores,
                reasons=found.reasons,
            )

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


def _is_scored(path: Path, identity: str) -> bool:
    return path.is_file() and str(read_arrays(path).get("identity")) == identity


@dataclass(frozen=True)
class PieceTask:
    """A piece that a worker of Ray scores, with all that it opens for that, by paths.

    Attributes:
        region: Folder of the division; scores go into it too.
        images: Before and after, or after alone.
        stretches: Those of the driver: a worker must not choose its own.
    """

    number: int
    region: Path
    images: tuple[Path | Imagery, ...]
    given_system: str | None
    stretches: tuple[Stretch, ...]
    model: Path
    margin: float
    shift: tuple[float, float]

    def scoring(self, stack: ExitStack) -> Scoring:
        """Open the images and the model; the stack closes them."""
        images = open_images(
            stack, self.images, given_system=self.given_system, stretches=self.stretches
        )
        return scoring_by(self.model, self.region, images, self.margin, self.shift)


def score_piece(task: PieceTask) -> None:
    """Score a piece in a process of Ray, which opens images and model for its first piece."""
    torch.set_num_threads(1)
    _opened(replace(task, number=0)).score(task.number)


_OPEN = ExitStack()
"""Images of this process, which are closed when it ends; an own stack would be forgotten, and a
forgotten stack closes them at once."""


@lru_cache(maxsize=1)
def _opened(task: PieceTask) -> Scoring:
    return task.scoring(_OPEN)


def scoring_by(
    model: Path,
    region: Path,
    images: Sequence[SceneImage],
    margin: float,
    shift: tuple[float, float],
) -> Scoring:
    """Return how the pieces in the folder of a region are scored by the model of a run."""
    predictor, description = load_model(model)
    return Scoring(
        division=read_division(region),
        images=images,
        predictor=predictor,
        model=model,
        folder=region / SCORES,
        size=description.sample_shape[-1],
        margin=margin,
        shift=shift,
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
