"""A million files must not need more memory than a thousand."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.data.image_files import write_png
from tests.run.test_rank import save

MEASURED = """
import resource, sys
from pathlib import Path
from onesided.run.rank import rank_items
run, items = map(Path, sys.argv[1:3])
ranking = rank_items(run, items, items.with_suffix(".csv"), tolerate=0)
print(ranking.written, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def linked(image: Path, folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        os.link(image, folder / f"a picture with a name of a usual length {number}.png")
    return folder


@pytest.mark.slow
def test_twenty_times_as_many_files_take_no_more_memory(tmp_path: Path) -> None:
    run, image = save(tmp_path / "run"), write_png(tmp_path / "image.png")

    def measured() -> Iterator[tuple[int, float]]:
        for count in (2_000, 40_000):
            folder = linked(image, tmp_path / f"of{count}", count)
            words = [sys.executable, "-c", MEASURED, str(run), str(folder)]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            done = subprocess.run(words, env=environment, capture_output=True, check=True)
            written, peak = done.stdout.split()
            yield int(written), float(peak)

    (few, memory_of_few), (many, memory_of_many) = measured()
    assert (few, many) == (2_000, 40_000)
    # Twelve megabytes: what sorting holds at this number, and it never holds more than sixteen.
    assert memory_of_many - memory_of_few < 12
