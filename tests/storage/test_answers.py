from pathlib import Path

import pytest

from onesided.core.errors import DataError
from onesided.storage.answers import Answer, answers_text, merge_answers, read_answers

NOON, LATER = "2024-05-01T12:00:00Z", "2024-05-01T12:30:00Z"


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    given = [
        Answer("=1+1", "positive", "Anna, B.", NOON),
        Answer('a "b"\nc', "skip", "-x", LATER),
        Answer("7", "unsure"),
    ]
    path = tmp_path / "review.csv"
    path.write_text(answers_text(given), encoding="utf-8")
    assert read_answers(path) == given


def test_a_file_with_labels_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_text("id,label\na,Positive\nb,unlabelled\n")
    assert read_answers(path) == [Answer("a", "positive"), Answer("b", "unsure")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,answer\na,perhaps\n", "line 2: the answer 'perhaps' is none of positive, negative"),
        ("id\na\n", "needs the column 'answer'"),
        ("name,answer\na,positive\n", "needs the column 'id'"),
        ("id,answer\n,positive\n", "line 2: expected the name of an item"),
        ("id,answer,time\na,positive,noon\n", "line 2: the time 'noon' is not as in"),
    ],
)
def test_a_file_that_holds_no_answers_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_answers(path)


def test_the_latest_answer_of_a_person_counts() -> None:
    merged = merge_answers(
        {
            "monday": [Answer("a", "negative", "Anna", LATER)],
            "sunday": [Answer("a", "positive", "Anna", NOON)],
        }
    )
    assert merged.answers == (Answer("a", "negative", "Anna", LATER),)
    assert merged.conflicts == ()


def test_people_who_disagree_are_named_and_the_building_is_unsure() -> None:
    merged = merge_answers(
        {
            "anna": [Answer("a", "positive", "Anna", NOON), Answer("b", "positive", "Anna", NOON)],
            "ben": [Answer("a", "negative", "Ben", LATER), Answer("b", "unsure", "Ben", LATER)],
        }
    )
    assert [str(conflict) for conflict in merged.conflicts] == ["a (Anna: positive, Ben: negative)"]
    settled = merged.settled()
    assert settled["a"] == Answer("a", "unsure", "Anna; Ben", LATER)
    assert settled["b"].answer == "positive", "somebody who is sure wins over somebody who is not"


def test_two_files_without_names_are_two_people() -> None:
    merged = merge_answers({"x": [Answer("a", "positive")], "y": [Answer("a", "negative")]})
    assert [str(conflict) for conflict in merged.conflicts] == ["a (x: positive, y: negative)"]


def test_clocks_of_two_places_are_compared_by_the_moment() -> None:
    early, late = "2026-05-31T14:00:00+02:00", "2026-05-31T13:00:00Z"
    merged = merge_answers(
        {"x": [Answer("a", "negative", "Anna", late), Answer("a", "positive", "Anna", early)]}
    )
    assert merged.settled()["a"].answer == "negative"


def test_lines_without_an_answer_are_kept_on_request(tmp_path: Path) -> None:
    path = tmp_path / "audit.csv"
    path.write_text("item,answer\na,\nb,positive\n")
    found = read_answers(path, column="item", may_lack=True)
    assert found == [Answer("a", ""), Answer("b", "positive")]
    with pytest.raises(DataError, match="line 2: the answer '' is none of"):
        read_answers(path, column="item")
