"""Small runs through every door, and a fingerprint of what each of them left behind.

python -m tests.regression.runs            # records all runs anew, on purpose only
python -m tests.regression.runs ncpu       # records this one, and leaves the others as they are
"""

import hashlib
import json
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from onesided import PUClassifier
from tests.cli.command import call
from tests.cli.pictures import BLUE, draw, draw_data
from tests.contract.cases import CASES, Case
from tests.geo.fakes import write_geotiff_scene

RECORDED = Path(__file__).with_name("recorded.json")
SHOWN = 24
"""Scores that are recorded as numbers, for machines that round in another way."""

Record = dict[str, Any]


def trained(case: Case, folder: Path) -> Record:
    """Train a method for three epochs on toy images and return what the run folder holds."""
    settings = {f"method.{key}": value for key, value in case.settings.items()}
    settings |= {"backbone.width": 0.125, "train.batch_size": 24, "data.clean": 8}
    settings |= {"data.held_out_positives": 24, "data.held_out_unlabelled": 60}
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return _finished(
        *("fit", "--data", "toy-images", "--method", case.name, "--prior", "0.4"),
        *("--epochs", "3", "--seed", "3", *words),
        folder=folder,
    )


def frozen(folder: Path) -> Record:
    """Train a head on features of a pretrained network."""
    items = draw_data(folder / "items")
    for number in range(12):
        draw(items / "N" / f"blue{number:02}.png", 2000 + number, BLUE)
    return _finished(
        *("fit", "-p", items / "P", "-u", items / "U", "-n", items / "N"),
        *("--method", "teacher"),
        *("--backbone", "efficientnet_lite0", "--freeze", "--epochs", "2"),
        folder=folder / "run",
    )


def searched(folder: Path) -> Record:
    """Let auto choose among models on features of a pretrained network."""
    items = draw_data(folder / "items")
    return _finished("fit", "-p", items / "P", "-u", items / "U", folder=folder / "run")


def mapped(folder: Path) -> Record:
    """Map a drawn town."""
    folder.mkdir(parents=True, exist_ok=True)
    scene = write_geotiff_scene(folder, seed=1, size=512, buildings=72)
    return _finished(
        *("map", "--image", scene.post, "--footprints", scene.gpkg, "--size", "16"),
        *("--positives", scene.positives, "--method", "teacher", "--epochs", "2"),
        *("--run", folder / "run"),
        folder=folder / "damage.gpkg",
        run=folder / "run",
    )


def estimated(folder: Path) -> Record:
    """Fit the estimator on a table of numbers."""
    values, truth = load_breast_cancer(return_X_y=True)
    labels = truth * (np.arange(len(truth)) % 3 == 0)
    estimator = PUClassifier("teacher", epochs=2, random_state=3).fit(values, labels)
    scores = estimator.predict_proba(values)[:, 1]
    return {"scores": _hash(scores.tobytes()), "first": scores[:SHOWN].tolist()}


RUNS: Mapping[str, Callable[[Path], Record]] = {
    **{str(case): partial(trained, case) for case in CASES},
    "frozen": frozen,
    "auto": searched,
    "map": mapped,
    "estimator": estimated,
}


def machine() -> dict[str, str]:
    """Return what decides how sums are rounded.

    Linear algebra chooses its loops by the processor too, and not as torch does.
    """
    cpu = torch.backends.cpu.get_cpu_capability()
    loops = {str(library.get("architecture")) for library in threadpool_info()}
    return {
        "torch": torch.__version__,
        "processor": f"{platform.machine()} {cpu}",
        "linear algebra": " ".join(sorted(loops - {"None"})),
    }


def record(name: str, folder: Path) -> Record:
    """Do a run silently, with one thread, and return its fingerprint as JSON gives it back."""
    torch.set_num_threads(1)
    with redirect_stdout(StringIO()):
        found: Record = json.loads(json.dumps(RUNS[name](folder)))
    return found


def _finished(*words: object, folder: Path, run: Path | None = None) -> Record:
    outcome = call(*words, "-o", folder, "--allow-degenerate", "--quiet")
    assert outcome.exit_code == 0, outcome.err
    run = run or folder
    with np.load(run / "scores.npz", allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in sorted(archive.files)}
    return {
        "model": _hash((run / "model.safetensors").read_bytes()),
        "scores": _hash(*(name.encode() + array.tobytes() for name, array in arrays.items())),
        "ranking": _hash((run / "scores.csv").read_bytes()),
        "first": arrays["train"][:SHOWN].tolist(),
    }


def _hash(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()


def main(names: Sequence[str]) -> None:
    """Record the named runs, or every run."""
    before = json.loads(RECORDED.read_text())["runs"] if names else {}
    now: Record = {}
    with TemporaryDirectory() as place:
        for name in names or RUNS:
            print(name, file=sys.stderr)
            now[name] = record(name, Path(place) / name)
    runs = {name: now.get(name) or before[name] for name in RUNS}
    RECORDED.write_text(json.dumps({"machine": machine(), "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
