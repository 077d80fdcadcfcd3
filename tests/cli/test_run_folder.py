import csv
import json
import os
import shutil
from pathlib import Path

import pytest
import torch

from onesided.storage.lock import alone
from tests.cli.command import assert_refused, call, contents, fit, unlisted
from tests.cli.pictures import draw


@pytest.fixture
def unfinished(run: Path) -> Path:
    """A run that was stopped after its last epoch: trained, and not evaluated."""
    (unlisted(run) / "result.json").unlink()
    return run


def test_a_folder_with_another_run_is_refused_and_stays(shared_data: Path, run: Path) -> None:
    before = contents(run)
    outcome = fit(shared_data, run, "--seed", "1")
    assert_refused(outcome, run, "holds another run", "--overwrite")
    assert contents(run) == before


def test_other_data_is_another_run(data: Path, run: Path) -> None:
    (data / "U" / "item00.png").unlink()
    before = contents(run)
    assert_refused(fit(data, run), "holds another run")
    assert contents(run) == before


@pytest.mark.parametrize("finished", [True, False])
def test_exchanged_held_out_pictures_do_not_give_other_figures_silently(
    data: Path, run: Path, finished: bool
) -> None:
    with (run / "split.csv").open(newline="") as file:
        held_out = [
            row["item"] for row in csv.DictReader(file) if row["role"] == "held-out-unlabelled"
        ]
    draw(data / held_out[0], seed=999)
    if not finished:
        (run / "result.json").unlink()
    before = contents(run)
    outcome = fit(data, run)
    assert_refused(outcome, run, "the samples that evaluate it", "changed since", "--overwrite")
    assert contents(run) == before
    # A folder of a version that kept no hash of them cannot know, and goes on.
    manifest = json.loads((run / "manifest.json").read_text())
    assert len(manifest.pop("held_out_hash")) == 64
    (unlisted(run) / "manifest.json").write_text(json.dumps(manifest))
    assert fit(data, run).exit_code == 0


