"""Answers as files of other programs: CSV, JSON Lines, Label Studio JSON, COCO class lists.

Label Studio reads and writes tasks: `data`, `predictions` with a `score`, and `annotations`, whose
results here are one choice each (https://labelstud.io/guide/task_format). Its labelling set-up is

    <View>
      <Image name="item" value="$image"/>
      <Choices name="answer" toName="item" choice="single">
        <Choice value="positive"/><Choice value="negative"/><Choice value="unsure"/>
      </Choices>
    </View>

COCO's classes are annotations without a box: `images`, `categories`, `annotations`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from onesided.core.errors import ConfigError, DataError
from onesided.review.items import ShownItems
from onesided.review.session import Session
from onesided.storage.answers import (
    ANSWERS,
    Answer,
    is_sure,
    meaning_of,
    moment,
    read_answers,
)
from onesided.storage.json_files import json_in, parsed
from onesided.storage.names import printable, shown_path, spreadsheet_safe
from onesided.storage.table import csv_lines

ENDINGS = (".csv", ".jsonl", ".json", ".coco.json")
COLUMNS = ("item", "answer", "reviewer", "time", "strategy", "round", "score")
CHOICE, ITEM = "answer", "item"
LOCAL_FILES = "/data/local-files/?d="
"""How Label Studio addresses a file below the folder that it is allowed to read."""


def ending_of(path: Path) -> str:
    """Return which of the formats a file's name asks for; refuse others."""
    name = path.name.lower()
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if name.endswith(ending):
            return ending
    raise ConfigError(
        f"{shown_path(path)} does not end in {', '.join(ENDINGS)}, .geojson or .gpkg, so nobody "
        "knows its format. Rename it."
    )


def export_text(session: Session, ending: str) -> str:
    """Return the answers of a review in one of the formats."""
    write: dict[str, Callable[[Session], str]] = {
        ".csv": _csv,
        ".jsonl": _json_lines,
        ".json": _label_studio,
        ".coco.json": _coco,
    }
    return write[ending](session)


def _cells(session: Session, each: Answer) -> dict[str, object]:
    score = float(session.scores[session.row_of[each.item]])
    return {**{name: getattr(each, name) for name in COLUMNS[:-1]}, "score": score}


def _csv(session: Session) -> str:
    rows = [list(_cells(session, each).values()) for each in session.answers()]
    safe = ([spreadsheet_safe(str(cell)) for cell in row[:3]] + row[3:] for row in rows)
    return csv_lines([COLUMNS, *safe])


def _json_lines(session: Session) -> str:
    lines = (json.dumps(_cells(session, each)) for each in session.answers())
    return "".join(f"{line}\n" for line in lines)


def _label_studio(session: Session) -> str:
    """Return a task for each item of the pool: the model's prediction, and people's annotations."""
    given: dict[str, list[Answer]] = {}
    for each in session.answers():
        given.setdefault(each.item, []).append(each)
    scored = zip(session.items, session.scores.tolist(), strict=True)
    tasks = [
        {
            "id": row + 1,
            "data": _task_data(session.shown_items, item, score),
            "predictions": [
                {
                    "model_version": session.run.resolve().name,
                    "score": score,
                    "result": _choice("positive" if score > session.threshold else "negative"),
                }
            ],
            "annotations": [_annotation(each) for each in given.get(item, [])],
        }
        for row, (item, score) in enumerate(scored)
    ]
    return json.dumps(tasks, indent=1) + "\n"


def _task_data(items: ShownItems, item: str, score: float) -> dict[str, object]:
    shown = items.show(item)
    data: dict[str, object] = {"item": item, "score": score}
    if shown.pictures:
        data["image"] = LOCAL_FILES + quote(item)
    if shown.text:
        data["text"] = shown.text
    return data | ({"cells": dict(shown.cells)} if shown.cells else {})


def _choice(word: str) -> list[dict[str, object]]:
    return [
        {
            "from_name": CHOICE,
            "to_name": ITEM,
            "type": "choices",
            "value": {"choices": [word]},
        }
    ]


def _annotation(each: Answer) -> dict[str, object]:
    skipped = each.answer == "skip"
    result = [] if skipped else [{**_choice(each.answer)[0], "meta": {"text": [each.reviewer]}}]
    return {"result": result, "was_cancelled": skipped, "created_at": each.time}


def _coco(session: Session) -> str:
    """Return the answered items with their classes."""
    answers = session.answers()
    images = {each.item: session.row_of[each.item] + 1 for each in answers}
    content = {
        "info": {"description": f"Answers about {session.run.resolve().name}, by onesided"},
        "images": [{"id": number, "file_name": item} for item, number in images.items()],
        "categories": [{"id": place, "name": word} for place, word in enumerate(ANSWERS, 1)],
        "annotations": [
            {
                "id": place,
                "image_id": images[each.item],
                "category_id": ANSWERS.index(each.answer) + 1,
                "attributes": {"reviewer": each.reviewer, "time": each.time},
            }
            for place, each in enumerate(answers, 1)
        ],
    }
    return json.dumps(content, indent=1) + "\n"


