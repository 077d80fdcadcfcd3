"""Rows of a result file that are measured one by one: each is written as soon as it is known.

A later start keeps the rows that it would measure alike: of the same commit, machine, versions
and settings. What was interrupted within a row begins the row anew, since the peak of memory is
that of a whole process.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import onesided
from benchmarks.origin import commit, same_place
from onesided.storage.atomic import read_json, write_json

Content = dict[str, Any]
Row = dict[str, Any]
Asked = TypeVar("Asked", str, int)


def filled(
    path: Path,
    head: Mapping[str, Any],
    *,
    key: str,
    asked: Sequence[Asked],
    measure: Callable[[Asked], Row],
    code: Path = Path(onesided.__file__).parent,
) -> Content:
    """Return the content with a row for all that is asked; measure what the file lacks.

    Nothing is written before the first row is there: until then the file is the earlier one.

    Args:
        path: The result file.
        head: Its content without the rows: where it was made (`origin`), and the settings.
        key: The entry of a row that says what was asked.
        asked: What to measure, in the order of the rows.
        measure: Returns the row of one of them.
        code: A folder of the checkout whose code is measured.
    """
    content = _begun(path, head)
    rows: dict[Asked, Row] = {row[key]: row for row in content["rows"]}
    for one in asked:
        if one in rows:
            print(f"{key} {one}: kept, it was measured at this commit before", file=sys.stderr)
        else:
            rows[one] = measure(one)
            # What is measured are new processes, which run the code as it lies there by now.
            if content["origin"]["dirty"] is False:
                content["origin"]["dirty"] = commit(code)["dirty"]
        content["rows"] = [rows[other] for other in asked if other in rows]
        write_json(path.parent / path.name, content)
    return content


def _begun(path: Path, head: Mapping[str, Any]) -> Content:
    """Return what the file holds if it was measured alike, else the head without rows."""
    if path.exists():
        before = read_json(path)
        alike = same_place(before["origin"], head["origin"])
        if alike and _settings(before) == _settings(head):
            return before
    return {**head, "origin": dict(head["origin"]), "rows": []}


def _settings(content: Mapping[str, Any]) -> Content:
    return {key: value for key, value in content.items() if key not in ("rows", "origin")}
