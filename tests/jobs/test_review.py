"""From answers to the next model: what it learns, its parent, and what figures count."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from onesided.core.config import read_toml
from onesided.core.errors import ConfigError, DataError
from onesided.core.monitor import Monitor
from onesided.jobs.audit import audit_draw, audit_estimate
from onesided.jobs.fit import fit
from onesided.jobs.review import ReviewSession
from onesided.run.scored import Scored
from tests.cli.command import assert_refused, call
from tests.cli.pictures import draw_data

TINY = {"backbone": {"width": 0.125}, "train": {"batch_size": 16}}
RED = {f"U/item{number:02}.png" for number in range(24)}


class Heard(Monitor):
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, sentence: str) -> None:
        self.said.append(sentence)

    warn = note


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders P and U, and a run on them, that no test changes."""
    folder = draw_data(tmp_path_factory.mktemp("review"))
    fit(folder / "P", folder / "U", output=folder / "run", method="ce", epochs=1, settings=TINY)
    return folder


@pytest.fixture
def run(shared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(shared / "run", tmp_path / "run"))


def answer_some(session: ReviewSession, count: int) -> set[str]:
    """Answer by the truth; return the items that are positive."""
    picks = session.next(count, strategy="random")
    for pick in picks:
        word = "positive" if pick.item in RED else "negative"
        session.answer(pick.item, word, strategy=pick.strategy)
    return {pick.item for pick in picks if pick.item in RED}


def roles(run: Path) -> dict[str, str]:
    with (run / "split.csv").open(newline="") as file:
        return {row["item"]: row["role"] for row in csv.DictReader(file)}


def test_a_round_learns_from_the_answers_and_names_its_parent(run: Path) -> None:
    heard = Heard()
    session = ReviewSession(run, reviewer="Anna", monitor=heard)
    found = answer_some(session, 20)
    before = roles(run)
    done = session.apply()
    assert done.folder == run.with_name("run-round2")
    after = roles(done.folder)
    assert {after[item] for item in found} == {"train-positive"}
    wrong = {each.item for each in session.answers()} - found
    assert wrong
    assert {after[item] for item in wrong} == {"train-negative"}
    untouched = before.keys() - found - wrong
    assert all(after[item] == before[item] for item in untouched)
    manifest = json.loads((done.folder / "manifest.json").read_text())
    assert manifest["round"] == 2
    assert (
        manifest["parent"]["identity"]
        == json.loads((run / "manifest.json").read_text())["identity"]
    )
    ranked = (done.folder / "scores.csv").read_text()
    assert not any(item in ranked for item in found | wrong)
    assert any("Warm start" in sentence for sentence in heard.said)
    assert str(run) in read_toml(done.folder / "config.toml")["backbone"]["weights"]
    page = done.report.read_text()
    assert "What the review changed" in page
    assert f"{len(found)} positive, {len(wrong)} negative" in page
    assert done.changes["answers"]["by_strategy"]["random"]["answers"] == 20
    assert done.changes["ranking"]["common"] == 40
    assert any("joined P" in notice for notice in done.result["notices"])


def test_rounds_add_up_and_the_same_call_does_nothing_twice(run: Path) -> None:
    first = ReviewSession(run, reviewer="Anna")
    found = answer_some(first, 10)
    second = ReviewSession(first.apply().folder, reviewer="Ben")
    assert second.round == 2
    found |= answer_some(second, 10)
    heard = Heard()
    done = second.apply(monitor=heard)
    assert done.folder.name == "run-round3"
    assert {roles(done.folder)[item] for item in found} == {"train-positive"}
    again = second.apply(monitor=heard)
    assert any("nothing is trained again" in sentence for sentence in heard.said)
    assert again.changes == done.changes
    answer_some(second, 3)
    with pytest.raises(ConfigError, match="holds a round with other answers"):
        second.apply()


