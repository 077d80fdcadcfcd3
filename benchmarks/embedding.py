"""How many images per second does a frozen EfficientNet-Lite0 embed?

    python -m benchmarks.embedding --root DATA         CIFAR-10's images, and large photographs
    python -m benchmarks.embedding --docs              write the page from the result file
    python -m benchmarks.embedding --quick             a few images, in seconds: does it run here?

Two ways to the same features take turns on the same images, in one process:
- the network as it is written, in batches of up to 64 (how this library embedded at first),
- `features_of`, as `onesided fit --freeze` does: folded, in small batches.
A turn is a part of the images, and the fastest turn counts: what other processes do on the
machine only adds to a time. Seconds are those of the clock and those of the processor, which other
processes change less; the load says how many processes wanted a core. The features must agree to a
thousandth, or the command fails. Where onnxruntime and onnx are installed, it is timed too: does a
further dependency pay? One product of two large matrices takes turns with them: as many
multiplications per second as this processor does, so it says how much faster anything could be.
"""

import argparse
import io
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
from onesided.nets.work import multiplications
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
Way = Callable[[np.ndarray], np.ndarray]


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
    print(table(rows, "per_second"), table(rows, "per_processor_second"), sep="\n\n")
    return int(max(row["disagreement"] for row in rows) > AGREEMENT)


def measure(root: Path | None) -> list[Row]:
    """Return the rows of the result file; without a root, of a few random images."""
    random = np.random.default_rng(0)
    small = random.integers(0, 256, (64, 3, 32, 32), dtype=np.uint8)
    large = random.integers(0, 256, (8, 3, 128, 128), dtype=np.uint8)
    turns = {"CIFAR-10": 1, "large": 1}
    if root is not None:
        small = SOURCES["cifar10"].load(root).train.values[:2048]
        turns = {"CIFAR-10": 8, "large": 4}
        large = random.integers(0, 256, (256, 3, 224, 224), dtype=np.uint8)
    before, rows = torch.get_num_threads(), []
    for threads in THREADS:
        torch.set_num_threads(threads)
        for name, images in (("CIFAR-10", small), ("large", large)):
            rows.append({"images": name, "threads": threads, **timed(images, turns[name])})
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
        "written": partial(as_written, backbone),
        "folded": partial(as_here, backbone),
    }
    runtime = in_onnxruntime(backbone, images)
    if runtime is not None:
        ways["onnxruntime"] = runtime
    clock, processor = dict.fromkeys(ways, float("inf")), dict.fromkeys(ways, float("inf"))
    disagreement, limit = 0.0, 0.0
    for way in ways.values():  # once before the clock runs
        way(images[:8])
    for part in np.split(images, turns):
        features = {}
        for name, way in ways.items():
            started, worked = time.perf_counter(), time.process_time()
            features[name] = way(part)
            clock[name] = min(clock[name], time.perf_counter() - started)
            processor[name] = min(processor[name], time.process_time() - worked)
        far = [apart(one, features["written"]) for one in features.values()]
        disagreement = max(disagreement, *far)
        limit = max(limit, multiplications_per_second())
    size = settings.for_samples(shape).resize
    return {
        "count": len(images),
        "shape": list(shape),
        "working_size": size,
        "per_turn": len(images) // turns,
        "load": round(os.getloadavg()[0], 1),
        "per_second": {name: round(len(part) / clock[name], 1) for name in ways},
        "per_processor_second": {name: round(len(part) / processor[name], 1) for name in ways},
        "limit_per_second": round(limit / multiplications(backbone, shape), 1),
        "disagreement": disagreement,
    }


def multiplications_per_second() -> float:
    """Return how many multiplications of a matrix product this processor does in a second."""
    side = 2048
    left, right = torch.rand(side, side), torch.rand(side, side)
    started = time.perf_counter()
    torch.mm(left, right)
    return side**3 / (time.perf_counter() - started)


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

    def resized(some: np.ndarray) -> Tensor:
        return resize(backbone.standardise(_floats(some)), size)

    file, network = io.BytesIO(), _AfterResizing(backbone)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (resized(images[:8]),),
            file,  # type: ignore[arg-type]  # the older exporter takes a file, and none is left
            dynamo=False,
            input_names=["x"],
            opset_version=17,
            dynamic_axes={"x": {0: "n"}},
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(file.getvalue(), options)

    def embed(some: np.ndarray) -> np.ndarray:
        batches = (some[start : start + 8] for start in range(0, len(some), 8))
        return np.concatenate([session.run(None, {"x": resized(b).numpy()})[0] for b in batches])

    return embed


