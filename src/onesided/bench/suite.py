"""Suites: the tables and figures of a publication as data, with published numbers and claims."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from onesided.bench.named_files import NamedFiles
from onesided.core.config import Config, Settings, merge, nearest
from onesided.core.errors import ConfigError
from onesided.methods import METHODS

Kind = Literal[
    "table",
    "cost",
    "tsne",
    "curve",
    "sweep",
    "schedule",
    "data",
    "examples",
    "pairs",
    "gradients",
    "drawing",
]
"""table, tsne, curve, sweep, schedule and cost show runs; data and examples show data sets; pairs
and gradients draw formulas; a drawing has nothing to measure."""
MEASURED = frozenset({"table", "cost", "tsne", "curve", "sweep", "schedule"})
"""Kinds that are made of runs."""
Figure = Literal[
    "oa", "f1", "precision", "recall", "auc", "epoch_seconds", "inference_ms", "gflops"
]
Curve = Literal["test_oa", "unlabelled_oa"]
Numbers = Annotated[tuple[float, ...], Field(min_length=1, max_length=2)]
"""Mean and standard deviation in per cent, or the mean alone."""
Published = Mapping[str, Mapping[str, Mapping[str, Numbers]]]
"""By data set, row and figure."""


class Counts(Config):
    """The split of a row where it is not the data set's own, as the paper counts it."""

    positives: int | None = None
    """Labelled positives."""
    unlabelled: int | None = None
    """Unlabelled samples."""
    prior: float | None = None
    """Share of positives among them."""


class Draw(Config):
    """How a publication draws a data set, where that is not the data set's own problem here."""

    positives: int
    unlabelled: int
    held_out_positives: int
    """The same at every scale, as is the next one."""
    held_out_unlabelled: int
    prior: float | None = None
    positive_classes: tuple[int, ...] | None = None

    def settings(self) -> Settings:
        """Return what it sets beside counts."""
        given = {"prior": self.prior, "positive_classes": self.positive_classes}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in given.items()
            if value is not None
        }


class Row(Config):
    """One way to train, with its own settings over the recipe of its method."""

    title: str
    """Its name in a table."""
    method: str
    """Name of the method; its recipe has the epochs, batch, rate and prior."""
    settings: Settings = Field(default_factory=dict)
    """What differs from the recipe: tables `method` and `train`, and `prior`."""
    counts: Counts = Counts()
    """Where its split differs from the data set's."""
    note: str = ""
    """What it has that other rows lack."""


class Sweep(Config):
    """One setting of a row, at several values."""

    name: str
    """Symbol of the setting in the publication."""
    setting: str
    """The method's setting."""
    at: float
    """Value of the row itself."""
    values: tuple[float, ...]
    """Further values."""


class Table(Config):
    """A table or a figure."""

    title: str
    kind: Kind
    """How it is drawn, and what is measured for it."""
    data: tuple[str, ...] = ()
    """Data sets of the publication."""
    rows: tuple[str, ...] = ()
    """Names of rows, in order."""
    figures: tuple[Figure, ...] = ("oa",)
    """What is shown of a cell."""
    sweeps: tuple[Sweep, ...] = ()
    """Settings that are varied, one at a time."""
    curve: Curve | None = None
    """What a curve shows after an epoch."""
    scales: tuple[str, ...] = ()
    """The only scales that it is measured at, in the order of a schedule; empty means all."""
    note: str = ""
    """A sentence below it."""


class Claim(Config):
    """A sentence of the publication as inequalities between cells, see `claims.py`."""

    name: str
    says: str
    """The sentence."""
    holds: tuple[str, ...]
    """The inequalities, all of which must hold."""


class PublishedData(Config):
    """A data set as the publication counts it."""

    positives: int
    unlabelled: int
    test: int
    prior: float | None = None
    classes: str
    """The positive classes in its words."""
    shape: tuple[int, int, int]


class Suite(Config):
    """The tables and figures of one publication."""

    title: str
    source: str
    """Where the published numbers are from."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Every label of a table or figure in the publication's source, and its id here."""
    differs: str = ""
    """How every cell differs from the publication, whatever its scale."""
    recipes: bool = True
    """Whether rows lie over the recipes of their methods, which are those of the NcPU paper."""
    adapt: bool = False
    """Whether methods adapt warm-ups and momentum to the epochs of the protocol."""
    protocol: Settings = Field(default_factory=dict)
    """Settings of every row: tables `data` and `train`, and `prior`. Scales and rows win."""
    draws: Mapping[str, Draw] = Field(default_factory=dict)
    """Data sets that the publication draws in its own way."""
    rows: Mapping[str, Row]
    tables: Mapping[str, Table]
    claims: tuple[Claim, ...] = ()
    published: Published = Field(default_factory=dict)
    published_cost: Mapping[str, Mapping[str, Mapping[str, float]]] = Field(default_factory=dict)
    published_data: Mapping[str, PublishedData] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for name, table in self.tables.items():
            for missing in set(table.rows) - set(self.rows):
                raise ValueError(f"{name} names the row '{missing}', which is not in [rows]")
        for name, row in self.rows.items():
            if row.method not in METHODS:
                raise ValueError(f"row {name} names the method '{row.method}', which is none")
        for label, meant in self.labels.items():
            if meant not in self.tables:
                raise ValueError(f"label {label} names '{meant}', which is not in [tables]")
        return self

    @property
    def epoch_words(self) -> str:
        """Which epoch the figures are of."""
        keep = self.protocol.get("train", {}).get("keep", "last")
        return "the last epoch" if keep == "last" else "the epoch that held-out P and U prefer"

    def all_rows(self) -> dict[str, Row]:
        """Return every row by name, with those of sweeps."""
        swept = [self.rows_of(name) for name in self.tables]
        return {**self.rows, **{name: row for rows in swept for name, row in rows.items()}}

    def rows_of(self, table: str) -> dict[str, Row]:
        """Return the rows of a table in order; a sweep adds one for each further value."""
        found = {name: self.rows[name] for name in self.tables[table].rows}
        for sweep in self.tables[table].sweeps:
            for base in self.tables[table].rows:
                for value in sweep.values:
                    found[swept_name(base, sweep, value)] = _swept(self.rows[base], sweep, value)
        return found


def swept_name(base: str, sweep: Sweep, value: float) -> str:
    """Return the name of a row at one value of a setting."""
    return base if value == sweep.at else f"{base}-{sweep.name}-{value:g}"


def _swept(base: Row, sweep: Sweep, value: float) -> Row:
    settings = merge(base.settings, {"method": {sweep.setting: value}})
    return base.model_copy(
        update={"title": f"{base.title}, {sweep.name} {value:g}", "settings": settings}
    )


SUITES = NamedFiles.of_package("suite", Suite, "suites")


def suite_names() -> list[str]:
    """Return the names of all suites."""
    return SUITES.names()


def read_suite(name: str) -> Suite:
    """Return a suite by its name; all of it is checked."""
    return SUITES.read(name)


def tables_named(target: str) -> list[tuple[str, str]]:
    """Return (suite, table) for `ncpu/table2`, or for every table of `ncpu`."""
    name, _, table = target.partition("/")
    known = read_suite(name).tables
    if not table:
        return [(name, one) for one in known]
    if table not in known:
        raise ConfigError(
            f"The suite '{name}' has no table or figure '{table}'.{nearest(table, known)}"
        )
    return [(name, table)]
