"""People's own image folders: one of positives and one of unlabelled images, or one per class.

Names of items are as the file system has them; pass them through `printable` before they are
written to a file. Sentences, class names and the list of skipped files are printable already.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int64

from onesided.core.errors import DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.problem.dataset import Scenario
from onesided.data.problem.marks import FILES_SEEN, marks_of_files, some
from onesided.data.problem.samples import ImageKind, Samples
from onesided.data.read.cache import DecodeCache
from onesided.data.read.files import (
    Found,
    Unreadable,
    describe,
    folder_prefix,
    list_images,
    own_name,
    visible_folders,
)
from onesided.data.read.images import Decoded, Size, check_readable, decode_all
from onesided.data.read.picture import channels_phrase, read_header
from onesided.storage.labels import NAMES
from onesided.storage.names import printable, shown_path
from onesided.storage.progress import Progress

CLASS_NAMES = (NAMES[NEGATIVE], NAMES[POSITIVE])


@dataclass(frozen=True)
class OneSided:
    """People's own data before anything is held out.

    Attributes:
        samples: All items; class 1 positive, 0 known negative, -1 unlabelled.
        labelled: Whether the item is a labelled positive.
        duplicates: Unlabelled items whose content is also among the positives.
        notices: What a person should know, in sentences.
        doubts: Why figures may mean nothing, in sentences.
    """

    samples: Samples
    labelled: Bool[np.ndarray, "n"]
    duplicates: int
    notices: tuple[str, ...]
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """Files that share a label.

    Attributes:
        label: POSITIVE, UNKNOWN or NEGATIVE; or the index of a class.
        what: Where they come from, for messages.
        found: The files, with names that are unique over all groups.
    """

    label: int
    what: str
    found: Sequence[Found]


def read_folders(
    positives: Path,
    unlabelled: Path,
    negatives: Path | None = None,
    *,
    size: Size = None,
    tolerate: float = 0.05,
    scenario: Scenario = "single-set",
    kind: ImageKind = "photograph",
    progress: Progress | None = None,
    cache: DecodeCache | None = None,
) -> OneSided:
    """Read a folder of positives, one of unlabelled images, and maybe one of negatives.

    Items are called by their path from the folder given, that folder's own name first.

    Args:
        positives: Folder of labelled positives.
        unlabelled: Folder of the unlabelled pool, which holds positives too.
        negatives: Folder of known negatives, if there is one.
        size: Height and width of the run; else chosen from all images together.
        tolerate: Share of each folder that may be unreadable.
        scenario: Decides about content that is both labelled and unlabelled; see
            `read_groups`.
        kind: Which augmentation suits the images.
        progress: As in `decode_all`.
        cache: As in `decode_all`.
    """
    folders = {POSITIVE: positives, UNKNOWN: unlabelled}
    if negatives is not None:
        folders[NEGATIVE] = negatives
    called = distinct_names(folders)
    listings = {
        label: list_images(folder, f"{called[label]}/") for label, folder in folders.items()
    }
    groups = [
        Group(label, shown_path(folders[label]), listing.images)
        for label, listing in listings.items()
    ]
    decode = partial(decode_all, size=size, progress=progress, cache=cache)
    read = read_groups(groups, decode, tolerate=tolerate, scenario=scenario, kind=kind)
    others = tuple(
        f"{shown_path(folders[label])}: other files were left out ({describe(listing.others)})."
        for label, listing in listings.items()
        if listing.others
    )
    return replace(read, notices=others + read.notices)


def read_class_folders(
    root: Path,
    *,
    channels: int | None = None,
    size: Size = None,
    tolerate: float = 0.05,
    kind: ImageKind = "photograph",
    progress: Progress | None = None,
    cache: DecodeCache | None = None,
    notify: Callable[[str], None] | None = None,
) -> Samples:
    """Read a folder that holds one folder per class; classes are numbered by their names.

    Args:
        root: The folder of folders.
        channels: Channels of the run that these images are for; None takes their own.
        size: As in `read_folders`; so are `tolerate`, `kind`, `progress` and `cache`.
        notify: Called with each sentence that a person should know.
    """
    classes = _class_folders(root)
    prefix = folder_prefix(root)
    groups = [
        Group(index, shown_path(folder), list_images(folder, f"{prefix}{folder.name}/").images)
        for index, folder in enumerate(classes)
    ]
    decoded = decode_all(
        [file for group in groups for file in group.found],
        channels=channels,
        size=size,
        tolerate=tolerate,
        what=shown_path(root),
        progress=progress,
        cache=cache,
    )
    class_names = tuple(printable(folder.name) for folder in classes)
    samples = _samples(decoded, groups, 1.0, class_names, kind)
    if notify is not None:
        for notice in decoded.notices:
            notify(notice)
    return samples


def read_groups(
    groups: Sequence[Group],
    decode: Callable[..., Decoded],
    *,
    tolerate: float,
    scenario: Scenario,
    kind: ImageKind,
) -> OneSided:
    """Read groups of files, at least P and U, into one array, and handle duplicate content.

    An unlabelled file may have the content of a labelled one. In a single set its label is
    then known, so it is dropped. In case-control the unlabelled are a sample of their own,
    which dropping would bias, so it stays.

    `decode` is `decode_all` with the caller's size, progress and cache. `tolerate` is the
    share of each group that may be unreadable.
    """
    files = [file for group in groups for file in group.found]
    labels = [group.label for group in groups for _ in group.found]
    # The share of unreadable files counts within each group: a few lost positives are a small
    # share of a large unlabelled pool.
    decoded = decode(
        files,
        known=None if scenario == "case-control" else [label != UNKNOWN for label in labels],
        tolerate=1.0,
        what=" and ".join(group.what for group in groups),
    )
    samples = _samples(decoded, groups, tolerate, CLASS_NAMES, kind)
    shared = _Shared(decoded, samples.classes)
    notices = decoded.notices + shared.notices(scenario)
    labelled = samples.classes == POSITIVE
    return OneSided(samples, labelled, shared.with_positives, notices, _marks(files, samples))


def _marks(files: Sequence[Found], samples: Samples) -> tuple[str, ...]:
    """Return a sentence where the files of P and of U differ in format, size or channels."""
    path_of = {file.name: file.path for file in files}

    def facts(label: int) -> list[dict[str, str]]:
        rows = some(np.flatnonzero(samples.classes == label), FILES_SEEN)
        found = (_facts(path_of[samples.names[row]]) for row in rows.tolist())
        return [each for each in found if each]

    return marks_of_files(facts(POSITIVE), facts(UNKNOWN))


def _facts(path: Path) -> dict[str, str]:
    """Return what a file is, whatever it shows; {} where it is gone and its pixels are stored."""
    try:
        header = read_header(path)
    except Unreadable:
        return {}
    ending = {"jpeg": "jpg", "tiff": "tif"}.get(kind := path.suffix.lower()[1:], kind)
    return {
        "format": f"are .{printable(ending)} files",
        "size": f"have {header.width} x {header.height} pixels",
        "channels": f"have {channels_phrase(header.channels)}",
    }


def _samples(
    decoded: Decoded,
    groups: Sequence[Group],
    tolerate: float,
    class_names: tuple[str, ...],
    kind: ImageKind,
) -> Samples:
    """Label each image by its group; raise if too many files of one group are unreadable."""
    group_of = {file.name: group for group in groups for file in group.found}
    for group in groups:
        skipped = [entry for entry in decoded.skipped if group_of[entry[0]] is group]
        check_readable(group.what, len(group.found), skipped, tolerate)
    return Samples(
        values=decoded.values,
        classes=np.array([group_of[name].label for name in decoded.kept], np.int64),
        names=decoded.kept,
        class_names=class_names,
        kind=kind,
        skipped=tuple((printable(name), reason) for name, reason in decoded.skipped),
    )


class _Shared:
    """Files with the same content, found by their digests.

    Attributes:
        with_positives: Unlabelled files whose content is also among the positives.
        with_negatives: Unlabelled files whose content is also among the negatives.
    """

    def __init__(self, decoded: Decoded, classes: Int64[np.ndarray, "n"]) -> None:
        pairs = list(zip(classes.tolist(), decoded.digests, strict=True))
        pairs += [(UNKNOWN, digest) for _, digest in decoded.copies]
        content: dict[int, set[str]] = {label: set() for label in NAMES}
        for label, digest in pairs:
            content[label].add(digest)
        unlabelled = [digest for label, digest in pairs if label == UNKNOWN]
        self.with_positives = sum(digest in content[POSITIVE] for digest in unlabelled)
        self.with_negatives = sum(digest in content[NEGATIVE] for digest in unlabelled)
        self._check(decoded, classes, content[NEGATIVE])

    def _check(self, decoded: Decoded, classes: Int64[np.ndarray, "n"], negative: set[str]) -> None:
        both = [
            name
            for name, digest, label in zip(decoded.kept, decoded.digests, classes, strict=True)
            if label == POSITIVE and digest in negative
        ]
        if both:
            raise DataError(
                f"{len(both)} files are both positive and negative (same content); the first is "
                f"{printable(both[0])}. Remove them from one of the two."
            )
        if decoded.copies and not (classes == UNKNOWN).any():
            raise DataError(
                "Every unlabelled file is also among the labelled ones (same content), so nothing "
                "unlabelled is left. Is the same folder given twice?"
            )

    def notices(self, scenario: Scenario) -> tuple[str, ...]:
        fate = (
            "they stay, because in the case-control setting the unlabelled are a sample of "
            "their own"
            if scenario == "case-control"
            else "they were dropped from the unlabelled, because their label is known"
        )
        counts = {"positives": self.with_positives, "negatives": self.with_negatives}
        return tuple(
            f"{count} unlabelled files are also among the {where} (same content); {fate}."
            for where, count in counts.items()
            if count
        )


def _class_folders(root: Path) -> list[Path]:
    listing = list_images(root)
    loose = [file.name for file in listing.images if "/" not in file.name]
    if loose:
        raise DataError(
            f"{shown_path(root)} should hold one folder per class, but the image "
            f"{printable(loose[0])} lies beside them. Move it into the folder of its class."
        )
    folders = visible_folders(root)
    if len(folders) < 2:
        raise DataError(
            f"{shown_path(root)} should hold a folder for each of at least two classes; "
            f"there is only {printable(folders[0].name)}."
        )
    return folders


def distinct_names(folders: dict[int, Path]) -> dict[int, str]:
    """Return what names of items call each folder, so that no two items share a name."""
    own = {label: own_name(folder) for label, folder in folders.items()}
    if "" not in own.values() and len(set(own.values())) == len(own):
        return own
    return {label: f"{NAMES[label]}/{name}".rstrip("/") for label, name in own.items()}
