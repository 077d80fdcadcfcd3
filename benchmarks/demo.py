"""Teacher beside CE on digits: what `make demo` runs, measured, and the table of the README.

python -m benchmarks.demo              run what is missing, then print the table
python -m benchmarks.demo --docs       write docs/benchmarks/demo.md from the result file
python -m benchmarks.demo --readme     write the table of the README from it
"""

import re
import sys
from collections.abc import Mapping, Sequence

from benchmarks.command import REPOSITORY
from benchmarks.command import main as command
from benchmarks.grid import Budget, Grid, entry
from benchmarks.names import read_content
from benchmarks.tables import finished, markdown, percents, spread, what_rows_lack
from onesided.core.config import Settings, merge
from onesided.core.former import TITLE
from onesided.methods import METHODS
from onesided.run.default_method import DEFAULT_METHOD
from onesided.run.presets import demo_settings
from onesided.storage.atomic import write_text

COMPARED = (DEFAULT_METHOD, "ce")
MARKED = re.compile(r"(<!-- demo-table[^>]*-->\n).*?(<!-- /demo-table -->)", re.DOTALL)
QUICK: Settings = {
    "data": {"name": "toy-images"},
    "backbone": {"width": 0.125},
    "train": {"epochs": 1, "batch_size": 16},
}


def grid(change: Settings) -> Grid:
    """Return the demonstration with some settings changed."""
    settings = {name: merge(demo_settings(name, 0), change) for name in COMPARED}
    some = settings[COMPARED[0]]
    budget = Budget(data={}, backbone=some["backbone"], train=some["train"])
    data = str(some["data"]["name"])
    rows = (entry(METHODS[n].card.title, data, budget, s["method"]) for n, s in settings.items())
    return Grid(
        name="demo",
        title="The demonstration",
        words="Which digits are even, when a few even ones are labelled and the others are not? "
        "Teacher, the default method, beside CE, which treats the unlabelled as odd, both with the "
        "training of the preset `quick`. Its values were chosen on photographs; nothing was chosen "
        "on digits.",
        entries=tuple(rows),
        pairs=(("CE", TITLE),),
    )


def write_readme(content: Mapping[str, object]) -> None:
    """Write the table of the result file between the README's two marks."""
    runs = finished(content["runs"])  # type: ignore[arg-type]
    rows = []
    for name in COMPARED:
        title = METHODS[name].card.title
        own = [run for run in runs if run["label"] == title]
        cells = [spread(percents(own, figure), ".1f") for figure in ("oa", "f1", "auc")]
        rows.append((title, *cells, str(len(own))))
    table = markdown(("test digits, %", "accuracy", "F1", "AUC", "seeds"), rows)
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    page = "docs/benchmarks/demo.md"
    lacks = what_rows_lack(runs)
    text = f"\n{table}\n\n{lacks} Settings, machine and commit: [{page}]({page}).\n\n"
    changed = MARKED.sub(lambda marks: marks[1] + text + marks[2], readme)
    write_text(REPOSITORY / "README.md", changed)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["--readme"]:
        write_readme(read_content(REPOSITORY / "benchmarks" / "results" / "demo.json"))
        return 0
    real, quick = grid({}), grid(QUICK)
    return command(real, quick, words)


if __name__ == "__main__":
    sys.exit(main())
