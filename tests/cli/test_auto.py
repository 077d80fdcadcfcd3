"""`onesided fit` without a method: the leaderboard in terminal, files, JSON and report."""

import json
from pathlib import Path
from typing import Any

import pytest

from onesided.core.config import read_toml
from tests.cli.command import Outcome, assert_refused, call, contents, unlisted
from tests.run.mixed_tables import mixed_rows, write_table

WORDS = (
    *("--set", 'method.candidates=["linear", "forest"]', "--set", "method.folds=3"),
    *("--set", "train.epochs=2", "--set", "train.device=cpu"),
)


def fit(folder: Path, *words: object) -> Outcome:
    table = folder / "houses.csv"
    given = ("--table", table, "-o", folder / "run", *WORDS, "--budget", "90s")
    return call("fit", *given, "--compare", "ce", "--quiet", "--allow-degenerate", *words)


def result_of(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run / "result.json").read_text())
    return content


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    folder = tmp_path_factory.mktemp("auto")
    write_table(folder / "houses.csv", mixed_rows(90))
    outcome = fit(folder)
    assert outcome.exit_code == 0, outcome.err
    return folder, outcome


def test_the_terminal_shows_what_was_tried_and_what_was_kept(told: tuple[Path, Outcome]) -> None:
    folder, outcome = told
    words = " ".join(outcome.out.split())
    assert "What auto tried, on the same folds" in words
    assert outcome.out.count("(kept)") == 1
    assert "a forest" in words
    assert "models were tried, each on items that it was not trained on" in words
    (won,) = [row for row in result_of(folder / "run")["leaderboard"] if row["won"]]
    assert f"{won['proxy_auc']:.1%}" in outcome.out


def test_the_end_of_a_run_says_what_to_look_at_and_what_to_do_next(
    told: tuple[Path, Outcome],
) -> None:
    folder, outcome = told
    run = folder / "run"
    rows = (run / "scores.csv").read_text().splitlines()[1:]
    last = " ".join(outcome.out.split()).partition("Report: ")[2]
    assert str(run / "scores.csv") in last
    assert f"of {len(rows)} called positive" in last
    for row in rows[:3]:
        assert row.split(",")[0] in last
    threshold = result_of(run)["threshold"]
    nearest = min(rows, key=lambda row: abs(float(row.split(",")[1]) - threshold))
    assert nearest.split(",")[0] in last.partition("least sure")[2]
    assert f"onesided rank {run} FILE" in last
    assert f"onesided evaluate {run} --threshold" in last


def test_the_terminal_shows_three_figures_and_evaluate_the_others(
    told: tuple[Path, Outcome],
) -> None:
    folder, outcome = told
    for words, shown in ((outcome.out, False), (call("evaluate", folder / "run").out, True)):
        assert ("Lee-Liu criterion" in words) is shown
        assert "Recall" in words
        assert "Precision" in words


def test_the_time_of_a_run_is_the_whole_and_holds_that_of_the_search(
    told: tuple[Path, Outcome],
) -> None:
    folder, outcome = told
    result = result_of(folder / "run")
    assert 0 < result["search_seconds"] < result["seconds"]
    assert "Training took" in " ".join(outcome.out.split())


def test_a_table_report_lists_its_items(told: tuple[Path, Outcome]) -> None:
    run = told[0] / "run"
    first = (run / "scores.csv").read_text().splitlines()[1].split(",")[0]
    page = (run / "report.html").read_text()
    assert first in page.partition('id="items-top"')[2].partition('id="items-threshold"')[0]


def test_a_method_to_compare_is_a_candidate_on_the_same_folds(told: tuple[Path, Outcome]) -> None:
    folder, _ = told
    rows = {row["method"]: row for row in result_of(folder / "run")["leaderboard"]}
    assert rows["ce"]["folds"] == 3, "it was asked for, so it is tried on every fold"
    assert not (folder / "run" / "compare").exists()
    assert not (folder / "run" / "compare.json").exists()
    assert read_toml(folder / "run" / "config.toml")["method"]["also"] == ["ce"]


def test_a_budget_is_kept_as_minutes(told: tuple[Path, Outcome]) -> None:
    folder, _ = told
    method = read_toml(folder / "run" / "config.toml")["method"]
    assert (method["name"], method["minutes"]) == ("auto", 1.5)


