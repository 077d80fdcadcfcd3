"""A review: what comes next, answers that hold, undo, second opinions, filters."""

from pathlib import Path

import pytest

from onesided.core.errors import ConfigError, DataError
from onesided.review.session import LEASE, Pick, Session, Wanted
from onesided.storage.answer_journal import FILE
from tests.review.fake_run import image_run

NAMES = [f"{number:02}.png" for number in range(20)]
ITEMS = [f"U/{name}" for name in NAMES]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return image_run(tmp_path, NAMES)


def items(picks: list[Pick]) -> list[str]:
    return [pick.item for pick in picks]


def test_likely_items_come_first_and_answered_ones_not_again(run: Path) -> None:
    session = Session(run, reviewer="Anna")
    assert items(session.next(3, strategy="likely")) == ITEMS[:3]
    session.answer(ITEMS[1], "negative", strategy="likely")
    assert items(session.next(3, strategy="likely")) == [ITEMS[0], ITEMS[2], ITEMS[3]]
    assert items(session.next(1, strategy="uncertain")) == [ITEMS[9]]


def test_each_pick_says_why(run: Path) -> None:
    session = Session(run)
    picks = session.next(10, strategy="likely:2,uncertain:1,random:1")
    assert {pick.strategy for pick in picks} == {"likely", "uncertain", "random"}
    for pick in picks:
        assert pick.why.lower().startswith(pick.strategy)


def test_an_answer_is_on_the_disk_when_it_returns(run: Path) -> None:
    session = Session(run, reviewer="Anna")
    session.answer(ITEMS[0], "positive", strategy="likely")
    (line,) = (run / FILE).read_text().splitlines()[1:]
    for word in (ITEMS[0], "positive", "Anna", "likely", '"round": 1'):
        assert word in line
    assert items(Session(run).next(1, strategy="likely")) == [ITEMS[1]]


def test_undo_brings_back_what_was_said_before(run: Path) -> None:
    session = Session(run, reviewer="Anna")
    assert session.undo() is None
    session.answer(ITEMS[0], "positive")
    session.answer(ITEMS[0], "negative")
    session.answer(ITEMS[1], "unsure", reviewer="Ben")
    undone = session.undo()
    assert undone is not None
    assert undone.answer == "negative"
    assert session.own_answer(ITEMS[0], "Anna") == "positive"
    session.undo()
    assert session.own_answer(ITEMS[0], "Anna") is None
    assert session.undo() is None  # Ben's answer is Ben's
    assert [each.reviewer for each in session.answers()] == ["Ben"]
    assert len(session.entries()) == 5  # nothing was ever removed


