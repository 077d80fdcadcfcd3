import os
from pathlib import Path

import pytest

from onesided.core.errors import CheckpointError
from onesided.storage import json_files
from onesided.storage.atomic import read_json
from onesided.storage.json_files import json_in


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"a": NaN}', b'{"a": -Infinity}', b"[" * 100_000, b"9" * 10_000, b"\xff\xfe{}"],
)
def test_every_fault_of_a_file_is_a_value_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"\w"):
        json_in(path)
    with pytest.raises(CheckpointError, match="is damaged"):
        read_json(path)


def test_programs_that_write_nan_are_understood_where_it_is_harmless(tmp_path: Path) -> None:
    (tmp_path / "file.json").write_text('\ufeff{"height": NaN}', encoding="utf-8")
    assert str(json_in(tmp_path / "file.json", may_hold_nan=True)) == "{'height': nan}"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(ValueError, match="not a file"):
        json_in(tmp_path / "pipe.json")


def test_an_absurdly_large_file_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_files, "LARGEST", 10)
    (tmp_path / "file.json").write_text('{"a": [1, 2, 3]}')
    with pytest.raises(ValueError, match="16 bytes are more than the 10 allowed"):
        json_in(tmp_path / "file.json")
