"""The panel of maps: does the default see damage, and are its own figures true?

    python -m benchmarks.maps                  three generated places
    python -m benchmarks.maps --root DATA      crops of Hurricane Harvey, by points, twice
    python -m benchmarks.maps --docs           write docs/benchmarks/maps.md from the result file
    python -m benchmarks.maps --quick          small places, one row each, no result file

Every row is one `onesided map` in its own process. AUC and F1 are those of the unmarked buildings
by their true classes, which no command is given. "Claimed" is what `summary.csv` says without any
negative, with its interval; a claim is true if the interval holds the truth. Real crops have a
result file of their own, so that their rows need not be of the same commit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import REPOSITORY
from benchmarks.harvey import WARNING, make_folders
from benchmarks.origin import filled, origin
from benchmarks.scenes import KINDS, GeneratedScene, Kind, write_scene
from benchmarks.tables import markdown
from onesided.core.errors import OnesidedError
from onesided.geo.input.positives import read_truth
from onesided.metrics.truth import truth_metrics
from onesided.storage.atomic import read_json, write_text

RESULT, REAL = "maps.json", "maps_harvey.json"
SEED, ACROSS, SHARE, MARKED = 20, 30, 0.25, 60
ROWS: Mapping[str, tuple[str, ...]] = {
    "default": (),
    "with the image before": ("--pre",),
    "one method on the same features": (
        *("--method", "teacher", "--backbone", "efficientnet_lite0", "--freeze"),
    ),
}
"""What differs from the default."""
DEFAULT, SAME_IMAGE = "default", "one method on the same features"
HARVEY, CROPS, CROPS_MARKED = "harvey", 1000, 100
"""Folders of crops, drawn from the seed after the word."""
HARVEY_ROWS = (
    f"{HARVEY} 1: default",
    f"{HARVEY} 2: default",
    f"{HARVEY} 1: one method on the same features",
)
CLAIMED = ("precision", "recall")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the panel, or write its page; return the exit code."""
    options = parser().parse_args(argv)
    results = REPOSITORY / "benchmarks" / "results"
    try:
        if options.quick:
            with tempfile.TemporaryDirectory() as folder:
                print(json.dumps(measured("fire: default", Path(folder), None, across=12)))
            return 0
        if not options.docs:
            names: Sequence[str] = [f"{kind}: {row}" for kind in KINDS for row in ROWS]
            settings = {"seed": SEED, "across": ACROSS, "share": SHARE, "marked": MARKED}
            if options.root:
                names, settings = HARVEY_ROWS, {"crops": CROPS, "marked": CROPS_MARKED}
            filled(
                results / (REAL if options.root else RESULT),
                {"title": "Maps of damage", **settings, "origin": origin()},
                key="name",
                asked=options.only or names,
                measure=lambda name: measured(name, options.work, options.root),
            )
        content = read_json(results / RESULT)
        real = read_json(results / REAL) if (results / REAL).is_file() else None
    except OnesidedError as error:
        print(f"benchmarks.maps: {error}", file=sys.stderr)
        return error.exit_code
    print(page(content, real))
    if options.docs:
        write_text(REPOSITORY / "docs" / "benchmarks" / "maps.md", page(content, real))
    return 0


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m benchmarks.maps", description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("--root", type=Path, help="the parent of harvey")
    options.add_argument("--work", type=Path, default=Path("runs/benchmarks/maps"))
    options.add_argument("--only", nargs="+", help="names of rows, such as 'fire: default'")
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    options.add_argument("--quick", action="store_true", help="small places, no result file")
    return options


def measured(name: str, work: Path, root: Path | None, across: int = ACROSS) -> dict[str, Any]:
    """Make a map and compare it with the truth."""
    place, _, row = name.partition(": ")
    folder = work / name.replace(": ", "-").replace(" ", "-")
    if place.startswith(HARVEY):
        assert root is not None
        crops, seed = work / place.replace(" ", "-"), int(place.split()[1])
        classes = make_folders(
            root / HARVEY / "train", crops, positives=CROPS_MARKED, unlabelled=CROPS, seed=seed
        )
        flags: list[str | Path] = ["--points", crops / "buildings"]
        flags += ["--positives", crops / "damaged", *ROWS[row]]
    else:
        kind: Kind = next(kind for kind in KINDS if kind == place)
        scene = write_scene(
            work / place, kind, seed=SEED, across=across, share=SHARE, marked=MARKED
        )
        classes, flags = read_truth(scene.truth), given(scene, ROWS[row])
    seconds = run_map(*flags, "-o", folder / "damage.geojson")
    return {"name": name, "cpu_seconds": seconds, **compared(folder, classes)}


def given(scene: GeneratedScene, differs: Sequence[str]) -> list[str | Path]:
    """Return the flags that name the files of a place, and those of the row."""
    words: list[str | Path] = ["--image", scene.post, "--footprints", scene.footprints]
    words += ["--positives", scene.marked]
    for word in differs:
        words += [word, scene.pre] if word == "--pre" else [word]
    return words


