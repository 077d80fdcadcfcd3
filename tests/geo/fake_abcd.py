"""A miniature of ABCD: pairs before and after the tsunami, as TIFF files of six channels."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tests.geo.drawing import FakeBuilding, draw_pair, place_buildings

FOLDS = 5
SIDE = {"resized": 128, "fixed-scale": 160}


@dataclass(frozen=True)
class FakePairs:
    """A miniature of ABCD.

    Attributes:
        folder: ABCDdataset/resized, say.
        buildings: What was drawn, in the order of the numbers of the files.
        fold: The fold, 1 to 5, that tests each pair.
        pixels: (pairs, 6, side, side): red, green, blue before, the same after.
    """

    folder: Path
    buildings: tuple[FakeBuilding, ...]
    fold: tuple[int, ...]
    pixels: np.ndarray


def write_abcd(
    folder: Path,
    *,
    seed: int,
    pairs: int,
    layout: Literal["official", "classes"] = "official",
    washed_away_share: float = 0.5,
    subset: Literal["resized", "fixed-scale"] = "resized",
) -> FakePairs:
    """Write pairs of patches with a building in the middle, and the lists of five folds.

    The publisher puts all files into `patch-pairs` and their classes into the lists
    (`5fold-list/cv1-train.csv`, ..., 1 for washed away); with layout `classes` they lie
    in the folders `surviving` and `washed-away`, without lists.
    """
    import tifffile

    random = np.random.default_rng(seed)
    place, side = folder / "ABCDdataset" / subset, SIDE[subset]
    damaged = round(pairs * washed_away_share)
    gone = random.permutation(np.arange(pairs) < damaged)
    fold = random.permutation(np.arange(pairs) % FOLDS + 1)
    buildings, pixels = [], np.empty((pairs, 6, side, side), np.uint8)
    for row in range(pairs):
        subtype = "destroyed" if gone[row] else "no-damage"
        outlines = place_buildings(side, 1, random)
        pixels[row] = np.concatenate(draw_pair(side, outlines, [subtype], random))
        name = f"patch-pair_{row + 1}.tif"
        buildings.append(FakeBuilding(name, name, subtype, outlines[0], 0.0, 0.0))
        classes = "washed-away" if gone[row] else "surviving"
        path = place / ("patch-pairs" if layout == "official" else classes) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        channels_last = pixels[row].transpose(1, 2, 0)
        tifffile.imwrite(path, channels_last, photometric="minisblack", planarconfig="contig")
    if layout == "official":
        _write_lists(place / "5fold-list", buildings, fold)
    return FakePairs(place, tuple(buildings), tuple(int(number) for number in fold), pixels)


def _write_lists(folder: Path, buildings: list[FakeBuilding], fold: np.ndarray) -> None:
    folder.mkdir()
    for number in range(1, FOLDS + 1):
        for part, chosen in (("train", fold != number), ("test", fold == number)):
            rows: list[tuple[str, int]] = [
                (building.name, int(building.damaged))
                for building, included in zip(buildings, chosen, strict=True)
                if included
            ]
            rows.sort(key=lambda row: -row[1])  # washed away first, as in theirs; no header
            with (folder / f"cv{number}-{part}.csv").open("w", newline="") as file:
                csv.writer(file).writerows(rows)
