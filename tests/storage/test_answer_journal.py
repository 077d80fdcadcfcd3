"""Answers in a file that only grows: nothing is lost, and nobody overwrites another."""

import multiprocessing
import os
import random
from pathlib import Path

import pytest

from onesided.core.errors import DataError
from onesided.storage.answer_journal import FILE, UNDONE, AnswerJournal, now, standing
from onesided.storage.answers import Answer, moment


def given(item: str, answer: str = "positive", reviewer: str = "Anna") -> Answer:
    return Answer(item, answer, reviewer, "2026-05-31T14:00:00Z", "likely", 1)


def test_what_was_appended_is_read_back_to_the_letter(tmp_path: Path) -> None:
    hostile = ["=1+1", 'quote",\n', "\\xff", "名前", "../../etc/passwd", "<script>"]
    journal = AnswerJournal(tmp_path)
    journal.append([given(item) for item in hostile])
    assert [each.item for each in AnswerJournal(tmp_path).entries()] == hostile


def test_what_others_append_is_seen_without_reading_all_again(tmp_path: Path) -> None:
    mine, other = AnswerJournal(tmp_path), AnswerJournal(tmp_path)
    mine.append([given("a")])
    assert len(mine.entries()) == 1
    other.append([given("b", reviewer="Ben")])
    assert [each.item for each in mine.entries()] == ["a", "b"]


@pytest.mark.parametrize("kept", range(0, 420, 23))
def test_a_kill_at_any_byte_loses_at_most_the_line_that_was_being_written(
    tmp_path: Path, kept: int
) -> None:
    for item in "ab":
        AnswerJournal(tmp_path).append([given(item)])
    path = tmp_path / FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    # The first line says what the file is.
    complete = max(0, whole[:kept].count(b"\n") - 1)
    assert len(AnswerJournal(tmp_path).entries()) == complete
    AnswerJournal(tmp_path).append([given("c")])
    items = [each.item for each in AnswerJournal(tmp_path).entries()]
    assert items == [*["a", "b"][:complete], "c"]


def test_a_changed_line_is_refused_and_kept(tmp_path: Path) -> None:
    AnswerJournal(tmp_path).append([given("a"), given("b")])
    path = tmp_path / FILE
    changed = path.read_bytes().replace(b'"positive"', b'"negative"', 1)
    path.write_bytes(changed)
    with pytest.raises(DataError, match="line 2 was changed"):
        AnswerJournal(tmp_path).entries()
    assert path.read_bytes() == changed


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("item,answer\na,positive\n" * 9)
    with pytest.raises(DataError, match="first line"):
        AnswerJournal(tmp_path).entries()


def _append_many(folder: Path, reviewer: str) -> None:
    journal = AnswerJournal(folder)
    for number in range(40):
        journal.append([given(f"{number}", reviewer=reviewer)])


def test_two_processes_overwrite_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_append_many, args=(tmp_path, name)) for name in "AB"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    entries = AnswerJournal(tmp_path).entries()
    for name in "AB":
        own = [each.item for each in entries if each.reviewer == name]
        assert own == [f"{number}" for number in range(40)]


def test_every_answer_is_flushed_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    real = os.fsync

    def counted(file: int) -> None:
        flushed.append(file)
        real(file)

    monkeypatch.setattr(os, "fsync", counted)
    journal = AnswerJournal(tmp_path)
    journal.append([given("a")])
    first = len(flushed)
    assert first == 2  # the file, and the folder that has its name
    journal.append([given("b")])
    assert len(flushed) == first + 1


def slow_standing(entries: list[Answer]) -> set[tuple[str, str, str]]:
    """What holds, by going back in time for each reviewer and item."""
    found = set()
    for item, reviewer in {(each.item, each.reviewer) for each in entries}:
        debts = 0
        for each in reversed(entries):
            if (each.item, each.reviewer) != (item, reviewer):
                continue
            if each.answer == UNDONE:
                debts += 1
            elif debts:
                debts -= 1
            else:
                found.add((item, reviewer, each.answer))
                break
    return found


def test_undone_answers_give_way_to_those_before() -> None:
    for seed in range(50):
        draw = random.Random(seed)
        entries: list[Answer] = []
        for _ in range(30):
            word = draw.choice(["positive", "negative", "unsure", UNDONE])
            each = given(draw.choice("xy"), word, draw.choice("AB"))
            # Nobody can undo what is not there.
            own = (each.item, each.reviewer)
            if word == UNDONE and own not in {(a.item, a.reviewer) for a in standing(entries)}:
                continue
            entries.append(each)
        fast = {(each.item, each.reviewer, each.answer) for each in standing(entries)}
        assert fast == slow_standing(entries)


def test_the_time_is_one_that_files_of_answers_have() -> None:
    assert moment(now()) is not None
    assert now().endswith("Z")