def test_a_round_that_was_cut_off_goes_on_with_its_own_answers(run: Path) -> None:
    heard = Heard()
    session = ReviewSession(run, monitor=heard)
    answer_some(session, 10)
    output = session.apply().folder
    frozen = (output / "answers.csv").read_text()
    for name in ("result.json", "review.json", "checksums.txt"):
        (output / name).unlink()  # as if it had been killed before the end
    answer_some(session, 5)
    session.apply()
    assert (output / "answers.csv").read_text() == frozen
    assert any("goes on with the answers it began with" in sentence for sentence in heard.said)


@pytest.mark.slow
def test_after_a_search_no_figure_counts_what_the_review_found(
    shared: Path, tmp_path: Path
) -> None:
    first = fit(
        shared / "P", shared / "U", output=tmp_path / "auto", budget="5s",
        settings={"method": {"candidates": ["linear"]}, "backbone": {"name": "small"}},
    )  # fmt: skip
    heard = Heard()
    session = ReviewSession(first.folder, monitor=heard)
    found = answer_some(session, 20)
    done = session.apply()
    assert any("trained anew: a search" in sentence for sentence in heard.said)
    scored = Scored.load(done.folder / "scores.npz")
    assert scored.train_counted is not None
    named = [item for item, role in roles(done.folder).items() if role.startswith("train-")]
    mask = scored.train_counted
    left_out = {item for item, counts in zip(named[: len(mask)], mask, strict=True) if not counts}
    assert found <= left_out
    pair = scored.held_out_pair()
    assert pair is not None
    assert len(pair[0]) == int((scored.train_labelled & mask).sum())
    assert first.result["pu"]["figures"]["recall"]["bias"] is None
    assert done.result["pu"]["figures"]["recall"]["bias"] == "high"


def test_disagreement_keeps_an_item_in_the_pool(run: Path) -> None:
    heard = Heard()
    session = ReviewSession(run, reviewer="Anna", monitor=heard)
    answer_some(session, 10)
    contested = session.answers()[0].item
    for word in ("positive", "negative"):
        session.answer(contested, word, reviewer=word)
    done = session.apply()
    assert contested in (done.folder / "scores.csv").read_text()
    assert any("contradict each other on 1 item, " in sentence for sentence in heard.said)


def test_nothing_to_learn_from_and_no_place_are_refused(run: Path) -> None:
    session = ReviewSession(run)
    with pytest.raises(DataError, match="nothing to learn from"):
        session.apply()
    session.answer(session.items[0], "unsure")
    with pytest.raises(DataError, match="nothing to learn from"):
        session.apply()
    answer_some(session, 5)
    with pytest.raises(ConfigError, match="is the run that was reviewed"):
        session.apply(run)
    (run.parent / "full").mkdir()
    (run.parent / "full" / "mine.txt").write_text("x")
    with pytest.raises(ConfigError, match="not empty and holds no run"):
        session.apply(run.parent / "full")
    assert sorted(path.name for path in (run.parent / "full").iterdir()) == ["mine.txt"]


def test_an_audit_is_answered_in_the_review(run: Path) -> None:
    audit_draw(run, size=20)
    ordinary = ReviewSession(run, reviewer="Anna")
    answer_some(ordinary, 5)  # these are no random sample, and do not count
    session = ReviewSession(run, reviewer="Anna", audit=True)
    assert session.blind
    while picks := session.next(5):
        for pick in picks:
            assert pick.score is None
            session.answer(pick.item, "positive" if pick.item in RED else "negative")
    found = audit_estimate(run, thresholds=())
    counts = found["answers"]
    assert (counts["counted"], counts["passed_over"]) == (20, 0)
    positives = found["at_threshold"]["figures"]["positives"]
    assert positives["low"] <= 24 <= positives["high"]


def test_a_draw_that_was_answered_on_the_page_is_not_replaced(run: Path) -> None:
    audit_draw(run, size=20)
    session = ReviewSession(run, audit=True)
    session.answer(session.next(1)[0].item, "positive")
    sheet, drawn = (run / "audit.csv").read_bytes(), (run / "audit_draw.json").read_bytes()
    for change in ({"size": 10}, {"seed": 1}, {"target": "left"}):
        with pytest.raises(DataError, match="holds answers of another draw"):
            audit_draw(run, **{"size": 20, **change})  # type: ignore[arg-type]
    assert (run / "audit.csv").read_bytes() == sheet
    assert (run / "audit_draw.json").read_bytes() == drawn
    audit_draw(run, size=30)  # a larger one continues it


