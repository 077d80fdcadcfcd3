"""The examples in the docstrings of the package's functions run as they are written."""

import doctest
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import onesided
from tests.cli.pictures import draw
from tests.geo.fakes import write_geotiff_scene

FUNCTIONS = ("fit", "evaluate", "rank", "estimate_prior", "map_buildings", "PUClassifier")


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with what the examples speak of; they follow one another, as in a session."""
    folder, before = tmp_path_factory.mktemp("session"), Path.cwd()
    scene = write_geotiff_scene(folder / "scene", seed=1, size=512, buildings=72)
    for name, path in (("post.tif", scene.post), ("buildings.gpkg", scene.gpkg)):
        path.rename(folder / name)
    scene.positives.rename(folder / "damaged.csv")
    for number in range(12):
        draw(folder / "images" / f"{number}.png", number)
    os.chdir(folder)
    yield folder
    os.chdir(before)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_example_does_what_it_says(name: str, workplace: Path) -> None:
    function = getattr(onesided, name)
    found = [test for test in doctest.DocTestFinder(recurse=False).find(function, name)]
    assert sum(len(test.examples) for test in found) >= 2, f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in found:
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_everything_exported_is_there_and_says_what_it_does() -> None:
    assert {*FUNCTIONS, "__version__"} == set(onesided.__all__)
    assert all(getattr(onesided, name).__doc__ for name in FUNCTIONS)
    with pytest.raises(AttributeError, match="has no attribute 'magic'"):
        onesided.magic  # noqa: B018
