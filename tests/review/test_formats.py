"""Answers as files of other programs, there and back; bad files are refused as a whole."""

import json
from pathlib import Path

import pytest

from onesided.core.errors import ConfigError, DataError, OnesidedError
from onesided.core.monitor import Monitor
from onesided.jobs.review import ReviewSession
from onesided.storage.answer_journal import FILE
from tests.review.fake_run import image_run, text_run

NAMES = ["a.png", 'b",c.png', "=1+1.png", "<b>.png", "sub/d.png", "e.png"]
ITEMS = [f"U/{name}" for name in NAMES]


class Heard(Monitor):
    def __init__(self) -> None:
        self.said: list[str] = []

    def warn(self, sentence: str) -> None:
        self.said.append(sentence)


def answered(folder: Path) -> ReviewSession:
    session = ReviewSession(image_run(folder, NAMES), reviewer="Anna", monitor=Heard())
    words = ("positive", "negative", "unsure", "skip", "positive")
    for item, word in zip(ITEMS, words, strict=False):
        session.answer(item, word, strategy="likely")
    session.answer(ITEMS[0], "negative", reviewer="=Ben", strategy="second opinion")
    return session


def said(session: ReviewSession) -> set[tuple[str, str, str, str]]:
    return {(each.item, each.answer, each.reviewer, each.time) for each in session.answers()}


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.json", "x.coco.json"])
def test_every_format_brings_all_answers_back(tmp_path: Path, name: str) -> None:
    first = answered(tmp_path / "one")
    file = first.export(tmp_path / name)
    other = ReviewSession(image_run(tmp_path / "two", NAMES), monitor=Heard())
    assert other.import_file(file) == 6
    given, back = said(first), said(other)
    if name == "x.json":  # a task that was cancelled has no result to write a name into
        given = {(i, a, "x" if a == "skip" else r, t) for i, a, r, t in given}
    assert back == given
    assert other.import_file(file) == 0  # twice is once
    assert other.progress().contested == 1


def test_label_studio_gets_a_task_with_a_score_for_every_item(tmp_path: Path) -> None:
    session = answered(tmp_path)
    tasks = json.loads(session.export(tmp_path / "tasks.json").read_text())
    assert [task["data"]["item"] for task in tasks] == ITEMS
    assert [task["predictions"][0]["score"] for task in tasks] == session.scores.tolist()
    first = tasks[0]
    assert first["data"]["image"] == "/data/local-files/?d=U/a.png"
    (choice,) = first["predictions"][0]["result"]
    assert (choice["type"], choice["value"]) == ("choices", {"choices": ["positive"]})
    assert [each["result"][0]["value"]["choices"] for each in first["annotations"]] == [
        ["positive"],
        ["negative"],
    ]
    assert tasks[3]["annotations"][0]["was_cancelled"] is True
    assert tasks[5]["annotations"] == []


def test_texts_go_to_label_studio_as_texts(tmp_path: Path) -> None:
    session = ReviewSession(text_run(tmp_path, {"a.txt": "some <words>"}))
    (task,) = json.loads(session.export(tmp_path / "tasks.json").read_text())
    assert task["data"]["text"] == "some <words>"


def test_what_label_studio_itself_writes_is_read(tmp_path: Path) -> None:
    session = ReviewSession(image_run(tmp_path, NAMES))
    choice = {"from_name": "x", "to_name": "y", "type": "choices",
              "value": {"choices": ["Positive"]}}  # fmt: skip
    other = {"from_name": "n", "to_name": "y", "type": "textarea", "value": {"text": ["hm"]}}
    tasks = [
        {
            "id": 7,
            "data": {"image": "/data/local-files/?d=U/sub/d.png"},
            "annotations": [
                {"result": [other, choice], "completed_by": 10, "was_cancelled": False,
                 "created_at": "2021-03-09T22:16:08.728353Z"},
                {"result": [choice], "completed_by": {"email": "anna@example.org"}},
            ],
            "predictions": [{"result": [choice], "score": 0.4}],
        },
        {"id": 8, "data": {"image": "/data/local-files/?d=U/a.png"}, "annotations": []},
    ]  # fmt: skip
    file = tmp_path / "export.json"
    file.write_text(json.dumps(tasks))
    assert session.import_file(file) == 2
    assert [(each.item, each.answer, each.reviewer) for each in session.answers()] == [
        ("U/sub/d.png", "positive", "Label Studio 10"),
        ("U/sub/d.png", "positive", "anna@example.org"),
    ]


def test_a_mere_file_name_is_enough_where_it_is_unique(tmp_path: Path) -> None:
    session = ReviewSession(image_run(tmp_path, NAMES))
    file = tmp_path / "ben.csv"
    file.write_text("path,label\nd.png,positive\n")
    session.import_file(file)
    (given,) = session.answers()
    assert (given.item, given.reviewer, given.strategy) == ("U/sub/d.png", "ben", "imported")


def test_people_who_disagree_are_told_of(tmp_path: Path) -> None:
    heard = Heard()
    session = ReviewSession(image_run(tmp_path, NAMES), reviewer="Anna", monitor=heard)
    session.answer(ITEMS[0], "positive")
    file = tmp_path / "ben.csv"
    file.write_text(f"item,answer,reviewer\n{ITEMS[0]},negative,Ben\n")
    assert session.import_file(file) == 1
    (sentence,) = heard.said
    assert "contradict each other on 1 more item, " in sentence
    assert "Anna: positive, Ben: negative" in sentence


BAD = [
    ("x.csv", "item,answer\nU/a.png,positive\nU/nobody.png,negative\n", "names 'U/nobody.png'"),
    ("x.csv", "item,answer\nU/a.png,maybe\n", "'maybe' is none of"),
    ("x.csv", "item,answer,reviewer\nU/a.png,positive,A\nU/a.png,negative,A\n",
     "A calls 'U/a.png' positive and negative at the same time"),
    ("x.csv", "item,answer,time\nU/a.png,positive,yesterday\n", "'yesterday' is not as in"),
    ("x.jsonl", '{"item": "U/a.png", "answer": "skip"}\n{"item": 3}\n', "line 2 has no 'answer'"),
    ("x.jsonl", '{"item": 3, "answer": "positive"}\n', "line 1: expected the name"),
    ("x.jsonl", "[]\n", "line 1: it is no object"),
    ("x.json", "{}", "neither a list of Label Studio's tasks nor a COCO file"),
    ("x.json", "nonsense", "cannot be read"),
    ("x.json", '[{"data": 3}]', "not as Label Studio or COCO write it"),
    ("x.json", '[{"data": {"item": "U/a.png"}, "annotations": [{"result": 3}]}]', "not as Label"),
    ("x.coco.json", '{"images": [], "categories": [], "annotations": [{"image_id": 1}]}', "not as"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "told"), BAD)
def test_a_bad_file_is_refused_in_one_sentence_and_nothing_is_imported(
    tmp_path: Path, name: str, content: str, told: str
) -> None:
    session = ReviewSession(image_run(tmp_path, NAMES))
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as refused:
        session.import_file(tmp_path / name)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (session.run / FILE).exists()


def test_other_endings_are_refused(tmp_path: Path) -> None:
    session = ReviewSession(image_run(tmp_path, NAMES))
    with pytest.raises(ConfigError, match=r"does not end in .*\.coco\.json"):
        session.export(tmp_path / "answers.xlsx")
    with pytest.raises(OnesidedError, match="Name the map"):
        session.export(tmp_path / "answers.geojson")
