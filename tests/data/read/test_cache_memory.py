"""Folders larger than memory: more images, the same memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.data.image_files import write_png

DECODING = """
import resource, sys
from pathlib import Path
from onesided.data.read import cache
from onesided.data.read.files import find_images
from onesided.data.read.images import decode_all
cache.WORTH_A_FILE = 0
root = Path(sys.argv[1])
kept = cache.DecodeCache(root / "cache")
decode_all(find_images(root / sys.argv[2]), size=(256, 256), cache=kept)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
READING = """
import resource, sys, zlib
from pathlib import Path
import numpy as np
import torch
from onesided.core.batch import Augment, Mixed
from onesided.core.clock import Clock
from onesided.data.read.cache import MappedImages
from onesided.data.loader import Loader
from onesided.data.problem.samples import Samples
from onesided.data.problem.split import split_one_sided
from onesided.run.gallery import thumbnails
from onesided.run.load import channel_statistics
path, rows = Path(sys.argv[1]) / "pixels", int(sys.argv[2])
size, sums = 3 * 64 * 64, []
with path.open("wb") as file:
    for row in range(rows):  # no two are alike
        file.write(content := row.to_bytes(8, "little") + bytes(size - 8))
        sums.append(zlib.crc32(content))
images = MappedImages.open(path, (rows, 3, 64, 64), sums)
labelled = np.arange(rows) < 100
samples = Samples(images, np.where(labelled, 1, -1), tuple(map(str, range(rows))))
split = split_one_sided(samples, labelled, held_out_share=.2, scenario="single-set", seed=0)
split.content_hash()
channel_statistics(split.train.values)
thumbnails(split.train.values, np.arange(0, rows // 2, 100))
loader = Loader(split.train, split.kind, 64, torch.device("cpu"))
clock = Clock(seed=0, stage="train", epoch=0, epochs=1, step=0, steps=loader.steps(Mixed()))
for _ in loader.epoch(clock, {"classify": Augment.PLAIN}, Mixed()):
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def megabytes(program: str, *words: object) -> float:
    """Return the most memory that a program had."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def test_four_times_as_many_images_are_decoded_in_the_same_memory(tmp_path: Path) -> None:
    counts = {"few": 300, "many": 1200}
    for name, count in counts.items():
        for number in range(count):
            write_png(tmp_path / name / f"{number}.png", number)
    few, many = (megabytes(DECODING, tmp_path, name) for name in counts)
    assert many - few < 0.25 * (1200 - 300) * 3 * 256 * 256 / 2**20


@pytest.mark.slow
def test_three_times_as_many_images_are_trained_on_in_the_same_memory(tmp_path: Path) -> None:
    few, many = (megabytes(READING, tmp_path, rows) for rows in (6_000, 18_000))
    assert many - few < 0.25 * (18_000 - 6_000) * 3 * 64 * 64 / 2**20
