import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import onesided
from onesided.cli import app
from onesided.core.errors import DataError, DataNotFound, OnesidedError
from onesided.core.monitor import Monitor
from onesided.jobs.audit import audit_draw, audit_estimate
from onesided.storage.together import settle
from tests.storage.power_loss import crash_states, laid_out, recorded

RESULT = {
    **{"method": "ce", "seed": 0, "scenario": "single-set", "threshold": 0.5},
    **{"test": None, "pu": None, "warnings": []},
}
ITEMS = 300


class Heard(Monitor):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, sentence: str) -> None:
        self.said.append(sentence)

    def warn(self, sentence: str) -> None:
        self.said.append(sentence)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    scores = np.sort(np.random.default_rng(0).beta(0.5, 1, ITEMS))[::-1]
    lines = [f"U/{number:03}.png,{score:.9g}" for number, score in enumerate(scores)]
    (tmp_path / "scores.csv").write_text("\n".join(["item,score", *lines, ""]))
    (tmp_path / "result.json").write_text(json.dumps(RESULT))
    return tmp_path


def rows_of(run: Path) -> list[dict[str, str]]:
    with (run / "audit.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def fill(run: Path, count: int) -> list[dict[str, str]]:
    """Answer the first lines: the first sixty items of the ranking are positive."""
    rows = rows_of(run)
    for row in rows[:count]:
        row["answer"] = "positive" if row["item"] < "U/060.png" else "negative"
    write(run / "audit.csv", rows)
    return rows


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_figures_of_a_filled_in_sheet_hold_the_truth_and_are_written(run: Path) -> None:
    audit_draw(run, size=100)
    fill(run, 80)
    found = audit_estimate(run, thresholds=())
    positives = found["at_threshold"]["figures"]["positives"]
    assert positives["low"] <= 60 <= positives["high"]
    assert found["answers"]["counted"] == 80
    assert found["stopping"].startswith("With 95 % confidence at most ")
    assert json.loads((run / "audit.json").read_text()) == found


def test_a_larger_draw_keeps_the_answers_and_their_order(run: Path) -> None:
    audit_draw(run, size=40)
    before = fill(run, 30)
    audit_draw(run, size=90)
    after = rows_of(run)
    assert after[:40] == before
    assert len(after) == 90


def test_answers_are_not_lost_to_another_draw(run: Path) -> None:
    audit_draw(run, size=40)
    before = fill(run, 5)
    for change in ({"seed": 1}, {"target": "left"}, {"size": 20}):
        with pytest.raises(DataError, match="holds answers of another draw"):
            audit_draw(run, **{"size": 40, **change})  # type: ignore[arg-type]
    assert rows_of(run) == before


def test_answers_are_not_lost_where_the_draw_is(run: Path) -> None:
    audit_draw(run, size=40)
    before = fill(run, 5)
    (run / "audit_draw.json").unlink()
    with pytest.raises(DataError, match=r"holds 5 answers, but audit_draw\.json, .* is missing"):
        audit_draw(run, size=40)
    assert rows_of(run) == before


def test_sheet_and_draw_change_together_in_every_state_that_a_power_cut_leaves(run: Path) -> None:
    audit_draw(run, size=40)
    fill(run, 30)
    with recorded(run) as recorder:
        audit_draw(run, size=90)
    sizes = set()
    for state in crash_states(recorder):
        cut = laid_out(state, run.with_name("cut"))
        settle(cut)
        drawn = json.loads((cut / "audit_draw.json").read_text())["size"]
        assert len(rows_of(cut)) == drawn
        assert sum(bool(row["answer"]) for row in rows_of(cut)) == 30
        sizes.add(drawn)
    assert sizes == {40, 90}


def test_a_blind_sheet_shows_no_scores(run: Path) -> None:
    audit_draw(run, size=10, blind=True)
    assert set(rows_of(run)[0]) == {"item", "answer", "reviewer", "time"}


def test_the_last_answer_counts_and_contradictions_are_told(run: Path) -> None:
    audit_draw(run, size=4)
    items = [row["item"] for row in rows_of(run)]
    lines = [
        *((items[0], "positive", "ann", "2026-01-01T10:00:00"),),
        *((items[0], "negative", "ann", "2026-01-01T09:00:00"),),  # earlier, though below
        *((items[1], "positive", "ann", ""), (items[1], "negative", "bob", "")),
        *((items[2], "unsure", "ann", ""), (items[2], "negative", "bob", "")),
        *((items[3], "skip", "ann", ""), ("U/299.png", "negative", "ann", "")),
    ]
    keys = ("item", "answer", "reviewer", "time")
    file = write(run / "all.csv", [dict(zip(keys, line, strict=True)) for line in lines])
    heard = Heard()
    counts = audit_estimate(run, answers=file, thresholds=(), monitor=heard)["answers"]
    assert (counts["positive"], counts["negative"], counts["unsure"]) == (1, 1, 2)
    assert any(f"on 1 item, such as '{items[1]}'" in said for said in heard.said)
    assert ("U/299.png" in items) or any("did not draw" in said for said in heard.said)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("U/nowhere.png,positive", "names 'U/nowhere.png', which is not in"),
        ("NOT_DRAWN,positive", "which was not drawn"),
        ("DRAWN,perhaps", "the answer 'perhaps' is none of positive, negative, unsure, skip"),
        ("DRAWN,positive,ann,yesterday", "the time 'yesterday' is not as in"),
        (",positive", "expected the name of an item"),
    ],
)
def test_a_sheet_changed_by_hand_gets_one_sentence(run: Path, line: str, sentence: str) -> None:
    audit_draw(run, size=20)
    rows = fill(run, 10)
    drawn = {row["item"] for row in rows}
    other = next(name for name in (f"U/{n:03}.png" for n in range(ITEMS)) if name not in drawn)
    line = line.replace("NOT_DRAWN", other).replace("DRAWN", rows[0]["item"])
    with (run / "audit.csv").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match=r"audit\.csv") as caught:
        audit_estimate(run)
    assert sentence in str(caught.value)


