"""A table shows what was published beside what was measured, and what was not run."""

import json
from pathlib import Path
from typing import Any

import pytest

from onesided.bench.results import Record, read_records
from onesided.bench.tables import shown
from onesided.core.errors import OnesidedError


def record(row: str, number: int, oa: float, **changes: Any) -> Record:  # noqa: ANN401
    names = ("f1", "precision", "recall", "auc")
    return {
        "row": row,
        "data": "cifar100",
        "scale": "features",
        "seed": number,
        "status": "finished",
        "degenerate": None,
        "figures": {"oa": oa, **dict.fromkeys(names, 0.5)},
        **changes,
    }


def test_published_and_measured_stand_side_by_side() -> None:
    (part,) = shown("ncpu", "table2", [record("ncpu", 0, 0.8), record("ncpu", 1, 0.9)])
    rows = {row.name: row for row in part.rows}
    assert rows["ncpu"].published["oa"] == "88.28 ± 0.6"
    assert rows["ncpu"].measured["oa"] == "85.00 ± 7.1"
    assert rows["ncpu"].seeds == 2
    assert rows["ncpu-self"].measured["oa"] == "-"
    assert rows["ncpu-self"].status == "not run"
    assert part.words.startswith("reduced (frozen pretrained features")


def test_of_one_seed_there_is_no_deviation() -> None:
    (part,) = shown("ncpu", "table2", [record("ncpu", 0, 0.8)])
    assert part.rows[-1].measured["oa"] == "80.00"


def test_a_data_set_without_cells_is_shown_as_not_run() -> None:
    parts = shown("ncpu", "table1", [])
    assert [part.data for part in parts] == ["cifar10", "cifar100", "stl10", "abcd", "xbd"]
    assert {part.words for part in parts} == {"not run"}


def test_a_row_says_what_it_has_that_others_lack() -> None:
    row = next(row for row in shown("ncpu", "table1", [])[0].rows if row.name == "lagam")
    assert row.remark == "not run. Has negatives that the others lack."


@pytest.mark.parametrize(
    "cells",
    [
        3,
        [3],
        [{"row": "ncpu"}],
        [record("ncpu", 0, 0.5, figures=None)],
        [record("ncpu", 0, 0.5, seed="0")],
    ],
    ids=str,
)
def test_a_damaged_result_file_is_refused_in_one_sentence(cells: object, tmp_path: Path) -> None:
    (tmp_path / "ncpu").mkdir()
    (tmp_path / "ncpu" / "table2.json").write_text(json.dumps({"cells": cells}))
    with pytest.raises(OnesidedError, match="is damaged"):
        read_records(tmp_path, "ncpu", "table2")


def test_failed_and_degenerate_runs_stay_in_the_table() -> None:
    failed = record("ncpu", 1, 0.0, status="failed", failure="No memory.")
    (part,) = shown("ncpu", "table2", [record("ncpu", 0, 0.5, degenerate="All."), failed])
    assert part.rows[-1].status == "failed: No memory. Seed 0 is degenerate."
    assert part.rows[-1].seeds == 1


def test_a_cell_of_an_earlier_version_says_by_which_rules_it_was_measured(tmp_path: Path) -> None:
    cells = [
        record("ncpu", 0, 0.5, method="ncpu", seconds=1, settings={"method": {}}),
        record("ncpu", 1, 0.5, method="ncpu", seconds=1, settings={"method": {}}, then={}),
        record("ce", 0, 0.5, method="ce", seconds=1, settings={}),
    ]
    (tmp_path / "ncpu").mkdir()
    (tmp_path / "ncpu" / "table1.json").write_text(json.dumps({"cells": cells}))
    parts = shown("ncpu", "table1", read_records(tmp_path, "ncpu", "table1"))
    part = next(part for part in parts if part.was_run)
    remarks = {row.name: row.remark for row in part.rows}
    assert remarks["ncpu"] == "Seed 0 was measured with prototype_class = labelled."
    assert remarks["ce"] == ""
