"""Tables show the collected file: means, spreads, differences, and what went wrong."""

import statistics
from typing import Any

import numpy as np
import pytest

from benchmarks.command import paper_figures
from benchmarks.tables import page, spread, tables
from tests.benchmarks.fakes import fake_content, fake_origin, fake_record, figures


def row(text: str, label: str) -> list[str]:
    """Return the cells of the first table row with this label."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {label} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


FAILED: dict[str, Any] = {"status": "failed", "result": None, "seconds": None}
MISSING: dict[str, Any] = {**FAILED, "status": "missing", "origins": []}


def test_figures_are_mean_and_standard_deviation_in_percent() -> None:
    values = [0.5, 0.61, 0.7]
    runs = [fake_record("uPU", seed, figures(value)) for seed, value in enumerate(values)]
    cells = row(tables(fake_content(*runs), {}), "uPU")
    expected = f"{100 * np.mean(values):.1f} ± {100 * np.std(values, ddof=1):.1f}"
    assert cells[1:8] == ["true prior", "3", *[expected] * 4, "50.0 ± 0.0"]


@pytest.mark.parametrize("name", ["held_out", "validation"], ids=["today", "earlier files"])
def test_a_row_says_that_its_method_was_given_held_out_data(name: str) -> None:
    run = fake_record("vPU", 0, figures(0.6)) | {"needs": [name]}
    assert row(tables(fake_content(run), {}), "vPU")[1] == "held-out P and U"


def test_a_single_run_has_no_spread() -> None:
    assert spread([41.234], ".1f") == "41.2"


@pytest.mark.parametrize("values", [[1.0, 2.0], [-3.0, 0.5, 9.0]])
def test_differences_carry_their_sign_and_spreads_do_not(values: list[float]) -> None:
    mean, deviation = spread(values, "+.1f").split(" ± ")
    assert mean == f"{statistics.fmean(values):+.1f}"
    assert deviation == f"{statistics.stdev(values):.1f}"


def test_an_undefined_figure_is_left_out_and_not_counted_as_zero() -> None:
    runs = [fake_record("uPU", 0, figures(0.5, auc=None)), fake_record("uPU", 1, figures(0.5))]
    assert row(tables(fake_content(*runs), {}), "uPU")[7] == "50.0"
    assert row(tables(fake_content(runs[0]), {}), "uPU")[7] == "-"


def test_degenerate_runs_count_in_the_mean_and_are_marked() -> None:
    result = {**fake_record("uPU", 1, figures(0.4))["result"]}
    result["pu"] = {"degenerate": "It calls everything positive.", "figures": {}}
    runs = [
        fake_record("uPU", 0, figures(0.6)),
        fake_record("uPU", 1, figures(0.4)) | {"result": result},
    ]
    text = tables(fake_content(*runs), {})
    cells = row(text, "uPU")
    assert cells[2:4] == ["2", "50.0 ± 14.1"]
    assert cells[-1] == "1 of 2 degenerate"
    assert "- digits, uPU, seed 1: **degenerate**. It calls everything positive." in text


def test_failed_and_missing_runs_are_named_with_the_reason() -> None:
    runs = [
        fake_record("uPU", 0, figures(0.6)),
        fake_record("uPU", 1, None) | FAILED | {"failure": "No\nnumber."},
        fake_record("uPU", 2, None) | MISSING,
    ]
    text = tables(fake_content(*runs), {})
    assert row(text, "uPU")[2] == "1"
    assert row(text, "uPU")[-1] == "1 of 3 failed, 1 of 3 not run"
    assert "- digits, uPU, seed 1: **failed**. No number." in text
    assert "- digits, uPU, seed 2: **not run**." in text


def test_a_row_without_a_finished_run_has_no_figures() -> None:
    lost = fake_record("uPU", 0, None) | FAILED | {"failure": "Lost."}
    assert row(tables(fake_content(lost), {}), "uPU")[2:9] == ["0", *["-"] * 6]


def test_when_nothing_went_wrong_the_page_says_so() -> None:
    text = tables(fake_content(fake_record("uPU", 0, figures(0.6))), {})
    assert "Nothing: every run finished, and none is degenerate." in text


def test_differences_are_taken_seed_by_seed() -> None:
    runs = [
        *(fake_record("uPU", seed, figures(v)) for seed, v in enumerate([0.5, 0.6, 0.7])),
        *(fake_record("uPU + robust", s, figures(v)) for s, v in ((1, 0.7), (2, 0.6))),
    ]
    text = tables(fake_content(*runs, pairs=[["uPU", "uPU + robust"]]), {})
    cells = row(text, "uPU + robust against uPU")
    assert cells[1:] == ["2", *["+0.0 ± 14.1 (1 of 2)"] * 2, "+0.0 ± 0.0 (0 of 2)"]


def test_seconds_are_a_range_and_say_on_how_many_threads() -> None:
    slow = {**fake_record("uPU", 1, figures(0.6)), "seconds": 25.4}
    slow["origins"] = [{**fake_origin(), "threads": 1}]
    text = tables(fake_content(fake_record("uPU", 0, figures(0.6)), slow), {})
    assert row(text, "uPU")[8:10] == ["10 to 25", "1 or 2"]
    alone = tables(fake_content(fake_record("uPU", 0, figures(0.6))), {})
    assert row(alone, "uPU")[8:10] == ["10", "2"]


def test_the_page_says_which_samples_its_figures_are_of() -> None:
    content = fake_content(fake_record("uPU", 0, figures(0.6)))
    assert "the last epoch on the test set" in tables(content, {})
    assert "on training samples outside P and U" in tables({**content, "judged_on": "clean"}, {})


def test_published_figures_stand_beside_ours_with_both_budgets_named() -> None:
    paper = {**paper_figures("methods"), "figures": {"digits": {"uPU": {"oa": [65.52, 0.2]}}}}
    text = tables(fake_content(fake_record("uPU", 0, figures(0.6))), paper)
    assert row(text, "uPU")[10:12] == ["65.52 ± 0.2", "-"]
    assert "1300 epochs on 41000 images" in text
    assert "60 epochs on 840 images" in text
    assert "**Its budget differs**" in text


def test_without_published_figures_there_is_no_such_column() -> None:
    text = tables(fake_content(fake_record("uPU", 0, figures(0.6))), paper_figures("methods"))
    assert "paper OA" not in text
    assert "budget differs" not in text


def test_runs_of_several_commits_and_machines_are_counted_apart() -> None:
    other = fake_origin() | {
        "commit": "b" * 40,
        "dirty": True,
        "cpu": "Another processor",
        "load": 3.5,
    }
    runs = [
        fake_record("uPU", 0, figures(0.6)),
        fake_record("uPU", 1, figures(0.6)),
        fake_record("uPU", 2, figures(0.6)) | {"origins": [other]},
    ]
    text = tables(fake_content(*runs), {})
    commits = f"{'a' * 12} (2 runs); {'b' * 12} with uncommitted changes (1 run)"
    assert f"- Commit: {commits}." in text
    assert "Another processor, 2 cores, 2 threads (1 run)" in text
    assert "up to 3.5" in text


def test_a_run_outside_a_checkout_has_an_unknown_commit() -> None:
    nowhere = fake_origin() | {"commit": None, "dirty": None}
    run = fake_record("uPU", 0, figures(0.6)) | {"origins": [nowhere]}
    text = tables(fake_content(run), {})
    assert "- Commit: unknown (no git checkout)." in text


def test_the_page_says_which_file_and_command_made_it() -> None:
    content = fake_content(fake_record("uPU", 0, figures(0.6)))
    text = page(content, {}, source="benchmarks/results/toy.json", command="make it")
    assert text.startswith("<!-- Generated by `make it` from benchmarks/results/toy.json;")
    assert "\n# A toy\n" in text


def test_settings_that_differ_are_listed_by_row() -> None:
    run = fake_record("uPU", 0, figures(0.6)) | {"settings": {"alignment": "robust"}}
    assert "| digits | uPU | upu | alignment = robust |" in tables(fake_content(run), {})