def import_answers(path: Path) -> list[Answer]:
    """Return the answers of a file, which names them by its content where its ending does not."""
    match ending_of(path):
        case ".csv":
            return read_answers(path, column=None)
        case ".jsonl":
            return _from_lines(path)
    try:
        content = json_in(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{shown_path(path)} cannot be read ({error}). Export it again.") from None
    try:
        if isinstance(content, list):
            return [each for task in content for each in _from_task(task)]
        if isinstance(content, dict) and "annotations" in content and "images" in content:
            return _from_coco(content)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise DataError(
            f"{shown_path(path)} is not as Label Studio or COCO write it "
            f"({type(error).__name__}: {error}). Export it again; nothing was imported."
        ) from None
    raise DataError(
        f"{shown_path(path)} is neither a list of Label Studio's tasks nor a COCO file with "
        "images, categories and annotations. Nothing was imported."
    )


def _from_lines(path: Path) -> list[Answer]:
    found = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DataError(f"{shown_path(path)} cannot be read ({error.strerror}).") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = parsed(line)
            if not isinstance(entry, dict):
                raise ValueError("it is no object")
            found.append(
                _answer(entry["item"], entry["answer"], entry.get("reviewer"), entry.get("time"))
            )
        except KeyError as error:
            raise DataError(f"{shown_path(path)}, line {number} has no {error}.") from None
        except ValueError as error:
            raise DataError(f"{shown_path(path)}, line {number}: {error}.") from None
    return found


def _answer(item: object, word: object, reviewer: object, time: object) -> Answer:
    """Return an answer made of what a file says, or raise ValueError."""
    meant = meaning_of(str(word))
    if meant is None:
        raise ValueError(f"the answer '{word}' is none of {', '.join(ANSWERS)}")
    given = str(time or "")
    if given and moment(given) is None:
        raise ValueError(f"the time '{given}' is not as in 2026-05-31T14:00:00 (ISO 8601)")
    if not isinstance(item, str) or not item:
        raise ValueError(f"expected the name of an item, got {item!r}")
    return Answer(item, meant, str(reviewer or ""), given)


def _from_task(task: Mapping[str, Any]) -> Iterable[Answer]:
    """Return the answers of one task of Label Studio; a prediction is no answer."""
    data = task["data"]
    item = next((data[key] for key in ("item", "path", "name", "image") if key in data), None)
    name = unquote(str(item).removeprefix(LOCAL_FILES)) if item == data.get("image") else item
    for annotation in task.get("annotations", ()):
        time = annotation.get("created_at") or annotation.get("updated_at")
        reviewer = annotation.get("completed_by")
        if isinstance(reviewer, Mapping):
            reviewer = reviewer.get("email") or reviewer.get("id")
        elif reviewer is not None:
            reviewer = f"Label Studio {reviewer}"
        if annotation.get("was_cancelled"):
            yield _answer(name, "skip", reviewer, time)
        for result in annotation["result"]:
            if result.get("type") == "choices":
                said = (result.get("meta") or {}).get("text") or [reviewer]
                yield _answer(name, result["value"]["choices"][0], said[0], time)


def _from_coco(content: Mapping[str, Any]) -> list[Answer]:
    names = {image["id"]: image["file_name"] for image in content["images"]}
    words = {category["id"]: category["name"] for category in content["categories"]}
    found = []
    for each in content["annotations"]:
        beside = each.get("attributes") or {}
        found.append(
            _answer(
                names[each["image_id"]],
                words[each["category_id"]],
                beside.get("reviewer"),
                beside.get("time"),
            )
        )
    return found


def checked_import(
    answers: Sequence[Answer], session: Session, *, source: str, otherwise: str, time: str
) -> list[Answer]:
    """Return answers under the names of the run, without those that it has already.

    Args:
        answers: As a file gives them.
        session: The review that they are for.
        source: What messages call the file.
        otherwise: Who answered, where the file does not say it.
        time: When, where the file does not say it.
    """
    by_end: dict[str, list[str]] = {}
    for item in session.items:
        by_end.setdefault(item.rpartition("/")[2], []).append(item)
    found, unknown = [], []
    for each in answers:
        ends = by_end.get(each.item.rpartition("/")[2], [])
        known = next(
            (name for name in (each.item, printable(each.item)) if name in session.row_of),
            ends[0] if len(ends) == 1 and "/" not in each.item else None,
        )
        if known is None:
            unknown.append(each.item)
        else:
            found.append(
                Answer(
                    known,
                    each.answer,
                    each.reviewer or otherwise,
                    each.time or time,
                    "imported",
                    session.round,
                )
            )
    if unknown:
        others = f" (nor are {len(unknown) - 1} others)" if len(unknown) > 1 else ""
        raise DataError(
            f"{source} names '{unknown[0]}', which is not in the pool of {session.run}{others}. "
            "Correct the names, or remove the lines; nothing was imported."
        )
    _check_one_mind(found, source)
    have = {(each.item, each.answer, each.reviewer, each.time) for each in session.entries()}
    return [
        each for each in found if (each.item, each.answer, each.reviewer, each.time) not in have
    ]


def _check_one_mind(answers: Sequence[Answer], source: str) -> None:
    """Refuse a file in which one person says two things of one item at the same time."""
    said: dict[tuple[str, str, str], Answer] = {}
    for each in filter(is_sure, answers):
        before = said.setdefault((each.item, each.reviewer, each.time), each)
        if before.answer != each.answer:
            raise DataError(
                f"In {source} {each.reviewer} calls '{each.item}' positive and negative at the "
                "same time. Remove the wrong line, or give each a time; nothing was imported."
            )
