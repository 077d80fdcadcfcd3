"""What every bad input is held to: exit code 2, one sentence, and nothing changed on disk."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Outcome, assert_refused, call

Damage = Callable[[Path], object]

# What leaks out of a program that did not foresee an input.
NOT_FOR_PEOPLE = ("Error(", "object at 0x", "<class", "NoneType", "site-packages", 'File "')


def state_of(folder: Path) -> dict[str, str]:
    """Return a hash of every file below a folder, and where links lead, by path."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            what = "special"
            if path.is_symlink():
                what = f"link to {path.readlink()}"
            elif path.is_dir():
                what = "folder"
            elif path.is_file():
                what = hashlib.sha256(path.read_bytes()).hexdigest()
            found[path.relative_to(folder).as_posix()] = what
    return found


def assert_refused_untouched(folder: Path, *words: object, said: str = "") -> Outcome:
    """Give the command; check that one sentence refuses it and that the folder is as before."""
    before = state_of(folder)
    outcome = call(*words)
    assert_refused(outcome, *([said] if said else []))
    assert_is_a_sentence(outcome.err.removeprefix("onesided: ").strip())
    assert state_of(folder) == before
    return outcome


def assert_is_a_sentence(text: str) -> None:
    """Check that a person can read a message: whole, of some length, and no debris in it."""
    assert "\n" not in text
    assert 20 <= len(text) <= 900, text
    assert not text.endswith((":", ",", "(")), text
    assert not [word for word in NOT_FOR_PEOPLE if word in text], text


def write(content: str | bytes) -> Damage:
    """Return what replaces a file's content."""
    raw = content.encode() if isinstance(content, str) else content
    return lambda path: path.write_bytes(raw)


def cut(kept: float) -> Damage:
    """Return what keeps so many bytes of a file, or such a share of them."""

    def damage(path: Path) -> None:
        whole = path.read_bytes()
        path.write_bytes(whole[: int(kept * len(whole)) if 0 < kept < 1 else int(kept)])

    return damage


def remove(path: Path) -> None:
    """Remove a file."""
    path.unlink()


def make_folder(path: Path) -> None:
    """Put a folder where the file was."""
    path.unlink()
    path.mkdir()


def put(key: str, value: object) -> Damage:
    """Return what sets an entry of a JSON file: `pu.figures`; NaN and such are written, too."""

    def damage(path: Path) -> None:
        content: dict[str, Any] = json.loads(path.read_text())
        *tables, last = key.split(".")
        inner = content
        for table in tables:
            inner = inner[table]
        inner[last] = value
        path.write_text(json.dumps(content))

    return damage


def drop(key: str) -> Damage:
    """Return what removes an entry of a JSON file."""

    def damage(path: Path) -> None:
        content = json.loads(path.read_text())
        del content[key]
        path.write_text(json.dumps(content))

    return damage


NO_JSON: Mapping[str, Damage] = {
    "missing": remove,
    "empty": write(""),
    "half of it": cut(0.5),
    "zero bytes": write(bytes(64)),
    "not UTF-8": write(b'{"method": "\xff"}'),
    "a list": write("[1, 2]"),
    "a number": write("5"),
    "null": write("null"),
    "nested without end": write("[" * 100_000),
    "a huge number": write('{"threshold": ' + "9" * 5000 + "}"),
    "a picture": write(b"\x89PNG\r\n\x1a\n" + bytes(100)),
    "a folder": make_folder,
}
"""Ways in which a file is no JSON object."""


def each(cases: Mapping[str, object]) -> pytest.MarkDecorator:
    """Parametrise a test by cases with readable names."""
    return pytest.mark.parametrize("case", list(cases.values()), ids=list(cases))
