"""How many positives does a review find, by strategy, if the model learns from the answers?

    python -m benchmarks.review --root DATA            what is missing, and the page's text
    python -m benchmarks.review --docs                 write the page and its plot

A simulated reviewer answers from the truth, with 2 % mistakes, through the same `ReviewSession` as
people: five rounds, after each of which the next model is trained. "One pass" goes down the first
ranking and trains nothing again. What counts is the true positives among the answered items.

The problems are scikit-learn's digits (which are an 8?), cats of CIFAR-10, and crops of buildings
after Hurricane Harvey. DATA holds cifar-10-batches-bin and harvey. The last two are written as two
folders of images, as a person has them, with one positive in ten items of the pool.
"""

import argparse
import io
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import onesided
from benchmarks.command import REPOSITORY
from benchmarks.origin import filled, origin
from benchmarks.tables import commit_words, markdown
from onesided.core.config import Settings, merge
from onesided.core.errors import DataNotFound
from onesided.core.labels import POSITIVE
from onesided.core.rng import numpy_generator
from onesided.data.problem.samples import Samples
from onesided.data.sources import SOURCES
from onesided.jobs.review import ReviewSession
from onesided.run.load import load_data
from onesided.storage.atomic import read_json, write_text
from onesided.storage.names import printable

RESULT = REPOSITORY / "benchmarks" / "results" / "review.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "review.md"
PLOT = PAGE.with_suffix(".svg")
ROUNDS, MISTAKES, SEEDS = 5, 0.02, 3
ONE_PASS = "one pass"
EARLIER_MIX = "likely:2,uncertain:1,diverse:1,random:1"
STRATEGIES = ("likely", "mixed", EARLIER_MIX, "diverse", "uncertain", "random", ONE_PASS)
TRAINS_NOTHING = ("random", ONE_PASS)
"""What they show does not depend on the model, or on later ones."""
DRAWN = {"likely": "#0b6e63", "mixed": "#c4572e", "random": "#8a8f94", ONE_PASS: "#333333"}
"""Strategies on the plot, with their colours; more lines would hide each other."""
METHOD: dict[str, Any] = {"method": "linear", "backbone": "efficientnet_lite0", "freeze": True}
PENALTY = {"method": {"penalty": 1.0}}
"""Near the best on such features; to choose it anew in each of a hundred trainings takes hours."""
LABELLED, POOL, SHARE = 30, 2000, 0.1
"""Of the problems in folders."""
CAT = 3
Problem = tuple[dict[str, Any], Settings, Callable[[Path], Mapping[str, bool]]]
"""What `fit` gets, its settings, and what tells the true positives of the pool of a run."""


