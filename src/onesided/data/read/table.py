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
from onesided.data.problem.weights import checked_weights
from onesided.data.read.cache import DecodeCache
from onesided.data.read.files import ACCEPTED_ENDINGS, Found, listed_file
from onesided.data.read.folder import CLASS_NAMES, Group, OneSided, read_groups
from onesided.data.read.images import Size, decode_all
from onesided.data.read.precision import merged_columns
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
    sample_weight: str | None = None,
) -> OneSided:
    """Read a table of image files, or of features, with a label for each row.

    The options are those of `read_folders`. `tolerate` is the share of the files of each label
    that may be missing or unreadable. `kind` is of images; features are always vectors. `kinds`
    are those of columns that the person gave; `group` is the column that says which rows belong
    together, `sample_weight` the one that says how much each counts in training.
    """
    table = open_table(path, needed="label")
    beside = _Beside(table, group, sample_weight)
    if "path" not in table.columns:
        return _read_features(table, kinds, beside)
    if kinds:
        raise ConfigError("Kinds of columns go with tables to learn from, not with lists of files.")
    files = _group_files(table, beside)
    decode = partial(decode_all, size=size, progress=progress, cache=cache)
    read = read_groups(files, decode, tolerate=tolerate, scenario=scenario, kind=kind)
    read = replace(read, samples=beside.added(read.samples))
    used = ("path", "label", *beside.columns)
    unused = [column for column in table.columns if column not in used]
    if not unused:
        return read
    notice = f"{printable(path.name)}: columns that were not used: {', '.join(unused)}."
    return replace(read, notices=(notice, *read.notices))


class _Beside:
    """What a table says of each item beside its label and content: its group, and its weight."""

    def __init__(self, table: Table, group: str | None, weight: str | None) -> None:
        self.table = table
        self.group = self._column(group, "to group rows by")
        self.weight = self._column(weight, "of weights")
        self.groups: dict[str, str] = {}
        self.weights: dict[str, float] = {}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read here, and not learnt from."""
        return tuple(column for column in (self.group, self.weight) if column is not None)

    def note(self, name: str, row: Row) -> None:
        """Take what the row says of the item of this name."""
        if self.group is not None:
            self.groups[name] = self._group_in(row, self.group)
        if self.weight is not None:
            try:
                self.weights[name] = number_in(row, self.weight)
            except NotANumber as error:
                raise self.table.fault(str(error), row.line) from None

    def added(self, samples: Samples) -> Samples:
        """Return the samples with their groups and weights."""
        if self.group is not None:
            groups = np.array([self.groups[name] for name in samples.names])
            samples = replace(samples, groups={self.group: groups})
        if self.weight is None:
            return samples
        given = np.array([self.weights[name] for name in samples.names])
        labelled, unlabelled = samples.classes == POSITIVE, samples.classes == UNKNOWN
        what = f"the column '{self.weight}'"
        return replace(samples, weights=checked_weights(given, labelled, unlabelled, what=what))

    def _column(self, heading: str | None, what: str) -> str | None:
        if heading is None:
            return None
        column = column_called(heading)
        if column not in self.table.columns:
            raise self.table.fault(
                f"there is no column '{column}' {what}."
                f"{nearest(column, [*self.table.features, *NAMING_COLUMNS])}"
            )
        return column

    def _group_in(self, row: Row, column: str) -> str:
        group = row.cells[column].strip()
        if not group:
            raise self.table.fault(
                f"the column '{column}', by which rows are grouped, is empty. Fill it.", row.line
            )
        return group


def _label(table: Table, row: Row) -> int:
    try:
        return label_in(row.cells["label"], among=NAMES)
    except NotALabel as error:
        raise table.fault(str(error), row.line) from None


def _group_files(table: Table, beside: _Beside) -> list[Group]:
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
        beside.note(file.name, row)
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
    table: Table, kinds: Mapping[str, ColumnKind] | None, beside: _Beside
) -> OneSided:
    features = [column for column in table.features if column not in beside.columns]
    if not features:
        raise table.fault(
            "there is neither a column 'path' nor any column to learn from beside the label. "
            f"The first line names: {', '.join(table.columns)}."
        )
    rows = _Rows(table, beside)
    raw = None if kinds else _numbers(table, features, rows)
    if raw is None:
        rows = _Rows(table, beside)
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
        feature_names=spelled,
        columns=raw.columns,
    )
    samples = beside.added(samples)
    return OneSided(samples, classes == POSITIVE, duplicates=0, notices=raw.notices)


class _Rows:
    """Label, name and line of each row of a table, in its order."""

    def __init__(self, table: Table, beside: _Beside) -> None:
        self.table, self.beside = table, beside
        self.labels: list[int] = []
        self.names: list[str] = []
        self.lines: list[int] = []

    def read(self) -> Iterator[Row]:
        """Yield the rows, each after its label and name are noted."""
        for row in self.table.rows():
            self.labels.append(_label(self.table, row))
            self.names.append(self.table.name_of(row))
            self.lines.append(row.line)
            self.beside.note(self.names[-1], row)
            yield row

    def check(self) -> None:
        """Refuse a table without P or U, and names that two rows have."""
        _check_both_sides(self.table, set(self.labels))
        if len(set(self.names)) < len(self.names):
            twice = next(name for name, count in Counter(self.names).items() if count > 1)
            raise self.table.fault(f"two rows are called '{twice}'. Names must differ.")


def _numbers(table: Table, features: Sequence[str], rows: _Rows) -> RawTable | None:
    """Return a table of numbers without gaps, which needs no encoder; None for any other."""
    numbers = array("d")
    try:
        for row in rows.read():
            numbers.extend(number_in(row, column) for column in features)
    except NotANumber:
        return None
    exact = np.frombuffer(numbers).reshape(len(rows.labels), len(features))
    values = exact.astype(np.float32)
    return RawTable(columns=(), values=values, notices=merged_columns(exact, values, features))


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
