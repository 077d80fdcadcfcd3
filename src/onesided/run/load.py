"""From data settings to a split, with the notices about it."""

import os
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.columns.cells import Column
from onesided.data.columns.encoder import Encoder
from onesided.data.problem.answered import with_answers
from onesided.data.problem.content import (
    contents_of,
    first_of_each,
    own_contents,
    repetition_notice,
)
from onesided.data.problem.dataset import LabelledDataset, PUSplit, Selection
from onesided.data.problem.marks import marks_of_rows
from onesided.data.problem.negatives import KnownNegatives, divide_negatives
from onesided.data.problem.samples import Samples
from onesided.data.problem.split import (
    MINIMUM_POSITIVES,
    held_out_together,
    split_one_sided,
    split_source,
)
from onesided.data.read.cache import DecodeCache
from onesided.data.read.files import holds_only
from onesided.data.read.folder import OneSided, read_class_folders, read_folders
from onesided.data.read.table import read_table
from onesided.data.read.text_folders import read_text_folders
from onesided.data.read.texts import TEXT_ENDING
from onesided.data.read.vectors import (
    holds_vectors,
    is_vector_file,
    read_vector_files,
    read_vector_table,
)
from onesided.data.sources import SOURCES
from onesided.nets.sentences import SentenceEncoder, load_sentence_encoder
from onesided.nets.standardise import Backbone
from onesided.run.answers import answers_in
from onesided.run.config import ChipsConfig, DataConfig, OwnConfig, SetConfig
from onesided.storage.names import original_name
from onesided.storage.progress import Progress

