"""Frozen backbones: the method trains on features, which are computed once.

A frozen backbone gives the same features for an image in every epoch. So they are computed
once, into `features.npy`, and the method trains on vectors, which takes minutes on a CPU. Views
are then made of vectors, not of images.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onesided.core.dist import rank, wait_for_all
from onesided.core.errors import CheckpointError, ConfigError
from onesided.data.problem.dataset import Selection
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
    """Return the problem with features for images, or as it is where no backbone is frozen.

    Args:
        problem: Its settings say whether the backbone is frozen.
        cache: File of features, written if it does not exist; None keeps them in memory.
        progress: Called with how many images are done and how many there are.
    """
    backbone, loaded = problem.config.backbone, problem.data
    if not backbone.freeze:
        return problem
    embedder = build_embedder(backbone, loaded)
    images = _Images(problem)
    device = choose_device(problem.config.train.device)
    chunks = images.through(embedder, device, progress or (lambda done, total: None))
    if cache is None:
        features = np.concatenate(list(chunks))
    else:
        shape = (len(images), embedder.width)
        if rank() == 0 and not cache.exists():
            write_features(cache, shape, chunks)
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
    """Return the frozen backbone, with its weights."""
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
    """All images of a problem, each once, though several parts may hold it."""

    def __init__(self, problem: Problem) -> None:
        self.parts: dict[int, Selection] = {}  # by identity of the pool
        for selection in _selections(problem):
            known = self.parts.get(id(selection.pool), selection)
            index = np.union1d(known.index, selection.index)
            self.parts[id(selection.pool)] = Selection(selection.pool, index)

    def __len__(self) -> int:
        return sum(map(len, self.parts.values()))

    def through(
        self, embedder: Backbone, device: torch.device, progress: Progress
    ) -> Iterator[np.ndarray]:
        """Yield the features of all images, a chunk at a time."""
        done = 0
        for part in self.parts.values():
            for chunk in features_of(embedder, part, device):
                done += len(chunk)
                progress(done, len(self))
                yield chunk

    def replaced_by(self, features: np.ndarray, problem: Problem) -> Problem:
        """Return the problem with features in place of images."""
        ends = accumulate(map(len, self.parts.values()), initial=0)
        before = dict(zip(self.parts, ends, strict=False))

        def of(selection: Selection) -> Selection:
            key = id(selection.pool)
            at = np.searchsorted(self.parts[key].index, selection.index)
            return Selection(features, (before[key] + at).astype(np.int64))

        seen: Problem = with_selections(problem, of)
        return seen


def _selections(part: object) -> Iterator[Selection]:
    if isinstance(part, Selection):
        yield part
    elif is_dataclass(part):
        for field in fields(part):
            yield from _selections(getattr(part, field.name))


def with_selections(part: Any, change: Callable[[Selection], Selection]) -> Any:  # noqa: ANN401
    """Return a part of the data with every selection in it changed."""
    if isinstance(part, Selection):
        return change(part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    old: dict[str, Any] = {field.name: getattr(part, field.name) for field in fields(part)}
    new = {name: with_selections(value, change) for name, value in old.items()}
    return replace(part, **{name: new[name] for name in new if new[name] is not old[name]})


def write_features(path: Path, shape: tuple[int, int], chunks: Iterator[np.ndarray]) -> None:
    """Write an .npy file chunk by chunk: it may be larger than memory."""
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with replacing(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for chunk in chunks:
            file.write(chunk.astype("<f4").tobytes())


def read_features(path: Path, shape: tuple[int, int]) -> np.ndarray:
    """Return the features in a file, mapped into memory."""
    try:
        features: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        if features.shape != shape or features.dtype != np.float32:
            raise ValueError(f"{features.shape} of {features.dtype} instead of {shape}")
    except (OSError, ValueError, EOFError) as error:
        raise CheckpointError(
            f"{path} is damaged ({error}). Remove it and give the same command again: features "
            "are then computed again."
        ) from None
    return features
