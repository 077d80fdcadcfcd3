"""What are embedded views of images worth, against views that are made of their features?

    python -m benchmarks.views --root DATA      NcPU on frozen features of CIFAR-10, one thread
    python -m benchmarks.views --docs           write the page

Every run has the same images, the same steps and the same seeds. The true classes of the pool
evaluate the scores; nothing is chosen by them.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from sklearn.metrics import roc_auc_score

from benchmarks.command import REPOSITORY
from benchmarks.origin import Row, origin
from benchmarks.tables import commit_words, machine_words, markdown
from onesided.core.labels import POSITIVE
from onesided.nets.build import BackboneConfig
from onesided.run.config import RunConfig
from onesided.run.embed import embed
from onesided.run.load import LoadedData, load_data
from onesided.run.presets import Amount, short_run
from onesided.run.problem import build_problem
from onesided.run.training import train
from onesided.storage.atomic import read_json, write_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "views.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "views.md"
METHOD, STEPS, COUNTS, SEEDS = "ncpu", 400, (0, 2, 8), (0, 1)
POSITIVES, UNLABELLED = 300, 2000
DATA = {"name": "cifar10", "positives": POSITIVES, "unlabelled": UNLABELLED}


def main(argv: Sequence[str] | None = None) -> int:
    """Train every row, or write the page."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.views",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--root", type=Path, help="folder of CIFAR-10")
    options.add_argument("--docs", action="store_true", help="write the page, measure nothing")
    asked = options.parse_args(argv)
    if asked.docs:
        write_text(PAGE, page(read_json(RESULT)))
        return 0
    if asked.root is None:
        options.error("give the folder of CIFAR-10 with --root")
    torch.set_num_threads(1)
    head = {"name": "views", "origin": origin(), "data": DATA, "method": METHOD}
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as store:
        loaded = load_data(_config(asked.root, 0, 0).data)
        for count in COUNTS:
            for seed in SEEDS:
                rows.append(measured(_config(asked.root, count, seed), loaded, Path(store)))
                print(rows[-1], file=sys.stderr, flush=True)
                write_json(RESULT, {**head, "rows": rows})
    return 0


def _config(root: Path, count: int, seed: int) -> RunConfig:
    settings = {
        "data": {**DATA, "held_out_positives": 0, "held_out_unlabelled": 0, "root": str(root)},
        "method": {"name": METHOD},
        "backbone": BackboneConfig(
            name="efficientnet_lite0", freeze=True, views=count
        ).model_dump(),
        "train": {"device": "cpu", "threads": 1},
        "seed": seed,
    }
    amount = Amount(POSITIVES + UNLABELLED, POSITIVES)
    return short_run(RunConfig.from_settings(settings), METHOD, STEPS, amount)


def measured(config: RunConfig, loaded: LoadedData, store: Path) -> Row:
    """Return the AUC on the pool after a training, and the seconds of the processor."""
    started = time.process_time()
    problem = embed(build_problem(config, loaded), cache=store)
    embedded = time.process_time()
    trained = train(problem)
    ended = time.process_time()
    pool = problem.split.train
    scores = replace(trained.predictor, embedder=None).scores(pool.values)
    truth = pool.truth[pool.unlabelled] == POSITIVE
    return {
        "views": config.backbone.views,
        "seed": config.seed,
        "auc": float(roc_auc_score(truth, scores[pool.unlabelled])),
        "epochs": config.train.epochs,
        "image_views": config.train.views,
        "embedding_seconds": round(embedded - started, 1),
        "training_seconds": round(ended - embedded, 1),
    }


def table(rows: Sequence[Row]) -> str:
    """Return AUC and seconds by the number of views as Markdown."""
    lines = []
    for count in dict.fromkeys(row["views"] for row in rows):
        some = [row for row in rows if row["views"] == count]
        aucs = [100 * row["auc"] for row in some]
        seeds = ", ".join(f"{auc:.2f}" for auc in aucs)
        embedding = max(row["embedding_seconds"] for row in some)
        training = statistics.mean(row["training_seconds"] for row in some)
        what = f"{count} weak and {count} strong" if count else "made of features"
        mean = f"{statistics.mean(aucs):.2f}"
        lines.append([what, mean, seeds, f"{embedding:.0f}", f"{training:.0f}"])
    return markdown(["views", "AUC", "by seed", "embedding (s)", "training (s)"], lines)


def page(content: Mapping[str, Any]) -> str:
    """Return the page made from the result file."""
    data, rows = content["data"], content["rows"]
    epochs, views = rows[0]["epochs"], rows[0]["image_views"]
    return f"""\
<!-- Generated by `python -m benchmarks.views --docs` from benchmarks/results/views.json; \
changes here are overwritten. -->

# What embedded views are worth

NcPU on features of a frozen EfficientNet-Lite0, {data["positives"]} positives and
{data["unlabelled"]} unlabelled images of CIFAR-10, {epochs} epochs, views as in `train.views =
"{views}"`. AUC on the unlabelled pool in percent, by its true classes, which chose nothing; mean
over seeds of training on one split. Differences below that between seeds mean nothing, and one data
set is not a rule. Seconds are those of the processor; embedding is that of the first run with this
many views. Images themselves, the test part too, are embedded in the first row, and a larger bank
finds the views of the smaller one.

{table(rows)}

Measured on {machine_words(content["origin"]["machine"])}; code of commit
{commit_words(content["origin"])}.
"""


if __name__ == "__main__":
    sys.exit(main())
