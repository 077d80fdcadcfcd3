"""A new figure is its mathematics and its registry entry, and is then shown everywhere."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from onesided.cli.show import comparison_table, result_tables
from onesided.geo.output.page_content import map_page
from onesided.geo.output.summary import summarise, write_summary
from onesided.metrics.pu import FORMULAS, Formula, Rates
from onesided.metrics.registry import FIGURES, Entry
from onesided.metrics.words import value_text
from onesided.report.page import render
from onesided.report.runfiles import RunFiles
from onesided.run.compare import kept_of
from onesided.run.folder import read_result
from onesided.run.prior import PriorUsed
from onesided.run.scored import Scored, entries_at, figures_at
from onesided.storage.atomic import write_json
from tests.geo.maps import chips, houses, table

NAME, LABEL = "fowlkes_mallows", "Fowlkes-Mallows index"
PRIOR = PriorUsed(0.3, None, None, "given")


def fowlkes_mallows(rates: Rates) -> np.ndarray:
    """The geometric mean of precision and recall."""
    return np.asarray(rates.recall * np.sqrt(rates.prior / rates.share))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a new figure takes."""
    monkeypatch.setitem(FORMULAS, NAME, Formula(fowlkes_mallows))
    monkeypatch.setitem(FIGURES, NAME, Entry(LABEL, "Precision and recall together: {value}."))


@pytest.fixture
def result(tmp_path: Path) -> dict[str, Any]:
    """The `result.json` of a run, written and read."""
    random = np.random.default_rng(0)
    labelled = np.arange(400) < 100
    scores = np.where(labelled, random.beta(5, 2, 400), random.beta(2, 3, 400))
    scored = Scored(scores, labelled, scores, labelled)
    evaluation = figures_at(scored, 0.5, scenario="single-set", prior=PRIOR)
    about = {"method": "ce", "seed": 0, "seconds": 1.0, "scenario": "single-set"}
    entries = entries_at(scored, 0.5, evaluation, PRIOR)
    content = {**about, "prior": PRIOR.to_json(), **entries}
    write_json(tmp_path / "result.json", content)
    return read_result(tmp_path)


def printed(table: Table) -> str:
    console = Console(width=300, no_color=True)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_it_is_in_result_json(result: dict[str, Any]) -> None:
    stored = json.loads(json.dumps(result))["pu"]["figures"][NAME]
    recall, precision = (result["pu"]["figures"][name]["value"] for name in ("recall", "precision"))
    assert stored["value"] == pytest.approx(np.sqrt(recall * precision))
    assert stored["low"] < stored["value"] < stored["high"]
    assert stored["label"] == LABEL
    assert {"scar", "given"} <= set(stored["assumes"])


def test_it_is_in_the_terminal(result: dict[str, Any]) -> None:
    (table,) = result_tables(result)
    assert LABEL in printed(table)


def test_it_is_in_the_comparison_of_methods(result: dict[str, Any]) -> None:
    rows = [kept_of(result)]
    assert LABEL in printed(comparison_table(rows))
    page = render(RunFiles("run", {"method": "ce"}, comparison=tuple(rows)))
    assert f'<th scope="col">{LABEL}</th>' in page


def test_it_is_in_the_report(result: dict[str, Any]) -> None:
    page = render(RunFiles("run", result))
    assert f"<h3>{LABEL}</h3>" in page
    assert "Precision and recall together: " in page


def test_it_is_on_the_map_and_in_its_summary(tmp_path: Path) -> None:
    drawn = table(houses(40))
    summary = summarise(drawn, prior=PRIOR)
    page = map_page(drawn, chips(40), summary, title="damage")
    assert value_text(summary.figure(NAME)) in dict(page.facts)[LABEL]
    write_summary(summary, tmp_path / "summary.csv")
    assert f"\n{NAME}," in (tmp_path / "summary.csv").read_text()