def test_two_windows_are_not_given_the_same_items_until_one_is_forgotten(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(run)
    first = items(session.next(5, strategy="likely", reviewer="Anna"))
    other = items(session.next(5, strategy="likely", reviewer="Ben"))
    assert not set(first) & set(other)
    assert items(session.next(5, strategy="likely", reviewer="Anna")) == first
    import time

    later = time.monotonic() + LEASE + 1
    monkeypatch.setattr("onesided.review.session.time.monotonic", lambda: later)
    assert items(session.next(5, strategy="likely", reviewer="Ben")) == first


def test_two_processes_see_each_other_s_answers(run: Path) -> None:
    anna, ben = Session(run, reviewer="Anna"), Session(run, reviewer="Ben")
    anna.answer(ITEMS[0], "positive")
    assert items(ben.next(1, strategy="likely")) == [ITEMS[1]]
    ben.answer(ITEMS[1], "negative")
    assert len(anna.answers()) == 2


def test_a_second_opinion_is_asked_of_what_others_answered(run: Path) -> None:
    session = Session(run, reviewer="Anna")
    for item, word in zip(ITEMS, ("positive", "negative", "skip", "unsure"), strict=False):
        session.answer(item, word)
    assert session.next(5, second_opinion=True) == []
    asked = session.next(5, second_opinion=True, reviewer="Ben")
    assert set(items(asked)) == {ITEMS[0], ITEMS[1], ITEMS[3]}
    assert all("somebody else" in pick.why for pick in asked)
    session.answer(ITEMS[0], "positive", reviewer="Ben", strategy=asked[0].strategy)
    session.answer(ITEMS[1], "positive", reviewer="Ben", strategy=asked[0].strategy)
    (pair,) = session.agreement()
    assert (pair.items, pair.agreed) == (2, 1)
    assert session.progress().contested == 1
    assert items(session.next(5, wanted=Wanted(answered="contested"))) == [ITEMS[1]]


def test_filters_choose_by_score_name_and_answer(run: Path) -> None:
    session = Session(run)
    low = session.next(30, strategy="likely", wanted=Wanted(low=0.2, high=0.4))
    assert low
    assert all(pick.score is not None and 0.2 <= pick.score <= 0.4 for pick in low)
    assert items(session.next(9, wanted=Wanted(text="/07.PNG"))) == [ITEMS[7]]
    session.answer(ITEMS[3], "negative")
    session.answer(ITEMS[5], "negative")
    again = session.next(9, wanted=Wanted(answered="negative"))
    assert sorted(items(again)) == [ITEMS[3], ITEMS[5]]


def test_a_correction_keeps_the_reason_for_which_the_item_was_shown(run: Path) -> None:
    session = Session(run)
    session.answer(ITEMS[3], "negative", strategy="random")
    (again,) = session.next(1, wanted=Wanted(answered="negative"))
    assert session.answer(again.item, "positive", strategy=again.strategy).strategy == "random"


def test_a_skipped_item_is_left_to_others(run: Path) -> None:
    session = Session(run, reviewer="Anna")
    session.next(1, strategy="likely")
    session.answer(ITEMS[0], "skip")
    session._shown.clear()  # as if minutes had passed
    assert items(session.next(1, strategy="likely")) == [ITEMS[1]]
    session._shown.clear()
    assert items(session.next(1, strategy="likely", reviewer="Ben")) == [ITEMS[0]]


def test_a_blind_review_tells_no_score(run: Path) -> None:
    session = Session(run, blind=True)
    for pick in session.next(10):
        assert pick.score is None
        assert pick.why == "Scores are hidden."


def test_what_was_drawn_comes_in_its_order_and_only_audits_count(run: Path) -> None:
    ordinary = Session(run, reviewer="Anna")
    ordinary.answer(ITEMS[8], "positive", strategy="likely")
    drawn = [ITEMS[8], ITEMS[2], ITEMS[15]]
    session = Session(run, reviewer="Ben", drawn=drawn, blind=True)
    assert items(session.next(2)) == drawn[:2]
    assert session.progress().answered == 0
    given = session.answer(ITEMS[8], "negative")
    assert given.strategy == "audit"
    assert items(session.next(5)) == drawn[1:]
    assert (session.progress().items, session.progress().answered) == (3, 1)


def test_diverse_without_features_is_refused_alone_and_left_out_of_a_mix(run: Path) -> None:
    session = Session(run)
    with pytest.raises(ConfigError, match="no stored features"):
        session.next(3, strategy="diverse")
    assert {pick.strategy for pick in session.next(5, strategy="diverse,likely")} == {"likely"}


@pytest.mark.parametrize(
    ("item", "word", "reviewer", "said"),
    [
        ("U/nobody.png", "positive", "Anna", "'U/nobody.png' is not in the pool"),
        (ITEMS[0], "perhaps", "Anna", "'perhaps' is none of positive, negative, unsure, skip"),
        (ITEMS[0], "positive", "\x1b[31m", "A reviewer's name"),
        (ITEMS[0], "positive", "x" * 61, "A reviewer's name"),
    ],
)
def test_wrong_answers_are_refused_and_nothing_is_written(
    run: Path, item: str, word: str, reviewer: str, said: str
) -> None:
    session = Session(run)
    with pytest.raises((ConfigError, DataError), match=said):
        session.answer(item, word, reviewer=reviewer)
    assert not (run / FILE).exists()


def test_the_last_answers_tell_whether_positives_still_come(run: Path) -> None:
    session = Session(run, reviewer="Anna")
    words = ["positive", "unsure", "negative", "skip", "positive"]
    for item, word in zip(ITEMS, words, strict=False):
        session.answer(item, word)
    assert session.progress().recent == (2, 3)
    session.undo()
    assert session.progress().recent == (1, 2)


def test_an_item_below_the_threshold_is_not_called_likely_positive(run: Path) -> None:
    session = Session(run)
    assert session.pick(0, "likely").why.startswith("Likely positive")
    last = session.pick(len(session.items) - 1, "likely")
    assert last.why.startswith("Likeliest of those left")
    assert "below the threshold" in last.why
