"""The table of the README's first screen: the default beside what people use, from the panel.

python -m benchmarks.readme            write it between the README's two marks
"""

import re
from collections.abc import Mapping
from typing import Any

from benchmarks.command import REPOSITORY
from benchmarks.names import read_content
from benchmarks.panel_page import DEFAULT, TIE, cells_of, score_against
from benchmarks.tables import markdown
from onesided.storage.atomic import write_text

README = REPOSITORY / "README.md"
RESULT = REPOSITORY / "benchmarks" / "results" / "panel.json"
MARKED = re.compile(r"(<!-- panel-table[^>]*-->\n).*?(<!-- /panel-table -->)", re.DOTALL)
WORDS = {
    "lr": "logistic regression of P against U, threshold by Elkan and Noto's rule",
    "rf": "random forest of P against U, threshold by Elkan and Noto's rule",
    "pulearn-nnpu": "pulearn's nnPU, linear, its prior estimated",
    "pulearn-bagging": "pulearn's bagging of 100 trees",
    "pulearn-elkan-noto": "pulearn's Elkan-Noto around logistic regression",
    "supervised": "logistic regression with *all* true labels, a ceiling",
}
"""Rows that people try first, and the one that nobody here could run."""
FIGURES = {"auc": "ranking of the pool (AUC)", "f1": "decisions on it (F1)"}


def table(content: Mapping[str, Any]) -> str:
    """Return wins, ties and losses of the default against these rows, as they were measured."""
    runs = content["runs"]
    cells = {figure: cells_of(runs, "pool", figure) for figure in FIGURES}
    rows = [
        (words, *(score_against(found, row) for found in cells.values()))
        for row, words in WORDS.items()
        if any(run["row"] == row for run in runs)
    ]
    all_data, own = {run["data"] for run in runs}, {run["data"] for run in runs if _is_own(run)}
    open_words = (
        f" The default has not been run yet on {len(all_data - own)} of {len(all_data)} data sets."
        if all_data - own
        else ""
    )
    told = (
        "Wins / ties / losses of the default on the same items, over all data sets and seeds that "
        f"both finished; a tie is a difference below {100 * TIE:g} points.{open_words} Every row, "
        "data set, machine and commit: [docs/benchmarks/panel.md](docs/benchmarks/panel.md)."
    )
    return f"\n{markdown(('the default against', *FIGURES.values()), rows)}\n\n{told}\n\n"


def _is_own(run: Mapping[str, Any]) -> bool:
    return bool(run["row"] == DEFAULT)


def with_table(readme: str, content: Mapping[str, Any]) -> str:
    """Return the README with this table between its marks."""
    return MARKED.sub(lambda marks: marks[1] + table(content) + marks[2], readme)


if __name__ == "__main__":
    write_text(README, with_table(README.read_text(encoding="utf-8"), read_content(RESULT)))
