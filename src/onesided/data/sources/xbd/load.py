"""xBD: buildings in satellite images after nineteen disasters, and how damaged they are.

The reader opens the crops that `onesided data prepare xbd` makes, see `prepare`. Where the
publisher's folders are there, a split trains on train and tier3 and tests on test, so that
figures can be compared with those of xView2; hold is kept apart. With data.grouping = "pooled",
and where there is only one folder, it trains on 60 % of all buildings and tests on the rest,
shuffled as in the NcPU paper. Or it tests on whole tiles or events (data.grouping), which
answers how well the next disaster is handled.

Differs: which of the nineteen events are in the paper's 94 thousand crops is unknown. All
events under the root are taken; move away the others.
"""

import csv
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from onesided.core.errors import DataError, DataNotFound
from onesided.data.problem.samples import Samples, Source
from onesided.data.sources.download import ByHand, FileStatus, compare
from onesided.data.sources.xbd.labels import ADDRESS, CLASS_NAMES, PARTS
from onesided.data.sources.xbd.prepare import (
    COLUMNS,
    CROPS,
    FOLDER,
    SIZE,
    SUMMARY,
    TABLE,
    prepare_xbd,
    read_summary,
)
from onesided.storage.arrays import NoArrays, map_array

NAME = "xbd"
POSITIVE_CLASSES = (2, 3)
"""Major damage and destroyed."""
TRAIN_SHARE = 0.6


def load_xbd(root: Path | None) -> Source:
    """Return the prepared crops of xBD, mapped, as 3x64x64 images without a test part."""
    folder = None if root is None else _folder(root)
    if folder is None or read_summary(folder) is None:
        where = "anywhere yet: say where with --root DATA" if root is None else f"in {root}"
        raise DataNotFound(f"There are no prepared crops of xbd {where}. {BY_HAND.way(NAME, root)}")
    crops, lines = _map_crops(folder / CROPS), _read_table(folder / TABLE)
    if len(crops) != len(lines):
        raise DataError(
            f"{folder} holds {len(crops)} crops and {len(lines)} buildings: they do not belong "
            f"together. Delete the folder and run: onesided data prepare {NAME}"
        )
    return Source(
        train=Samples(
            values=crops,
            classes=np.array([CLASS_NAMES.index(line["subtype"]) for line in lines], np.int64),
            names=tuple(f"{line['tile']}/{line['uid']}" for line in lines),
            class_names=CLASS_NAMES,
            kind="remote",
            groups={kind: np.array([line[kind] for line in lines]) for kind in ("tile", "event")},
        ),
        files=(folder / CROPS, folder / TABLE),
        train_share=TRAIN_SHARE,
        side=np.array([PARTS.get(line.get("part", ""), "train") for line in lines]),
    )


def inspect_xbd(root: Path) -> tuple[FileStatus, ...]:
    """Compare the prepared files with the sizes and checksums noted when they were made."""
    folder = _folder(root)
    summary = read_summary(folder)
    if summary is None:
        return tuple(FileStatus(folder / name, "missing", 0) for name in (CROPS, TABLE, SUMMARY))
    statuses = [
        compare(folder / name, summary[name]["bytes"], summary[name]["sha256"], "sha256")
        for name in (CROPS, TABLE)
    ]
    size = (folder / SUMMARY).stat().st_size
    return (*statuses, FileStatus(folder / SUMMARY, "good", size, size))


BY_HAND = ByHand(ADDRESS, inspect_xbd, prepare_xbd)


def _folder(root: Path) -> Path:
    return root if (root / SUMMARY).is_file() and (root / CROPS).is_file() else root / FOLDER


def _map_crops(path: Path) -> UInt8[np.ndarray, "n 3 64 64"]:
    try:
        crops = map_array(path)
    except (OSError, NoArrays) as error:
        raise DataError(f"{path} is damaged ({error}). Delete it and prepare again.") from error
    if crops.dtype != np.uint8 or crops.shape[1:] != (3, SIZE, SIZE):
        raise DataError(
            f"{path} holds {crops.dtype} of shape {crops.shape}; expected uint8 of shape "
            f"(buildings, 3, {SIZE}, {SIZE}). Delete it and prepare again."
        )
    return crops


def _read_table(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path} is damaged ({error}). Delete it and prepare again.") from error
    for number, line in enumerate(lines, start=2):
        # Tables of earlier versions have no column part.
        if tuple(line) not in (COLUMNS, COLUMNS[:-1]) or line["subtype"] not in CLASS_NAMES:
            raise DataError(f"{path}, line {number} is damaged. Delete it and prepare again.")
    return lines
