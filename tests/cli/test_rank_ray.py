"""Ray as the engine: the same rows and scores as one process, resumed by either of them.

What a kill costs is in tests/campaigns/ray_kills.py.
"""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import ConfigError
from onesided.geo.scene.sources import MapSources
from onesided.jobs.map import in_pieces
from onesided.jobs.rank import rank
from onesided.jobs.region import Wanted
from onesided.run.ray_engine import RayEngine, engine_named
from onesided.storage.sorting import read_records, record_offsets, write_records
from tests.cli.command import assert_refused, call

CHUNK = 1024


def test_places_of_chunks_are_those_of_their_first_records(tmp_path: Path) -> None:
    records = [bytes(number % 7) for number in range(50)]
    write_records(tmp_path / "listing", records)
    for number, offset in enumerate(record_offsets(tmp_path / "listing", 8)):
        assert list(read_records(tmp_path / "listing", offset)) == records[8 * number :]
    assert number == 6


def test_engines_that_cannot_be_are_refused(trained: Path, data: Path) -> None:
    with pytest.raises(ConfigError, match="expected local or ray"):
        engine_named("spark", workers=2, address=None)
    with pytest.raises(ConfigError, match="workers is 0"):
        RayEngine(0)
    refused = call("rank", trained, data / "U", "--address", "auto")
    assert_refused(refused, "add --engine ray")


@pytest.mark.parametrize(
    "words",
    [
        ("rank", "{run}", "{data}/U"),
        ("embed", "{data}/U", "-o", "a.npy"),
        ("map", "--image", "a.tif", "--footprints", "b.gpkg", "-o", "c.gpkg"),
        ("bench", "run", "ncpu/table2", "--scale", "smoke", "-o", "results"),
    ],
    ids=lambda words: words[0],
)
def test_without_ray_a_command_says_which_extra_to_install(
    words: tuple[str, ...], trained: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as where it is not installed
    given = [word.format(run=trained, data=data) for word in words]
    assert_refused(call(*given, "--engine", "ray"), "pip install 'onesided[ray]'")


def test_a_cluster_that_is_not_there_is_named(trained: Path, data: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="pip install 'onesided[ray]'")
    words = ("--engine", "ray", "--address", "127.0.0.1:9", "-o", tmp_path / "ranked.csv")
    refused = call("rank", trained, data / "U", *words)
    assert_refused(refused, "There is no Ray cluster at 127.0.0.1:9")
    assert not list(tmp_path.glob("ranked*"))


def test_what_is_no_region_is_not_scored_by_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="pip install 'onesided[ray]'")
    given = ("--image", "a.tif", "--footprints", "b.gpkg", "--no-region", "--engine", "ray")
    assert_refused(call("map", *given, "-o", tmp_path / "c.gpkg"), "leave out --no-region")
    with pytest.raises(ConfigError, match="--engine ray take --image and --footprints"):
        in_pieces(MapSources(points=tmp_path), None, Wanted(tmp_path / "c.gpkg"), region=True)


def rows_of(path: Path) -> list[tuple[str, str, str, str]]:
    with path.open(newline="") as file:
        return [tuple(row) for row in csv.reader(file)]  # type: ignore[misc]


def table(path: Path, rows: int) -> Path:
    random = np.random.default_rng(0)
    positive = np.arange(rows) % 5 == 0
    numbers = random.standard_normal((rows, 3)) + positive[:, None]
    lines = ["id,a,b,c,label"]
    for row, (a, b, c) in enumerate(numbers):
        label = "positive" if positive[row] else "unlabelled"
        # A gap here and there: such rows are listed as skipped.
        lines.append(f"i{row},{a},{b},{'' if row and row % 999 == 0 else c},{label}")
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ray")
    words = ("--method", "forest", "-o", folder / "run", "-q", "--allow-degenerate")
    fitted = call("fit", "--table", table(folder / "training.csv", 300), *words)
    assert fitted.exit_code == 0, fitted.err
    return folder / "run"


@pytest.mark.slow
def test_two_workers_give_the_rows_and_scores_of_one_process(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="pip install 'onesided[ray]'")
    items = table(tmp_path / "items.csv", 6 * CHUNK)
    one = rank(run, items, tmp_path / "one.csv")
    two = rank(run, items, tmp_path / "two.csv", engine="ray", workers=2)
    assert rows_of(tmp_path / "one.csv") == rows_of(tmp_path / "two.csv")
    assert (one.items, one.skipped) == (two.items, two.skipped)
    assert rows_of(tmp_path / "one.skipped.csv") == rows_of(tmp_path / "two.skipped.csv")


@pytest.mark.slow
def test_ray_resumes_what_one_process_began(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="pip install 'onesided[ray]'")
    items = table(tmp_path / "items.csv", 5 * CHUNK)
    rank(run, items, tmp_path / "one.csv")
    with monkeypatch.context() as patched:
        from onesided.run import rank as module

        entries = iter(range(2))
        true = module.entry_of

        def stops(*given: object) -> object:
            next(entries)  # StopIteration at the third chunk
            return true(*given)  # type: ignore[arg-type]

        patched.setattr(module, "entry_of", stops)
        with pytest.raises((StopIteration, RuntimeError)):
            rank(run, items, tmp_path / "two.csv")
    assert (tmp_path / "two.csv.partial").is_dir()
    rank(run, items, tmp_path / "two.csv", engine="ray", workers=2)
    assert rows_of(tmp_path / "one.csv") == rows_of(tmp_path / "two.csv")
    assert not (tmp_path / "two.csv.partial").exists()
