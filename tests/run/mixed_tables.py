"""A table of every kind of column, whose answer is known."""

import csv
from pathlib import Path

import numpy as np

HEAD = ("label", "name", "town", "area", "built", "pool", "note", "serial")
DAMAGED = ("roof torn away by the storm", "holes in the wet roof", "collapsed in the night")
INTACT = ("looks fine from the street", "intact and dry inside", "freshly painted and white")


def mixed_rows(rows: int = 120, seed: int = 0) -> list[list[str]]:
    """Return cells as a file has them: every second row is positive, half of those labelled."""
    random = np.random.default_rng(seed)
    table = []
    for row in range(rows):
        positive = row % 2 == 1
        table.append(
            [
                "positive" if row % 4 == 1 else "unlabelled",
                f"house {row}",
                str(random.choice(["Ulm", "Bonn", "Trier"] if positive else ["Bonn", "Mainz"])),
                "" if row % 7 == 0 else f"{random.normal(120 if positive else 80, 10):.2f}",
                f"{random.integers(1950, 1980) if positive else 2000}-05-03",
                str(random.choice(["yes", "no"])),
                f"{random.choice(DAMAGED if positive else INTACT)}, says visitor {row}",
                f"S{row}",
            ]
        )
    return table


def write_table(path: Path, rows: list[list[str]], head: tuple[str, ...] = HEAD) -> Path:
    """Write the rows as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])
    return path
