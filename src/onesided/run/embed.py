"""Frozen backbones: the method trains on features, which are computed once.

A frozen backbone gives the same features for an image in every epoch. So they are computed
once, into a store that other runs share (`storage/features.py`), and the method trains on vectors,
which takes minutes on a CPU. Views are then made of vectors, not of images; or a few views of every
image are embedded too (`backbone.views`), and a step takes one of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64

from onesided.core.batch import Augment
from onesided.core.dist import rank, wait_for_all
from onesided.core.errors import CheckpointError, ConfigError
from onesided.data.problem.dataset import Selection
from onesided.data.problem.samples import chunk_length
from onesided.data.views.bank import BankOfViews
from onesided.engine.sweep import features_of
from onesided.engine.train_config import choose_device
from onesided.nets.build import BackboneConfig, build_backbone, load_initial_weights
from onesided.nets.sentences import SentenceEncoder
from onesided.nets.standardise import Backbone, Numbers
from onesided.run.load import LoadedData, channel_statistics
from onesided.run.problem import Problem
from onesided.storage.features import FeatureStore, RowsWithViews, StoredRows, key_of
from onesided.storage.progress import Progress


def embed(
    problem: Problem, *, cache: Path | None = None, progress: Progress | None = None
) -> Problem:
    """Return the problem with features for images, or as it is where no backbone is frozen.

    Args:
        problem: Its settings say whether the backbone is frozen.
        cache: Folder of the store of features; None keeps them in memory.
        progress: Called with how many images are done and how many there are; never if the store
            has them all.
    """
    backbone, loaded = problem.config.backbone, problem.data
    if loaded.sentences is not None:
        return _with_stored_texts(problem, loaded.sentences, cache, progress)
    if not backbone.freeze:
        return problem
    embedder = build_embedder(backbone, loaded)
    images = _Images(problem)
    device = choose_device(problem.config.train.device)
    identity, width = embedder.identity(), embedder.width
    bank = _Bank(problem) if backbone.views else None
    if rank() == 0 or cache is None:
        store, seen_by = (
            FeatureStore(cache, identity, width),
            progress or (lambda done, total: None),
        )
        images.fill(store, embedder, device, seen_by)
        if bank is not None:
            bank.fill(store, embedder, images, device, seen_by)
        wait_for_all()
    else:
        wait_for_all()
        store = FeatureStore(cache, identity, width)
    features = store.rows(images.keys)
    if bank is not None:
        features = bank.beside(features, store, images)
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


def _with_stored_texts(
    problem: Problem, sentences: SentenceEncoder, cache: Path | None, progress: Progress | None
) -> Problem:
    """Return the problem with an encoder that has the vectors of all its texts in a store.

    A frozen encoder gives the same vector in every fold, so each text is read once.
    """
    stored = replace(sentences, store=FeatureStore(cache, sentences.content, sentences.width))
    if rank() == 0 or cache is None:
        texts = _texts_of(problem)
        stored.vectors(texts, progress)
        wait_for_all()
    else:
        wait_for_all()
        stored = replace(sentences, store=FeatureStore(cache, sentences.content, sentences.width))
    return replace(problem, data=replace(problem.data, sentences=stored))


def _texts_of(problem: Problem) -> list[str]:
    """Return every text of the problem once."""
    at = [place for place, column in enumerate(problem.data.columns) if column.kind == "text"]
    cells = (
        cell
        for selection in _selections(problem)
        for row in selection.take(slice(None))[:, at]
        for cell in row
    )
    return list(dict.fromkeys(cell or "" for cell in cells))


def build_embedder(backbone: BackboneConfig, loaded: LoadedData) -> Backbone:
    """Return the frozen backbone, with its weights."""
    shape = loaded.split.sample_shape
    if len(shape) != 3:
        raise ConfigError(
            f"A frozen backbone takes images, and this data are vectors of {shape[0]} numbers. "
            "Leave out --freeze."
        )
    return frozen_backbone(backbone, shape, loaded.mean, loaded.std)


def frozen_backbone(
    backbone: BackboneConfig, shape: Sequence[int], mean: Numbers, std: Numbers
) -> Backbone:
    """Return a backbone with its weights, which are not to be changed any more."""
    embedder = build_backbone(backbone, shape, mean, std)
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

    @cached_property
    def keys(self) -> list[bytes]:
        """Key of every image, in the order of the parts."""
        return [key for part in self.parts.values() for key in keys_of(part)]

    def fill(
        self, store: FeatureStore, embedder: Backbone, device: torch.device, progress: Progress
    ) -> None:
        """Compute the features that the store lacks."""
        first = 0
        for part in self.parts.values():
            keys = self.keys[first : first + len(part)]
            seen = partial(_after, first, len(self), progress)
            fill_store(store, embedder, part, keys, device, seen)
            first += len(part)

    def replaced_by(self, features: StoredRows, problem: Problem) -> Problem:
        """Return the problem with features in place of images."""
        seen: Problem = with_selections(
            problem, lambda selection: Selection(features, self.places(selection))
        )
        return seen

    def places(self, selection: Selection) -> Int64[np.ndarray, "n"]:
        """Return where the images of a selection are among all."""
        ends = accumulate(map(len, self.parts.values()), initial=0)
        before, key = dict(zip(self.parts, ends, strict=False)), id(selection.pool)
        at = np.searchsorted(self.parts[key].index, selection.index)
        return (before[key] + at).astype(np.int64)


class _Bank:
    """Views of the images that a method trains on."""

    def __init__(self, problem: Problem) -> None:
        config, split = problem.config, problem.training
        self.views = BankOfViews(split.kind, config.backbone.views, config.train.views == "gentle")
        parts = [problem.split.train, split.train, split.clean]
        self.trained_on = [part.values for part in parts if part is not None]

    def fill(
        self,
        store: FeatureStore,
        embedder: Backbone,
        images: "_Images",
        device: torch.device,
        progress: Progress,
    ) -> None:
        """Compute the features of those views that the store lacks, some at a time in memory."""
        lacking: dict[bytes, tuple[Selection, int, bytes, Augment, int]] = {}
        for part in self.trained_on:
            for row, place in enumerate(images.places(part)):
                image = images.keys[place]
                for strength, number in self.views.coordinates():
                    key = self.views.key(image, strength, number)
                    if key not in store:
                        lacking.setdefault(key, (part, row, image, strength, number))
        keys = list(lacking)

        def computed() -> Iterator[tuple[bytes, np.ndarray]]:
            done, length = 0, chunk_length(self.trained_on[0].sample_shape)
            while done < len(keys):
                drawn = np.stack([self._draw(*lacking[key]) for key in keys[done : done + length]])
                for features in _finite_features(embedder, _all_of(drawn), device):
                    yield from zip(keys[done:], features, strict=False)
                    done += len(features)
                    progress(done, len(keys))

        store.fill(computed())

    def _draw(
        self, part: Selection, row: int, image: bytes, strength: Augment, number: int
    ) -> np.ndarray:
        return self.views.draw(part.take(slice(row, row + 1))[0], image, strength, number)

    def beside(self, features: StoredRows, store: FeatureStore, images: "_Images") -> RowsWithViews:
        """Return the features with the views of those images that have some."""
        places = np.unique(np.concatenate([images.places(part) for part in self.trained_on]))
        each = self.views.coordinates()
        keys = [self.views.key(images.keys[place], *which) for place in places for which in each]
        first = np.full(len(features), -1, np.int64)
        first[places] = np.arange(len(places)) * len(each)
        return RowsWithViews(features, store.rows(keys), first, self.views.count)


def _all_of(values: np.ndarray) -> Selection:
    return Selection(values, np.arange(len(values)))


def _after(first: int, total: int, progress: Progress, done: int, _: int) -> None:
    progress(first + done, total)


def keys_of(images: Selection) -> list[bytes]:
    """Return the key of every image; images with equal pixels have equal keys."""
    starts = range(0, len(images), length := chunk_length(images.sample_shape))
    return [key_of(one) for start in starts for one in images.take(slice(start, start + length))]


def fill_store(
    store: FeatureStore,
    embedder: Backbone,
    images: Selection,
    keys: Sequence[bytes],
    device: torch.device,
    progress: Progress,
) -> None:
    """Compute the features of those images that the store lacks, equal images once."""
    lacking = {key: row for row, key in enumerate(keys) if key not in store}
    rows = np.array(sorted(lacking.values()), dtype=np.int64)
    chosen = Selection(images.pool, images.index[rows])

    def computed() -> Iterator[tuple[bytes, np.ndarray]]:
        done = 0
        for features in _finite_features(embedder, chosen, device):
            yield from zip((keys[row] for row in rows[done:]), features, strict=False)
            done += len(features)
            progress(len(images) - len(rows) + done, len(images))

    store.fill(computed())


def _finite_features(
    embedder: Backbone, images: Selection, device: torch.device
) -> Iterator[np.ndarray]:
    for features in features_of(embedder, images, device):
        if not np.isfinite(features).all():
            raise CheckpointError(
                "The frozen backbone gives features that are no numbers, so its weights are "
                "damaged or too large for single precision. Choose others with --weights."
            )
        yield features


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
