"""How much faster are the compiled trees of PUET than the same trees in plain numpy?

python -m benchmarks.puet              41 000 images of 3 x 32 x 32 pixels, as in CIFAR
python -m benchmarks.puet --quick      a small problem, in seconds

Both grow the same trees from the same seeds, one after the other in one process. The benchmark
fails if a single node differs. Pixels are smooth noise, brighter at the top of a positive image:
about as hard to split as photographs, and nothing to download.
"""

import argparse
import os
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.command import REPOSITORY
from benchmarks.origin import origin
from onesided.storage.atomic import write_json
from onesided.trees.forest import Forest, TreeSettings, by_feature, grow_forest
from tests.trees.plain_tree import PlainNode, PlainTree

SETTINGS = TreeSettings(prior=0.4)
SIDE = 32


@dataclass(frozen=True)
class Problem:
    """Flattened images, P before U."""

    pixels: np.ndarray
    labelled: np.ndarray


def main(argv: Sequence[str] | None = None) -> int:
    """Print the time per tree of both versions, and their ratio."""
    options, started = parser().parse_args(argv), origin()
    rows = 2_000 if options.quick else options.rows
    problem = images(rows, np.random.default_rng(0))
    print(f"{rows} images of {problem.pixels.shape[1]} pixels, {options.trees} trees")
    # Compile, or load from the cache, before timing.
    grow(images(50, np.random.default_rng(1)), trees=1, threads=1)
    began = time.perf_counter()
    by_feature(problem.pixels)
    print(f"copy by feature  {time.perf_counter() - began:8.3f} s, once per forest")
    seconds = {}
    for threads in options.threads:
        began = time.perf_counter()
        forest = grow(problem, trees=options.trees, threads=threads)
        seconds[threads] = (time.perf_counter() - began) / options.trees
        print(f"compiled x {threads:<5} {seconds[threads]:8.3f} s per tree, copy included")
    began = time.perf_counter()
    trees = [grow_plainly(problem, seed) for seed in seeds(options.plain_trees)]
    plain = (time.perf_counter() - began) / len(trees)
    print(f"plain numpy      {plain:8.3f} s per tree")
    for threads, compiled in seconds.items():
        print(f"ratio x {threads:<8} {plain / compiled:8.1f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    nodes = len(forest.feature) / options.trees
    print(f"nodes per tree   {nodes:8.0f}")
    print(f"peak memory      {peak:8.0f} MB, of which pixels {problem.pixels.nbytes / 2**20:.0f}")
    equal = same(forest, trees)
    if not options.quick:
        measured = {
            "rows": rows,
            "trees": options.trees,
            "plain_seconds_per_tree": plain,
            "compiled_seconds_per_tree": seconds,
            "ratio": {threads: plain / compiled for threads, compiled in seconds.items()},
            "peak_megabytes": peak,
            "same_trees": equal,
            "origin": {**started, "load": os.getloadavg()[0]},
        }
        write_json(REPOSITORY / "benchmarks" / "results" / "puet.json", measured)
    return int(not equal)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m benchmarks.puet", description=__doc__)
    options.formatter_class = argparse.RawDescriptionHelpFormatter
    options.add_argument("--quick", action="store_true", help="2000 images")
    options.add_argument("--rows", type=int, default=41_000, help="images")
    options.add_argument("--trees", type=int, default=100, help="compiled trees")
    options.add_argument("--plain-trees", type=int, default=3, help="trees in plain numpy")
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="for example 1 2")
    return options


def images(rows: int, random: np.random.Generator) -> Problem:
    """Return so many images: a fortieth is labelled, two fifths of the rest are positive."""
    labelled = np.arange(rows) < max(1, rows // 41)
    positive = labelled | (random.random(rows) < SETTINGS.prior)
    coarse = random.integers(0, 256, size=(rows, 3, SIDE // 4, SIDE // 4))
    coarse[positive, :, :3] += 40
    fine = coarse.clip(0, 255).astype(np.uint8).repeat(4, axis=2).repeat(4, axis=3)
    noise = random.integers(0, 16, size=fine.shape, dtype=np.uint8)
    return Problem((fine // 2 + noise).reshape(rows, -1), labelled)


def seeds(trees: int) -> np.ndarray:
    """Return the seeds that a forest gives to its first trees."""
    return np.random.default_rng(0).integers(2**64, size=trees, dtype=np.uint64)


def grow(problem: Problem, *, trees: int, threads: int) -> Forest:
    random = np.random.default_rng(0)
    return grow_forest(
        problem.pixels, problem.labelled, SETTINGS, random, trees=trees, threads=threads
    )


def grow_plainly(problem: Problem, seed: int) -> PlainNode:
    return PlainTree(problem.pixels, problem.labelled, SETTINGS, int(seed)).grow()


def same(forest: Forest, trees: Sequence[PlainNode]) -> bool:
    """Return whether the first trees of the forest are these, node by node."""
    nodes = [node for tree in trees for node in tree.in_order()]
    features, cuts = [node.feature for node in nodes], [node.cut for node in nodes]
    known = forest.feature[: len(nodes)].tolist(), forest.cut[: len(nodes)].tolist()
    equal = known == (features, cuts)
    print("the same trees" if equal else "THE TREES DIFFER")
    return equal


if __name__ == "__main__":
    sys.exit(main())
