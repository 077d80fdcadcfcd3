"""Arrays of files: every claim is checked first, and every failure is one kind of error."""

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from onesided.storage import arrays as module
from onesided.storage.arrays import NoArrays, map_array, read_arrays


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    text = header.encode("latin1") + b"\n"
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def described(descr: str, shape: str) -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


def archive(members: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED, flags: int = 0) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    whole = bytearray(file.getvalue())
    if flags:  # of the central directory, which readers trust
        whole[whole.index(b"PK\x01\x02") + 8] |= flags
        whole[6] |= flags
    return bytes(whole)


def saved(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_what_numpy_writes_is_read(tmp_path: Path) -> None:
    written = {
        "a": np.arange(6.0).reshape(2, 3),
        "b": np.asfortranarray(np.eye(3)),
        "c": np.array(["x", "yy"]),
        "d": np.zeros((0, 4)),
        "e": np.array(True),
    }
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "all.npz", **written)  # type: ignore[arg-type]
        found = read_arrays(tmp_path / "all.npz")
        assert found.keys() == written.keys()
        assert all(np.array_equal(found[name], written[name]) for name in written)
    np.save(tmp_path / "one.npy", written["a"])
    assert np.array_equal(read_arrays(tmp_path / "one.npy")[""], written["a"])
    assert np.array_equal(map_array(tmp_path / "one.npy"), written["a"])


HOSTILE: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "something else": lambda: b"PDF-1.4",
    "an exabyte": lambda: npy(described("'<f8'", "(1000000000, 100000000)")),
    "texts of a gigabyte": lambda: npy(described("'<U268435456'", "(3,)")),
    "no bytes each": lambda: npy(described("'<U0'", "(1000000000000,)")),
    "more than a dimension holds": lambda: npy(
        described("'<f8'", "(0, 10**30)".replace("10**30", "1" + "0" * 30))
    ),
    "a negative side": lambda: npy(described("'<f8'", "(-1,)"), bytes(8)),
    "forty axes": lambda: npy(described("'<f8'", "(" + "1," * 40 + ")"), bytes(8)),
    "objects": lambda: npy(described("'|O'", "(1,)"), b"cos\nsystem\n"),
    "fields": lambda: npy(described("[('a', '<f8')]", "(1,)"), bytes(8)),
    "an open bracket": lambda: npy("{'descr': '<f8', 'shape': ((((("),
    "nested brackets": lambda: npy("(" * 5000 + ")" * 5000),
    "a long header": lambda: npy(described("'<f8'", "(1,)") + " " * 20_000, bytes(8)),
    "a header that is code": lambda: npy("__import__('os').system('true')"),
    "an unknown version": lambda: npy(described("'<f8'", "(1,)"), bytes(8), version=9),
    "too little": lambda: npy(described("'<f8'", "(4,)"), bytes(8)),
    "too much": lambda: npy(described("'<f8'", "(1,)"), bytes(9)),
    "an encrypted member": lambda: archive({"a.npy": saved(np.ones(3))}, flags=1),
    "a member of bytes": lambda: archive({"a.txt": b"hello"}),
    "another packing": lambda: archive({"a.npy": saved(np.ones(3))}, zipfile.ZIP_LZMA),
    "a bomb": lambda: archive({"a.npy": saved(np.zeros(2**24))}),
    "a broken checksum": lambda: archive({"a.npy": saved(np.ones(3))}, zipfile.ZIP_STORED).replace(
        np.ones(1).tobytes(), np.full(1, 2.0).tobytes(), 1
    ),
    "half an archive": lambda: archive({"a.npy": saved(np.ones(300))})[:-40],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_damaged_or_hostile_file_is_one_kind_of_error(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    path.write_bytes(HOSTILE[name]())
    with pytest.raises(NoArrays, match=r"\w"):
        read_arrays(path)
    with pytest.raises(NoArrays, match=r"\w"):
        map_array(path)


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.npy", saved(np.ones(1)))
        with pytest.warns(UserWarning, match="Duplicate"):
            packed.writestr("a.npy", saved(np.zeros(1)))
    with pytest.raises(NoArrays, match="two of its members are called 'a'"):
        read_arrays(path)


def test_a_thousand_members_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_MEMBERS", 2)
    np.savez(tmp_path / "three.npz", a=1, b=2, c=3)
    with pytest.raises(NoArrays, match="3 members"):
        read_arrays(tmp_path / "three.npz")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(NoArrays, match="not a file"):
        read_arrays(tmp_path / "pipe.npy")


def test_a_missing_file_stays_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_arrays(tmp_path / "none.npz")
