"""What a benchmark runs: entries at one budget, as the rows of a table.

`Entry` says what to run, and `Grid` is the list of them with the question it answers;
`benchmarks.runs` does what is missing.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from onesided.core.config import Settings, merge
from onesided.core.errors import ConfigError
from onesided.methods import method_named
from onesided.run.config import Prior, RunConfig


@dataclass(frozen=True)
class Budget:
    """What every entry of a data set gets, whichever its method."""

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
        label: How the table calls it.
        data: Data settings with the data set's name.
        method: Method settings with the method's name.
        network: Network settings.
        train: Training settings.
        prior: Where a method that needs a class prior gets it from.
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
    """Return an entry at a budget, with the true prior where the method needs one.

    An estimate would mix its own error into what is compared; result files and tables
    say that the prior is the truth.
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
    """A benchmark: its question, its rows, and which rows are to be compared in pairs.

    Attributes:
        name: Name of its files.
        title: Heading of its page.
        words: What is asked, and what all rows share, in sentences.
        entries: The rows.
        pairs: Labels (without, with) whose difference per seed is a table of its own.
        varied: Training settings that rows may differ in, because they are what is studied.
        judged_on: Which samples figures are of: the test set, or `clean`, training samples outside
            P and U, where settings are chosen and the test set is not to be looked at.
        module: What stands after `python -m benchmarks.` to run it; its name unless told.
    """

    name: str
    title: str
    words: str
    entries: tuple[Entry, ...]
    pairs: tuple[tuple[str, str], ...] = ()
    varied: frozenset[str] = frozenset()
    judged_on: Literal["test", "clean"] = "test"
    module: str = ""

    def __post_init__(self) -> None:
        """Refuse rows of unequal budgets: their table would compare the budgets."""
        for one in self.entries:
            first = next(other for other in self.entries if other.data_name == one.data_name)
            if self._budget_of(one) != self._budget_of(first):
                raise ConfigError(
                    f"'{one.label}' and '{first.label}' have different budgets on "
                    f"{one.data_name}. Rows of one table share data, network and training."
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
class Places:
    """Where runs, the collected file and the page are kept."""

    work: Path
    results: Path
    docs: Path