def test_only_answers_of_the_audit_count_in_it(run: Path) -> None:
    audit_draw(run, size=20)
    session = ReviewSession(run, audit=True)
    first = session.next(3)
    ReviewSession(run).answer(session.next(20)[-1].item, "positive", strategy="likely")
    for pick in first:
        session.answer(pick.item, "negative")
    assert audit_estimate(run, thresholds=())["answers"]["counted"] == 3


def test_the_commands_say_what_they_did(run: Path, tmp_path: Path) -> None:
    answers = tmp_path / "anna.csv"
    rows = [f"U/item{n:02}.png,{'positive' if n < 24 else 'negative'}" for n in range(0, 60, 4)]
    answers.write_text("\n".join(["item,answer", *rows, ""]))
    done = call("review", run, "--import", answers)
    assert done.exit_code == 0, done.err
    assert "15 new answers imported." in done.out
    assert "15 of 60 items answered: 6 positive, 9 negative." in done.out
    done = call("review", run, "--export", tmp_path / "out.jsonl", "--quiet")
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 15
    done = call("review", run, "--apply", "-o", tmp_path / "next", "--json")
    assert done.exit_code == 0, done.err
    told = json.loads(done.out)
    assert told["run"] == str(tmp_path / "next")
    assert told["changes"]["answers"]["positive"] == 6
    done = call("review", tmp_path / "next", "--status")
    assert done.out == "0 of 45 items answered.\n"


def test_wrong_commands_are_refused_in_one_sentence(run: Path, tmp_path: Path) -> None:
    unknown = tmp_path / "unknown.csv"
    unknown.write_text("item,answer\nU/item00.png,positive\nU/nobody.png,negative\n")
    assert_refused(call("review", run, "--import", unknown), "U/nobody.png", "nothing was imported")
    assert_refused(call("review", run, "--apply"), "nothing to learn from")
    assert_refused(call("review", run, "-o", tmp_path / "x"), "goes with --apply")
    assert_refused(call("review", run, "--audit", "--status"), "Nothing was drawn")
    assert_refused(call("review", tmp_path / "no", "--status"), "no")
    assert_refused(call("review", run, "--export", tmp_path / "x.xlsx"), "does not end in")
    assert not (run / "answers.jsonl").exists()


def test_a_damaged_journal_is_refused_and_left_as_it_is(run: Path) -> None:
    session = ReviewSession(run)
    answer_some(session, 3)
    path = run / "answers.jsonl"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert_refused(call("review", run, "--status"), "answers.jsonl is damaged", "line")
    assert path.read_bytes() == bytes(content)


def test_overwriting_a_run_keeps_the_answers(run: Path, shared: Path) -> None:
    session = ReviewSession(run)
    answer_some(session, 3)
    kept = (run / "answers.jsonl").read_bytes()
    fit(
        shared / "P", shared / "U", output=run, method="ce", epochs=1, settings=TINY, seed=1,
        overwrite=True,
    )  # fmt: skip
    assert (run / "answers.jsonl").read_bytes() == kept
    assert len(ReviewSession(run).answers()) == 3


def test_features_of_numbers_are_found_and_make_batches_diverse(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    lines = ["label,a,b"]
    for row in range(120):
        label = "positive" if row < 30 else "unlabelled"
        a, b = random.normal(size=2) + (2 if row % 3 == 0 else 0)
        lines.append(f"{label},{a:.4f},{100 * b:.4f}")
    table = tmp_path / "table.csv"
    table.write_text("\n".join(lines) + "\n")
    found = fit(table=table, output=tmp_path / "run", method="linear")
    session = ReviewSession(found.folder)
    assert session.features is not None
    assert session.features.shape == (90, 2)
    np.testing.assert_allclose(session.features.std(axis=0), 1, atol=1e-5)
    assert {pick.strategy for pick in session.next(10, strategy="diverse")} == {"diverse"}
    assert len(session.similar(0)) == 6
    assert session.shown_items.show(session.items[0]).cells[0][0] == "a"
