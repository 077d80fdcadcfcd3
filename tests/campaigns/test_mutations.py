"""The campaign of small faults: what it changes, what it leaves alone, and that tests notice."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.campaigns.mutations import OUTPUT, PAGE, REASONS, ROOT, mutants, mutated, own_tests, page


def every_change(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("tests.campaigns.mutations.ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(source)
    return [mutated(source, one.number) for one in mutants(path)]


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


@pytest.mark.skipif(not OUTPUT.exists(), reason="the campaign has no result file yet")
def test_the_page_says_what_the_result_file_says() -> None:
    content = json.loads(OUTPUT.read_text(encoding="utf-8"))
    reasons = tomllib.loads(REASONS.read_text(encoding="utf-8"))["survivor"]
    assert PAGE.read_text(encoding="utf-8") == page(content, reasons)
    assert all((ROOT / one["file"]).exists() for one in content["rounds"][0]["rows"])
