"""What does the default reach on the paper's splits of CIFAR, with a pretrained network?

    python -m benchmarks.cifar --root DATA --work FOLDER    search for 25 minutes each; the figures
    python -m benchmarks.cifar --docs                       write docs/benchmarks/cifar.md from them

A search that was stopped goes on where it stopped. Not comparable with tables from scratch:
ImageNet's labels name most of what these images show.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import onesided
from benchmarks.command import REPOSITORY
from benchmarks.origin import origin
from benchmarks.tables import NOTHING, markdown
from onesided.bench.suite import read_suite
from onesided.core.errors import OnesidedError
from onesided.metrics.threshold_rules import prior_threshold
from onesided.metrics.truth import truth_metrics
from onesided.storage.atomic import read_json, write_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "cifar.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "cifar.md"
DATA = ("cifar10", "cifar100")
BUDGET, SEED = "25min", 0
WORDS = (
    "`onesided fit --data NAME --budget {budget}` on the paper's splits (1000 positives, 40,000 "
    "unlabelled), as it comes: embedding with the network pretrained on ImageNet, search, training "
    "of the winner, figures. Accuracy, F1 and AUC are those on the whole test set, in percent; no "
    "true class chose anything. *At the true share* calls as many test items positive as there "
    "are: what the same ranking would reach if the prior were known. The last column is NcPU as "
    "published, trained from scratch with much more time: another protocol, for orientation."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the searches, or write the page; return the exit code."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.cifar")
    options.add_argument("--root", type=Path, default=Path("DATA"), help="folder of the data sets")
    options.add_argument("--work", type=Path, default=Path("runs/benchmarks/cifar"))
    options.add_argument("--only", choices=DATA, help="one of the data sets, measured anew")
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    given = options.parse_args(argv)
    try:
        if not given.docs:
            measure(given)
        text = page(read_json(RESULT))
    except OnesidedError as error:
        print(f"benchmarks.cifar: {error}", file=sys.stderr)
        return error.exit_code
    print(text)
    if given.docs:
        write_text(PAGE, text)
    return 0


def measure(given: argparse.Namespace) -> None:
    """Measure what is missing, or what is asked for; a row keeps the commit that measured it.

    A row takes an hour, so a later commit alone does not measure it again.
    """
    head = {"name": "cifar", "budget": BUDGET, "seed": SEED}
    before = read_json(RESULT) if RESULT.exists() else {}
    same = all(before.get(key) == value for key, value in head.items())
    rows = {row["data"]: row for row in (before["rows"] if same else [])}
    for name in [given.only] if given.only else [one for one in DATA if one not in rows]:
        rows[name] = measured(name, given)
        write_json(RESULT, {**head, "rows": [rows[one] for one in DATA if one in rows]})


def measured(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """Return the row of a data set."""
    where = origin()
    wall, cpu = time.perf_counter(), time.process_time()
    folder = given.work / name
    resumed = folder.exists()
    found = onesided.fit(data=name, root=given.root, budget=BUDGET, seed=SEED, output=folder)
    seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    if resumed:  # these are of its last part alone
        seconds = {}
    with np.load(folder / "scores.npz", allow_pickle=False) as scores:
        test, truth = scores["test"], scores["test_truth"]
    share = float(truth.mean())
    called = test > prior_threshold(test, share)
    result = found.result
    kept = ("method", "test", "prior", "optimism", "search_seconds", "n_positive", "n_unlabelled")
    return {
        "data": name,
        "origin": where,
        **{key: result[key] for key in kept},
        "tried": [[row["words"], row["proxy_auc"]] for row in result["leaderboard"]],
        "true_share": share,
        "at_true_share": float(truth_metrics(truth, called.astype(np.float64)).oa),
        "seconds": seconds,
    }


def page(content: Mapping[str, Any]) -> str:
    """Return the page."""
    published = read_suite("ncpu").published
    columns = [
        *("", "won", "accuracy", "F1", "AUC", "prior found", "true", "accuracy at the true share"),
        *("minutes", "CPU-minutes", "NcPU as published, accuracy"),
    ]
    rows = []
    for row in content["rows"]:
        test, prior = row["test"], row["prior"]
        rows.append(
            [
                *(row["data"], row["method"]),
                *(f"{100 * test[key]:.2f}" for key in ("oa", "f1", "auc")),
                f"{prior['value']:.3f} ({prior['low']:.3f} to {prior['high']:.3f})",
                f"{row['true_share']:.3f}",
                f"{100 * row['at_true_share']:.2f}",
                *(minutes(row["seconds"].get(kind)) for kind in ("wall", "cpu")),
                f"{published[row['data']]['ncpu']['oa'][0]:.2f}",
            ]
        )
    where = "; ".join(f"{row['data']}: {measured_where(row['origin'])}" for row in content["rows"])
    return "\n".join(
        [
            "<!-- Generated by `python -m benchmarks.cifar --docs` from "
            "benchmarks/results/cifar.json; changes here are overwritten. -->\n",
            "# The default on CIFAR, with a pretrained network\n",
            WORDS.format(budget=content["budget"]) + "\n",
            markdown(columns, rows) + "\n",
            *(tried(row) for row in content["rows"]),
            f"Seed {content['seed']}, one run each. {where}.\n",
        ]
    )


def measured_where(where: Mapping[str, Any]) -> str:
    """Return machine and commit in a few words."""
    machine = where["machine"]
    return f"{machine['cpu']}, {machine['cores']} cores, commit {str(where['commit'])[:12]}"


def minutes(seconds: float | None) -> str:
    """Return a time in minutes, a dash for a search that was stopped and resumed."""
    return NOTHING if seconds is None else f"{seconds / 60:.0f}"


def tried(row: Mapping[str, Any]) -> str:
    """Return what the search compared, best first."""
    best = sorted(row["tried"], key=lambda one: -one[1])
    names = ", ".join(f"{words} ({100 * value:.2f})" for words, value in best)
    return f"**{row['data']}**, tried, with the proxy AUC on the same folds: {names}.\n"


if __name__ == "__main__":
    sys.exit(main())