def run_map(*words: str | Path) -> float:
    """Run `onesided map`; return the CPU seconds of that process."""
    command = [sys.executable, "-m", "onesided", "map", *map(str, words), "--allow-degenerate"]
    before = os.times()
    if subprocess.run(command, check=False).returncode:
        raise OnesidedError(f"{' '.join(command[2:])} failed; see above.")
    after = os.times()
    used = after.children_user - before.children_user
    return round(used + after.children_system - before.children_system, 1)


def compared(folder: Path, classes: Mapping[str, int]) -> dict[str, Any]:
    """Return the true figures of the unmarked buildings beside those that the map claims."""
    layer = json.loads((folder / "damage.geojson").read_text(encoding="utf-8"))
    rows = [feature["properties"] for feature in layer["features"]]
    rows = [row for row in rows if row["score"] is not None and "unlabelled" in row["role"]]
    scores = np.array([row["score"] for row in rows])
    truth = np.array([classes[row["id"]] for row in rows])
    summary = _summary(folder / "summary.csv")
    true = truth_metrics(truth, scores, threshold=float(summary["threshold"]["value"])).to_json()
    claims = {}
    for name in CLAIMED:
        figure = summary.get(name, {})
        claims[name] = {key: _number(figure.get(key)) for key in ("value", "low", "high")}
    return {
        "buildings": len(layer["features"]),
        "auc": true["auc"],
        "f1": true["f1"],
        "true": {name: true[name] for name in CLAIMED},
        "claimed": claims,
    }


def _summary(path: Path) -> dict[str, dict[str, str]]:
    import csv

    with path.open(newline="", encoding="utf-8") as file:
        return {row["figure"]: row for row in csv.DictReader(file) if not row["part"]}


def _number(text: str | None) -> float | None:
    return float(text) if text else None


def page(content: Mapping[str, Any], real: Mapping[str, Any] | None = None) -> str:
    """Return the page; `real` are the rows of real crops."""
    place = f"{content['across']} x {content['across']} buildings"
    lines = [
        f"# {content['title']}",
        "",
        f"<!-- python -m benchmarks.maps --docs wrote this from benchmarks/results/{RESULT} and "
        f"{REAL} -->",
        "",
        f"Three generated places of {place}, {content['share']:.0%} of them damaged and "
        f"{content['marked']} of these marked. `benchmarks/scenes.py` draws them: fallen roofs, "
        "brown water, charred roofs, each with something harmless that looks like it. AUC and F1 "
        "are those of the unmarked buildings by their true classes. A claim, made without any "
        "negative, is followed by its interval and by the truth.",
        "",
        *_table(content),
    ]
    if real is not None:
        lines += [
            "## Real crops",
            "",
            f"{real['crops']:,} crops of Hurricane Harvey and {real['marked']} marked ones, named "
            "by their places (`--points`). The number after the name is the seed of the draw. "
            f"{WARNING}",
            "",
            *_table(real),
        ]
    return "\n".join(lines)


def _table(content: Mapping[str, Any]) -> list[str]:
    machine, rows = content["origin"]["machine"], content["rows"]
    return [
        markdown(
            (
                "place: run",
                "CPU s",
                "AUC",
                "F1",
                "precision: claimed, true",
                "recall: claimed, true",
            ),
            [
                (
                    row["name"],
                    f"{row['cpu_seconds']:.0f}",
                    f"{row['auc']:.3f}",
                    f"{row['f1']:.3f}",
                    *(_claim(row, name) for name in CLAIMED),
                )
                for row in rows
            ],
        ),
        "",
        f"{first(rows)} {held(rows)}",
        "",
        f"Measured on {machine['cpu']}, {machine['cores']} cores, commit "
        f"{content['origin']['commit'][:12]}, {content['origin']['date'][:10]}.",
        "",
    ]


def first(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return where the default is below another row that sees the same image."""
    below = []
    for row in (row for row in rows if row["name"].endswith(f": {DEFAULT}")):
        place = row["name"].partition(":")[0]
        others = [one for one in rows if one["name"] == f"{place}: {SAME_IMAGE}"]
        below += [
            f"{place} ({figure.upper()} {row[figure]:.3f} against {other[figure]:.3f})"
            for other in others
            for figure in ("auc", "f1")
            if row[figure] < other[figure]
        ]
    return (
        "The default is not below the other row that sees the same image"
        f"{', but for ' + ' and '.join(below) if below else ''}."
    )


def held(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how many claims hold the truth within their intervals."""
    made = [(row["claimed"][name], row["true"][name]) for row in rows for name in CLAIMED]
    made = [(claim, true) for claim, true in made if claim["low"] is not None]
    right = sum(claim["low"] <= true <= claim["high"] for claim, true in made)
    return f"Of {len(made)} claims with an interval, {right} hold the truth."


def _claim(row: Mapping[str, Any], name: str) -> str:
    claim, true = row["claimed"][name], row["true"][name]
    if claim["value"] is None:
        return f"none, {true:.2f}"
    interval = "" if claim["low"] is None else f" ({claim['low']:.2f} to {claim['high']:.2f})"
    return f"{claim['value']:.2f}{interval}, {true:.2f}"


if __name__ == "__main__":
    sys.exit(main())
