"""How long does the map page work for a frame, at a town, a city and a region?

python -m benchmarks.map_page             1 538, 100 000 and 1 000 000 buildings
python -m benchmarks.map_page --quick     1 538 buildings, in seconds, no result file

Buildings are rectangles along streets with drawn scores; nothing is trained. The page is opened
from disk in Chromium without a screen and without a graphics card, in a window of 1400 x 900. Then
the map is moved and zoomed, the threshold is dragged and the list is turned, frame by frame; and
words are searched that every building has, until all are found. What counts is the processor's
time of all scripts, by frame: Chromium counts it for the page's thread, so other work on the
machine does not change it. The browser's own drawing comes on top.
"""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from benchmarks.command import REPOSITORY
from benchmarks.origin import filled, origin
from onesided.geo.output.page import MapItem, MapPage, write_map

RESULT = "map_page.json"
COUNTS = (1_538, 100_000, 1_000_000)
BLOCK = 26.0
"""Metres from one building to the next."""
WEST, SOUTH, METRES_PER_DEGREE = -95.6, 29.6, 111_320.0
WINDOW = (1400, 900)
LIMIT = 33.0
"""Milliseconds: thirty frames a second."""
FRAMES = 24
PLACES = {"all": None, "town": 4.0, "street": 0.7, "building": 0.2}
"""Metres of a pixel; None shows all buildings."""

MOVE = """
const [steps, action, done] = arguments;
const map = document.getElementById("map");
const press = (key) => map.dispatchEvent(new KeyboardEvent("keydown", { key }));
const slider = document.getElementById("threshold");
const actions = {
  pan: (step) => press(step % 2 ? "ArrowRight" : "ArrowLeft"),
  zoom: (step) => press(step % 2 ? "-" : "+"),
  threshold: (step) => {
    slider.value = 0.2 + 0.6 * Math.abs(Math.sin(step / 7));
    slider.dispatchEvent(new Event("input"));
  },
  list: (step) => document.getElementById(step % 2 ? "page-back" : "page-on").click(),
  search: (step) => {
    if (step) return;
    const field = document.getElementById("search");
    field.value = "building";
    field.dispatchEvent(new Event("input"));
  },
};
const busy = () => action === "search" && document.getElementById("filtered").hidden;
onesidedMap.frames.length = 0;
const frame = (step) => requestAnimationFrame(() => {
  if (step >= steps && !busy()) return done([onesidedMap.frames.length, step]);
  actions[action](step);
  return frame(step + 1);
});
frame(0);
"""
"""Does something in each frame, as a held key or a dragged slider does."""


class Region(Sequence[MapItem]):
    """So many buildings, made when they are asked for: a million objects would fill the memory."""

    def __init__(self, count: int) -> None:
        side = math.ceil(math.sqrt(count))
        random = np.random.default_rng(0)
        rows, columns = np.divmod(np.arange(count), side)
        corner = np.stack([columns, rows], axis=1)
        corner = corner * BLOCK + 12 * (corner // 6) + random.uniform(0, 6, (count, 2))
        sizes = random.uniform(9, 18, (count, 2))
        square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
        metres = corner[:, None] + square * sizes[:, None]
        across = METRES_PER_DEGREE * math.cos(math.radians(SOUTH))
        self.rings = metres / np.array([across, METRES_PER_DEGREE]) + np.array([WEST, SOUTH])
        distance = np.hypot(columns - side * 0.45, rows - side * 0.55) / side
        scores = 1 / (1 + np.exp(16 * (distance - 0.2) + random.normal(0, 1.6, count)))
        self.marked = (scores > 0.8) & (np.arange(count) % 50 == 0)
        self.scores = scores.tolist()

    def __len__(self) -> int:
        return len(self.scores)

    @overload
    def __getitem__(self, number: int) -> MapItem: ...
    @overload
    def __getitem__(self, number: slice) -> list[MapItem]: ...

    def __getitem__(self, number: int | slice) -> MapItem | list[MapItem]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        role = "positive" if self.marked[number] else "unlabelled"
        ring = self.rings[number]
        name, score = f"building-{number:07d}", self.scores[number]
        return MapItem(name, [ring], score, number + 1, role)

    def __iter__(self) -> Iterator[MapItem]:
        return (self[number] for number in range(len(self)))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure every number of buildings; write the result file of a full run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.map_page", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="the least number, no result file")
    options = parser.parse_args(argv)
    if options.quick:
        print(line(measure(COUNTS[0])))
        return 0
    content = filled(
        REPOSITORY / "benchmarks" / "results" / RESULT,
        {"name": "map_page", "window": WINDOW, "limit_ms": LIMIT, "origin": origin()},
        key="buildings",
        asked=COUNTS,
        measure=measure,
    )
    for row in content["rows"]:
        print(line(row))
    return 0


def line(row: dict[str, Any]) -> str:
    """Return a row as people read it."""
    parts = [f"{row['buildings']:>9} buildings, page {row['page_megabytes']} MB"]
    parts += [f"opened in {row['open_seconds']} s"]
    parts += [f"{name} {each['ms']} ms" for name, each in row["script"].items()]
    return ", ".join(parts)


def measure(count: int) -> dict[str, Any]:
    """Return times of the page with so many buildings."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.html"
        began = time.perf_counter()
        write_map(MapPage("Region", Region(count), 0.5), path)
        written = time.perf_counter() - began
        size = path.stat().st_size
        return {
            "buildings": count,
            "page_megabytes": round(size / 1e6, 1),
            "write_seconds": round(written, 1),
            **in_browser(path),
        }


def in_browser(path: Path) -> dict[str, Any]:
    """Return how long the page takes to open, and the script of its frames by what is done."""
    from tests.browser import opened

    width, height = WINDOW
    script: dict[str, Any] = {}
    with opened(path, width=width, height=height) as chrome:
        chrome.set_script_timeout(600)
        # The page's clock starts when it is asked for, and selenium returns once its script ran.
        opened_after = float(chrome.execute_script("return performance.now()")) / 1000
        chrome.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        for place, metres in PLACES.items():
            if metres is None:
                chrome.execute_script("document.getElementById('fit').click()")
            else:
                view = chrome.execute_script("return onesidedMap.view()")
                chrome.execute_script(
                    "onesidedMap.moveTo(...arguments)", view["longitude"], view["latitude"], metres
                )
            for action in ("pan", "zoom"):
                script[f"{action} {place}"] = frames(chrome, action)
        chrome.execute_script("document.getElementById('fit').click()")
        for action in ("threshold", "list", "search"):
            script[action] = frames(chrome, action)
        return {
            "open_seconds": round(opened_after, 1),
            "browser": str(chrome.capabilities["browserVersion"]),
            "script": script,
        }


def frames(chrome: Any, action: str) -> dict[str, float]:  # noqa: ANN401 - selenium's driver
    """Return the script's milliseconds of a frame while something is done in every frame."""
    before = script_seconds(chrome)
    drawn, steps = chrome.execute_async_script(MOVE, FRAMES, action)
    spent = script_seconds(chrome) - before
    return {"ms": round(1000 * spent / steps, 1), "drawn": drawn}


def script_seconds(chrome: Any) -> float:  # noqa: ANN401 - selenium's driver
    """Return the processor's seconds that scripts have taken so far."""
    metrics = chrome.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "ScriptDuration"))


if __name__ == "__main__":
    sys.exit(main())
