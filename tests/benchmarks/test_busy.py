"""Training beside other work: the page says what the file holds, and other work ends."""

import subprocess
from typing import Any

import pytest

from benchmarks.busy import BEFORE, NOW, PAGE, RESULT, WAYS, other_work, page, ratios
from onesided.storage.atomic import read_json


def run(way: str, seconds: float, cpu_seconds: float, network: str = "quick") -> dict[str, Any]:
    cost = {"seconds": seconds, "cpu_seconds": cpu_seconds}
    return {"network": network, "way": way, "threads": 1, **cost, "load": 0.5}


def test_shares_are_of_the_first_way_of_the_same_network() -> None:
    runs = [run(BEFORE, 100, 200), run(NOW, 25, 20), run(BEFORE, 7, 7, "wide")]
    assert ratios(runs, runs[0]) == (1, 1)
    assert ratios(runs, runs[1]) == (0.25, 0.1)
    assert ratios(runs, runs[2]) == (1, 1)


def test_the_page_is_that_of_the_result_file() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read_json(RESULT))


def test_every_row_has_every_way_and_the_load_before() -> None:
    for row in read_json(RESULT)["rows"]:
        assert {one["way"] for one in row["runs"]} == set(WAYS)
        assert all(one["load"] >= 0 for one in row["runs"])


def test_other_work_ends_with_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def noted(command: list[str]) -> subprocess.Popen[bytes]:
        started.append(start(command))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    with other_work(1):
        assert started[0].poll() is None
    assert started[0].poll() is not None
