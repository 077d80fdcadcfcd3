"""People's own table: image files with their labels, or features with their labels.

A CSV file in UTF-8 whose first line names the columns. `label` is one of the words
positive, unlabelled, negative. With a column `path` the table lists image files, relative
to the table's own folder; without one, every column but `label`, `name` and `id` is a
feature.
"""

from array import array
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from onesided.core.labels import POSITIVE, UNKNOWN
from onesided.data.problem.dataset import Scenario
from onesided.data.problem.samples import ImageKind, Samples
from onesided.data.read.cache import DecodeCache
from onesided.data.read.files import Found, listed_file
from onesided.data.read.folder import CLASS_NAMES, Group, OneSided, read_groups
from onesided.data.read.images import Size, decode_all
from onesided.storage.labels import NAMES, NotALabel, label_in
from onesided.storage.names import printable, shown_path
from onesided.storage.progress import Progress
from onesided.storage.table import NotANumber, Row, Table, number_in, open_table


def read_table(
    path: Path,
    *,
    size: Size = None,
    tolerate: float = 0.05,
    scenario: Scenario = "single-set",
    kind: ImageKind = "photograph",
    progress: Progress | None = None,
    cache: DecodeCache | None = None,
) -> OneSided:
    """Read a table of image files, or of features, with a label for each row.

    The options are those of `read_folders`. `tolerate` is the share of the files of each label
    that may be missing or unreadable. `kind` is of images; features are always vectors.
    """
    table = open_table(path, needed="label")
    if "path" not in table.columns:
        return _read_features(table)
    groups = _group_files(table)
    decode = partial(decode_all, size=size, progress=progress, cache=cache)
    read = read_groups(groups, decode, tolerate=tolerate, scenario=scenario, kind=kind)
    unused = [column for column in table.columns if column not in ("path", "label")]
    if not unused:
        return read
    notice = f"{printable(path.name)}: columns that were not used: {', '.join(unused)}."
    return replace(read, notices=(notice, *read.notices))


def _label(table: Table, row: Row) -> int:
    try:
        return label_in(row.cells["label"], among=NAMES)
    except NotALabel as error:
        raise table.fault(str(error), row.line) from None


def _group_files(table: Table) -> list[Group]:
    first_line: dict[str, int] = {}
    found: dict[int, list[Found]] = {}
    for row in table.rows():
        label = _label(table, row)
        file, _ = listed_file(table, row)
        if file.name in first_line:
            raise table.fault(
                f"{file.name} is listed already in line {first_line[file.name]}. List it once.",
                row.line,
            )
        first_line[file.name] = row.line
        found.setdefault(label, []).append(file)
    _check_both_sides(table, set(found))
    shown = shown_path(table.path)
    order = [label for label in NAMES if label in found]
    return [Group(label, f"{shown} ({NAMES[label]})", found[label]) for label in order]


def _check_both_sides(table: Table, labels: set[int]) -> None:
    for label in (POSITIVE, UNKNOWN):
        if label not in labels:
            seen = ", ".join(NAMES[other] for other in NAMES if other in labels) or "no rows"
            raise table.fault(f"no row is {NAMES[label]}; found {seen}. Both sides are needed.")


def _read_features(table: Table) -> OneSided:
    features = table.features
    if not features:
        raise table.fault(
            "there is neither a column 'path' nor any column of numbers beside the label. "
            f"The first line names: {', '.join(table.columns)}."
        )
    labels, names, numbers = [], [], array("f")
    for row in table.rows():
        labels.append(_label(table, row))
        names.append(table.name_of(row))
        try:
            numbers.extend(number_in(row, column) for column in features)
        except NotANumber as error:
            raise table.fault(str(error), row.line) from None
    _check_both_sides(table, set(labels))
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise table.fault(f"two rows are called '{twice}'. Names must differ.")
    classes = np.array(labels, np.int64)
    samples = Samples(
        values=np.array(numbers, np.float32).reshape(len(labels), len(features)),
        classes=classes,
        names=tuple(names),
        class_names=CLASS_NAMES,
        kind="vector",
        feature_names=table.spelled(features),
    )
    return OneSided(samples, classes == POSITIVE, duplicates=0, notices=())
