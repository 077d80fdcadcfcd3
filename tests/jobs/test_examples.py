"""The examples in the docstrings of the package's functions run as they are written."""

import doctest
from pathlib import Path

import pytest

import onesided
from tests.cli.pictures import draw
from tests.geo.fakes import write_geotiff_scene

FUNCTIONS = (
    *("fit", "evaluate", "rank", "estimate_prior", "embed", "map_buildings", "PUClassifier"),
    *("audit_draw", "audit_estimate", "ReviewSession", "export"),
)
ENDLESS = ("serve",)
"""Without an example, because they run until somebody stops them."""


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the examples name."""
    scene = write_geotiff_scene(tmp_path / "scene", seed=1, size=512, buildings=72)
    for name, path in (("post.tif", scene.post), ("buildings.gpkg", scene.gpkg)):
        path.rename(tmp_path / name)
    scene.positives.rename(tmp_path / "damaged.csv")
    for number in range(12):
        draw(tmp_path / "images" / f"{number}.png", number)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("workplace")
@pytest.mark.slow
def test_the_examples_do_what_they_say_one_after_the_other() -> None:
    for name in FUNCTIONS:
        found = doctest.DocTestFinder(recurse=False).find(getattr(onesided, name), name)
        assert sum(len(test.examples) for test in found) >= 2, f"{name} has no example"
        runner = doctest.DocTestRunner()
        for test in found:
            runner.run(test)
        assert runner.summarize(verbose=False).failed == 0, name


def test_everything_exported_is_there_and_says_what_it_does() -> None:
    assert {*FUNCTIONS, *ENDLESS, "__version__"} == set(onesided.__all__)
    assert all(getattr(onesided, name).__doc__ for name in (*FUNCTIONS, *ENDLESS))
    with pytest.raises(AttributeError, match="has no attribute 'magic'"):
        onesided.magic  # noqa: B018
