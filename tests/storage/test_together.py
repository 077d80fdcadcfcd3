"""Files that belong together are old or new as a whole, whatever happens in between."""

import os
from pathlib import Path

import pytest

from onesided.core.errors import CheckpointError, FolderTaken, OnesidedError
from onesided.storage.atomic import write_text
from onesided.storage.lock import working_in
from onesided.storage.own_file import CHECKSUMS, read_own
from onesided.storage.together import pending, recover, settle, together, write_checksums
from tests.storage.power_loss import State, crash_states, laid_out, recorded

NAMES = ("model.json", "result.json", "scores.csv")


def change(folder: Path, text: str, *, checksums: bool = True) -> None:
    with together(folder) as new:
        for name in NAMES:
            write_text(new / name, text)
        (new / "compare" / "ce").mkdir(parents=True)
        write_text(new / "compare" / "ce" / "result.json", text)
        if checksums:
            write_checksums(new, folder)


def contents(folder: Path) -> State:
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_every_crash_state_of_a_change_is_recovered_to_the_old_or_the_new_files(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    change(run, "old")
    before = contents(run)
    with recorded(run) as recorder:
        change(run, "new and longer")
    after, found = contents(run), []
    for state in crash_states(recorder):
        cut = laid_out(state, tmp_path / "cut")
        settle(cut)  # as a reader does
        recover(cut)  # as a writer does
        now = contents(cut)
        assert now in (before, after), sorted(state)
        assert not any(path.exists() for path in pending(cut))
        found.append(now == after)
    assert len(found) > 50
    assert {True, False} == set(found)


def test_files_written_one_after_the_other_would_not_survive(tmp_path: Path) -> None:
    # The layer itself can find a fault: three whole files are a mixture in some state.
    run = tmp_path / "run"
    run.mkdir()
    for name in NAMES:
        write_text(run / name, "old")
    before = contents(run)
    with recorded(run) as recorder:
        for name in NAMES:
            write_text(run / name, "new")
    after = contents(run)
    seen = [{name: state.get(name) for name in NAMES} for state in crash_states(recorder)]
    assert any(now not in (before, after) for now in seen)


def test_a_file_without_a_flush_would_be_half_there(tmp_path: Path) -> None:
    with recorded(tmp_path) as recorder:
        (tmp_path / ".part").write_bytes(b"whole")
        os.replace(tmp_path / ".part", tmp_path / "file")
    held = {state.get("file") for state in crash_states(recorder)}
    assert held == {None, b"", b"wh", b"whole"}


def test_an_error_changes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    change(tmp_path, "old")
    before = contents(tmp_path)
    with pytest.raises(ZeroDivisionError), together(tmp_path) as new:
        write_text(new / "model.json", str(1 // 0))
    assert contents(tmp_path) == before
    assert not any(path.exists() for path in pending(tmp_path))


def test_a_change_that_could_not_be_completed_is_refused_before_it_counts(tmp_path: Path) -> None:
    (tmp_path / "result.json").mkdir()
    with pytest.raises(OnesidedError, match=r"Cannot write .*result\.json: it is a folder"):
        change(tmp_path, "new", checksums=False)
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_a_file_where_a_folder_is_needed_is_refused_before_the_change_counts(
    tmp_path: Path,
) -> None:
    (tmp_path / "files").write_text("a file")

    def change_inside() -> None:
        with together(tmp_path) as new:
            (new / "files").mkdir()
            write_text(new / "files" / "one.js", "new")

    with pytest.raises(OnesidedError, match=r"Cannot write .*one\.js: .*files is a file"):
        change_inside()
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


def test_a_reader_notices_a_mixture(tmp_path: Path) -> None:
    change(tmp_path, "old")
    (tmp_path / "model.json").write_text("new")
    assert read_own(tmp_path / "result.json") == b"old"
    with pytest.raises(CheckpointError, match="belongs to other files"):
        read_own(tmp_path / "model.json")


def test_a_folder_without_checksums_is_read_as_before(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("of an earlier version")
    assert read_own(tmp_path / "model.json") == b"of an earlier version"


def read_all(folder: Path) -> list[bytes]:
    return [read_own(folder / name) for name in NAMES]


@pytest.mark.parametrize("name", [*NAMES, CHECKSUMS])
@pytest.mark.slow
def test_every_flipped_bit_is_found(tmp_path: Path, name: str) -> None:
    change(tmp_path, "x")
    path = tmp_path / name
    content = path.read_bytes()
    for place in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"checksum|does not fit|damaged"):
            read_all(tmp_path)


def test_the_list_is_one_that_sha256sum_reads(tmp_path: Path) -> None:
    change(tmp_path, "old")
    *lines, last = (tmp_path / CHECKSUMS).read_text().splitlines()
    assert [line[64:] for line in lines] == [f"  {name}" for name in sorted(NAMES)]
    assert last.startswith("# ")


def test_a_change_waits_for_no_second_command(tmp_path: Path) -> None:
    with working_in(tmp_path), pytest.raises(FolderTaken), working_in(tmp_path):
        pass


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_pipe_or_folder_is_refused_and_never_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "result.json"
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    with pytest.raises(CheckpointError, match=f"it is a {kind}"):
        read_own(path)
