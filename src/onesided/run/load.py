"""From data settings to a split, with the notices about it."""

import os
import posixpath
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.columns.cells import Column
from onesided.data.columns.encoder import Encoder
from onesided.data.problem.dataset import LabelledDataset, PUSplit, Selection
from onesided.data.problem.negatives import KnownNegatives, divide_negatives
from onesided.data.problem.samples import Samples
from onesided.data.problem.split import (
    MINIMUM_POSITIVES,
    split_one_sided,
    split_source,
    whole_groups,
)
from onesided.data.read.cache import DecodeCache
from onesided.data.read.files import holds_only
from onesided.data.read.folder import OneSided, read_class_folders, read_folders
from onesided.data.read.table import read_table
from onesided.data.read.text_folders import read_text_folders
from onesided.data.read.texts import TEXT_ENDING
from onesided.data.read.vectors import is_vector_file, read_vector_files, read_vector_table
from onesided.data.sources import SOURCES
from onesided.nets.standardise import Backbone
from onesided.run.config import ChipsConfig, DataConfig, OwnConfig, SetConfig
from onesided.storage.names import original_name
from onesided.storage.progress import Progress

STATISTICS_ROWS = 2000
PARENT = "parent"
"""The group of a file: the folder that it lies in."""


@dataclass(frozen=True)
class LoadedData:
    """A split and what belongs to it.

    Attributes:
        split: The PU problem.
        mean: Per channel (0-1 scale) or feature.
        std: Likewise.
        known_negatives: Samples known to be negative, not in the split: which of them are
            trained on depends on the method, see `Problem`.
        notices: Sentences for the user.
        skipped: Unreadable files with the reason.
        feature_names: Names of the numbers of a sample, where there are some.
        columns: Columns of a table whose rows must be encoded first; see `encode`.
        embedder: The frozen backbone whose features the samples are, if they are features.
        encoder: What the vectors were encoded by, if they were rows of a table.
        images: The data that the features were computed from, images or raw rows.
    """

    split: PUSplit
    mean: tuple[float, ...]
    std: tuple[float, ...]
    known_negatives: KnownNegatives | None = None
    notices: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    feature_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    embedder: Backbone | None = None
    encoder: Encoder | None = None
    images: "LoadedData | None" = None

    @property
    def source(self) -> "LoadedData":
        """The data as it was read, never features: what the report shows and the model takes."""
        return self if self.images is None else self.images


def load_data(
    config: DataConfig, progress: Progress | None = None, cache: Path | None = None
) -> LoadedData:
    """Read the files and make the split.

    `cache` is a folder for decoded images that are too many for memory; None keeps all in memory.
    """
    match config:
        case ChipsConfig():
            raise ConfigError(
                "This run's buildings were cut out of images by onesided map. To do it again, "
                "give that command again; the run's manifest.json holds it."
            )
        case SetConfig():
            entry = SOURCES[config.name]
            source = entry.load(stored_path(config.root))
            return LoadedData(split_source(source, config), entry.mean, entry.std)
        case OwnConfig():
            decoded = DecodeCache(cache) if cache else None
            data = _read_own(config, progress, decoded)
            if config.name == "folders" and config.group == PARENT:
                data = _grouped_by_parent(data)
            return divide_own(data, config, cache=decoded)


def _read_own(config: OwnConfig, progress: Progress | None, cache: DecodeCache | None) -> OneSided:
    read: Callable[..., OneSided]
    if config.name == "folders" and config.group not in (None, PARENT):
        raise ConfigError(
            f"data.group is '{config.group}', but files in folders can only be grouped by "
            f"'{PARENT}', the folder that they lie in."
        )
    if config.name == "table":
        if not (table := stored_path(config.table)):
            raise ConfigError("data.table is missing: give the CSV file with --table.")
        if is_vector_file(table):
            return read_vector_table(table)
        read = partial(read_table, table, kinds=config.kinds, group=config.group)
    else:
        positives = stored_path(config.positive_folder)
        unlabelled = stored_path(config.unlabelled_folder)
        if not positives or not unlabelled:
            raise ConfigError("Two folders are needed: positives with -p and unlabelled with -u.")
        negatives = stored_path(config.negative_folder)
        if is_vector_file(positives) and is_vector_file(unlabelled):
            return read_vector_files(positives, unlabelled, negatives)
        if holds_only(positives, TEXT_ENDING):
            return read_text_folders(
                positives,
                unlabelled,
                negatives,
                tolerate=config.tolerate,
                scenario=config.scenario,
            )
        read = partial(read_folders, positives, unlabelled, negatives)
    return read(
        size=config.size(),
        tolerate=config.tolerate,
        scenario=config.scenario,
        progress=progress,
        cache=cache,
    )


