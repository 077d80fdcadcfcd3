"""Result files of earlier versions keep their numbers and get the true names."""

from typing import Any

import pytest

from benchmarks import budget, command
from benchmarks.names import read_content, record_today, with_true_names
from benchmarks.tables import what_rows_lack
from onesided.storage.atomic import read_json

RESULTS = command.REPOSITORY / "benchmarks" / "results"
GRIDS = ("ablation", "budget", "demo", "evening", "night", "pretrained", "standard")


@pytest.mark.parametrize("name", GRIDS)
def test_rows_of_the_method_of_ours_are_not_called_ncpu(name: str) -> None:
    raw, shown = read_json(RESULTS / f"{name}.json"), read_content(RESULTS / f"{name}.json")
    assert not [run for run in shown["runs"] if run["method"] == "ncpu"]
    words = [shown["budget"]["words"], *(run["label"] for run in shown["runs"]), *shown["pairs"]]
    assert not [text for text in words if "NcPU" in text or text == "budget"]
    for old, new in zip(raw["runs"], shown["runs"], strict=True):
        for key in old.keys() - {"label", "method", "settings"}:
            assert new[key] == old[key]


def test_rows_of_ncpu_keep_its_name() -> None:
    shown = read_content(RESULTS / "methods.json")
    assert {"NcPU"} == {run["label"] for run in shown["runs"] if run["method"] == "ncpu"}


@pytest.mark.parametrize("word", budget.STUDIES)
def test_measured_rows_are_still_those_of_the_grid(word: str) -> None:
    grid = budget.grid(word)
    entries = {(one.data_name, one.label): one for one in grid.entries}
    runs = [r for r in read_content(RESULTS / f"{grid.name}.json")["runs"] if r["result"]]
    ours = [run for run in runs if run["method"] == "teacher"]
    assert ours
    for run in ours:
        config = entries[run["data"], run["label"]].config(run["seed"])
        assert run["fingerprint"] == config.fingerprint()


def test_settings_are_those_that_differ_from_the_defaults_of_today() -> None:
    old = {"label": "NcPU", "method": "ncpu", "seed": 0}
    switches = {"views": "two", "weighing": "classes", "judge": "target"}
    settings = {"variant": "features", "alignment_weight": 1.0, "entropy_weight": 0.0, **switches}
    assert record_today({**old, "settings": settings}) == {
        "label": "Teacher",
        "method": "teacher",
        "seed": 0,
        "settings": {"variant": "features", "alignment": "robust", "voter": "prototype"},
    }


def test_a_file_of_times_is_left_as_it_is() -> None:
    content = {"rows": [{"preset": "quick"}]}
    assert with_true_names(content) is content


def row(label: str, method: str, **settings: object) -> dict[str, Any]:
    return {"label": label, "method": method, "settings": settings}


def test_a_table_says_what_plain_rows_lack_beside_teacher() -> None:
    rows = [row("Teacher", "teacher"), row("CE", "ce"), row("nnPU", "nnpu", alignment="robust")]
    text = what_rows_lack(rows)
    assert "CE lacks a loss that aligns two views of a sample, an average of weights" in text
    assert "nnPU lacks an average of weights that decides, equal weights of the classes" in text
    assert what_rows_lack(rows[1:]) == ""