def main(argv: Sequence[str] | None = None) -> int:
    """Review what is missing, and print or write the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.review")
    options.add_argument("--root", type=Path, default=Path("DATA"), help="folder of the data sets")
    options.add_argument("--seeds", type=int, default=SEEDS)
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    given = options.parse_args(argv)
    if not given.docs:
        head = {
            **{"name": "review", "origin": origin(), "rounds": ROUNDS, "mistakes": MISTAKES},
            **{"answers": {name: answers for name, (_, answers) in PROBLEMS.items()}},
        }
        # Seed by seed, so that a file that was stopped early compares problems all the same.
        asked = [f"{name} {seed}" for seed in range(given.seeds) for name in PROBLEMS]
        filled(RESULT, head, key="row", asked=asked, measure=lambda row: measured(row, given.root))
    content = read_json(RESULT)
    print(page(content))
    if given.docs:
        write_text(PAGE, page(content))
        write_text(PLOT, plot(content))
    return 0


def measured(row: str, root: Path) -> dict[str, Any]:
    """Return what every strategy finds in one problem with one seed."""
    name, seed = row.split()
    make, answers = PROBLEMS[name]
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        problem = make(root, Path(folder), int(seed))
        found = reviewed(problem, Path(folder), int(seed), answers)
    seconds = round(time.process_time() - began)
    return {"row": row, "problem": name, "seed": int(seed), **found, "cpu_seconds": seconds}


def reviewed(problem: Problem, folder: Path, seed: int, answers: int) -> dict[str, Any]:
    """Return what every strategy finds with one seed, from the same first model."""
    given, settings, truth_of = problem
    first = folder / "run"
    onesided.fit(output=first, seed=seed, settings=merge(PENALTY, settings), **given, **METHOD)
    truth = truth_of(first)
    found = {
        strategy: by_rounds(first, folder / f"of {number}", strategy, truth, seed, answers)
        for number, strategy in enumerate(STRATEGIES)
    }
    return {"pool": len(truth), "positives": sum(truth.values()), "found": found}


def by_rounds(
    run: Path, place: Path, strategy: str, truth: Mapping[str, bool], seed: int, answers: int
) -> list[int]:
    """Return how many positives were answered after each round."""
    random = numpy_generator(seed, "simulated reviewer", strategy)
    # Answers are in the run folder: each strategy has a copy, without those of the others.
    run = Path(shutil.copytree(run, place / "1"))
    chosen = "likely" if strategy == ONE_PASS else strategy
    found = []
    for number in range(ROUNDS):
        session = ReviewSession(run, reviewer="simulated", seed=seed)
        found.append(answered(session, chosen, truth, answers, random))
        if strategy not in TRAINS_NOTHING and number < ROUNDS - 1:
            run = session.apply(place / f"{number + 2}").folder
    shutil.rmtree(place)
    summed: list[int] = np.cumsum(found).tolist()
    return summed


def answered(
    session: ReviewSession,
    strategy: str,
    truth: Mapping[str, bool],
    answers: int,
    random: np.random.Generator,
) -> int:
    """Answer what a strategy shows, with mistakes; return how many true positives were shown."""
    seen = 0
    for pick in session.next(answers, strategy=strategy):
        right = truth[pick.item]
        said = right if random.random() >= MISTAKES else not right
        session.answer(pick.item, "positive" if said else "negative", strategy=pick.strategy)
        seen += right
    return seen


def _digits(root: Path, folder: Path, seed: int) -> Problem:
    recipe = {"positive_classes": [8], "positives": 20, "unlabelled": 800, "prior": 0.08}
    return {"data": "digits"}, {"data": {"seed": seed, **recipe}}, of_data_set


def of_data_set(run: Path) -> dict[str, bool]:
    """Return item to whether it is positive, for the pool of a run on a published data set."""
    session = ReviewSession(run)
    split = load_data(session.config.data).split
    truth: dict[str, bool] = {}
    for part in (split.train, split.held_out):
        if part is not None:
            names = map(printable, part.names)
            truth.update(zip(names, (part.truth == POSITIVE).tolist(), strict=True))
    return {item: truth[item] for item in session.items}


def _cats(root: Path, folder: Path, seed: int) -> Problem:
    samples = SOURCES["cifar10"].load(root).train
    positive = np.flatnonzero(samples.classes == CAT)
    negative = np.flatnonzero(samples.classes != CAT)

    return _two_folders(positive, negative, partial(save_picture, samples), folder, seed)


def save_picture(samples: Samples, row: int, path: Path) -> None:
    """Write an image of a data set as a file; the path has no ending yet."""
    pixels = np.asarray(samples.values[row]).transpose(1, 2, 0)
    Image.fromarray(pixels).save(path.with_suffix(".png"))


def _harvey(root: Path, folder: Path, seed: int) -> Problem:
    files = {
        kind: np.array(sorted((root / "harvey" / "train" / kind).glob("*.jpeg")), object)
        for kind in ("damage", "no_damage")
    }
    if not all(map(len, files.values())):
        raise DataNotFound(f"There are no crops below {root / 'harvey' / 'train'}; see --root.")

    def save(file: Path, path: Path) -> None:
        shutil.copyfile(file, path.with_suffix(".jpeg"))

    return _two_folders(files["damage"], files["no_damage"], save, folder, seed)


def _two_folders(
    positive: np.ndarray,
    negative: np.ndarray,
    save: Callable[[Any, Path], None],
    folder: Path,
    seed: int,
) -> Problem:
    """Write some positives, and a pool of both classes, under numbers that tell nothing."""
    random = numpy_generator(seed, "folders of a review")
    positive, negative = random.permutation(positive), random.permutation(negative)
    hidden = round(SHARE * POOL)
    pool = [(each, True) for each in positive[LABELLED : LABELLED + hidden]]
    pool += [(each, False) for each in negative[: POOL - hidden]]
    known, unknown = folder / "positives", folder / "pool"
    for place in (known, unknown):
        place.mkdir()
    for number, each in enumerate(positive[:LABELLED]):
        save(each, known / f"{number:05}")
    truth: dict[str, bool] = {}
    for number, row in enumerate(random.permutation(len(pool)).tolist()):
        each, truth[f"{number:05}"] = pool[row]
        save(each, unknown / f"{number:05}")

    def truth_of(run: Path) -> dict[str, bool]:
        return {item: truth[Path(item).stem] for item in ReviewSession(run).items}

    return {"positives": known, "unlabelled": unknown}, {}, truth_of


PROBLEMS: Mapping[str, tuple[Callable[[Path, Path, int], Problem], int]] = {
    "digits": (_digits, 30),
    "cats": (_cats, 40),
    "harvey": (_harvey, 40),
}
"""Problem to how it is made, and how many answers a round has."""
WORDS = {
    "digits": "Digits: which are an 8?",
    "cats": "CIFAR-10: which are cats?",
    "harvey": "Hurricane Harvey: which buildings are damaged?",
}
WARNING = (
    "Of Harvey's pictures, a few global colour statistics alone tell the classes apart, so this "
    "is an easy problem; see [harvey](harvey.md)."
)


def page(content: Mapping[str, Any]) -> str:
    """Return the page as Markdown."""
    count = content["rounds"]
    names = [name for name in WORDS if any(row["problem"] == name for row in content["rows"])]
    parts = [
        "# Positives that a review finds",
        "",
        "<!-- python -m benchmarks.review --docs wrote this from the result file -->",
        "",
        f"A simulated reviewer answers a fixed number of items in each of {count} rounds, with "
        f"{content['mistakes']:.0%} mistakes; after",
        "each round the next model is trained (`linear` with a penalty of 1, on features of a "
        "frozen network). *one pass* goes down the first",
        "ranking and trains nothing again; nor does *random*. *mixed* is the default of the page: "
        "four likely ones to an",
        "uncertain one. Cells: true positives among the answered items, mean over seeds; last "
        "column: per 100 answers,",
        "with the lowest and highest seed.",
        "",
        "![True positives by number of answers](review.svg)",
        "",
        *(line for name in names for line in _section(content, name)),
        "## What to make of it",
        "",
        f"*{EARLIER_MIX}* was the default before. A random item is positive as often as the pool "
        "is, so one answer in five",
        "was spent on what an [audit](../audit.md) does better. What *mixed* spends on uncertain "
        "items buys decisions near",
        "the threshold. Where the first model ranks well, one pass is hard to beat: rounds can "
        "only improve what is wrong",
        "in the first ranking. The mix was chosen after simulations on CIFAR-10 (cats, deer and "
        "ships), so the figures of",
        "cats are no independent check of it; those of Harvey are.",
        "",
        "Every strategy starts from the same first model. What the models learn is not shown "
        "here: a strategy that finds",
        "fewer positives may still teach more. `benchmarks.rejected` measures what a rejected item "
        "should weigh in training.",
        "",
        f"Measured at {commit_words(content['origin'])}.",
        "",
    ]
    return "\n".join(parts)


def _section(content: Mapping[str, Any], name: str) -> list[str]:
    rows = [row for row in content["rows"] if row["problem"] == name]
    answers, count = content["answers"][name], content["rounds"]
    table = []
    for strategy in STRATEGIES:
        found = _found(rows, strategy)
        per_hundred = 100 * found[:, -1] / (answers * count)
        table.append(
            [
                strategy,
                *(f"{value:.1f}" for value in found.mean(axis=0)),
                f"{per_hundred.mean():.1f} ({per_hundred.min():.1f} to {per_hundred.max():.1f})",
            ]
        )
    columns = [f"{answers * (number + 1)} answers" for number in range(count)]
    pool, positives = rows[0]["pool"], np.mean([row["positives"] for row in rows])
    seconds = sum(row["cpu_seconds"] for row in rows)
    return [
        f"## {WORDS[name]}",
        "",
        f"Seeds (of split, model and reviewer): {len(rows)}. A pool of {pool:,} items, of which "
        f"{positives:.0f} are positive.",
        f"All of it took {seconds / 60:.1f} CPU-minutes.",
        *([WARNING] if name == "harvey" else []),
        "",
        markdown(("strategy", *columns, "per 100 answers"), table),
        "",
    ]


def _found(rows: Sequence[Mapping[str, Any]], strategy: str) -> np.ndarray:
    return np.array([row["found"][strategy] for row in rows], float)


def plot(content: Mapping[str, Any]) -> str:
    """Return true positives by number of answers, a panel for each problem, as SVG."""
    names = [name for name in WORDS if any(row["problem"] == name for row in content["rows"])]
    figure = Figure((3.2 * len(names), 3.2), layout="constrained")
    every = np.atleast_1d(figure.subplots(1, len(names)))
    for axes, name in zip(every, names, strict=True):
        rows = [row for row in content["rows"] if row["problem"] == name]
        asked = content["answers"][name] * np.arange(1, content["rounds"] + 1)
        for strategy, colour in DRAWN.items():
            style = "--" if strategy == ONE_PASS else "-"
            mean = _found(rows, strategy).mean(axis=0)
            axes.plot([0, *asked], [0, *mean], style, color=colour, label=strategy, marker=".")
        axes.set_title(WORDS[name], fontsize=8)
        axes.set(xlabel="answers", xlim=(0, None), ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
    every[0].set_ylabel("true positives found")
    every[0].legend(frameon=False)
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "onesided", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue().decode()


if __name__ == "__main__":
    raise SystemExit(main())
