"""People's own arrays: images or features, and labels."""

import hashlib
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float32, Int64, UInt8
from numpy.typing import ArrayLike

from onesided.core.errors import DataError
from onesided.core.labels import POSITIVE, UNKNOWN, LabelScheme, normalise_pu_labels
from onesided.data.columns.kinds import RawTable
from onesided.data.problem.samples import ImageKind, Samples, are_nearly_black
from onesided.data.read.folder import CLASS_NAMES, OneSided
from onesided.data.read.precision import merged_columns

CHANNEL_COUNTS = (1, 3, 4, 6)
"""Lengths of an axis that may be channels: grey, colour, colour and one more, and two colour
images of one scene."""

ChannelAxis = Literal["first", "last"]

# Rows converted at once, so that there is never a full copy in floats.
_CHUNK = 1024


def from_arrays(
    values: ArrayLike,
    labels: ArrayLike,
    *,
    labels_mean: LabelScheme = "pu",
    kind: ImageKind | None = None,
    channels: ChannelAxis | None = None,
    feature_names: Sequence[str] = (),
) -> OneSided:
    """Return images or vectors with their labels as people's own data.

    Images are (N, H, W), (N, H, W, C) or (N, C, H, W), uint8 or floats in [0, 1]; vectors
    are (N, D). Rows keep their index: an image that is both positive and unlabelled is
    counted, but it stays.

    Args:
        values: The images or vectors.
        labels: 1 positive, 0 or -1 unlabelled, one for each row.
        labels_mean: What the labels' numbers mean; see `normalise_pu_labels`.
        kind: Which augmentation suits the items; None means photographs or vectors.
        channels: Which axis of four holds the channels; None decides by its length.
        feature_names: Of the numbers of a vector; may be empty.
    """
    array = np.asarray(values)
    labelled, known = normalise_pu_labels(labels, labels_mean=labels_mean)
    if array.ndim and len(array) != len(labelled):
        raise DataError(
            f"X holds {len(array)} samples and y {len(labelled)} labels; these must be equal."
        )
    is_vector = array.ndim == 2
    if kind is not None and is_vector != (kind == "vector"):
        raise DataError(f"kind='{kind}' does not go with an array of shape {array.shape}.")
    samples = Samples(
        values=checked_values(array, channels=channels),
        classes=known.astype(np.int64),
        names=tuple(str(row) for row in range(len(labelled))),
        class_names=CLASS_NAMES,
        kind=kind or ("vector" if is_vector else "photograph"),
        feature_names=tuple(feature_names),
    )
    duplicates = 0 if is_vector else _count_shared(samples.values, samples.classes)
    notices = list(_notices(np.asarray(labels), duplicates))
    if is_vector and array.dtype != np.float32:
        notices += merged_columns(np.asarray(array, np.float64), samples.values, feature_names)
    return OneSided(samples, labelled, duplicates, tuple(notices))


def from_table(table: RawTable, labels: ArrayLike, *, labels_mean: LabelScheme = "pu") -> OneSided:
    """Return the rows of a table with their labels as people's own data; see `from_arrays`."""
    labelled, known = normalise_pu_labels(labels, labels_mean=labels_mean)
    if len(table.values) != len(labelled):
        raise DataError(
            f"X holds {len(table.values)} samples and y {len(labelled)} labels; these must be "
            "equal."
        )
    samples = Samples(
        values=table.values,
        classes=known.astype(np.int64),
        names=tuple(str(row) for row in range(len(labelled))),
        class_names=CLASS_NAMES,
        kind="vector",
        feature_names=tuple(column.name for column in table.columns),
        columns=table.columns,
    )
    return OneSided(samples, labelled, duplicates=0, notices=table.notices)


def checked_values(values: ArrayLike, *, channels: ChannelAxis | None = None) -> np.ndarray:
    """Return the values as uint8 images (N, C, H, W) or float32 vectors (N, D)."""
    array = np.asarray(values)
    return _vectors(array) if array.ndim == 2 else _images(array, channels)


def _vectors(array: np.ndarray) -> Float32[np.ndarray, "n features"]:
    if not array.shape[1]:
        raise DataError("X holds no features: its second axis has length 0.")
    try:
        # Overflow is found below, where the message names row and column.
        with np.errstate(over="ignore"):
            vectors = array.astype(np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"Features must be numbers; X holds {array.dtype} ({error}).") from None
    finite = np.isfinite(vectors)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise DataError(
            f"X holds {array[row, column]} in row {row}, column {column}: NaN, infinity or a "
            "number too large. Fill the gap or remove the row."
        )
    return vectors