def test_removed_lines_other_scores_and_a_changed_draw_are_refused(run: Path) -> None:
    with pytest.raises(DataNotFound, match="Draw first"):
        audit_estimate(run)
    audit_draw(run, size=20)
    with pytest.raises(DataError, match="holds no answer"):
        audit_estimate(run)
    rows = fill(run, 10)
    write(run / "audit.csv", rows[1:])
    with pytest.raises(DataError, match="lacks 1 of the drawn items"):
        audit_estimate(run)
    audit_draw(run, size=20)  # the remedy: the other answers are kept
    assert sum(bool(row["answer"]) for row in rows_of(run)) == 9
    scores = (run / "scores.csv").read_text()
    (run / "scores.csv").write_text(scores.replace("U/299.png", "U/300.png"))
    with pytest.raises(DataError, match="changed since the audit was drawn"):
        audit_estimate(run)
    (run / "scores.csv").write_text(scores)
    draw = json.loads((run / "audit_draw.json").read_text())
    for wrong in ({"size": "20"}, {"target": "auc"}, {"more": 1}, {"size": -3}):
        (run / "audit_draw.json").write_text(json.dumps({**draw, **wrong}))
        with pytest.raises(DataError, match="changed or damaged"):
            audit_estimate(run)


def test_the_command_draws_and_estimates(run: Path) -> None:
    command = CliRunner()
    drawn = command.invoke(app, ["audit", str(run), "draw", "--size", "60", "--for", "left"])
    assert drawn.exit_code == 0, drawn.output
    fill(run, 60)
    found = command.invoke(app, ["audit", str(run), "estimate"])
    assert found.exit_code == 0, found.output
    assert "From 60 random items of a pool of 300" in found.output
    assert "positives are left below the threshold" in found.output
    wrong = command.invoke(app, ["audit", str(run / "none"), "draw"])
    assert isinstance(wrong.exception, OnesidedError)


