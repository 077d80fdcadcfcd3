"""From data settings to a split, with what has to be told about it."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.problem.dataset import LabelledDataset, PUSplit, Selection
from onesided.data.problem.negatives import KnownNegatives, divide_negatives
from onesided.data.problem.samples import Samples
from onesided.data.problem.split import MINIMUM_POSITIVES, split_one_sided, split_source
from onesided.data.read.cache import DecodeCache
from onesided.data.read.folder import OneSided, read_class_folders, read_folders
from onesided.data.read.images import Size
from onesided.data.read.table import read_table
from onesided.data.sources import SOURCES
from onesided.nets.standardise import Backbone
from onesided.run.config import ChipsConfig, DataConfig, OwnConfig, SetConfig
from onesided.storage.names import original_name
from onesided.storage.progress import Progress

STATISTICS_ROWS = 2000


@dataclass(frozen=True)
class LoadedData:
    """A split and what belongs to it.

    Attributes:
        split: The PU problem.
        mean: Per channel (0-1 scale) or feature.
        std: Likewise.
        known_negatives: Samples known to be negative, apart from the split: which of them
            are trained on depends on the method, see `Problem`.
        notices: What a person should be told, one sentence each.
        skipped: Unreadable files with the reason.
        feature_names: What the numbers of a sample are called, where somebody named them.
        embedder: The frozen network whose features the samples are, if they are features.
        images: The data behind the features.
    """

    split: PUSplit
    mean: tuple[float, ...]
    std: tuple[float, ...]
    known_negatives: KnownNegatives | None = None
    notices: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    feature_names: tuple[str, ...] = ()
    embedder: Backbone | None = None
    images: "LoadedData | None" = None

    @property
    def source(self) -> "LoadedData":
        """The data as it was read: what people look at, and what a model file must take."""
        return self if self.images is None else self.images


def load_data(
    config: DataConfig, progress: Progress | None = None, cache: Path | None = None
) -> LoadedData:
    """Read the files and make the split.

    Args:
        config: What to read.
        progress: Called with how much is done and how much there is.
        cache: Folder for decoded images that are too many for memory; None keeps all there.
    """
    if isinstance(config, ChipsConfig):
        raise ConfigError(
            "This run's buildings were cut out of images by onesided map. To do it again, give "
            "that command again; the run's manifest.json holds it."
        )
    if isinstance(config, SetConfig):
        return _load_set(config)
    return _load_own(config, progress, DecodeCache(cache) if cache else None)


def _load_set(config: SetConfig) -> LoadedData:
    entry = SOURCES[config.name]
    source = entry.load(place(config.root) if config.root else None)
    return LoadedData(split_source(source, config), entry.mean, entry.std)


def _load_own(
    config: OwnConfig, progress: Progress | None, cache: DecodeCache | None
) -> LoadedData:
    size = config.size()
    if config.name == "table":
        if not config.table:
            raise ConfigError("data.table is missing: give the CSV file with --table.")
        data = read_table(
            place(config.table),
            size=size,
            tolerate=config.tolerate,
            scenario=config.scenario,
            progress=progress,
            cache=cache,
        )
    else:
        data = _read_own_folders(config, size, progress, cache)
    return divide_own(data, config, cache=cache)


def divide_own(
    data: OneSided,
    config: OwnConfig,
    *,
    fewest: int = MINIMUM_POSITIVES,
    cache: DecodeCache | None = None,
) -> LoadedData:
    """Hold a part of people's own data out, wherever it was read from."""
    test = _test_part(config, data.samples, cache)
    split = split_one_sided(
        data.samples,
        data.labelled,
        held_out_share=config.held_out,
        scenario=config.scenario,
        seed=config.seed,
        test=test.data if test else None,
        fewest=fewest,
    )
    mean, std = channel_statistics(split.train.values)
    return LoadedData(
        split,
        mean,
        std,
        known_negatives=divide_negatives(
            data.samples, held_out_share=config.held_out, seed=config.seed
        ),
        notices=data.notices + (test.notices if test else ()),
        skipped=data.samples.skipped + (test.skipped if test else ()),
        feature_names=data.samples.feature_names,
    )


def _read_own_folders(
    config: OwnConfig,
    size: Size,
    progress: Progress | None,
    cache: DecodeCache | None,
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
        cache=cache,
    )


@dataclass(frozen=True)
class _TestPart:
    """Images of known class, and what has to be told about reading them."""

    data: LabelledDataset
    notices: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]


def _test_part(config: OwnConfig, like: Samples, cache: DecodeCache | None) -> _TestPart | None:
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
        cache=cache,
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