def _grouped_by_parent(data: OneSided) -> OneSided:
    """Return the data with the name of each file's own folder as its group."""
    parents = [posixpath.basename(posixpath.dirname(name)) for name in data.samples.names]
    return replace(data, samples=replace(data.samples, groups={PARENT: np.array(parents)}))


def divide_own(
    data: OneSided,
    config: OwnConfig,
    *,
    fewest: int = MINIMUM_POSITIVES,
    cache: DecodeCache | None = None,
) -> LoadedData:
    """Hold out a part of people's own data, wherever it was read from."""
    notices = list(data.notices)
    test = _read_test(config, data.samples, notices, cache)
    share, seed = config.held_out, config.seed
    held_out = whole_groups(data.samples, data.labelled, share=share, seed=seed)
    groups = data.samples.own_groups
    if held_out is not None and groups is not None:
        count = len(np.unique(groups))
        notices.append(f"Whole groups are held out, of {count}: none is on both sides.")
    split = split_one_sided(
        data.samples,
        data.labelled,
        held_out_share=share,
        scenario=config.scenario,
        seed=seed,
        test=_as_test(test) if test else None,
        fewest=fewest,
        held_out=held_out,
    )
    raw = data.samples.columns
    mean, std = ((), ()) if raw else channel_statistics(split.train.values)
    return LoadedData(
        split,
        mean,
        std,
        known_negatives=divide_negatives(
            data.samples, held_out_share=share, seed=seed, held_out=held_out
        ),
        notices=tuple(notices),
        skipped=data.samples.skipped + (test.skipped if test else ()),
        feature_names=data.samples.feature_names,
        columns=raw,
    )


def _read_test(
    config: OwnConfig, like: Samples, notices: list[str], cache: DecodeCache | None
) -> Samples | None:
    """Return the images of the test folder, in the shape of the others."""
    if not (folder := stored_path(config.test_folder)):
        return None
    if len(like.sample_shape) != 3:
        raise ConfigError("--test takes image folders, and this data is no images. Leave it out.")
    channels, height, width = like.sample_shape
    test = read_class_folders(
        folder,
        channels=channels,
        size=(height, width),
        tolerate=config.tolerate,
        notify=notices.append,
        cache=cache,
    )
    if set(test.class_names) != {"positive", "negative"}:
        raise DataError(
            f"{config.test_folder} must hold two folders, `positive` and `negative`; "
            f"it holds {', '.join(test.class_names)}."
        )
    return test


def _as_test(test: Samples) -> LabelledDataset:
    positive = test.classes == test.class_names.index("positive")
    truth = np.where(positive, POSITIVE, NEGATIVE).astype(np.int64)
    return LabelledDataset(Selection(test.values, np.arange(len(test))), truth, test.names)


def stored_path(path: str | None) -> Path | None:
    """Return the path that a setting means; see `storable` for names that are not UTF-8."""
    if not path:
        return None
    as_stored, original = Path(path), Path(original_name(path))
    # Where neither exists, errors name the path as it was given.
    return original if os.path.lexists(original) and not as_stored.exists() else as_stored


def channel_statistics(values: Selection) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation per channel or feature, from at most 2000 rows."""
    rows = np.unique(np.linspace(0, len(values) - 1, STATISTICS_ROWS).astype(np.int64))
    sample = values.take(rows)
    if sample.ndim == 2:
        numbers = sample.astype(np.float64)
        return tuple(numbers.mean(axis=0).tolist()), tuple(numbers.std(axis=0).tolist())
    # By counts of the 256 levels: 2000 photographs as float64 would be gigabytes.
    counts = np.zeros((sample.shape[1], 256))
    for image in sample:
        for channel, plane in enumerate(image):
            counts[channel] += np.bincount(plane.ravel(), minlength=256)
    shares, levels = counts / counts.sum(axis=1, keepdims=True), np.arange(256) / 255
    mean = shares @ levels
    std = np.sqrt((shares * (levels - mean[:, None]) ** 2).sum(axis=1))
    return tuple(mean.tolist()), tuple(std.tolist())
