"""Commit and machine of a number; rows of a result file are kept only from the same origin."""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.origin import Content, Row, commit, filled, machine, origin

ASKED = ("quick", "standard", "evening")
UNCHANGED: Mapping[str, Any] = {}


def git(folder: Path, *words: str) -> str:
    name = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    command = ["git", "-C", str(folder), *name, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("missed: commits of result files; install git to run it")
    for name in ("src/onesided/code.py", "benchmarks/results/methods.json", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("first\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "First")
    return tmp_path


def test_committed_code_is_clean(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    assert commit(checkout / "src" / "onesided") == {"commit": head, "dirty": False}


@pytest.mark.parametrize("name", ["src/onesided/code.py", "src/onesided/new.py", "pyproject.toml"])
def test_changed_or_new_code_is_dirty(checkout: Path, name: str) -> None:
    (checkout / name).write_text("second\n")
    assert commit(checkout / "src" / "onesided")["dirty"] is True


@pytest.mark.parametrize("name", ["benchmarks/results/methods.json", "README.md", "notes.txt"])
def test_files_that_change_no_number_do_not_make_it_dirty(checkout: Path, name: str) -> None:
    (checkout / name).write_text("second\n")
    assert commit(checkout / "src" / "onesided")["dirty"] is False


def test_outside_a_checkout_nothing_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else git would find a repository that the folder of temporary files lies in.
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commit(tmp_path) == {"commit": None, "dirty": None}


def test_the_machine_has_a_processor_cores_and_memory() -> None:
    here = machine()
    assert here["cpu"]
    assert here["cores"] >= 1
    assert here["memory_gb"] > 0.1


class Gauge:
    """Measures the length of a word, notes what it was asked, and may stop at one of them."""

    def __init__(self, stop_at: str | None = None) -> None:
        self.measured: list[str] = []
        self.stop_at = stop_at

    def __call__(self, word: str) -> Row:
        if word == self.stop_at:
            raise KeyboardInterrupt
        self.measured.append(word)
        return {"word": word, "length": len(word)}


Start = Callable[..., Content]


@pytest.fixture
def result(checkout: Path) -> Path:
    return checkout / "result.json"


@pytest.fixture
def start(checkout: Path, result: Path) -> Start:
    def call(
        measure: Callable[[str], Row],
        *,
        asked: tuple[str, ...] = ASKED,
        place: Mapping[str, Any] = UNCHANGED,
        settings: Mapping[str, Any] = UNCHANGED,
    ) -> Content:
        here = {**origin(), **commit(checkout), **place}
        head = {"title": "Words", "side": 64, "origin": here, **settings}
        return filled(result, head, key="word", asked=asked, measure=measure, code=checkout)

    return call


def lengths(content: Content) -> dict[str, int]:
    return {row["word"]: row["length"] for row in content["rows"]}


def written(result: Path) -> Content:
    content: Content = json.loads(result.read_text())
    return content


def test_an_interrupted_measurement_keeps_its_rows_and_goes_on(start: Start, result: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        start(Gauge(stop_at="evening"))
    assert lengths(written(result)) == {"quick": 5, "standard": 8}
    rest = Gauge()
    content = start(rest)
    assert rest.measured == ["evening"]
    assert lengths(content) == {"quick": 5, "standard": 8, "evening": 7}
    assert written(result) == content


def test_what_is_measured_in_full_is_not_measured_again(start: Start, result: Path) -> None:
    start(Gauge(), place={"date": "2026-01-02T03:04:05+00:00"})
    before = result.read_text()
    again = Gauge()
    start(again)
    assert again.measured == []
    assert result.read_text() == before


@pytest.mark.parametrize(
    ("place", "settings"),
    [
        ({"commit": "b" * 40}, {}),
        ({"machine": {"cpu": "another", "cores": 64}}, {}),
        ({"versions": {"torch": "1.0"}}, {}),
        ({}, {"side": 32}),
        ({}, {"bound_mb": 960}),
    ],
    ids=["commit", "machine", "versions", "setting", "new setting"],
)
def test_what_was_made_otherwise_is_measured_anew(
    start: Start, place: dict[str, Any], settings: dict[str, Any]
) -> None:
    start(Gauge())
    anew = Gauge()
    start(anew, place=place, settings=settings)
    assert anew.measured == [*ASKED]


@pytest.mark.parametrize("later", [True, False], ids=["uncommitted still", "committed since"])
@pytest.mark.parametrize("dirty", [True, None], ids=["uncommitted", "no checkout"])
def test_rows_of_uncommitted_code_are_never_kept(
    start: Start, dirty: bool | None, later: bool
) -> None:
    start(Gauge(), place={"dirty": dirty})
    anew = Gauge()
    start(anew, place={"dirty": dirty if later else False})
    assert anew.measured == [*ASKED]


def test_code_that_was_changed_while_it_was_measured_counts_as_uncommitted(
    start: Start, checkout: Path
) -> None:
    gauge = Gauge()

    def while_editing(word: str) -> Row:
        (checkout / "src" / "onesided" / "code.py").write_text("second\n")
        return gauge(word)

    assert start(while_editing)["origin"]["dirty"] is True
    git(checkout, "checkout", "--quiet", "src")
    anew = Gauge()
    start(anew)
    assert anew.measured == [*ASKED]


def test_rows_are_those_asked_for_in_their_order(start: Start, result: Path) -> None:
    start(Gauge())
    fewer = Gauge()
    start(fewer, asked=("evening", "paper", "quick"))
    assert fewer.measured == ["paper"]
    assert list(lengths(written(result))) == ["evening", "paper", "quick"]


def test_an_earlier_file_stays_until_there_is_a_row_in_its_place(
    start: Start, result: Path
) -> None:
    start(Gauge())
    before = result.read_text()
    with pytest.raises(KeyboardInterrupt):
        start(Gauge(stop_at="quick"), settings={"side": 32})
    assert result.read_text() == before
