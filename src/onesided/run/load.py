"""From data settings to a split, with what has to be told about it."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.dataset import LabelledDataset, PUSplit, Selection
from onesided.data.files import original_name
from onesided.data.folder import OneSided, read_class_folders, read_folders
from onesided.data.samples import Samples
from onesided.data.sources import SOURCES
from onesided.data.split import split_one_sided, split_source
from onesided.data.table import read_table
from onesided.run.config import DataConfig, OwnConfig, SetConfig

STATISTICS_ROWS = 2000

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class LoadedData:
    """A split and what belongs to it.

    Attributes:
        split: The PU problem.
        mean: Per channel (0-1 scale) or feature.
        std: Likewise.
        known_negatives: Samples known to be negative: not trained on, used in evaluation.
        notices: What a person should be told, one sentence each.
        skipped: Unreadable files with the reason.
    """

    split: PUSplit
    mean: tuple[float, ...]
    std: tuple[float, ...]
    known_negatives: Selection | None = None
    notices: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()


def load_data(config: DataConfig, progress: Progress | None = None) -> LoadedData:
    """Read the files and make the split."""
    return _load_set(config) if isinstance(config, SetConfig) else _load_own(config, progress)


def _load_set(config: SetConfig) -> LoadedData:
    entry = SOURCES[config.name]
    source = entry.load(place(config.root) if config.root else None)
    return LoadedData(split_source(source, config), entry.mean, entry.std)


def _load_own(config: OwnConfig, progress: Progress | None) -> LoadedData:
    size = (config.image_size, config.image_size) if config.image_size else None
    if config.name == "table":
        if not config.table:
            raise ConfigError("data.table is missing: give the CSV file with --table.")
        data = read_table(
            place(config.table),
            size=size,
            tolerate=config.tolerate,
            scenario=config.scenario,
            progress=progress,
        )
    else:
        data = _read_own_folders(config, size, progress)
    test = _test_part(config, data.samples)
    split = split_one_sided(
        data.samples,
        data.labelled,
        held_out_share=config.held_out,
        scenario=config.scenario,
        seed=config.seed,
        test=test.data if test else None,
    )
    mean, std = channel_statistics(split.train.values)
    negative = np.flatnonzero(data.samples.classes == NEGATIVE)
    return LoadedData(
        split,
        mean,
        std,
        known_negatives=Selection(data.samples.values, negative) if len(negative) else None,
        notices=data.notices + (test.notices if test else ()),
        skipped=data.samples.skipped + (test.skipped if test else ()),
    )


def _read_own_folders(
    config: OwnConfig, size: tuple[int, int] | None, progress: Progress | None
) -> OneSided:
    if not config.positive_folder or not config.unlabelled_folder:
        raise ConfigError("Two folders are needed: positives with -p and unlabelled with -u.")
    return read_folders(
        place(config.positive_folder),
        place(config.unlabelled_folder),
        place(config.negative_folder) if config.negative_folder else None,
        size=size,
        tolerate=config.tolerate,
        scenario=config.scenario,
        progress=progress,
    )


@dataclass(frozen=True)
class _TestPart:
    """Images of known class, and what has to be told about reading them."""

    data: LabelledDataset
    notices: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]


def _test_part(config: OwnConfig, like: Samples) -> _TestPart | None:
    if not config.test_folder:
        return None
    if len(like.sample_shape) != 3:
        raise ConfigError("--test takes image folders, and this data is a table of numbers.")
    channels, height, width = like.sample_shape
    notices: list[str] = []
    test = read_class_folders(
        place(config.test_folder),
        channels=channels,
        size=(height, width),
        tolerate=config.tolerate,
        notify=notices.append,
    )
    if set(test.class_names) != {"positive", "negative"}:
        raise DataError(
            f"{config.test_folder} must hold two folders, `positive` and `negative`; "
            f"it holds {', '.join(test.class_names)}."
        )
    positive = test.classes == test.class_names.index("positive")
    truth = np.where(positive, POSITIVE, NEGATIVE).astype(np.int64)
    everything = Selection(test.values, np.arange(len(test)))
    return _TestPart(LabelledDataset(everything, truth, test.names), tuple(notices), test.skipped)


def place(stored: str) -> Path:
    """Return the path that a setting means; see `storable` for names that are not UTF-8."""
    as_stored, unescaped = Path(stored), Path(original_name(stored))
    # A path that exists nowhere is told as it was given.
    return unescaped if os.path.lexists(unescaped) and not as_stored.exists() else as_stored


def channel_statistics(values: Selection) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation per channel or feature, from at most 2000 rows."""
    rows = np.unique(np.linspace(0, len(values) - 1, STATISTICS_ROWS).astype(np.int64))
    sample = values.take(rows)
    scale = 255.0 if sample.dtype == np.uint8 else 1.0
    axes = (0, 2, 3) if sample.ndim == 4 else (0,)
    numbers = sample.astype(np.float64) / scale
    mean, std = numbers.mean(axis=axes), numbers.std(axis=axes)
    return tuple(mean.tolist()), tuple(std.tolist())
