"""How many images per second does a frozen EfficientNet-Lite0 embed?

    python -m benchmarks.embedding --root DATA         CIFAR-10's images, and large photographs
    python -m benchmarks.embedding --docs              write the page from the result file
    python -m benchmarks.embedding --quick             a few images, in seconds: does it run here?

Two ways to the same features take turns on the same images, in one process:
- the network as it is written, in batches of 64 (how this library embedded at first),
- `features_of`, as `onesided fit --freeze` does: folded, in small batches.
A time is the fastest of the turns: what other processes do on the machine only adds to it. The
features must agree to a thousandth, or the command fails. Where onnxruntime and onnx are installed,
it is timed too: does a further dependency pay?
"""

import argparse
import io
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.command import REPOSITORY
from benchmarks.origin import Row, origin
from benchmarks.tables import NOTHING, commit_words, machine_words, markdown
from onesided.data.problem.dataset import Selection
from onesided.data.sources import SOURCES
from onesided.engine.sweep import evaluating, features_of
from onesided.nets.build import BackboneConfig, build_backbone, load_initial_weights
from onesided.nets.standardise import Backbone
from onesided.storage.atomic import read_json, write_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "embedding.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "embedding.md"
GOAL, AGREEMENT = 3.0, 1e-3
WRITTEN_BATCH = 64
THREADS = (1, 2)
WAYS = {
    "written": "network as written",
    "folded": "here",
    "onnxruntime": "onnxruntime",
}
Way = Callable[[], np.ndarray]


def main(argv: Sequence[str] | None = None) -> int:
    """Time both ways, or write the page; return 1 where the features differ."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.embedding",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--root", type=Path, help="folder of CIFAR-10")
    options.add_argument("--docs", action="store_true", help="write the page, measure nothing")
    options.add_argument("--quick", action="store_true", help="random images, a few; no file")
    asked = options.parse_args(argv)
    if asked.docs:
        write_text(PAGE, page(read_json(RESULT)))
        return 0
    if not asked.quick and asked.root is None:
        options.error("give the folder of CIFAR-10 with --root")
    rows = measure(None if asked.quick else asked.root)
    if not asked.quick:
        write_json(RESULT, {"name": "embedding", "origin": origin(), "goal": GOAL, "rows": rows})
    print(table(rows))
    return int(max(row["disagreement"] for row in rows) > AGREEMENT)


def measure(root: Path | None) -> list[Row]:
    """Return the rows of the result file; without a root, of a few random images."""
    random = np.random.default_rng(0)
    small = random.integers(0, 256, (64, 3, 32, 32), dtype=np.uint8)
    large = random.integers(0, 256, (8, 3, 128, 128), dtype=np.uint8)
    turns = 1
    if root is not None:
        small, turns = SOURCES["cifar10"].load(root).train.values[:2000], 3
        large = random.integers(0, 256, (96, 3, 224, 224), dtype=np.uint8)
    before, rows = torch.get_num_threads(), []
    for threads in THREADS:
        torch.set_num_threads(threads)
        for name, images in (("CIFAR-10", small), ("large", large)):
            rows.append({"images": name, "threads": threads, **timed(images, turns)})
            print(rows[-1], file=sys.stderr, flush=True)
    torch.set_num_threads(before)
    return rows


def timed(images: np.ndarray, turns: int) -> Row:
    """Return images per second of every way, and how far their features are apart."""
    settings = BackboneConfig(name="efficientnet_lite0", freeze=True)
    shape = images.shape[1:]
    backbone = build_backbone(settings, shape, [0.5] * shape[0], [0.5] * shape[0])
    load_initial_weights(settings, backbone)
    backbone.eval()
    ways: dict[str, Way] = {
        "written": lambda: as_written(backbone, images),
        "folded": lambda: as_here(backbone, images),
    }
    runtime = in_onnxruntime(backbone, images)
    if runtime is not None:
        ways["onnxruntime"] = runtime
    features = {name: way() for name, way in ways.items()}  # once before the clock runs
    fastest = dict.fromkeys(ways, float("inf"))
    for _ in range(turns):
        for name, way in ways.items():
            started = time.perf_counter()
            way()
            fastest[name] = min(fastest[name], time.perf_counter() - started)
    size = settings.for_samples(shape).resize
    return {
        "count": len(images),
        "shape": list(shape),
        "working_size": size,
        "per_second": {name: round(len(images) / fastest[name], 1) for name in ways},
        "disagreement": max(apart(one, features["written"]) for one in features.values()),
    }


def apart(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest distance of two images' features, relative to their length."""
    length = np.linalg.norm(expected, axis=1)
    return float((np.linalg.norm(found - expected, axis=1) / length).max())