def test_a_finished_run_of_before_there_were_rules_is_shown(data: Path, run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    del result["threshold_rule"]
    (unlisted(run) / "result.json").write_text(json.dumps(result))
    assert fit(data, run).exit_code == 0


def test_a_run_of_another_command_is_not_touched(data: Path, run: Path) -> None:
    before = contents(run)
    with alone(run):
        outcome = fit(data, run, "--overwrite", "--compare", "nnpu")
    assert_refused(outcome, "Another command is at work in", run)
    assert contents(run) == before


def test_the_place_of_the_data_is_no_part_of_a_run(data: Path, run: Path) -> None:
    before = contents(run)
    assert fit(data, run).exit_code == 0
    assert contents(run) == before


def test_a_folder_with_other_files_is_refused_and_stays(shared_data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter1.txt").write_text("years of work")
    assert_refused(fit(shared_data, folder), folder, "not empty", "holds no run")
    assert contents(folder) == {"chapter1.txt": b"years of work"}
    # Told before the data is read, which may take long.
    assert_refused(fit(tmp_path / "no-data", folder), folder, "not empty")


def test_overwriting_leaves_other_files_alone(shared_data: Path, run: Path) -> None:
    (run / "notes.txt").write_text("my notes")
    (run / "figures").mkdir()
    (run / "figures" / "one.svg").write_text("<svg/>")
    before = contents(run)
    assert fit(shared_data, run, "--seed", "1", "--overwrite").exit_code == 0
    after = contents(run)
    assert set(after) == set(before)
    assert after["notes.txt"] == b"my notes"
    assert after["figures/one.svg"] == b"<svg/>"
    assert after["model.safetensors"] != before["model.safetensors"]


def test_overwriting_starts_from_the_beginning(shared_data: Path, run: Path) -> None:
    before = contents(run)
    (run / "last.pt").write_bytes(b"garbage that must not be resumed from")
    (run / "manifest.json").write_text("{")
    (run / ".last.pt.99999.part").write_bytes(b"half of a checkpoint")
    assert fit(shared_data, run, "--overwrite").exit_code == 0
    after = contents(run)
    assert set(after) == set(before)
    assert after["model.safetensors"] == before["model.safetensors"]


@pytest.mark.parametrize("words", [(), ("--overwrite",)])
def test_a_file_is_no_folder(shared_data: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("precious")
    assert_refused(fit(shared_data, tmp_path / "file", *words), "is a file", "-o takes a folder")
    assert_refused(fit(shared_data, tmp_path / "file" / "run", *words), "Cannot make the folder")
    assert (tmp_path / "file").read_text() == "precious"


def test_a_folder_where_a_file_should_be_is_told(shared_data: Path, run: Path) -> None:
    (run / "scores.csv").unlink()
    (run / "scores.csv").mkdir()
    outcome = fit(shared_data, run, "--overwrite")
    assert_refused(outcome, "Cannot remove", run / "scores.csv")


class Touch:
    """What a hostile pickle holds: reading it carelessly would create a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return os.mkdir, (str(self.marker),)


def test_a_hostile_checkpoint_is_refused_and_never_executed(
    shared_data: Path, unfinished: Path, tmp_path: Path
) -> None:
    marker = tmp_path / "executed"
    state = torch.load(unfinished / "last.pt", weights_only=True)
    torch.save({**state, "method": Touch(marker)}, unfinished / "last.pt")
    before = contents(unfinished)
    outcome = fit(shared_data, unfinished)
    assert_refused(outcome, unfinished / "last.pt", "nothing in it was executed", "--overwrite")
    assert not marker.exists()
    assert contents(unfinished) == before
    # The file does what it threatens when it is read as most programs would.
    torch.load(unfinished / "last.pt", weights_only=False)
    assert marker.exists()


@pytest.mark.parametrize("kept", [0, 10, 5000, -1])
def test_a_truncated_checkpoint_is_refused(shared_data: Path, unfinished: Path, kept: int) -> None:
    whole = (unfinished / "last.pt").read_bytes()
    (unfinished / "last.pt").write_bytes(whole[:kept])
    before = contents(unfinished)
    assert_refused(fit(shared_data, unfinished), unfinished / "last.pt", "--overwrite")
    assert contents(unfinished) == before


def test_a_checkpoint_of_another_run_is_refused(shared_data: Path, unfinished: Path) -> None:
    state = torch.load(unfinished / "last.pt", weights_only=True)
    torch.save({**state, "identity": "another"}, unfinished / "last.pt")
    before = contents(unfinished)
    assert_refused(fit(shared_data, unfinished), "other settings or another split", "--overwrite")
    assert contents(unfinished) == before


@pytest.mark.parametrize("lost", ["position", "method", "tally"])
def test_a_checkpoint_that_lacks_a_part_is_refused(
    shared_data: Path, unfinished: Path, lost: str
) -> None:
    state = torch.load(unfinished / "last.pt", weights_only=True)
    del state[lost]
    torch.save(state, unfinished / "last.pt")
    assert_refused(fit(shared_data, unfinished), "damaged", lost)


def test_an_unfinished_run_goes_on_with_the_same_command(
    shared_data: Path, unfinished: Path, trained: Path
) -> None:
    assert fit(shared_data, unfinished).exit_code == 0
    assert contents(unfinished)["model.safetensors"] == contents(trained)["model.safetensors"]


def test_a_run_that_was_killed_at_its_very_start_starts_again(shared_data: Path, run: Path) -> None:
    for path in run.iterdir():
        if path.name != "manifest.json":
            path.unlink()
    (run / ".config.toml.4711.part").write_text("seed = ")
    assert fit(shared_data, run).exit_code == 0
    assert not (run / ".config.toml.4711.part").exists()


@pytest.mark.parametrize("name", ["manifest.json", "result.json"])
@pytest.mark.parametrize("content", ["", "{", "[]", "\udcff"])
def test_a_damaged_file_is_named_with_the_way_out(
    shared_data: Path, run: Path, name: str, content: str
) -> None:
    (run / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    before = contents(run)
    assert_refused(fit(shared_data, run), run / name, "--overwrite")
    assert contents(run) == before


def test_a_result_that_lacks_its_content_is_told(run: Path) -> None:
    (unlisted(run) / "result.json").write_text('{"method": "ce"}')
    assert_refused(call("evaluate", run), run / "result.json", "lacks 'seed'")


def test_report_is_made_again_from_the_files_of_a_run(run: Path) -> None:
    page = (run / "report.html").read_bytes()
    (run / "report.html").unlink()
    outcome = call("report", run)
    assert (outcome.exit_code, outcome.out) == (0, f"Report: {run / 'report.html'}\n")
    assert (run / "report.html").read_bytes() == page


def test_report_of_an_unfinished_run_is_refused(unfinished: Path, tmp_path: Path) -> None:
    assert_refused(call("report", unfinished), unfinished, "not finished")
    assert_refused(call("report", tmp_path / "no"), "no run folder", tmp_path / "no")


def test_a_moved_run_is_still_a_run(run: Path, tmp_path: Path, shared_data: Path) -> None:
    moved = Path(shutil.move(run, tmp_path / "moved"))
    assert call("evaluate", moved).exit_code == 0
    assert fit(shared_data, moved).exit_code == 0