STATISTICS_ROWS = 2000
FEWEST_TESTED = 10
"""Test items of each class for a figure, where others were left out."""
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
        doubts: Why figures may mean nothing, in sentences.
        skipped: Unreadable files with the reason.
        feature_names: Names of the numbers of a sample, where there are some.
        columns: Columns of a table whose rows must be encoded first; see `encode`.
        embedder: The frozen backbone whose features the samples are, if they are features.
        encoder: What the vectors were encoded by, if they were rows of a table.
        images: The data that the features were computed from, images or raw rows.
        sentences: The pretrained encoder of texts, where one was named.
    """

    split: PUSplit
    mean: tuple[float, ...]
    std: tuple[float, ...]
    known_negatives: KnownNegatives | None = None
    notices: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    feature_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    embedder: Backbone | None = None
    encoder: Encoder | None = None
    images: "LoadedData | None" = None
    sentences: SentenceEncoder | None = None

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
            loaded = LoadedData(split_source(source, config), entry.mean, entry.std)
        case OwnConfig():
            decoded = DecodeCache(cache) if cache else None
            data = _read_own(config, progress, decoded)
            if config.name == "folders" and config.group == PARENT:
                data = _grouped_by_parent(data)
            loaded = divide_own(data, config, cache=decoded)
    return apply_answers(loaded, config.answers)


def apply_answers(loaded: LoadedData, file: str | None) -> LoadedData:
    """Return the data with a file of answers applied to its pool; as it is without one."""
    if not (path := stored_path(file)):
        return loaded
    meant = answers_in(path, column=None).meant
    done = with_answers(
        loaded.split,
        loaded.known_negatives,
        positive=[item for item, says in meant.items() if says == POSITIVE],
        negative=[item for item, says in meant.items() if says == NEGATIVE],
    )
    told = (
        f"{done.positives} items that reviewers call positive joined P, and {done.rejected} became "
        "known negatives. A model chose which items they looked at, so figures do not count these "
        "items. A review finds the easy positives first: those that are left are harder to find "
        "than figures say that rest on P. An audit tells how many are left."
    )
    return replace(
        loaded,
        split=done.split,
        known_negatives=done.negatives,
        notices=(*loaded.notices, told),
    )


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
        if holds_vectors(table):
            return read_vector_table(table)
        read = partial(
            read_table,
            table,
            kinds=config.kinds,
            group=config.group,
            sample_weight=config.sample_weight,
        )
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
    everything = Selection(data.samples.values, np.arange(len(data.samples)))
    contents = own_contents(everything)
    content = contents.number if contents.repeated or contents.coarse else None
    notices += repetition_notice(contents)
    notices += _perhaps_swapped(data)
    held_out = held_out_together(
        data.samples, data.labelled, content=content, share=share, seed=seed
    )
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
        fewest=fewest,
        held_out=held_out,
        content=content,
    )
    negatives = divide_negatives(
        data.samples, held_out_share=share, seed=seed, held_out=held_out, content=content
    )
    if test is not None:
        trained = [split.train.values, *([negatives.train.values] if negatives else [])]
        fresh, told = unseen_test(_as_test(test), trained)
        split = replace(split, test=fresh)
        notices += told
    notices += _trained_negatives(split, negatives)
    raw = data.samples.columns
    mean, std = ((), ()) if raw else channel_statistics(split.train.values)
    return LoadedData(
        split,
        mean,
        std,
        known_negatives=negatives,
        notices=tuple(notices),
        doubts=(*data.doubts, *_marked_columns(data)),
        skipped=data.samples.skipped + (test.skipped if test else ()),
        feature_names=data.samples.feature_names,
        columns=raw,
        sentences=_sentence_encoder(config, raw),
    )


def _marked_columns(data: OneSided) -> tuple[str, ...]:
    """Return a sentence where single columns of a table tell P from U."""
    samples = data.samples
    if len(samples.values.shape) != 2:
        return ()
    names = [column.name for column in samples.columns] or samples.feature_names
    rows = np.flatnonzero(data.labelled | (samples.classes == UNKNOWN))
    return marks_of_rows(samples.values[rows], data.labelled[rows], names)


def _sentence_encoder(config: OwnConfig, columns: Sequence[Column]) -> SentenceEncoder | None:
    if config.text_encoder is None:
        return None
    if not any(column.kind == "text" for column in columns):
        raise ConfigError(
            f"The encoder {config.text_encoder} reads texts, and no column of this data is a text. "
            "Leave out --text-encoder, or say which column it is with --text."
        )
    return load_sentence_encoder(config.text_encoder)


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


def unseen_test(
    test: LabelledDataset, trained: Sequence[Selection]
) -> tuple[LabelledDataset | None, tuple[str, ...]]:
    """Return the test items that show nothing that is trained on, each content once, with notices.

    None where too few of a class are left for a figure.
    """
    number = contents_of([*trained, test.values]).number
    before, own = number[: -len(test)], number[-len(test) :]
    seen = np.isin(own, before)
    kept = first_of_each(own, ~seen)
    if kept.all():
        return test, ()
    told = []
    if seen.any():
        told.append(f"{seen.sum()} of {len(test)} test items show what the model is trained on")
    if repeated := int((~seen & ~kept).sum()):
        told.append(f"{repeated} test items repeat another one")
    sentence = f"{' and '.join(told)}; they are left out of the figures on the test part"
    left = [int((kept & (test.truth == label)).sum()) for label in (POSITIVE, NEGATIVE)]
    if min(left) < FEWEST_TESTED:
        return None, (
            f"{sentence}. {left[0]} positive and {left[1]} negative ones remain, too few for a "
            f"figure: it takes {FEWEST_TESTED} of each. Give test items of their own.",
        )
    rows = np.flatnonzero(kept)
    return LabelledDataset(
        Selection(test.values.pool, test.values.index[rows]),
        test.truth[rows],
        tuple(test.names[row] for row in rows),
    ), (f"{sentence}.",)


def _perhaps_swapped(data: OneSided) -> tuple[str, ...]:
    """Return a question where there are more positives than unlabelled items."""
    positives = int(data.labelled.sum())
    unlabelled = int((~data.labelled & (data.samples.classes == UNKNOWN)).sum())
    if positives <= unlabelled:
        return ()
    return (
        f"There are more positives ({positives}) than unlabelled items ({unlabelled}), which is "
        "unusual: are the two swapped? If so, swap them back; all figures mean nothing then.",
    )


def _trained_negatives(split: PUSplit, negatives: KnownNegatives | None) -> tuple[str, ...]:
    """Return a sentence about known negatives that are trained on as unlabelled, if any are."""
    trained = split.train.content
    if negatives is None or trained is None:
        return ()
    contents = (part.content for part in (negatives.train, negatives.held_out))
    count = sum(int(np.isin(part, trained).sum()) for part in contents if part is not None)
    if not count:
        return ()
    return (
        f"{count} known negatives show what is trained on as unlabelled; they are left out of the "
        "count of false alarms.",
    )


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