def test_names_that_cannot_be_written_as_they_are_are_found_again(tmp_path: Path) -> None:
    names = [r"U/\xff", r"U/a\\b", "'=1+1"] + [f"U/{number}" for number in range(60)]
    lines = [f"{name},{0.9 - 0.01 * place:.9g}" for place, name in enumerate(names)]
    (tmp_path / "scores.csv").write_text("\n".join(["item,score", *lines, ""]))
    (tmp_path / "result.json").write_text(json.dumps(RESULT))
    audit_draw(tmp_path, size=63)
    rows = rows_of(tmp_path)
    assert {row["item"] for row in rows} == set(names)
    for row in rows:
        row["answer"] = "negative"
    write(tmp_path / "audit.csv", rows)
    assert audit_estimate(tmp_path, thresholds=())["answers"]["counted"] == 63


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """A short search on a table, and the names of the positives in its pool."""
    folder = tmp_path_factory.mktemp("searched")
    random = np.random.default_rng(3)
    positive = random.random(500) < 0.4
    places = random.normal(0, 1, (500, 2)) + np.where(positive, 1.0, -1.0)[:, None]
    labelled = positive & (random.random(500) < 0.4)
    lines = [
        f"{number},{'positive' if is_labelled else 'unlabelled'},{x:.4f},{y:.4f}"
        for number, (is_labelled, (x, y)) in enumerate(zip(labelled, places, strict=True))
    ]
    table = folder / "points.csv"
    table.write_text("\n".join(["id,label,x,y", *lines, ""]))
    onesided.fit(table=table, output=folder / "run", budget="3s")
    return folder / "run", {str(number) for number in np.flatnonzero(positive)}


def scored_in(run: Path) -> list[dict[str, str]]:
    with (run / "scores.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_enough_answers_give_the_run_probabilities_that_rest_on_them(
    searched: tuple[Path, set[str]],
) -> None:
    run, positive = searched
    before, basis = scored_in(run), json.loads((run / "result.json").read_text())["calibration"]
    assert basis["basis"] == "prior"
    audit_draw(run, size=120)
    rows = rows_of(run)
    for count, expected in ((30, "prior"), (120, "answers"), (30, "prior")):
        for number, row in enumerate(rows):
            word = "positive" if row["item"] in positive else "negative"
            row["answer"] = word if number < count else ""
        write(run / "audit.csv", rows)
        found = audit_estimate(run, thresholds=())
        assert found["calibration"]["basis"] == expected
        assert found["calibration"]["before"]["basis"] == "prior"
        model = json.loads((run / "model.json").read_text())
        assert model["calibration"]["basis"] == expected
        result = json.loads((run / "result.json").read_text())
        assert result["calibration"]["basis"] == expected
        after = scored_in(run)
        kept = [{**row, "probability": ""} for row in after]
        assert kept == [{**row, "probability": ""} for row in before], "scores and decisions stay"
        changed = [row["probability"] for row in after] != [row["probability"] for row in before]
        assert changed == (expected == "answers")
        if expected == "answers":
            assert found["calibration"]["reliability"]["items"] == 120
            assert found["calibration"]["reliability_before"]["items"] == 120
            assert "rests on 120 random items" in (run / "report.html").read_text()
            assert found["typical"]["rejected"] is False
    outcome = CliRunner().invoke(app, ["audit", str(run), "estimate"])
    assert outcome.exit_code == 0
    said = " ".join(outcome.output.split())
    assert "Those from P, U and the prior stay." in said
    assert "does not show that P is not typical" in said


def test_a_run_without_a_model_gets_no_probabilities_and_says_why(run: Path) -> None:
    audit_draw(run, size=60)
    fill(run, 60)
    found = audit_estimate(run, thresholds=())
    assert found["calibration"]["basis"] is None
    assert "holds no model" in found["calibration"]["explained"]
    assert found["typical"] is None
