"""Frozen networks: every image is looked at once, and what is learned from is its features.

A frozen backbone says the same of an image in every epoch. So the images go
through it once, into `features.npy`, and the method trains on vectors, which a processor
without a graphics card does in minutes. Views are then made of vectors, not of images.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onesided.core.dist import rank, wait_for_all
from onesided.core.errors import CheckpointError, ConfigError
from onesided.data.problem.dataset import Joined, Selection
from onesided.engine.sweep import features_of
from onesided.engine.train_config import choose_device
from onesided.nets.build import BackboneConfig, build_backbone, load_initial_weights
from onesided.nets.standardise import Backbone
from onesided.run.load import LoadedData, channel_statistics
from onesided.run.problem import Problem
from onesided.storage.atomic import replacing
from onesided.storage.progress import Progress


def embed(
    problem: Problem, *, cache: Path | None = None, progress: Progress | None = None
) -> Problem:
    """Return the problem as the network that learns sees it: as it is, or as features.

    Args:
        problem: Its settings say whether a frozen network stands before the one that learns.
        cache: File of features, read if it is there and else written; None keeps them in
            memory.
        progress: Told how many of how many images are done.
    """
    backbone, loaded = problem.config.backbone, problem.data
    if not backbone.freeze:
        return problem
    embedder = build_embedder(backbone, loaded)
    images = _Images(problem)
    device = choose_device(problem.config.train.device)
    pieces = images.through(embedder, device, progress or (lambda done, total: None))
    if cache is None:
        features = np.concatenate(list(pieces))
    else:
        shape = (len(images), embedder.width)
        if rank() == 0 and not cache.exists():
            write_features(cache, shape, pieces)
        wait_for_all()
        features = read_features(cache, shape)
    seen = images.replaced_by(features, problem)
    mean, std = channel_statistics(seen.split.train.values)
    data = replace(
        seen.data,
        split=replace(seen.split, kind="vector"),
        mean=mean,
        std=std,
        embedder=embedder,
        images=loaded,
    )
    return replace(seen, data=data, training=replace(seen.training, kind="vector"))


def build_embedder(backbone: BackboneConfig, loaded: LoadedData) -> Backbone:
    """Return the network that stands still, with its weights."""
    shape = loaded.split.sample_shape
    if len(shape) != 3:
        raise ConfigError(
            f"A frozen backbone takes images, and this data are vectors of {shape[0]} numbers. "
            "Leave out --freeze."
        )
    embedder = build_backbone(backbone, shape, loaded.mean, loaded.std)
    load_initial_weights(backbone, embedder)
    return embedder.requires_grad_(False).eval()


class _Images:
    """All images of a data set, each once, however many parts it is in."""

    def __init__(self, problem: Problem) -> None:
        self.pools: list[np.ndarray | Joined] = []
        self.rows: list[np.ndarray] = []
        for selection in _selections(problem):
            number = self._number_of(selection.pool)
            self.rows[number] = np.union1d(self.rows[number], selection.index)

    def __len__(self) -> int:
        return sum(map(len, self.rows))

    def _number_of(self, pool: np.ndarray | Joined) -> int:
        for number, known in enumerate(self.pools):
            if known is pool:
                return number
        self.pools.append(pool)
        self.rows.append(np.empty(0, dtype=np.int64))
        return len(self.pools) - 1

    def through(
        self, embedder: Backbone, device: torch.device, progress: Progress
    ) -> Iterator[np.ndarray]:
        """Yield the features of all images, piece by piece."""
        done = 0
        for pool, rows in zip(self.pools, self.rows, strict=True):
            for piece in features_of(embedder, Selection(pool, rows), device):
                done += len(piece)
                progress(done, len(self))
                yield piece

    def replaced_by(self, features: np.ndarray, problem: Problem) -> Problem:
        """Return the problem with every selection of images as one of features."""
        before = np.concatenate([[0], np.cumsum([len(rows) for rows in self.rows])])

        def of(selection: Selection) -> Selection:
            number = self._number_of(selection.pool)
            place = np.searchsorted(self.rows[number], selection.index)
            return Selection(features, (before[number] + place).astype(np.int64))

        seen: Problem = _with_selections(problem, of)
        return seen


def _selections(part: object) -> Iterator[Selection]:
    if isinstance(part, Selection):
        yield part
    elif is_dataclass(part):
        for field in fields(part):
            yield from _selections(getattr(part, field.name))


def _with_selections(part: Any, change: Callable[[Selection], Selection]) -> Any:  # noqa: ANN401
    """Return a part of the data with its selections changed, however deep they are."""
    if isinstance(part, Selection):
        return change(part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    old: dict[str, Any] = {field.name: getattr(part, field.name) for field in fields(part)}
    new = {name: _with_selections(value, change) for name, value in old.items()}
    return replace(part, **{name: new[name] for name in new if new[name] is not old[name]})


def write_features(path: Path, shape: tuple[int, int], pieces: Iterator[np.ndarray]) -> None:
    """Write an .npy file as the pieces come: it may be larger than memory."""
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with replacing(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for piece in pieces:
            file.write(piece.astype("<f4").tobytes())


def read_features(path: Path, shape: tuple[int, int]) -> np.ndarray:
    """Return the features in a file, mapped into memory."""
    try:
        features: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise _damaged(path, str(error)) from None
    if features.shape != shape or features.dtype != np.float32:
        raise _damaged(path, f"{features.shape} of {features.dtype} instead of {shape}")
    return features


def _damaged(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"{path} is damaged ({reason}). Remove it and give the same command again: features "
        "are computed anew."
    )
