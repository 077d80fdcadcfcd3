"""The campaign of small faults: what it changes, what it leaves alone, and that tests notice."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.mutants import ROOT, behaviour, function_of, load, mutants, mutated
from tests.campaigns.mutations import OUTPUT, PAGE, REASONS, own_tests, page


def every_change(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("tests.campaigns.mutants.ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(source)
    return [ast.unparse(mutated(source, one.number)) for one in mutants(path)]


def test_each_mutant_has_one_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def f(x):\n    return x.mean() - 2 if x < 3 else -x"
    assert [one.splitlines()[1].strip() for one in every_change(source, tmp_path, monkeypatch)] == [
        "return x.mean() - 2 if not x < 3 else -x",
        "return x.mean() - 2 if x <= 3 else -x",
        "return x.mean() - 2 if x < 4 else -x",
        "return x.mean() + 2 if x < 3 else -x",
        "return x.sum() - 2 if x < 3 else -x",
        "return x.mean() - 3 if x < 3 else -x",
        "return x.mean() - 2 if x < 3 else --x",
    ]


def test_annotations_decorators_texts_and_messages_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        '@d(1)\ndef f(x: "n 2" = None) -> T[2]:\n    """Two."""\n    raise E("a" + str(1))\n'
        'N: int | None = g("a" + "b")'
    )
    assert every_change(source, tmp_path, monkeypatch) == []


def test_a_module_has_the_tests_of_its_name_and_those_that_import_it() -> None:
    assert own_tests("src/onesided/losses/risk.py") == ["tests/losses/test_risk.py"]
    assert "tests/data/problem/test_split_division.py" in own_tests(
        "src/onesided/data/problem/split.py"
    )


TWICE = """
def wrapped(function):
    return lambda *given: function(*given)

class Sum:
    @wrapped
    def twice(self, x):
        return [x + one for one in (x,)][0]

LIMIT = 3
"""


def test_a_fault_is_put_into_the_function_that_everybody_holds(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    found: dict[str, Any] = {}
    exec(compile(TWICE, str(path), "exec"), found)
    held = found["Sum"]().twice
    places = list(enumerate(behaviour(ast.parse(TWICE))))
    (place,) = (number for number, node in places if isinstance(node, ast.BinOp))
    assert held(5) == 10
    assert load(TWICE, place, path)
    assert held(5) == 0


def test_what_runs_at_import_lies_in_no_function(tmp_path: Path) -> None:
    places = enumerate(behaviour(ast.parse(TWICE)))
    place = max(number for number, node in places if isinstance(node, ast.Constant))
    assert function_of(TWICE, place) is None
    assert not load(TWICE, place, tmp_path / "module.py")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fault_is_found_slow_or_survives_in_a_function_and_at_import(tmp_path: Path) -> None:
    """In an interpreter of its own: the campaign forks, and forgets what is imported of ours."""
    source = (
        "LIMIT = 3\n\n\ndef capped(x):\n    while x > LIMIT + 0:\n        x = x - 1\n    return x\n"
    )
    claim = "from onesided.module import capped\n\n\ndef test_it():\n    assert capped(5) == 3\n"
    files = {"src/onesided/module.py": source, "tests/test_module.py": claim}
    for name in ("src/onesided/__init__.py", "tests/__init__.py", *files):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(files.get(name, ""))
    program = f"""
import pathlib
from tests.campaigns import mutants, warm
here = pathlib.Path({str(tmp_path)!r})
mutants.ROOT = warm.ROOT = here
warm.LEAST = 3
wanted = list(mutants.mutants(here / "src/onesided/module.py"))
for row in warm.fates(here, "src/onesided/module.py", ["tests/test_module.py"], wanted):
    print(row["line"], row["after"], row["fate"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "1 4 found",
        "5 x >= LIMIT + 0 found",
        "5 LIMIT - 0 survived",
        "5 1 found",
        "6 x + 1 too slow",
        "6 2 survived",
    ]


@pytest.mark.skipif(not OUTPUT.exists(), reason="the campaign has no result file yet")
def test_the_page_says_what_the_result_file_says() -> None:
    content = json.loads(OUTPUT.read_text(encoding="utf-8"))
    reasons = tomllib.loads(REASONS.read_text(encoding="utf-8"))["survivor"]
    assert PAGE.read_text(encoding="utf-8") == page(content, reasons)
    assert all((ROOT / one["file"]).exists() for one in content["rounds"][0]["rows"])