def as_written(backbone: Backbone, images: np.ndarray) -> np.ndarray:
    """Return features by the network as it is, in batches of 64."""
    batches = []
    for start in range(0, len(images), WRITTEN_BATCH):
        with evaluating(backbone):
            batches.append(backbone(_floats(images[start : start + WRITTEN_BATCH])).numpy())
    return np.concatenate(batches)


def as_here(backbone: Backbone, images: np.ndarray) -> np.ndarray:
    """Return features as `onesided fit --freeze` computes them."""
    rows = Selection(images, np.arange(len(images)))
    return np.concatenate(list(features_of(backbone, rows, torch.device("cpu"))))


def in_onnxruntime(backbone: Backbone, images: np.ndarray) -> Way | None:
    """Return features by onnxruntime, or None where it is not installed.

    Torch resizes the images; the exported network begins with its first convolution.
    """
    try:
        import onnx  # noqa: F401 - torch exports with it
        import onnxruntime
    except ImportError:
        return None
    from onesided.nets.efficientnet import EfficientNetLite0, resize

    assert isinstance(backbone, EfficientNetLite0)
    size = backbone.size

    def resized(start: int) -> Tensor:
        return resize(backbone.standardise(_floats(images[start : start + 8])), size)

    file, network = io.BytesIO(), _AfterResizing(backbone)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network, (resized(0),), file, dynamo=False, input_names=["x"], opset_version=17,
            dynamic_axes={"x": {0: "n"}},
        )  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(file.getvalue(), options)

    def embed() -> np.ndarray:
        starts = range(0, len(images), 8)
        return np.concatenate([session.run(None, {"x": resized(i).numpy()})[0] for i in starts])

    return embed


class _AfterResizing(torch.nn.Module):
    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, samples: Tensor) -> Tensor:
        return self.backbone.features(samples)


def _floats(images: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(images)).float().div_(255)


def table(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown."""
    ways = [way for way in WAYS if any(way in row["per_second"] for row in rows)]
    head = ["images", "worked at", "threads", *(f"{WAYS[way]}, per s" for way in ways)]
    lines = []
    for row in rows:
        speeds, shape = row["per_second"], "x".join(map(str, row["shape"][1:]))
        gain = speeds["folded"] / speeds["written"]
        numbers = [f"{speeds[way]:.0f}" if way in speeds else NOTHING for way in ways]
        what, size = f"{row['count']} of {shape} ({row['images']})", f"{row['working_size']} pixels"
        lines.append([what, size, str(row["threads"]), *numbers, f"{gain:.1f}x"])
    return markdown([*head, "faster"], lines)


def page(content: Mapping[str, Any]) -> str:
    """Return the page made from the result file."""
    rows: list[Row] = content["rows"]
    least = min(row["per_second"]["folded"] / row["per_second"]["written"] for row in rows)
    apart_most = max(row["disagreement"] for row in rows)
    said = "reached" if least >= content["goal"] else "missed"
    return f"""\
<!-- Generated by `python -m benchmarks.embedding --docs` from benchmarks/results/embedding.json; \
changes here are overwritten. -->

# The cost of embedding

A frozen EfficientNet-Lite0 computes the features of every image once. Below are images per
second, of the network as it is written in batches of {WRITTEN_BATCH}, and as `fit --freeze`
computes them: BatchNorm folded into the convolutions, no copies for padding, the first layers with
few images at a time, and each thread with a batch of its own. Both take turns in one process, and
the fastest turn counts. Reading files is not included; large images are random, which does not
change the time.

{table(rows)}

Goal: {content["goal"]:g} times the network as written in every row: {said}, the least is
{least:.1f} times. The features of an image differ by at most {apart_most:.1e} of their length.

Measured on {machine_words(content["origin"]["machine"])}; code of commit
{commit_words(content["origin"])}.
"""


if __name__ == "__main__":
    sys.exit(main())
