"""The page of a suite shows every table and figure, and opens in a real browser."""

import json
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from onesided.bench.suite import MEASURED, read_suite
from onesided.jobs.bench import run_tables, write_page
from tests.browser import complaints, opened
from tests.cli.command import call


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return results of some tables, and the page of the suite."""
    folder = tmp_path_factory.mktemp("page")
    targets = ["ncpu/table2", "ncpu/table12", "ncpu/figure2", "ncpu/figure4", "ncpu/figure5"]
    rows = ("ncpu", "nnpu", "upu-true", "ncpu-self", "ncpu-alpha-0.9", "supervised")
    found = run_tables([*targets, "ncpu/figure6"], scale="smoke", output=folder, seeds=1, only=rows)
    assert not found.failed
    write_page(folder)
    return folder


def test_the_page_has_a_section_for_every_table_and_figure(output: Path) -> None:
    with opened(output / "ncpu.html") as chrome:
        found = [one.get_attribute("id") for one in chrome.find_elements(By.CSS_SELECTOR, "h2")]
        assert found == ["claims", "origin", *read_suite("ncpu").tables]
        assert complaints(chrome) == []


def test_numbers_and_drawings_of_what_was_run_are_shown(output: Path) -> None:
    with opened(output / "ncpu.html") as chrome:
        for name in ("figure2", "figure4", "figure5", "figure6", "figure10", "gradients"):
            section = chrome.find_element(By.CSS_SELECTOR, f"section[aria-labelledby={name}]")
            assert section.find_elements(By.CSS_SELECTOR, "svg.plot"), name
        costs = chrome.find_element(By.CSS_SELECTOR, "section[aria-labelledby=table12]").text
        assert "GFLOPs" in costs
        assert "toy-images · smoke" in costs
        assert "Not run." in chrome.find_element(By.CSS_SELECTOR, "[aria-labelledby=figure9]").text


def test_a_phone_shows_it_without_scrolling_sideways(output: Path) -> None:
    with opened(output / "ncpu.html", width=390, height=800) as chrome:
        wide = chrome.execute_script("return document.documentElement.scrollWidth")
        assert wide <= 390


def test_the_same_results_give_the_same_page(output: Path) -> None:
    before = (output / "ncpu.html").read_bytes()
    assert write_page(output).read_bytes() == before


def test_a_suite_that_chooses_the_epoch_says_so(tmp_path: Path) -> None:
    outcome = call("bench", "page", "--suite", "pu-bench", "-o", tmp_path)
    assert outcome.exit_code == 0, outcome.err
    page = (tmp_path / "pu-bench.html").read_text(encoding="utf-8")
    assert "Figures are of the epoch that held-out P and U prefer on test data" in page


def test_nothing_run_gives_a_page_that_says_so(tmp_path: Path) -> None:
    outcome = call("bench", "page", "-o", tmp_path, "--claims", tmp_path / "claims.md")
    assert outcome.exit_code == 0, outcome.err
    assert "Nothing was run yet" in (tmp_path / "ncpu.html").read_text(encoding="utf-8")
    claims = (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert claims.count("\nNot run.\n") == len(read_suite("ncpu").claims)


def test_text_of_a_result_file_cannot_become_a_part_of_the_page(tmp_path: Path) -> None:
    cell = {"row": "ncpu", "data": "cifar100", "scale": "paper", "seed": 0, "status": "failed"}
    (tmp_path / "ncpu").mkdir()
    content = {"cells": [{**cell, "failure": "<script>alert(1)</script>"}]}
    (tmp_path / "ncpu" / "table2.json").write_text(json.dumps(content))
    page = write_page(tmp_path).read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_the_schedule_shows_each_inequality_at_every_length(tmp_path: Path) -> None:
    known = {"data": "digits", "seed": 0, "status": "finished", "seconds": 1.0, "degenerate": None}
    names = ("f1", "precision", "recall", "auc")
    content = [
        {**known, "row": row, "scale": scale, "figures": {"oa": oa, **dict.fromkeys(names, 0.5)}}
        for scale, oa in (("small", 0.9), ("small-30", 0.5))
        for row, oa in (("ncpu", oa), ("ce", 0.6))
    ]
    (tmp_path / "ncpu").mkdir()
    (tmp_path / "ncpu" / "schedule.json").write_text(json.dumps({"cells": content}))
    with opened(write_page(tmp_path)) as chrome:
        section = chrome.find_element(By.CSS_SELECTOR, "section[aria-labelledby=schedule]")
        rows = [
            row.text for row in section.find_elements(By.CSS_SELECTOR, "table:first-of-type tr")
        ]
    assert rows[0] == "inequality small small-400 small-100 small-30"
    (line,) = [row for row in rows if row.startswith("ncpu.oa > ce.oa")]
    assert line.split("\n")[0].split(" ", 3)[3].startswith("held")
    assert "50.0 and 60.0, 0 of 1 seeds" in line
    assert line.count("not run") == 2


def test_show_prints_published_and_measured(output: Path) -> None:
    shown = call("bench", "show", "ncpu/table2", "-o", output, "--json")
    assert shown.exit_code == 0
    (part, *_) = json.loads(shown.out)[0]["parts"]
    assert part["rows"][-1]["published"]["oa"] == "88.28 ± 0.6"
    assert call("bench", "show", "ncpu/table2", "-o", output).exit_code == 0


def test_every_measured_section_has_its_command_and_what_was_run_its_hours(output: Path) -> None:
    with opened(output / "ncpu.html") as chrome:
        for name, table in read_suite("ncpu").tables.items():
            section = chrome.find_element(By.CSS_SELECTOR, f"section[aria-labelledby={name}]")
            shown = [one.text for one in section.find_elements(By.CSS_SELECTOR, ".command")]
            measured = table.kind in (*MEASURED, "data", "examples")
            assert bool(shown) == measured, name
            assert all(f"onesided bench run ncpu/{name} " in one for one in shown)
        costs = chrome.find_element(By.CSS_SELECTOR, "[aria-labelledby=table12] .command").text
        assert "--scale smoke cells: " in costs
        assert "hours: 0.0" in costs


def test_what_was_not_run_has_published_numbers_alone(tmp_path: Path) -> None:
    with opened(write_page(tmp_path)) as chrome:
        section = chrome.find_element(By.CSS_SELECTOR, "section[aria-labelledby=table2]")
        heads = [one.text for one in section.find_elements(By.CSS_SELECTOR, "thead th")]
        assert "measured" not in heads
        assert heads.count("published") == len(read_suite("ncpu").tables["table2"].figures)
        assert "not run" in section.text
