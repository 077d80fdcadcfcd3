"""What an audit found, on the page of the run that it was drawn from."""

import html
import json
from pathlib import Path
from typing import Any

import pytest

from onesided.metrics.audit_words import pool_hash
from onesided.report.page import is_fresh, write_report
from onesided.run.evaluate import read_scores
from tests.report.fake_run import HOSTILE, change_json, write_fake_run, write_json

SENTENCE = "P is not typical of all positives: 95% of P score above 0.5, and 40% of all do."


def figure(value: float, low: float, high: float) -> dict[str, float]:
    return {"value": value, "low": low, "high": high, "worst": value, "best": value}


def content(run: Path, **changed: object) -> dict[str, Any]:
    scores = read_scores(run / "scores.csv")
    threshold = json.loads((run / "result.json").read_text())["threshold"]
    figures = {
        "precision": figure(0.81, 0.7, 0.9), "recall": figure(0.4, 0.3, 0.6),
        "f1": figure(0.5, 0.4, 0.7), "positives": figure(700, 500, 1200),
        "left": figure(420, 300, 800),
    }  # fmt: skip
    return {
        "draw": {"pool": pool_hash(scores, scores.values())},
        "pool": len(scores),
        "answers": {"counted": 200, "positive": 90, "unsure": 3, "passed_over": 1},
        "at_threshold": {"threshold": threshold, "called": 512, "figures": figures},
        "claimed": {
            "recall": {"value": 0.917, "low": 0.88, "high": 0.95, "assumes": ["scar"]},
            "precision": {"value": None, "low": 0.2, "high": 0.9, "assumes": ["scar"]},
            "prior": {"value": 0.1, "low": 0.08, "high": 0.12, "assumes": ["scar"]},
        },
        "stopping": "With 95 % confidence at most 788 positives are left below the threshold.",
        "typical": {"rejected": True, "explained": SENTENCE},
        **changed,
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_fake_run(tmp_path / "run")


def page_of(run: Path) -> str:
    return html.unescape(write_report(run).read_text(encoding="utf-8"))


def test_the_figures_stand_beside_the_claims(run: Path) -> None:
    write_json(run / "audit.json", content(run))
    page = page_of(run)
    assert '<h2 id="audit">What an audit says</h2>' in page
    assert "at most 788 positives are left" in page
    assert "From 200 random items of a pool of 6,000" in page
    row = "<td>40.0%</td><td>30.0% to 60.0%</td><td>91.7% (88.0% to 95.0%)</td>"
    assert row in page
    assert "<td>70.0% to 90.0%</td><td>cannot be told (20.0% to 90.0%)</td>" in page
    assert "<td>500 to 1,200</td><td>10.0% (8.0% to 12.0%) of the pool</td>" in page
    assert "<td>420</td><td>300 to 800</td><td>-</td>" in page
    assert "Unsure answers: 3 (1 passed over)." in page


def test_the_first_sentence_is_that_of_the_audit_at_the_run_s_threshold(run: Path) -> None:
    write_json(run / "audit.json", content(run))
    sentence = (
        "By an audit of 200 random items, 70.0% to 90.0% of the items called positive are "
        "positive, and these are 30.0% to 60.0% of all positives of the pool."
    )
    page = page_of(run)
    assert f'<p class="lede">{sentence}</p>' in page
    assert "Want narrower intervals" in page
    change_json(run / "result.json", lambda result: result.update(threshold=0.25))
    page = page_of(run)
    assert sentence not in page
    assert "Want narrower intervals" not in page


def test_a_p_that_is_not_typical_is_told_at_the_top_and_in_its_section(run: Path) -> None:
    write_json(run / "audit.json", content(run))
    page = page_of(run)
    assert page.count(SENTENCE) == 2
    assert page.index(SENTENCE) < page.index("<main>")
    assert page.rindex(SENTENCE) > page.index("Is P typical?</h2>")
    typical = {"rejected": False, "explained": "The audit does not show it."}
    write_json(run / "audit.json", content(run, typical=typical))
    page = page_of(run)
    assert page.count("The audit does not show it.") == 1
    assert page.index("The audit does not show it.") > page.index("Is P typical?</h2>")


def test_an_audit_of_another_ranking_is_left_out_and_the_page_says_so(run: Path) -> None:
    write_json(run / "audit.json", content(run, draw={"pool": "another"}))
    page = page_of(run)
    assert "audit.json was estimated from another ranking" in page
    assert "What an audit says" not in page
    assert SENTENCE not in page


def test_a_threshold_that_moved_since_is_told(run: Path) -> None:
    write_json(run / "audit.json", content(run))
    assert "The threshold was" not in page_of(run)
    change_json(run / "result.json", lambda result: result.update(threshold=0.25))
    assert "The threshold was 0.5 then and is 0.25 now." in page_of(run)


def test_a_new_audit_makes_the_page_stale(run: Path) -> None:
    write_report(run)
    assert is_fresh(run)
    write_json(run / "audit.json", content(run))
    assert not is_fresh(run)


@pytest.mark.parametrize(
    "changed",
    [
        {"typical": {"rejected": True, "explained": HOSTILE}, "stopping": HOSTILE},
        {"answers": 5, "at_threshold": [], "claimed": None, "typical": "x", "stopping": None},
        {"at_threshold": {"figures": {"recall": {"value": "a", "low": 0.1}}}, "pool": "many"},
    ],
)
def test_a_changed_file_costs_no_page_and_runs_nothing(run: Path, changed: dict[str, Any]) -> None:
    write_json(run / "audit.json", content(run, **changed))
    page = write_report(run).read_text(encoding="utf-8")
    assert "What an audit says" in page
    assert "<script>alert" not in page
