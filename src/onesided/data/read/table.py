"""People's own table: image files with their labels, or features with their labels.

A CSV file in UTF-8 whose first line names the columns. `label` is one of the words
positive, unlabelled, negative. With a column `path` the table lists image files, relative
to the table's own folder; without one, every column but `label`, `name` and `id` is a
feature. Numbers without gaps are vectors as they are; of other tables the kind of each column
is found, and the rows stay raw until an encoder is fitted to those that are trained on.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from onesided.core.config import nearest
from onesided.core.errors import ConfigError
from onesided.core.labels import POSITIVE, UNKNOWN
from onesided.data.columns.cells import ColumnKind
from onesided.data.columns.kinds import RawTable, UnclearColumn, read_columns
from onesided.data.problem.dataset import Scenario
from onesided.data.problem.samples import ImageKind, Samples
from onesided.data.read.cache import DecodeCache
from onesided.data.read.files import ACCEPTED_ENDINGS, Found, listed_file
from onesided.data.read.folder import CLASS_NAMES, Group, OneSided, read_groups
from onesided.data.read.images import Size, decode_all
from onesided.storage.labels import NAMES, NotALabel, label_in
from onesided.storage.names import printable, shown_path
from onesided.storage.progress import Progress
from onesided.storage.table import (
    NAMING_COLUMNS,
    NotANumber,
    Row,
    Table,
    column_called,
    number_in,
    open_table,
)


def read_table(
    path: Path,
    *,
    size: Size = None,
    tolerate: float = 0.05,
    scenario: Scenario = "single-set",
    kind: ImageKind = "photograph",
    progress: Progress | None = None,
    cache: DecodeCache | None = None,
    kinds: Mapping[str, ColumnKind] | None = None,
    group: str | None = None,
) -> OneSided:
    """Read a table of image files, or of features, with a label for each row.

    The options are those of `read_folders`. `tolerate` is the share of the files of each label
    that may be missing or unreadable. `kind` is of images; features are always vectors. `kinds`
    are those of columns that the person gave; `group` is the column that says which rows belong
    together.
    """
    table = open_table(path, needed="label")
    group = None if group is None else column_called(group)
    if "path" not in table.columns:
        return _read_features(table, kinds, group)
    if kinds:
        raise ConfigError("Kinds of columns go with tables to learn from, not with lists of files.")
    if group is not None:
        raise ConfigError("Rows are grouped by a column only in tables without a column 'path'.")
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


def _read_features(
    table: Table, kinds: Mapping[str, ColumnKind] | None, group: str | None
) -> OneSided:
    features = [column for column in table.features if column != group]
    if not features:
        raise table.fault(
            "there is neither a column 'path' nor any column to learn from beside the label. "
            f"The first line names: {', '.join(table.columns)}."
        )
    if group is not None and group not in table.columns:
        raise table.fault(
            f"there is no column '{group}' to group rows by."
            f"{nearest(group, [*table.features, *NAMING_COLUMNS])}"
        )
    rows = _Rows(table, group)
    raw = None if kinds else _numbers(table, features, rows)
    if raw is None:
        rows = _Rows(table, group)
        raw = _raw_table(table, features, rows, kinds or {})
    rows.check()
    spelled = tuple(column.name for column in raw.columns) or table.spelled(features)
    classes = np.array(rows.labels, np.int64)
    samples = Samples(
        values=raw.values,
        classes=classes,
        names=tuple(rows.names),
        class_names=CLASS_NAMES,
        kind="vector",
        groups={} if group is None else {group: np.array(rows.groups)},
        feature_names=spelled,
        columns=raw.columns,
    )
    return OneSided(samples, classes == POSITIVE, duplicates=0, notices=raw.notices)


class _Rows:
    """Label, name, group and line of each row of a table, in its order."""

    def __init__(self, table: Table, group: str | None) -> None:
        self.table, self.group = table, group
        self.labels: list[int] = []
        self.names: list[str] = []
        self.groups: list[str] = []
        self.lines: list[int] = []

    def read(self) -> Iterator[Row]:
        """Yield the rows, each after its label and name are noted."""
        for row in self.table.rows():
            self.labels.append(_label(self.table, row))
            self.names.append(self.table.name_of(row))
            self.lines.append(row.line)
            if self.group is not None:
                self.groups.append(self._group_in(row))
            yield row

    def check(self) -> None:
        """Refuse a table without P or U, and names that two rows have."""
        _check_both_sides(self.table, set(self.labels))
        if len(set(self.names)) < len(self.names):
            twice = next(name for name, count in Counter(self.names).items() if count > 1)
            raise self.table.fault(f"two rows are called '{twice}'. Names must differ.")

    def _group_in(self, row: Row) -> str:
        group = row.cells[self.group or ""].strip()
        if not group:
            raise self.table.fault(
                f"the column '{self.group}', by which rows are grouped, is empty. Fill it.",
                row.line,
            )
        return group


def _numbers(table: Table, features: Sequence[str], rows: _Rows) -> RawTable | None:
    """Return a table of numbers without gaps, which needs no encoder; None for any other."""
    numbers = array("f")
    try:
        for row in rows.read():
            numbers.extend(number_in(row, column) for column in features)
    except NotANumber:
        return None
    values = np.array(numbers, np.float32).reshape(len(rows.labels), len(features))
    return RawTable(columns=(), values=values, notices=())


def _raw_table(
    table: Table, features: Sequence[str], rows: _Rows, kinds: Mapping[str, ColumnKind]
) -> RawTable:
    """Return the columns of a table that holds more than numbers, with their kinds."""
    cells: dict[str, list[str]] = {column: [] for column in features}
    for row in rows.read():
        for column, texts in cells.items():
            texts.append(row.cells[column])
    for column, texts in cells.items():
        if texts and all(text.strip().lower().endswith(ACCEPTED_ENDINGS) for text in texts):
            raise table.fault(
                f"column '{column}' holds '{texts[0]}', which is not a number. If this column "
                "lists image files, call it 'path'."
            )
    rows.check()
    spelled = dict(zip(features, table.spelled(features), strict=True))
    given = {spelled.get(column_called(name), name): kind for name, kind in kinds.items()}
    try:
        raw = read_columns(
            {spelled[column]: texts for column, texts in cells.items()},
            kinds=given,
            decimal_commas=table.delimiter != ",",
        )
    except UnclearColumn as error:
        line = None if error.row is None else rows.lines[error.row]
        raise table.fault(str(error), line) from None
    notices = tuple(map(printable, raw.notices))
    if not raw.columns:
        raise table.fault(f"no column is left to learn from. {' '.join(raw.notices)}")
    return replace(raw, notices=notices)
