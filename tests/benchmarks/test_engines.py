"""How ways to rank are compared: memory, crops, and the page."""

import os
from mmap import mmap
from pathlib import Path

import numpy as np
import pytest

from benchmarks.engines import FILE, INT8, RAY, TORCH, compare, link, memory_below, memory_of, page


def ranked(folder: Path, way: str, *scores: float) -> dict[str, object]:
    rows = "".join(f"i{number},{score}\n" for number, score in enumerate(scores))
    (folder / f"{way}.csv").write_text("item,score\n" + rows)
    return {"way": way}


def test_the_memory_of_a_process_grows_by_what_it_takes() -> None:
    before, _ = memory_of(os.getpid())
    taken = np.frombuffer(mmap(-1, 2**26), np.uint8)  # 64 MB, of which nothing was freed before
    taken[:] = 1
    after, _ = memory_of(os.getpid())
    assert 60 < after - before < 70
    assert memory_below(os.getpid()) >= after - 1
    assert taken[0] == 1


def test_all_ways_but_int8_must_give_the_same_scores(tmp_path: Path) -> None:
    rows = [ranked(tmp_path, TORCH, 0.1, 0.9), ranked(tmp_path, INT8, 0.2, 0.9)]
    rows += [ranked(tmp_path, FILE, 0.10001, 0.9), {"way": RAY, "not_run": "no"}]
    compare(tmp_path, rows)
    assert [row.get("difference") for row in rows] == pytest.approx([0, 0.1, 1e-5, None])
    with pytest.raises(SystemExit, match="scores differ by"):
        compare(tmp_path, [ranked(tmp_path, FILE, 0.2, 0.9)])


def test_crops_are_drawn_from_both_classes_and_too_few_are_told(tmp_path: Path) -> None:
    for kind in ("damage", "no_damage"):
        (tmp_path / "crops" / kind).mkdir(parents=True)
        for number in range(9):
            (tmp_path / "crops" / kind / f"{number}.jpeg").touch()
    link(tmp_path / "items", tmp_path / "crops", 10, 0.3)
    kinds = [path.name.rpartition("-")[0] for path in (tmp_path / "items").iterdir()]
    assert (kinds.count("damage"), kinds.count("no_damage")) == (3, 7)
    with pytest.raises(SystemExit, match="holds 9 crops; 14 are needed"):
        link(tmp_path / "more", tmp_path / "crops", 20, 0.3)


def test_the_page_says_what_was_not_run_and_what_was_not_committed() -> None:
    row = {"scene": "drawn roofs", "images": 10, "seconds": 2, "peak_mb": 3, "difference": 0}
    content = {
        "origin": {"machine": {"cores": 2, "cpu": "x"}, "dirty": False},
        "rows": [
            {**row, "way": TORCH, "cpu_seconds": 4.0},
            {**row, "way": FILE, "cpu_seconds": 2.0},
            {"scene": "drawn roofs", "images": 10, "way": RAY, "not_run": "Ray was not installed"},
        ],
    }
    text = page(content)
    assert "| exported file | 2 | 2 | 2.0 | 3 | 0 |" in text
    assert "not run: Ray was not installed" in text
    assert "not committed" not in text
    assert "not committed" in page({**content, "origin": {**content["origin"], "dirty": True}})  # type: ignore[dict-item]