class _AfterResizing(torch.nn.Module):
    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, samples: Tensor) -> Tensor:
        return self.backbone.features(samples)


def _floats(images: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(images)).float().div_(255)


def gain(row: Row, seconds: str) -> float:
    """Return how many times as many images as the network as written, in seconds of this kind."""
    return float(row[seconds]["folded"] / row[seconds]["written"])


def table(rows: Sequence[Row], seconds: str) -> str:
    """Return the images per second of this kind as Markdown."""
    ways = [way for way in WAYS if any(way in row[seconds] for row in rows)]
    lines = []
    for row in rows:
        speeds, shape = row[seconds], "x".join(map(str, row["shape"][1:]))
        numbers = [f"{speeds[way]:.0f}" if way in speeds else NOTHING for way in ways]
        what, size = f"{row['count']} of {shape} ({row['images']})", f"{row['working_size']} pixels"
        ends = [f"{gain(row, seconds):.1f}x", f"{row['load']:g}"]
        if seconds == "per_second":
            ends[1:1] = [f"{share_of_limit(row):.0%}"]
        lines.append([what, size, str(row["threads"]), *numbers, *ends])
    head = ["images", "worked at", "threads", *(WAYS[way] for way in ways), "faster"]
    limit = ["of the limit"] if seconds == "per_second" else []
    return markdown([*head, *limit, "load"], lines)


def share_of_limit(row: Row) -> float:
    """Return which share of the processor's multiplications the way here does."""
    return float(row["per_second"]["folded"] / row["limit_per_second"])


def page(content: Mapping[str, Any]) -> str:
    """Return the page made from the result file."""
    rows: list[Row] = content["rows"]
    goal, apart_most = content["goal"], max(row["disagreement"] for row in rows)
    verdicts = []
    for words, seconds in (("the clock", "per_second"), ("the processor", "per_processor_second")):
        gains = [gain(row, seconds) for row in rows]
        said = "reached" if min(gains) >= goal else "missed"
        verdicts.append(f"by {words} it is {said} ({min(gains):.1f} to {max(gains):.1f} times)")
    shares = [row["per_second"]["written"] / row["limit_per_second"] for row in rows]
    written = f"{min(shares):.0%} to {max(shares):.0%}"
    no_limit = ""
    if max(map(share_of_limit, rows)) > 1:
        no_limit = (
            " Above 100% it is no limit: here the library of the product leaves the processor's "
            "widest instructions unused, and that of the convolutions does not."
        )
    return f"""\
<!-- Generated by `python -m benchmarks.embedding --docs` from benchmarks/results/embedding.json; \
changes here are overwritten. -->

# The cost of embedding

A frozen EfficientNet-Lite0 computes the features of every image once. Below are images per second,
of the network as it is written in batches of up to {WRITTEN_BATCH}, and as `fit --freeze` computes
them: BatchNorm folded into the convolutions, no copies for padding, the first layers with few
images at a time, and each thread with a batch of its own. All take turns in one process, with a
part of the images each, and the fastest turn counts. Reading files is not included; large images
are random, which does not change the time.

Goal: {goal:g} times the network as written in every row; {"; ".join(verdicts)}. The features of an
image differ by at most {apart_most:.1e} of their length.

*Of the limit* is the share of the multiplications that this processor does in the product of two
large matrices. Its inverse is how much faster the same network could be at most: where it is below
{goal:g} times what the network as written does, the goal cannot be reached in single precision.
Written so, the network does {written} of the limit.{no_limit}

## By the clock

Images per second. Where the load is above the number of cores, other processes took part of them.

{table(rows, "per_second")}

## By the processor

Images per second of processor time, of all threads together.

{table(rows, "per_processor_second")}

Measured on {machine_words(content["origin"]["machine"])}; code of commit
{commit_words(content["origin"])}.
"""


if __name__ == "__main__":
    sys.exit(main())