def test_the_same_command_tells_the_same_as_json_and_changes_nothing(
    told: tuple[Path, Outcome],
) -> None:
    folder, _ = told
    before = contents(folder)
    said = json.loads(fit(folder, "--json").out)
    assert contents(folder) == before
    assert said == result_of(folder / "run")
    assert said["leaderboard"]
    assert said["chosen_by"] == "auto"


def test_the_report_shows_the_leaderboard(told: tuple[Path, Outcome]) -> None:
    folder, _ = told
    page = (folder / "run" / "report.html").read_text()
    assert page.count("(kept)") == 1
    assert "models were tried" in page


def test_every_unlabelled_item_is_in_the_ranked_list(told: tuple[Path, Outcome]) -> None:
    folder, _ = told
    lines = (folder / "run" / "scores.csv").read_text().splitlines()
    assert len(lines) == 1 + sum(row[0] == "unlabelled" for row in mixed_rows(90))


@pytest.mark.slow
def test_the_settings_of_the_run_repeat_it_to_the_byte(
    told: tuple[Path, Outcome], tmp_path: Path
) -> None:
    folder, _ = told
    again = tmp_path / "again"
    config = folder / "run" / "config.toml"
    outcome = call("fit", "--config", config, "-o", again, "--quiet", "--allow-degenerate")
    assert outcome.exit_code == 0, outcome.err
    for name in ("model.safetensors", "scores.csv", "split.csv"):
        assert (again / name).read_bytes() == (folder / "run" / name).read_bytes(), name


def test_another_threshold_keeps_the_optimism_and_the_leaderboard(
    told: tuple[Path, Outcome],
) -> None:
    run = told[0] / "run"
    before = result_of(run)
    assert call("evaluate", run, "--threshold", "0.6", "--quiet").exit_code == 0
    after = result_of(run)
    assert after["threshold"] == 0.6
    assert after["leaderboard"] == before["leaderboard"]
    auc = [each["pu"]["figures"]["proxy_auc"] for each in (before, after)]
    assert auc[0] == auc[1]


@pytest.mark.parametrize(
    "damage", [{"won": "yes"}, {"folds": "all"}, {"proxy_auc": None}, {"words": 7}]
)
def test_a_damaged_leaderboard_is_refused_in_a_sentence(
    told: tuple[Path, Outcome], damage: dict[str, object]
) -> None:
    file = unlisted(told[0] / "run") / "result.json"
    sound = file.read_bytes()
    content = json.loads(sound)
    content["leaderboard"][0].update(damage)
    file.write_text(json.dumps(content))
    try:
        assert_refused(fit(told[0]), "leaderboard.0", "changed or damaged")
    finally:
        file.write_bytes(sound)


def test_bad_budgets_and_candidates_are_refused_before_anything_is_written(
    told: tuple[Path, Outcome], tmp_path: Path
) -> None:
    given = ("fit", "--table", told[0] / "houses.csv", "-o", tmp_path / "run")
    assert_refused(call(*given, "--budget", "soon"), "expected a time")
    assert_refused(call(*given, "--budget", "2min", "--method", "nnpu"), "time of auto")
    assert_refused(call(*given, "--compare", "lagam"), "lagam needs more than P and U")
    assert_refused(call(*given, "--compare", "auto"), "Leave it out")
    assert_refused(call(*given, "--set", 'method.candidates=["spam"]'), "no method 'spam'")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_published_set_keeps_its_held_out_part_and_its_test(tmp_path: Path) -> None:
    outcome = call(
        *("fit", "--data", "toy-vectors", "-o", tmp_path / "run", "--quiet", "--allow-degenerate"),
        *("--set", 'method.candidates=["linear"]', "--set", "data.held_out_positives=20"),
        *("--set", "data.held_out_unlabelled=40", "--json"),
    )
    assert outcome.exit_code == 0, outcome.err
    result = json.loads(outcome.out)
    assert result["test"]["auc"] > 0.7
    roles = (tmp_path / "run" / "split.csv").read_text()
    assert roles.count("held-out-positive") == 20
    assert result["folds"] == 5
