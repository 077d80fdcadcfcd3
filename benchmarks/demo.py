"""auto beside CE on digits: what `make demo` runs, measured, and the table of the README.

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
from benchmarks.tables import (
    degenerate_sentence,
    finished,
    markdown,
    percents,
    spread,
    what_rows_lack,
)
from onesided.core.config import Settings, merge
from onesided.methods import method_named
from onesided.run.default_method import DEFAULT_METHOD
from onesided.run.presets import demo_settings
from onesided.storage.atomic import write_text

COMPARED = (DEFAULT_METHOD, "ce")
MARKED = re.compile(r"(<!-- demo-table[^>]*-->\n).*?(<!-- /demo-table -->)", re.DOTALL)
QUICK: Settings = {
    "data": {"name": "toy-images"},
    "train": {"epochs": 1, "batch_size": 16},
}


def grid(change: Settings) -> Grid:
    """Return the demonstration with some settings changed."""
    rows = []
    for name in COMPARED:
        asked = change if name != DEFAULT_METHOD else {"data": change.get("data", {})}
        settings = merge(demo_settings(name, 0), asked)
        budget = Budget(data={}, backbone=settings["backbone"], train=settings["train"])
        data = str(settings["data"]["name"])
        rows.append(entry(method_named(name).card.title, data, budget, settings["method"]))
    return Grid(
        name="demo",
        title="The demonstration",
        words="Which digits are even, when a few even ones are labelled and the others are not? "
        "auto, the default, searches among models on features of a pretrained network, as with the "
        "preset `quick`. Beside it CE, which treats the unlabelled as odd, trains a head on the "
        "same features for as many steps as that preset has. Nothing was chosen on digits.",
        entries=tuple(rows),
        pairs=(("CE", method_named(DEFAULT_METHOD).card.title),),
        unequal=frozenset({method_named(DEFAULT_METHOD).card.title}),
    )


def write_readme(content: Mapping[str, object]) -> None:
    """Write the table of the result file between the README's two marks."""
    runs = finished(content["runs"])  # type: ignore[arg-type]
    rows = []
    for title in dict.fromkeys(run["label"] for run in runs):  # as measured, whatever it was
        own = [run for run in runs if run["label"] == title]
        cells = [spread(percents(own, figure), ".1f") for figure in ("oa", "f1", "auc")]
        rows.append((title, *cells, str(len(own))))
    table = markdown(("test digits, %", "accuracy", "F1", "AUC", "seeds"), rows)
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    page = "docs/benchmarks/demo.md"
    useless = sum(degenerate_sentence(run) is not None for run in runs)
    flagged = f"{useless} of the {len(runs)} runs were flagged as degenerate. " if useless else ""
    words = (
        f"{what_rows_lack(runs)} {flagged}With more time auto trains networks from scratch too, "
        "which reach more here: [docs/results.md](docs/results.md). Settings, machine and commit: "
        f"[{page}]({page})."
    ).strip()
    text = f"\n{table}\n\n{words}\n\n"
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
