"""A file is the old one or the new one, whatever happens in between."""

import errno
import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import OnesidedError
from onesided.storage.atomic import (
    half_written,
    publish,
    replacing,
    replacing_by_name,
    write_arrays,
    write_json,
    write_text,
)


def test_a_full_disk_leaves_the_old_file_and_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(OnesidedError, match=r"No space left.*intact"), replacing(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_an_error_while_a_file_is_computed_is_not_reported_as_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="out of memory"), replacing(tmp_path / "features"):
        raise RuntimeError("out of memory")
    assert not list(tmp_path.iterdir())


def test_the_old_file_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text(path, "old")
    with replacing(path) as file:
        file.write("né".encode())
        assert path.read_text() == "old"
        assert half_written(tmp_path, ["other"]) == []
        (part,) = half_written(tmp_path, ["file"])
        assert part.exists()
    assert path.read_text(encoding="utf-8") == "né"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_and_then_its_name_are_flushed_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []

    def fsync(number: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file"
        flushed.append(f"{kind}, {'renamed' if (tmp_path / 'file').exists() else 'not renamed'}")

    monkeypatch.setattr(os, "fsync", fsync)
    write_text(tmp_path / "file", "text")
    assert flushed == ["file, not renamed", "folder, renamed"]


@pytest.mark.parametrize(("reason", "raises"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_disk_that_cannot_flush_folders_is_written_to_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int, raises: bool
) -> None:
    flush = os.fsync

    def fsync(number: int) -> None:
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise OSError(reason, "no")
        flush(number)

    monkeypatch.setattr(os, "fsync", fsync)
    if raises:
        with pytest.raises(OnesidedError, match="Cannot write"):
            write_text(tmp_path / "file", "text")
    else:
        write_text(tmp_path / "file", "text")
        assert (tmp_path / "file").read_text() == "text"


def test_who_opens_files_by_name_gets_one_with_the_right_ending(tmp_path: Path) -> None:
    with replacing_by_name(tmp_path / "map.gpkg", ".gpkg") as part:
        assert part.suffix == ".gpkg"
        part.write_bytes(b"layers")
    assert [path.name for path in tmp_path.iterdir()] == ["map.gpkg"]


def test_json_is_read_back_and_holds_no_number_that_others_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_json(path, {"auc": 0.5})
    assert json.loads(path.read_bytes()) == {"auc": 0.5}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"auc": float("inf")})
    assert json.loads(path.read_bytes()) == {"auc": 0.5}


def test_arrays_are_read_back(tmp_path: Path) -> None:
    write_arrays(tmp_path / "scores.npz", {"train": np.arange(3)})
    with np.load(tmp_path / "scores.npz", allow_pickle=False) as archive:
        assert archive["train"].tolist() == [0, 1, 2]


def test_what_grew_by_itself_is_published_under_its_name(tmp_path: Path) -> None:
    (tmp_path / "crops.part").write_bytes(b"pixels")
    publish(tmp_path / "crops.part", tmp_path / "crops")
    assert [path.name for path in tmp_path.iterdir()] == ["crops"]


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("PytorchStreamWriter failed: No space left on device"),
        ValueError("database or disk is full"),
    ],
)
def test_a_full_disk_is_told_as_one_in_whose_words_ever(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(OnesidedError, match="No space left on device"), replacing(tmp_path / "x"):
        raise error


def test_the_reason_of_a_refusal_may_be_behind_another_error(tmp_path: Path) -> None:
    def write() -> None:
        try:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise RuntimeError("unexpected pos 2817408 vs 2817304") from error

    with pytest.raises(OnesidedError, match="No space left"), replacing(tmp_path / "last.pt"):
        write()
