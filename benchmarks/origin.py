"""Rows of a result file, measured one by one; earlier rows of the same origin are kept."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import onesided
from onesided.bench.origin import Origin, code_in_memory, commit, machine, origin, origin_of_run
from onesided.storage.atomic import read_json, write_json

__all__ = ["Origin", "code_in_memory", "commit", "filled", "machine", "origin", "origin_of_run"]
Content = dict[str, Any]
Row = dict[str, Any]
Asked = TypeVar("Asked", str, int)


def same_origin(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two origins have the same committed code on the same machine.

    Only then are their times and memory comparable. Uncommitted code never is: it has no name to
    compare by.
    """
    committed = one["dirty"] is False and other["dirty"] is False
    return committed and all(one[key] == other[key] for key in ("commit", "machine", "versions"))


def filled(
    path: Path,
    head: Mapping[str, Any],
    *,
    key: str,
    asked: Sequence[Asked],
    measure: Callable[[Asked], Row],
    code: Path = Path(onesided.__file__).parent,
) -> Content:
    """Return the content of a result file with all rows; measure those that are missing.

    The file is written after each row, so a later start resumes. Rows of another commit, machine,
    version or setting are measured again. An interrupted row starts again: peak memory is that of
    a whole process. The earlier file stays until the first new row is measured.

    Args:
        path: The result file.
        head: Its content without the rows: `origin` and the settings.
        key: The column that names a row.
        asked: Names of the rows, in order.
        measure: Returns the row of a name.
        code: A folder of the checkout whose code is measured.
    """
    content = _begun(path, head)
    rows: dict[Asked, Row] = {row[key]: row for row in content["rows"]}
    for one in asked:
        if one in rows:
            print(f"{key} {one}: kept, measured earlier at this commit", file=sys.stderr)
        else:
            rows[one] = measure(one)
            # New processes are measured. They run the code as it is on disk now.
            if content["origin"]["dirty"] is False:
                content["origin"]["dirty"] = commit(code)["dirty"]
        content["rows"] = [rows[other] for other in asked if other in rows]
        write_json(path, content)
    return content


def _begun(path: Path, head: Mapping[str, Any]) -> Content:
    """Return the file's content if origin and settings are the same, else the head alone."""
    if path.exists():
        before = read_json(path)
        comparable = same_origin(before["origin"], head["origin"])
        if comparable and _settings(before) == _settings(head):
            return before
    return {**head, "origin": dict(head["origin"]), "rows": []}


def _settings(content: Mapping[str, Any]) -> Content:
    return {key: value for key, value in content.items() if key not in ("rows", "origin")}
