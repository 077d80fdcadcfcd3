"""docs/design.md describes the house as it stands: its rooms, and the path of one training."""

import re
import sys
import threading
from pathlib import Path
from types import FrameType

import pytest

import onesided
from tests.cli.command import call
from tests.cli.pictures import draw_data

PAGE = Path(__file__).parents[2] / "docs" / "design.md"
PACKAGE = Path(onesided.__file__).parent
HOP = re.compile(r"^\d+\. `([a-z_/]+\.py):([\w.]+)`", re.M)


SEARCH_HOP = re.compile(r"^- `([a-z_/]+\.py):([\w.]+)`", re.M)


def described(hop: re.Pattern[str] = HOP) -> list[tuple[str, str]]:
    """Return the hops of the page: file and function, in order."""
    return hop.findall(PAGE.read_text(encoding="utf-8"))


def walked(*words: object) -> list[tuple[str, str]]:
    """Return each of our functions at its first call, while a command runs."""
    seen: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        # Called for every new frame; nothing is returned, so that no line is traced.
        if frame.f_code.co_filename.startswith(str(PACKAGE)):
            file = Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix()
            seen.setdefault((file, frame.f_code.co_qualname))

    threading.settrace(note)  # batches are made in a thread of their own
    sys.settrace(note)
    try:
        outcome = call(*words)
    finally:
        sys.settrace(None)
        threading.settrace(None)
    assert outcome.exit_code == 0, outcome.err
    return list(seen)


def test_one_training_walks_the_path_that_the_page_describes(tmp_path: Path) -> None:
    data, hops = draw_data(tmp_path / "data"), described()
    assert len(hops) >= 20
    path = walked(
        *("fit", "-p", data / "P", "-u", data / "U", "-o", tmp_path / "run"),
        *("--method", "nnpu", "--epochs", "1", "--allow-degenerate"),
        *("--set", "backbone.width=0.125", "--set", "train.batch_size=16"),
    )
    missing = [f"{file}:{function}" for file, function in hops if (file, function) not in path]
    assert not missing
    assert [hop for hop in path if hop in hops] == hops


@pytest.mark.slow
def test_a_search_walks_the_path_that_the_page_describes(tmp_path: Path) -> None:
    data, hops = draw_data(tmp_path / "data"), described(SEARCH_HOP)
    assert len(hops) >= 8
    path = walked("fit", "-p", data / "P", "-u", data / "U", "-o", tmp_path / "run")
    assert [hop for hop in path if hop in hops] == hops


def test_every_package_has_its_line_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    packages = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py")}
    folders = {*packages, Path("recipes"), Path("presets")} - {Path()}
    assert not [str(folder) for folder in folders if f"{folder.as_posix()}/" not in page]
