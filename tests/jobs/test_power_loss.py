"""Power is cut at every moment of a job that changes several files; the next start finds sense.

The states are those of `tests/storage/power_loss.py`: every legal one.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import onesided
from onesided.core.errors import CheckpointError
from onesided.engine.checkpoint import Checkpoints
from onesided.engine.log import EpochLog
from onesided.jobs.report import report as write_page
from onesided.report import is_fresh
from onesided.run.folder import LAST, LOG, MANIFEST, RESULT, RunFolder
from onesided.storage.own_file import CHECKSUMS, digest_of, read_checksums
from onesided.storage.together import recover, settle
from tests.cli.pictures import draw_data
from tests.geo.fakes import write_geotiff_scene
from tests.storage.power_loss import State, crash_states, laid_out, recorded

SETTINGS = {"backbone": {"width": 0.125}, "train": {"batch_size": 16, "device": "cpu"}}


def train(data: Path, output: Path, **given: object) -> None:
    onesided.fit(
        data / "P",
        data / "U",
        output=output,
        method="ce",
        epochs=2,
        settings=SETTINGS,
        **given,  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So few items that no map of features is computed."""
    return draw_data(tmp_path_factory.mktemp("items"), positives=14, unlabelled=34)


@pytest.fixture(scope="module")
def compared(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with one beside it."""
    run = tmp_path_factory.mktemp("runs") / "run"
    train(data, run, compare="nnpu", prior=0.3)
    return run


def contents(folder: Path) -> State:
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def next_start(run: Path) -> None:
    """Do what the same fit command does first."""
    settle(run)
    identity = ""
    if (run / MANIFEST).exists():
        identity = json.loads((run / MANIFEST).read_text())["identity"]
    RunFolder(run, identity).claim(overwrite=False)


def assert_agrees(run: Path) -> None:
    """Check that all files of a finished run speak of the same model, threshold and figures."""
    for name, digest in read_checksums(run).items():
        if name != "report.html" or (run / name).exists():
            assert digest_of(run / name) == digest, name
    result, model = (json.loads((run / name).read_text()) for name in (RESULT, "model.json"))
    assert result["threshold"] == model["threshold"]
    called = (run / "scores.csv").read_text().count(",positive")
    with np.load(run / "scores.npz", allow_pickle=False) as scores:
        above = (scores["train"][~scores["train_labelled"]] > result["threshold"]).sum()
        above += (scores["held_out"][~scores["held_out_labelled"]] > result["threshold"]).sum()
    assert called == above
    assert is_fresh(run) or not (run / "report.html").exists()


@pytest.mark.slow
def test_training_is_resumed_or_finished_from_every_state(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with recorded(tmp_path) as recorder:
        train(data, run)
    finished = epochs = 0
    for number, state in enumerate(crash_states(recorder)):
        cut = laid_out(state, tmp_path.with_name("cut")) / "run"
        if not cut.exists():
            continue
        next_start(cut)
        assert not list(cut.glob(".*.part")), number
        identity = ""
        if (cut / MANIFEST).exists():
            identity = json.loads((cut / MANIFEST).read_text())["identity"]
        saved = Checkpoints(cut / LAST, identity).load()
        if saved is not None:
            # The row after the checkpoint may be half written; those before it are whole.
            assert len(EpochLog(cut / LOG).rows()) >= saved.position.epoch
            epochs += 1
        if (cut / RESULT).exists():
            assert_agrees(cut)
            finished += 1
    assert finished
    assert epochs > finished


@pytest.mark.parametrize("job", ["evaluate", "report"])
@pytest.mark.slow
def test_a_finished_run_is_old_or_new_in_every_state(
    compared: Path, tmp_path: Path, job: str
) -> None:
    place = tmp_path / "place"
    run = Path(shutil.copytree(compared, place / "run"))
    before = contents(run)
    with recorded(place) as recorder:
        if job == "evaluate":
            onesided.evaluate(run, threshold="0.3")
        else:
            (run / "report.html").unlink()
            write_page(run)
    after, seen = contents(run), set[str]()
    for state in crash_states(recorder):
        cut = laid_out(state, tmp_path / "cut") / "run"
        settle(cut)
        assert_agrees(cut)
        assert_agrees(cut / "compare" / "nnpu")
        next_start(cut)
        now = contents(cut)
        if job == "evaluate":
            assert now in (before, after)
            seen.add("old" if now == before else "new")
        else:
            assert {key: now[key] for key in now if key != "report.html"} == {
                key: after[key] for key in after if key != "report.html"
            }
            seen.add("page" if now.get("report.html") == after["report.html"] else "none")
    assert len(seen) == 2


def test_a_ranking_and_its_page_are_old_or_new_in_every_state(
    compared: Path, data: Path, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    names = ("ranked.csv", "ranked.html", "ranked.skipped.csv")
    for name in names:
        (place / name).write_text("old")
    with recorded(place) as recorder:
        onesided.rank(compared, data / "U", place / "ranked.csv", page=place / "ranked.html")
    after, seen = contents(place), set[str]()
    for state in crash_states(recorder):
        cut = laid_out(state, tmp_path / "cut")
        recover(cut, "ranked.csv")
        now = {name: (cut / name).read_bytes() for name in names}
        assert now in ({name: b"old" for name in names}, {name: after[name] for name in names})
        seen.add("old" if now["ranked.csv"] == b"old" else "new")
    assert seen == {"old", "new"}


def test_the_files_of_a_map_are_old_or_new_in_every_state(tmp_path: Path) -> None:
    scene = write_geotiff_scene(tmp_path / "town", seed=1, size=256, buildings=40, marked=12)
    place = tmp_path / "place"
    place.mkdir()
    names = ("out.gpkg", "out.geojson", "out.qml", "summary.csv", "map.html")
    for name in names:
        (place / name).write_text("old")
    with recorded(place) as recorder:
        onesided.map_buildings(
            image=scene.post,
            footprints=scene.gpkg,
            positives=scene.positives,
            size=16,
            method="ce",
            epochs=1,
            settings={"backbone": {"width": 0.125}, "train": {"batch_size": 8}},
            output=place / "out.gpkg",
            run=tmp_path / "run",
        )
    after, seen = contents(place), set[str]()
    for state in crash_states(recorder):
        cut = laid_out(state, tmp_path / "cut")
        recover(cut, "out.gpkg")
        now = {name: (cut / name).read_bytes() for name in names}
        assert now in ({name: b"old" for name in names}, {name: after[name] for name in names})
        seen.add("old" if now["map.html"] == b"old" else "new")
    assert seen == {"old", "new"}


FILES = ("model.safetensors", "model.json", "result.json", "scores.csv", "scores.npz", "report.npz")


def use(run: Path, name: str, data: Path) -> None:
    """Do what reads this file."""
    if name == "model.safetensors":
        onesided.rank(run, data / "U", run.with_name("ranked.csv"))
    else:
        onesided.evaluate(run, threshold="0.3")


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_told_in_one_sentence_with_the_remedy(
    compared: Path, data: Path, tmp_path: Path, name: str
) -> None:
    run = Path(shutil.copytree(compared, tmp_path / "run"))
    random, path = np.random.default_rng(0), run / name
    content = path.read_bytes()
    for place in random.integers(0, 8 * len(content), 5):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << int(place % 8)
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=rf"{name}.*(checksum|damaged).*(Restore|train)"):
            use(run, name, data)
    path.write_bytes(content)
    assert onesided.evaluate(run, threshold="0.3").result["threshold"] == 0.3


@pytest.mark.parametrize("name", ["model.safetensors", "model.json", "scores.csv", "scores.npz"])
@pytest.mark.parametrize("damage", ["gone", "half"])
def test_a_run_is_not_called_finished_where_a_file_of_it_is_damaged(
    compared: Path, data: Path, tmp_path: Path, name: str, damage: str
) -> None:
    run = Path(shutil.copytree(compared, tmp_path / "run"))
    content = (run / name).read_bytes()
    (run / name).unlink()
    if damage == "half":
        (run / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(CheckpointError, match=rf"{name} (is missing|does not have).*--overwrite"):
        train(data, run, compare="nnpu", prior=0.3)


def test_people_may_write_into_the_card_of_a_finished_run(
    compared: Path, data: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(compared, tmp_path / "run"))
    (run / "README.md").write_text("Ours.")
    (run / "report.html").unlink()
    train(data, run, compare="nnpu", prior=0.3)
    assert (run / "README.md").read_text() == "Ours."
    assert is_fresh(run)


def test_weights_alone_are_checked_by_the_description_beside_them(
    compared: Path, data: Path, tmp_path: Path
) -> None:
    for name in ("model.json", "model.safetensors"):  # a copy without the list of checksums
        shutil.copy(compared / name, tmp_path / name)
    weights = tmp_path / "model.safetensors"
    damaged = bytearray(weights.read_bytes())
    damaged[-1] ^= 1
    weights.write_bytes(damaged)
    with pytest.raises(CheckpointError, match=r"checksum that model\.json names"):
        onesided.rank(tmp_path, data / "U", tmp_path / "ranked.csv")


def test_a_page_is_fresh_by_content_and_not_by_time(compared: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(compared, tmp_path / "run"))
    assert is_fresh(run)
    (run / RESULT).touch()  # a copied folder has other times
    assert is_fresh(run)
    result = json.loads((run / RESULT).read_text())
    (run / RESULT).write_text(json.dumps({**result, "warnings": ["new"]}))
    (run / "report.html").touch()  # newer than what it should show, and yet stale
    assert not is_fresh(run)


def test_a_run_of_before_there_were_checksums_opens(
    compared: Path, data: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(compared, tmp_path / "run"))
    (run / CHECKSUMS).unlink()
    model = json.loads((run / "model.json").read_text())
    del model["weights_digest"]
    (run / "model.json").write_text(json.dumps(model))
    assert onesided.evaluate(run, threshold="0.4").result["threshold"] == 0.4
    assert onesided.rank(run, data / "U", tmp_path / "ranked.csv").items == 34