def _images(
    array: np.ndarray, channels: ChannelAxis | None
) -> UInt8[np.ndarray, "n channels height width"]:
    if array.ndim not in (3, 4):
        raise DataError(
            "X must be images (N, H, W), (N, H, W, C) or (N, C, H, W), or features (N, D); "
            f"got shape {array.shape}."
        )
    if 0 in array.shape:
        raise DataError(f"X holds no pixels: its shape is {array.shape}.")
    if array.ndim == 3:
        ordered = array[:, None]
    elif (channels or _channel_axis(array.shape)) == "last":
        ordered = np.moveaxis(array, 3, 1)
    else:
        ordered = array
    return _eight_bit_pixels(ordered)


def _channel_axis(shape: tuple[int, ...]) -> ChannelAxis:
    could_be_first, could_be_last = shape[1] in CHANNEL_COUNTS, shape[3] in CHANNEL_COUNTS
    if could_be_first != could_be_last:
        return "first" if could_be_first else "last"
    problem = "both" if could_be_first else "neither"
    raise DataError(
        f"X has shape {shape}: {problem} of the second and the last axis could be channels "
        f'(of length {", ".join(map(str, CHANNEL_COUNTS))}). Say channels="first" or "last".'
    )


def _eight_bit_pixels(array: np.ndarray) -> UInt8[np.ndarray, "n channels height width"]:
    """Return uint8; refuse numbers whose black and white are unclear."""
    if array.dtype == np.uint8:
        return _not_nearly_black(array, np.ascontiguousarray(array))
    if array.dtype.kind not in "biuf":
        raise DataError(f"Images must be uint8, or floats in [0, 1]; X holds {array.dtype}.")
    low, high = array.min(), array.max()
    is_float = array.dtype.kind == "f"
    top = 1 if is_float else 255
    # Written so that NaN, which compares as false, is refused too.
    if array.dtype.kind != "b" and not (low >= 0 and high <= top):
        raise DataError(
            f"Images must be whole numbers from 0 to 255, or floats from 0 to 1; X holds "
            f"{array.dtype} from {low} to {high}. Rescale all images by one factor."
        )
    factor = 255 if array.dtype.kind in "bf" else 1
    pixels = np.empty(array.shape, np.uint8)
    for start in range(0, len(array), _CHUNK):
        rows = slice(start, start + _CHUNK)
        pixels[rows] = np.rint(array[rows].astype(np.float64) * factor)
    return _not_nearly_black(array, pixels)


def _not_nearly_black(array: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """Return the pixels; refuse those that the array's numbers make nearly black."""
    if array.any() and are_nearly_black(max(1, int(pixels.max())), len(pixels)):
        remedy = "Divide floats by their white"
        if array.dtype.kind != "f":
            remedy = f"If {array.max()} means white, multiply X by {255 // int(array.max())}"
        raise DataError(
            f"X holds {array.dtype} images from {array.min()} to {array.max()}, which is nearly "
            f"black: white is {1 if array.dtype.kind == 'f' else 255}. {remedy}."
        )
    return pixels


def _count_shared(values: np.ndarray, classes: Int64[np.ndarray, "n"]) -> int:
    """Count unlabelled images that are equal, pixel by pixel, to a positive one."""
    digests = {
        label: [hashlib.sha256(values[row]).digest() for row in np.flatnonzero(classes == label)]
        for label in (POSITIVE, UNKNOWN)
    }
    positive = set(digests[POSITIVE])
    return sum(digest in positive for digest in digests[UNKNOWN])


def _notices(labels: np.ndarray, duplicates: int) -> tuple[str, ...]:
    notices = []
    if labels.dtype.kind == "b":
        notices.append("Labels True and False were read as positive and unlabelled.")
    elif set(np.unique(labels).tolist()) == {-1, 1}:
        notices.append("Labels 1 and -1 were read as positive and unlabelled.")
    if duplicates:
        notices.append(
            f"{duplicates} unlabelled images are equal to a positive one; they stay unlabelled."
        )
    return tuple(notices)
