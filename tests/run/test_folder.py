import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from onesided.core.config import read_toml
from onesided.core.errors import DataNotFound, FolderTaken, OnesidedError
from onesided.run.config import RunConfig
from onesided.run.folder import (
    MANIFEST,
    OURS,
    RESULT,
    RunFolder,
    check_place,
    environment,
    read_result,
    working_in,
)
from onesided.storage.atomic import read_json, write_json

CONFIG = RunConfig.from_settings({"data": {"name": "digits"}})


def claimed(path: Path, identity: str = "mine") -> RunFolder:
    folder = RunFolder(path, identity)
    folder.claim(overwrite=False)
    folder.describe(CONFIG, [("train-positive", "a.png")], {"seed": 0})
    return folder


def test_a_claimed_folder_says_what_the_run_is(tmp_path: Path) -> None:
    claimed(tmp_path / "new" / "run")
    written = tmp_path / "new" / "run"
    assert RunConfig.from_settings(read_toml(written / "config.toml")) == CONFIG
    assert (written / "split.csv").read_text() == "item,role\na.png,train-positive\n"
    manifest = read_json(written / MANIFEST)
    assert (manifest["identity"], manifest["seed"]) == ("mine", 0)
    assert {"python", "torch", "numpy"} <= set(manifest["versions"])


def test_the_same_run_comes_back_and_another_does_not(tmp_path: Path) -> None:
    claimed(tmp_path)
    RunFolder(tmp_path, "mine").claim(overwrite=False)
    with pytest.raises(OnesidedError, match=r"holds another run .*--overwrite"):
        RunFolder(tmp_path, "yours").claim(overwrite=False)
    assert read_json(tmp_path / MANIFEST)["identity"] == "mine"


def test_other_samples_to_evaluate_by_are_refused_as_such(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "mine", "these")
    folder.describe(CONFIG, [], {})
    folder.claim(overwrite=False)
    other = RunFolder(tmp_path, "mine", "those")
    with pytest.raises(OnesidedError, match=r"but the samples that evaluate it .*changed"):
        other.claim(overwrite=False)
    other.claim(overwrite=True)
    assert not (tmp_path / MANIFEST).exists()


def test_a_run_from_before_held_out_samples_were_hashed_resumes(tmp_path: Path) -> None:
    claimed(tmp_path)
    manifest = read_json(tmp_path / MANIFEST)
    del manifest["held_out_hash"]
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    RunFolder(tmp_path, "mine", "those").claim(overwrite=False)


def test_a_run_owns_its_folder_from_the_first_file_on(tmp_path: Path) -> None:
    # A folder where config.toml should be stands for a disk that fills up after one file.
    (tmp_path / "run" / "config.toml").mkdir(parents=True)
    with pytest.raises(OnesidedError, match="Cannot write"):
        RunFolder(tmp_path / "run", "mine").describe(CONFIG, [], {})
    (tmp_path / "run" / "config.toml").rmdir()
    claimed(tmp_path / "run")
    assert (tmp_path / "run" / "split.csv").exists()


def test_files_of_others_are_refused_and_survive_overwriting(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(OnesidedError, match="is not empty and holds no run"):
        check_place(tmp_path)
    for name in OURS:
        (tmp_path / name).write_text("old")
    (tmp_path / ".last.pt.123.part").write_text("half")
    RunFolder(tmp_path, "mine").claim(overwrite=True)
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_a_file_of_ours_without_a_manifest_is_taken_for_foreign(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("my own recipe")
    with pytest.raises(OnesidedError, match="holds no run"):
        check_place(tmp_path)
    assert (tmp_path / "config.toml").read_text() == "my own recipe"


def test_leftovers_of_a_killed_process_neither_hinder_nor_stay(tmp_path: Path) -> None:
    (tmp_path / ".manifest.json.123.part").write_text("{")
    claimed(tmp_path)
    (tmp_path / ".last.pt.123.part").write_text("half a checkpoint")
    RunFolder(tmp_path, "mine").claim(overwrite=False)
    assert not list(tmp_path.glob(".*"))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for overwrite in (False, True):
        with pytest.raises(OnesidedError, match="is a file"):
            check_place(tmp_path / "file", overwrite=overwrite)
        with pytest.raises(OnesidedError, match="Cannot make the folder"):
            RunFolder(tmp_path / "file" / "run", "mine").claim(overwrite=overwrite)


def test_a_run_is_finished_when_it_has_a_result(tmp_path: Path) -> None:
    folder = claimed(tmp_path)
    assert folder.finished() is None
    result = {
        **{"method": "ce", "seed": 0, "scenario": "single-set", "threshold": 0.5},
        **{"test": None, "pu": None, "warnings": []},
    }
    write_json(folder.path / RESULT, result)
    assert folder.finished() == result
    for key in result:
        write_json(folder.path / RESULT, {other: result[other] for other in result if other != key})
        with pytest.raises(OnesidedError, match=f"lacks '{key}'"):
            read_result(tmp_path)


def test_json_never_holds_what_other_programs_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / RESULT, {"auc": float("nan")})
    assert not (tmp_path / RESULT).exists()


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", "3", '"text"'])
def test_a_damaged_file_is_named_with_the_way_out(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(OnesidedError, match=f"{MANIFEST}.*--overwrite"):
        read_json(tmp_path / MANIFEST)


def test_a_missing_file_is_reported_as_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path, tmp_path / "no", tmp_path / "file"):
        with pytest.raises(DataNotFound, match="finish it with the same fit command"):
            read_json(folder / RESULT)


def test_the_environment_is_json_whatever_the_command_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["onesided", "fit", "-p", "not\udcffutf8"])
    found = json.loads(json.dumps(environment()))
    assert found["command"] == ["onesided", "fit", "-p", "not\\xffutf8"]


def test_one_command_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    def work() -> None:
        with working_in(tmp_path / "run"):
            pass

    with ThreadPoolExecutor(1) as another:
        with working_in(tmp_path / "run"):
            with pytest.raises(FolderTaken, match="Another command is at work in"):
                work()  # a job holds its folder once
            with pytest.raises(FolderTaken, match="Another command is at work in"):
                another.submit(work).result()
        another.submit(work).result()
    assert not list((tmp_path / "run").iterdir()), "a lock leaves nothing behind"


def test_what_a_kill_left_of_a_fold_is_removed_by_the_next_start(tmp_path: Path) -> None:
    part = tmp_path / "search" / "linear" / ".4.npz.4711.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"half of the scores")
    RunFolder(tmp_path, "mine").claim(overwrite=False)
    assert not part.exists()
