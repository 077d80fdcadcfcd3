"""X, y and the parameters of an estimator, turned into the data and settings of a run."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from onesided.core.config import Settings, merge
from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN, LabelScheme, normalise_pu_labels
from onesided.data.problem.samples import ImageKind, chunk_length
from onesided.data.problem.weights import checked_weights
from onesided.data.read.arrays import ChannelAxis, checked_values
from onesided.data.read.files import ACCEPTED_ENDINGS, Found
from onesided.data.read.folder import Group, OneSided, read_groups
from onesided.data.read.images import decode_all
from onesided.jobs.settings import minutes_of
from onesided.run.config import OwnConfig
from onesided.storage.labels import NAMES
from onesided.storage.names import printable

PathLike = str | os.PathLike[str]
Items = ArrayLike | Sequence[PathLike] | sparse.sparray | sparse.spmatrix
"""Images, features, data frames, texts, or paths of image files."""
RandomState = int | np.random.RandomState | None
SCHEMES = ("pu", "pnu")
MOST_SHOWN = 500
"""Samples of P, and of U, that tell how much a model relies on a column."""


def given_settings(parameters: Mapping[str, Any], *, images: bool, seed: int) -> Settings:
    """Return the parameters as settings of a run; those in `settings` override the others.

    A run calls people's own images `folders` and their own numbers `table`.
    """
    own = parameters["settings"]
    if not isinstance(own, Mapping | None):
        raise ConfigError(
            f'settings is {own!r}; expected a mapping such as {{"train": {{"batch_size": 64}}}}.'
        )
    data = (own or {}).get("data")
    if isinstance(data, Mapping) and "name" in data:
        raise ConfigError(
            f"settings names the data set {data['name']!r}, but X is the data. Leave out the name."
        )
    # A parameter search gives numbers of numpy; settings hold Python's.
    given = {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in parameters.items()
    }
    budget = minutes_of(given["budget"])
    minutes = {} if budget is None else {"minutes": budget}
    flags = {
        "data": {"name": "folders" if images else "table", **_if_given(given, "held_out")},
        "method": {"name": given["method"], **minutes},
        "backbone": {"name": given["backbone"]},
        "train": {"device": given["device"], **_if_given(given, "epochs")},
        "prior": given["prior"],
        **_if_given(given, "threshold"),
        "seed": seed,
    }
    return merge(flags, own or {})


def _if_given(parameters: Mapping[str, Any], name: str) -> Settings:
    return {} if parameters[name] is None else {name: parameters[name]}


def seed_of(random_state: RandomState) -> int:
    """Return the seed of a run: the number itself, or one sampled as scikit-learn does."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def holds_paths(items: object) -> TypeGuard[Sequence[PathLike]]:
    """Whether these are image files: a list, array or column of paths, or of their names.

    Strings are names of files if most of them end as image files do, or if the first is a file
    that exists; other strings are texts.
    """
    if not lists_names(items):
        return False
    listed = list(items)
    if any(isinstance(item, os.PathLike) for item in listed):
        return True
    images = sum(str(item).lower().endswith(ACCEPTED_ENDINGS) for item in listed)
    return 2 * images > len(listed) or _exists(str(listed[0]))


def with_groups(data: OneSided, groups: ArrayLike | None, items: Items) -> OneSided:
    """Return the data with a group for each sample, by the rows of X."""
    if groups is None:
        return data
    given: np.ndarray = column_or_1d(groups)
    rows = len(items)  # type: ignore[arg-type]
    if len(given) != rows:
        raise DataError(
            f"groups holds {len(given)} entries and X {rows} samples; these must be equal."
        )
    missing = sum(one is None or one != one for one in given.tolist())  # NaN differs from itself
    if missing:
        raise DataError(
            f"groups has {missing} missing values of {rows}. Samples of one group are never both "
            "trained on and held out; give a sample that belongs to none a value of its own."
        )
    group_of = dict(zip(names_of(items), map(str, given.tolist()), strict=True))
    groups_of_rows = np.array([group_of[name] for name in data.samples.names])
    return replace(data, samples=replace(data.samples, groups={"groups": groups_of_rows}))


def names_of(items: Items) -> list[str]:
    """Return the name of each sample of X in a run: of its file, or the number of its row."""
    if holds_paths(items):
        return [file.name for file in distinctly_named(items)]
    return list(map(str, range(len(items))))  # type: ignore[arg-type]


def some_of_both(known: np.ndarray, *, seed: int) -> np.ndarray:
    """Return rows of P and of U, at most `MOST_SHOWN` of each, in order."""
    random = np.random.default_rng(seed)
    both = [np.flatnonzero(known == label) for label in (POSITIVE, UNKNOWN)]
    chosen = [random.permutation(rows)[:MOST_SHOWN] for rows in both]
    return np.sort(np.concatenate(chosen))


def rows_of(items: Any, rows: np.ndarray) -> Any:  # noqa: ANN401 - whatever X and y are
    """Return some rows of X or y, in the type that it has."""
    return _safe_indexing(list(items) if isinstance(items, tuple) else items, rows)


def with_weights(data: OneSided, weights: ArrayLike | None, items: Items) -> OneSided:
    """Return the data with a weight for each sample, by the rows of X; one number says nothing."""
    rows = len(items)  # type: ignore[arg-type]
    try:
        given = np.ones(rows) if weights is None else np.asarray(weights, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"sample_weight holds more than usual numbers ({error}).") from None
    if given.ndim == 0:
        return data
    if given.shape != (rows,):
        raise DataError(
            f"sample_weight has the shape {given.shape}; expected one number for each of the "
            f"{rows} samples."
        )
    samples = data.samples
    weight_of = dict(zip(names_of(items), given.tolist(), strict=True))
    checked = checked_weights(
        np.array([weight_of[name] for name in samples.names]),
        data.labelled,
        samples.classes == UNKNOWN,
        what="sample_weight",
    )
    return replace(data, samples=replace(samples, weights=checked))


