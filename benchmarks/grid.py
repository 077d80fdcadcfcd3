"""What a benchmark runs: entries at one budget, which become the rows of a table.

`Entry` is one row. `Grid` is all rows with the question they answer. `benchmarks.runs` runs them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from onesided.core.config import Settings, merge
from onesided.core.errors import ConfigError
from onesided.methods import method_named
from onesided.run.config import Prior, RunConfig

TOY_DATA: Settings = {
    "positives": 16,
    "unlabelled": 32,  # below 50 rows a run draws no map of features, which takes a second
    "held_out_positives": 10,
    "held_out_unlabelled": 20,
}
"""Data settings of `--quick`: seconds in all, to test that it works. Its figures mean nothing."""


@dataclass(frozen=True)
class Budget:
    """The settings that every entry of a data set shares, whatever its method."""

    data: Settings
    backbone: Settings
    train: Settings

    @property
    def epochs(self) -> int:
        """Epochs of every run."""
        return int(self.train["epochs"])


@dataclass(frozen=True)
class Entry:
    """One row of a table.

    Attributes:
        label: Its name in the table.
        data: Data settings with the data set's name.
        method: Method settings with the method's name.
        backbone: Backbone settings.
        train: Training settings.
        prior: The class prior of a method that needs one: where it comes from.
    """

    label: str
    data: Settings
    method: Settings
    backbone: Settings
    train: Settings
    prior: Prior = "auto"

    @property
    def data_name(self) -> str:
        """Name of the data set."""
        return str(self.data["name"])

    def config(self, seed: int, root: Path | None = None) -> RunConfig:
        """Return the configuration of one run."""
        return RunConfig.from_settings(
            {
                "seed": seed,
                "prior": self.prior,
                "data": merge(self.data, {"root": str(root)} if root else {}),
                "method": self.method,
                "backbone": self.backbone,
                "train": self.train,
            },
            where=f"benchmark '{self.label}'",
        )


def entry(label: str, data_name: str, budget: Budget, method: Settings) -> Entry:
    """Return an entry at a budget, with the true prior if the method needs one.

    An estimated prior would add its own error to the comparison. Result files and tables say that
    the prior is the true one.
    """
    needs_prior = method_named(str(method["name"])).needs.prior
    return Entry(
        label=label,
        data=merge({"name": data_name}, budget.data),
        method=method,
        backbone=budget.backbone,
        train=budget.train,
        prior="truth" if needs_prior else "auto",
    )


@dataclass(frozen=True)
class Grid:
    """A benchmark: its question, its rows, and the pairs of rows to compare.

    Attributes:
        name: Name of its files.
        title: Heading of its page.
        words: The question, and what all rows share, in sentences.
        entries: The rows.
        pairs: Labels (without, with) whose differences per seed get a table.
        varied: Training settings that rows may differ in, because they are studied.
        evaluated_on: The samples of the figures: the test set, or `clean`, training samples outside
            P and U. Settings are chosen on these, because the test set must not choose any.
        unequal: Labels of rows that have a budget of their own, which `words` must say.
        module: The words after `python -m benchmarks.`; by default its name.
    """

    name: str
    title: str
    words: str
    entries: tuple[Entry, ...]
    pairs: tuple[tuple[str, str], ...] = ()
    varied: frozenset[str] = frozenset()
    evaluated_on: Literal["test", "clean"] = "test"
    unequal: frozenset[str] = frozenset()
    module: str = ""

    def __post_init__(self) -> None:
        """Refuse rows of unequal budgets: their table would compare budgets, not methods."""
        equal = [one for one in self.entries if one.label not in self.unequal]
        for one in equal:
            first = next(other for other in equal if other.data_name == one.data_name)
            if self._budget_of(one) != self._budget_of(first):
                raise ConfigError(
                    f"'{one.label}' and '{first.label}' have different budgets on "
                    f"{one.data_name}. Rows of one table share data, backbone and training."
                )

    def _budget_of(self, one: Entry) -> tuple[Settings, Settings, Settings]:
        train = {name: value for name, value in one.train.items() if name not in self.varied}
        return one.data, one.backbone, train

    @property
    def command(self) -> str:
        """The command that runs it."""
        return f"python -m benchmarks.{self.module or self.name}"

    @property
    def data_names(self) -> tuple[str, ...]:
        """Data sets in the order of the table."""
        return tuple(dict.fromkeys(one.data_name for one in self.entries))


@dataclass(frozen=True)
class Folders:
    """The folders of runs, of the collected file and of the page."""

    work: Path
    results: Path
    docs: Path
