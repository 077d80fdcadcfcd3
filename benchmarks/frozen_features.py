"""NcPU on frozen features: the part of the laboratory notes that is made from bench results."""

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.command import REPOSITORY
from benchmarks.tables import count, markdown
from onesided.bench.results import all_records
from onesided.bench.suite import read_suite

SUITE, RESULTS = "ncpu", REPOSITORY / "benchmarks" / "results" / "bench"
COLUMNS = {
    "CIFAR-10, a tenth": ("cifar10", "features"),
    "CIFAR-100, a tenth": ("cifar100", "features"),
    "CIFAR-10, a tenth, 100 epochs": ("cifar10", "features-early"),
    "CIFAR-100, a tenth, 100 epochs": ("cifar100", "features-early"),
    "CIFAR-100, all, 30 epochs": ("cifar100", "features-all-early"),
}
"""Data and scale of each column."""

WORDS = """\
A step sees 1,280 numbers of EfficientNet-Lite0 for each image here, and only a head and the
projectors learn. What the paper claims is judged [on a page of its own](benchmarks/claims.md).

With the paper's whole schedule on a tenth of the data NcPU calls too few positive. A likely
reason: votes begin after 30 passes and turn a target 69 passes later, and by then a head of
more numbers than rows has learned U by heart. Where it is sure of negative, the gate holds the
target at negative, whatever the votes say. That would also be why votes without the gate (`L~r,
s'`) do better here, the other way round than in the paper, where they drift to positive.

With votes from the fifth pass on (warm-up 5, beta .8) the same mathematics work. That pace was
found on CIFAR-10 with true classes at hand, so its columns are no evidence for it; nothing was
chosen on CIFAR-100, nor on Fashion-MNIST, where NcPU stands beside eight other methods in the
[protocol of PU-Bench](benchmarks/pu_bench.md). Short runs on frozen features therefore take that
pace by themselves now. The row with warm-up 30 is the pace that they had before.
"""


def frozen_features() -> str:
    """Return what was tried, with accuracies of the rows that were run."""
    records = all_records(RESULTS, SUITE)
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for (row, data, scale, _), record in records.items():
        for column, place in COLUMNS.items():
            if place == (data, scale) and record["status"] == "finished":
                found.setdefault((row, column), []).append(record)
    titles = {
        name: row.title + ", true prior" * (row.settings.get("prior") == "truth")
        for name, row in read_suite(SUITE).all_rows().items()
    }
    shown = [name for name in titles if any((name, column) in found for column in COLUMNS)]
    rows = [
        (titles[name], *(_accuracy(found.get((name, column), ())) for column in COLUMNS))
        for name in shown
    ]
    note = "Test accuracy in per cent, mean of the seeds in brackets; - was not run."
    return f"{WORDS}\n{markdown(['', *COLUMNS], rows)}\n\n{note}\n"


def _accuracy(group: Iterable[Mapping[str, Any]]) -> str:
    figures = [record["figures"]["oa"] for record in group]
    if not figures:
        return "-"
    return f"{statistics.fmean(figures):.1%} ({count(len(figures), 'seed')})".replace("%", "")
