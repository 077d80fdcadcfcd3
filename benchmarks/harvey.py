"""Two real folders and only the README's commands: what was estimated, and what was true?

    python -m benchmarks.harvey --root DATA     fit, rank, map; then the figures
    python -m benchmarks.harvey --docs          write docs/benchmarks/harvey.md from them

DATA/harvey holds satellite crops of buildings after Hurricane Harvey, named LON_LAT.jpeg,
in train/damage and train/no_damage. 200 damaged ones are the positives, 4,000 others of both
classes the unlabelled folder. The classes are used only after everything was ranked. Every
figure comes with `WARNING`.
"""

import argparse
import csv
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import REPOSITORY
from benchmarks.origin import origin
from benchmarks.tables import markdown
from onesided.core.errors import DataNotFound, OnesidedError
from onesided.metrics.truth import truth_metrics
from onesided.storage.atomic import read_json, write_json, write_text
from onesided.storage.names import name_in_cell

POSITIVES, UNLABELLED, SEED = 200, 4000, 57
RESULT = "harvey.json"
WARNING = (
    "Not evidence of transfer: most pictures without damage in this data set are pre-event "
    "pictures of the same buildings, and a few global colour statistics alone tell the two apart."
)
ESTIMATED = ("recall", "precision", "f1", "auc")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the README's commands, or write the page; return the exit code."""
    options = parser().parse_args(argv)
    file = REPOSITORY / "benchmarks" / "results" / RESULT
    try:
        if not options.docs:
            write_json(file, measured(options))
        content = read_json(file)
    except OnesidedError as error:
        print(f"benchmarks.harvey: {error}", file=sys.stderr)
        return error.exit_code
    print(page(content))
    if options.docs:
        write_text(REPOSITORY / "docs" / "benchmarks" / "harvey.md", page(content))
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the options."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.harvey", description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("--root", type=Path, default=Path("DATA"), help="the parent of harvey")
    options.add_argument("--work", type=Path, default=Path("runs/benchmarks/harvey"))
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    return options


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Make the two folders, run the commands, and compare with the true classes."""
    work, started = options.work, origin()
    truth = make_folders(options.root / "harvey" / "train", work)
    run, ranked, drawn = work / "run", work / "ranked.csv", work / "map" / "harvey.geojson"
    folders = (work / "damaged", work / "buildings")
    drawn.parent.mkdir(exist_ok=True)
    timed("fit", "-p", folders[0], "-u", folders[1], "-o", run)
    seconds = {
        # As the run counts them, over all its starts: an interrupted run has several.
        "fit": read_json(run / "result.json")["seconds"],
        "rank": timed("rank", run, folders[1], "-o", ranked),
        "map": timed(
            *("map", "--points", folders[1], "--positives", folders[0]),
            *("--model", run, "-o", drawn),
        ),
    }
    result = read_json(run / "result.json")
    scores, classes = scored(ranked, truth)
    return {
        "title": "Two folders of Hurricane Harvey",
        "warning": WARNING,
        "positives": POSITIVES,
        "unlabelled": UNLABELLED,
        "seed": SEED,
        "seconds": seconds,
        "estimated": result["pu"],
        "true": truth_metrics(classes, scores, threshold=result["threshold"]).to_json(),
        "true_share": float(classes.mean()),
        "map_megabytes": (drawn.parent / "map.html").stat().st_size / 1e6,
        "report_megabytes": (run / "report.html").stat().st_size / 1e6,
        "origin": started,
    }


def make_folders(
    source: Path,
    work: Path,
    *,
    positives: int = POSITIVES,
    unlabelled: int = UNLABELLED,
    seed: int = SEED,
) -> Mapping[str, int]:
    """Make both folders of links; return the true class of every unlabelled file by name."""
    files = {kind: sorted((source / kind).glob("*.jpeg")) for kind in ("damage", "no_damage")}
    if not all(files.values()):
        raise DataNotFound(
            f"There are no crops below {source}/damage and {source}/no_damage. Give the folder "
            "that holds harvey/ with --root."
        )
    random = np.random.default_rng(seed)
    damaged = [files["damage"][i] for i in random.permutation(len(files["damage"]))]
    rest = [*damaged[positives:], *files["no_damage"]]
    chosen = [rest[i] for i in random.permutation(len(rest))[:unlabelled]]
    truth: dict[str, int] = {}
    for folder, paths in (("damaged", damaged[:positives]), ("buildings", chosen)):
        (work / folder).mkdir(parents=True, exist_ok=True)
        for path in paths:
            # A location may have images of both classes, so the name may not be unique.
            name = path.name
            while name in truth:
                name = f"{path.stem}0{path.suffix}"
            link = work / folder / name
            if not link.exists():
                os.link(path, link)
            if folder == "buildings":
                truth[name] = int(path.parent.name == "damage")
    return truth


def timed(*words: str | Path) -> float:
    """Run a command of onesided; return the seconds it took."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "onesided", *map(str, words)], check=False)
    if done.returncode:
        raise OnesidedError(f"onesided {words[0]} ended with {done.returncode}; see above.")
    return round(time.perf_counter() - began, 1)


def scored(ranked: Path, truth: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of a ranking and the true classes, row by row."""
    with ranked.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    scores = np.array([float(row["score"]) for row in rows])
    classes = np.array([truth[Path(name_in_cell(row["item"])).name] for row in rows])
    return scores, classes


def page(content: Mapping[str, Any]) -> str:
    """Return the page: the estimates without negatives beside the true figures."""
    seconds, true = content["seconds"], content["true"]
    estimated = content["estimated"]["figures"]
    machine = content["origin"]["machine"]
    lines = [
        f"# {content['title']}",
        "",
        f"<!-- python -m benchmarks.harvey --docs wrote this from benchmarks/results/{RESULT} -->",
        "",
        f"{content['positives']} damaged crops in one folder, {content['unlabelled']} others in "
        f"another. {content['true_share']:.1%} of these are damaged, which the program did not "
        "know. Then the commands of the README: `onesided fit`, `rank`, `map`.",
        "",
        f"**{content['warning']}**",
        "",
        markdown(
            ("figure", "estimated without negatives", "true"),
            [(name, _estimate(estimated.get(name)), f"{true[name]:.3f}") for name in ESTIMATED],
        ),
        "",
        "Estimates come from the held-out fifth of both folders. True figures come from all "
        f"{content['unlabelled']} unlabelled crops; the model never saw their classes.",
        "",
        f"Seconds: fit {seconds['fit']:.0f}, rank {seconds['rank']:.0f}, map {seconds['map']:.0f}. "
        f"The map page is {content['map_megabytes']:.1f} MB, the report "
        f"{content['report_megabytes']:.1f} MB.",
        "",
        f"Measured on {machine['cpu']}, {machine['cores']} cores, commit "
        f"{content['origin']['commit'][:12]}, {content['origin']['date'][:10]}.",
        "",
    ]
    return "\n".join(lines)


def _estimate(figure: Mapping[str, Any] | None) -> str:
    if figure is None or figure["value"] is None:
        return "not estimated"
    interval = "" if figure["low"] is None else f" ({figure['low']:.3f} to {figure['high']:.3f})"
    return f"{figure['value']:.3f}{interval}"


if __name__ == "__main__":
    sys.exit(main())