def _exists(name: str) -> bool:
    try:
        return os.path.isfile(name)
    except ValueError:  # a zero byte
        return False


def lists_names(items: object) -> TypeGuard[Sequence[PathLike]]:
    """Whether these are strings or paths, all of them."""
    if isinstance(items, str | bytes | os.PathLike) or getattr(items, "ndim", 1) != 1:
        return False
    if not isinstance(items, Iterable):
        return False
    listed = list(items)
    return bool(listed) and all(isinstance(item, str | os.PathLike) for item in listed)


def has_image_axes(items: Items) -> bool:
    """Whether there are more than two axes; lists of unequal rows count as having fewer."""
    if hasattr(items, "ndim"):  # data frames and sparse matrices have it without a copy
        return bool(items.ndim > 2)
    try:
        return np.asarray(items).ndim > 2
    except ValueError:
        return False


def checked_labels(labels: ArrayLike, labels_mean: LabelScheme) -> np.ndarray:
    """Return y as one axis of PU labels; raise where it holds anything else."""
    if labels_mean not in SCHEMES:
        raise ConfigError(f"labels_mean is {labels_mean!r}; expected one of {', '.join(SCHEMES)}.")
    column: np.ndarray = column_or_1d(labels, warn=True)
    check_classification_targets(column)
    seen = np.unique(column)
    if len(seen) == 1:
        raise DataError(
            f"y holds one class only, {seen[0]}, and {len(column)} samples of it. Both are "
            "needed: 1 positive and 0 (or -1) unlabelled."
        )
    if labels_mean == "pu" and set(seen.tolist()) not in ({0, 1}, {-1, 1}):
        many = "Only binary classification is supported. " if len(seen) > 2 else ""
        raise DataError(
            f"{many}y must hold two values, 1 positive and 0 (or -1) unlabelled; got "
            f"{', '.join(map(str, seen[:6]))}. If -1 marks known negatives and 0 the unlabelled, "
            'say labels_mean="pnu".'
        )
    normalise_pu_labels(column, labels_mean=labels_mean)
    return column


def classes_of(labels: np.ndarray, labels_mean: LabelScheme) -> np.ndarray:
    """Return the values that `predict` returns for negative and for positive.

    Where -1 means unlabelled, it means negative in predictions. With three kinds of labels
    negative is -1, also where this part of the data holds no known negative.
    """
    if labels_mean == "pu":
        return np.unique(labels)
    return np.array([-1, 1], np.result_type(labels.dtype, np.int8))


def read_paths(
    paths: Sequence[PathLike],
    labels: np.ndarray,
    labels_mean: LabelScheme,
    data: OwnConfig,
    kind: ImageKind,
) -> OneSided:
    """Read image files with their labels, as `onesided fit --table` reads those it lists."""
    if kind == "vector":
        raise DataError("kind='vector' does not go with image files. Leave it out.")
    if len(paths) != len(labels):
        raise DataError(
            f"X holds {len(paths)} samples and y {len(labels)} labels; these must be equal."
        )
    _, known = normalise_pu_labels(labels, labels_mean=labels_mean)
    found = distinctly_named(paths)
    groups = [
        Group(label, f"X ({NAMES[label]})", [found[row] for row in np.flatnonzero(known == label)])
        for label in (POSITIVE, UNKNOWN, NEGATIVE)
        if (known == label).any()
    ]
    decode = partial(decode_all, size=data.size())
    return read_groups(groups, decode, tolerate=data.tolerate, scenario=data.scenario, kind=kind)


def distinctly_named(paths: Sequence[PathLike]) -> list[Found]:
    """Return the files. A file that is listed twice, as by bootstrapping, gets two names."""
    seen: set[str] = set()
    found = []
    for row, path in enumerate(paths):
        name = Path(path).as_posix()
        found.append(Found(Path(path), f"{name} (row {row})" if name in seen else name))
        seen.add(name)
    return found


def decoded_chunks(
    paths: Sequence[PathLike], sample_shape: tuple[int, ...]
) -> Iterator[np.ndarray]:
    """Yield the images of all files in order, a chunk at a time; raise at an unreadable one."""
    if len(sample_shape) != 3:
        raise DataError(
            f"X holds paths, and this model was trained on vectors of {sample_shape[0]} numbers."
        )
    channels, height, width = sample_shape
    found = distinctly_named(paths)
    length = chunk_length(sample_shape)
    for start in range(0, len(found), length):
        chunk = found[start : start + length]
        decoded = decode_all(chunk, channels=channels, size=(height, width), tolerate=1.0, what="X")
        if decoded.skipped:
            name, reason = decoded.skipped[0]
            raise DataError(
                f"{printable(name)} {reason}. Every row of X gets a score, so leave out files "
                "that cannot be read."
            )
        yield decoded.values


def image_values(
    array: np.ndarray, sample_shape: tuple[int, ...], channels: ChannelAxis | None
) -> np.ndarray:
    """Return images as the model takes them; its shape decides which axis holds the channels."""
    shape = array.shape[1:]
    if len(shape) == 3 and len(sample_shape) == 3:
        if shape == sample_shape:
            channels = "first"
        elif (shape[2], *shape[:2]) == sample_shape:
            channels = "last"
    values = checked_values(array, channels=channels)
    if values.shape[1:] != sample_shape:
        raise DataError(
            f"X has shape {array.shape}, and this model was trained on samples of shape "
            f"{sample_shape}. Bring X to that shape."
        )
    return values
