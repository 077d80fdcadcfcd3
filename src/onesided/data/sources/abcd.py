"""ABCD: pairs of aerial images of buildings before and after the tsunami of 2011.

Each pair is one TIFF of six channels: red, green, blue before, the same after. The set
"resized" is read, 128x128, which shows three times the building. All pairs lie in
`patch-pairs`, and lists of five folds say which are washed away (`patch-pair_14.tif,1`).
Pairs in folders `surviving` and `washed-away` are read too.

There is no test part. A split trains on 60 % of the pairs and tests on the rest, shuffled as
in the NcPU paper; or it tests on whole folds of the publisher (data.grouping = "fold").
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onesided.core.errors import DataError, DataNotFound
from onesided.data.problem.samples import Samples, Source
from onesided.data.read.files import Found
from onesided.data.read.images import decode_all
from onesided.data.sources.download import ByHand, FileStatus
from onesided.storage.table import read_lines

NAME = "abcd"
CLASS_NAMES = ("surviving", "washed-away")
POSITIVE_CLASSES = (1,)
TRAIN_SHARE = 0.6
CHANNELS, SIDE = 6, 128
_FOLDERS = ("ABCDdataset/resized", "resized", ".")
_PAIRS, _LISTS = "patch-pairs", "5fold-list"


@dataclass(frozen=True)
class _Pair:
    """A file, its class, and the fold that tests on it: 0 where no list names one."""

    found: Found
    label: int
    fold: int


def load_abcd(root: Path | None) -> Source:
    """Return ABCD as 6x128x128 images, before and after, without a test part."""
    if root is None:
        raise DataNotFound(
            f"{NAME} is read from files. Say where they are with --root DATA. "
            f"{BY_HAND.way(NAME, root)}"
        )
    pairs = _find_pairs(root)
    decoded = decode_all(
        [pair.found for pair in pairs],
        channels=CHANNELS,
        size=(SIDE, SIDE),
        what=str(pairs[0].found.path.parent),
    )
    pair_of = {pair.found.name: pair for pair in pairs}
    kept = [pair_of[name] for name in decoded.kept]
    folds = np.array([pair.fold for pair in kept])
    return Source(
        train=Samples(
            values=decoded.values,
            classes=np.array([pair.label for pair in kept], np.int64),
            names=decoded.kept,
            class_names=CLASS_NAMES,
            kind="remote",
            skipped=decoded.skipped,
            groups={"fold": folds} if folds.any() else {},
        ),
        files=tuple(pair.found.path for pair in pairs),
        train_share=TRAIN_SHARE,
    )


def inspect_abcd(root: Path) -> tuple[FileStatus, ...]:
    """Return which of the listed pairs are there; their contents are not checked."""
    if _folder(root) is None:
        return (FileStatus(root / _FOLDERS[0] / _PAIRS, "missing", 0),)
    paths = (pair.found.path for pair in _find_pairs(root))
    sizes = ((path, path.stat().st_size if path.is_file() else None) for path in paths)
    return tuple(
        FileStatus(path, "good" if size else "missing", size or 0, size) for path, size in sizes
    )


BY_HAND = ByHand("https://github.com/gistairc/ABCDdataset", inspect_abcd)


def _folder(root: Path) -> Path | None:
    for folder in (root / name for name in _FOLDERS):
        listed = (folder / _PAIRS).is_dir() and any((folder / _LISTS).glob("cv*.csv"))
        if listed or all((folder / name).is_dir() for name in CLASS_NAMES):
            return folder
    return None


def _find_pairs(root: Path) -> list[_Pair]:
    folder = _folder(root)
    if folder is None:
        raise DataNotFound(
            f"{NAME} is not in {root}: expected {_PAIRS} and {_LISTS}, or the folders "
            f"{' and '.join(CLASS_NAMES)}, in {root / _FOLDERS[0]}. {BY_HAND.way(NAME, root)}"
        )
    if (folder / _LISTS).is_dir() and (folder / _PAIRS).is_dir():
        return _listed(folder)
    return [
        _Pair(Found(path, f"{name}/{path.name}"), label, 0)
        for label, name in enumerate(CLASS_NAMES)
        for path in sorted((folder / name).glob("*.tif"), key=_number)
    ]


def _listed(folder: Path) -> list[_Pair]:
    """Return every file that a list names, with its class and the fold that tests on it."""
    classes: dict[str, int] = {}
    fold_of: dict[str, int] = {}
    for path in sorted((folder / _LISTS).glob("cv*-*.csv")):
        is_test = path.stem.endswith("-test")
        for name, label in _read_list(path):
            if classes.setdefault(name, label) != label:
                raise DataError(f"{path} contradicts another list about the class of {name}.")
            if is_test and fold_of.setdefault(name, _number(path)) != _number(path):
                raise DataError(f"{path} tests on {name}, and so does another list.")
    names = sorted(classes, key=lambda name: _number(Path(name)))
    return [
        _Pair(Found(folder / _PAIRS / name, name), classes[name], fold_of.get(name, 0))
        for name in names
    ]


def _read_list(path: Path) -> list[tuple[str, int]]:
    lines = read_lines(path)
    for number, line in lines:
        # A name with a folder in it could lead anywhere on the disk.
        if len(line) != 2 or line[1].strip() not in ("0", "1") or Path(line[0]).name != line[0]:
            raise DataError(
                f"{path}, line {number} is {','.join(line)!r}; expected a file and its class, "
                "such as patch-pair_14.tif,1"
            )
    return [(name, int(label)) for _, (name, label) in lines]


def _number(path: Path) -> int:
    """Return the number in a file's name: pair 2 comes before pair 10."""
    digits = re.search(r"\d+", path.stem)
    return int(digits[0]) if digits else 0
