"""What do minutes, an hour and an evening buy? A preset beside other methods at the same budget.

    python -m benchmarks.budget --root DATA              the preset quick
    python -m benchmarks.budget standard --root DATA     the preset standard
    python -m benchmarks.budget evening --root DATA      the preset evening
    python -m benchmarks.budget night --root DATA        the preset of night.toml

Teacher runs as `onesided fit --data NAME` runs it. The others get the same data, backbone, batches,
learning rates and epochs, and the true class prior if they need one. The presets' numbers were
chosen on training images of CIFAR-10 outside P and U, and the start of votes on held-out P and U.
The other data sets and all test sets chose nothing.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.command import REPOSITORY
from benchmarks.command import main as command
from benchmarks.grid import TOY_DATA, Budget, Entry, Grid, entry
from onesided.core.config import Settings
from onesided.core.former import TITLE
from onesided.run.preset_files import preset_files
from onesided.run.presets import published_settings

DATA = ("cifar10", "cifar100", "fashion-mnist", "digits")


@dataclass(frozen=True)
class Study:
    """The question about one preset.

    Attributes:
        name: Name of its files.
        title: Heading of its page.
        asked: The question.
        preset: The preset: its name, or its file in the repository.
        data: Data sets on which Teacher runs.
        beside: Those on which the other methods run too. With the longer presets, five rows on
            one set of 41,000 images take hours on two cores.
    """

    name: str
    title: str
    asked: str
    preset: str
    data: tuple[str, ...] = DATA
    beside: tuple[str, ...] = DATA

    @property
    def flags(self) -> str:
        """The words after `onesided fit --data NAME` that run it."""
        return f"--preset {self.preset}"

    @property
    def where(self) -> str:
        """A sentence on which data sets the other rows run; empty if on all."""
        if self.beside == self.data:
            return ""
        if not self.beside:
            return " Only Teacher is run."
        return f" The other rows are run on {' and '.join(self.beside)} only."


STUDIES = {
    "quick": Study(
        "budget", "What minutes buy", "what Teacher finds in minutes on two cores", preset="quick"
    ),
    "standard": Study(
        "standard",
        "What an hour buys",
        "more steps and a wider network",
        preset="standard",
        beside=("cifar10", "digits"),
    ),
    "evening": Study(
        "evening",
        "What an evening buys",
        "the longest that needs no night",
        preset="evening",
        data=("cifar10",),
        beside=("cifar10",),
    ),
    "night": Study(
        "night",
        "What up to three hours buy",
        "more passes over U, as many over P, twice the rate",
        preset="benchmarks/night.toml",
        data=("cifar10",),
        beside=(),  # no better than evening, where all rows run
    ),
}
PRESETS = tuple(study.preset for study in STUDIES.values() if study.preset in preset_files())
WORDS = (
    "As `{flags}`: {asked}, without a class prior and without negatives. All rows have the same "
    "data, backbone, batches, learning rates and number of epochs. `Supervised` sees all true "
    "classes; it is an upper bound, not a competitor. The values were chosen on CIFAR-10 training "
    "images that are neither in P nor in U, and the start of votes on held-out images of P and U. "
    "No test set and no other data set chose anything."
)


def rows_of(data_name: str, given: Settings, preset: str = "quick") -> list[Entry]:
    """Return the rows of one data set: Teacher as the preset runs it, and the others."""
    chosen = preset if preset in preset_files() else REPOSITORY / preset
    planned = published_settings(chosen, data_name=data_name, method_name="teacher", given=given)
    budget = Budget(given.get("data", {}), planned["backbone"], planned["train"])
    robust = {"alignment": "robust", "alignment_weight": planned["method"]["alignment_weight"]}
    pace = {"warmup_epochs": planned["method"]["warmup_epochs"]}
    methods: dict[str, Settings] = {
        TITLE: planned["method"],
        "CE": {"name": "ce"},
        "nnPU": {"name": "nnpu"},
        "nnPU + robust": {"name": "nnpu", **robust, **pace},
        "Supervised": {"name": "supervised"},
    }
    return [entry(label, data_name, budget, method) for label, method in methods.items()]


def grid(word: str, names: Sequence[str] = (), given: Settings | None = None) -> Grid:
    """Return the comparison on the study's data sets, or all rows on the named ones."""
    study = STUDIES[word]
    entries = [
        row
        for name in names or study.data
        for row in rows_of(name, given or {}, study.preset)
        if row.label == TITLE or name in (names or study.beside)
    ]
    return Grid(
        name=study.name,
        title=study.title,
        words=WORDS.format(flags=study.flags, asked=study.asked) + ("" if names else study.where),
        entries=tuple(entries),
        module="budget" if word == "quick" else f"budget {word}",
    )


QUICK: Settings = {"data": TOY_DATA, "train": {"epochs": 2, "batch_size": 16}}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; its first word may name the study."""
    words = list(sys.argv[1:] if argv is None else argv)
    word = words.pop(0) if words and words[0] in STUDIES else "quick"
    return command(grid(word), grid(word, ("toy-images",), QUICK), words)


if __name__ == "__main__":
    sys.exit(main())
