"""Which code made a number: the commit, and whether it was the committed code."""

import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.origin import commit, machine

needs_git = pytest.mark.skipif(
    shutil.which("git") is None, reason="missed: commits of result files; install git to run it"
)


def git(folder: Path, *words: str) -> str:
    name = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    command = ["git", "-C", str(folder), *name, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("src/onesided/code.py", "benchmarks/results/plugins.json", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("first\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "First")
    return tmp_path


@needs_git
def test_committed_code_is_clean(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    assert commit(checkout / "src" / "onesided") == {"commit": head, "dirty": False}


@needs_git
@pytest.mark.parametrize("name", ["src/onesided/code.py", "src/onesided/new.py", "pyproject.toml"])
def test_changed_or_new_code_is_dirty(checkout: Path, name: str) -> None:
    (checkout / name).write_text("second\n")
    assert commit(checkout / "src" / "onesided")["dirty"] is True


@needs_git
@pytest.mark.parametrize("name", ["benchmarks/results/plugins.json", "README.md", "notes.txt"])
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
