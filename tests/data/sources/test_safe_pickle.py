import codecs
import contextlib
import os
import pickle
import subprocess
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onesided.core.errors import DataError
from onesided.data.sources.safe_pickle import read_pickle
from tests.data.sources.fakes import python2_pickle

NUMPY_1 = b"numpy.core.multiarray"
NUMPY_2 = b"numpy._core.multiarray"


def write(folder: Path, contents: bytes) -> Path:
    path = folder / "batch"
    path.write_bytes(contents)
    return path


class Calls:
    """Pickles as the order to call a function."""

    def __init__(self, function: Callable[..., Any], *arguments: object) -> None:
        self.order = (function, arguments)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        return self.order


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["u1", "<i8", ">i2", "f4", "?"])
def test_arrays_of_numbers_come_back_as_they_were(tmp_path: Path, protocol: int, kind: str) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(kind)
    read = read_pickle(write(tmp_path, pickle.dumps({"data": array}, protocol=protocol)))
    assert isinstance(read, dict)
    np.testing.assert_array_equal(read["data"], array)
    assert read["data"].dtype == array.dtype.newbyteorder("=")


@pytest.mark.parametrize("name", [NUMPY_1, NUMPY_2])
def test_old_and_new_numpy_are_understood(tmp_path: Path, name: bytes) -> None:
    contents = pickle.dumps(np.arange(5, dtype=np.uint8), protocol=2)
    renamed = contents.replace(NUMPY_2, name).replace(NUMPY_1, name)
    assert name in renamed
    np.testing.assert_array_equal(np.asarray(read_pickle(write(tmp_path, renamed))), range(5))


def test_arrays_stored_by_column_keep_their_order(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3))
    read = read_pickle(write(tmp_path, pickle.dumps(array, protocol=2)))
    np.testing.assert_array_equal(np.asarray(read), array)


def test_a_large_array_comes_back(tmp_path: Path) -> None:
    array = np.random.default_rng(0).integers(0, 256, (300, 3072), dtype=np.uint8)
    read = read_pickle(write(tmp_path, python2_pickle({"data": array})))
    assert isinstance(read, dict)
    np.testing.assert_array_equal(read["data"], array)


def test_text_of_python_2_comes_back_as_text(tmp_path: Path) -> None:
    read = read_pickle(write(tmp_path, python2_pickle({"names": ["cat", "dog"], "n": [1, 2]})))
    assert read == {"names": ["cat", "dog"], "n": [1, 2]}


def test_containers_and_plain_values_come_back(tmp_path: Path) -> None:
    value = {"a": [1, 2.5, None, True], "b": (b"bytes", "text"), "c": {3, 4}, "d": 10**30}
    assert read_pickle(write(tmp_path, pickle.dumps(value, protocol=4))) == value


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_command_in_a_pickle_is_named_and_not_executed(tmp_path: Path, protocol: int) -> None:
    trace = tmp_path / "executed"
    order = Calls(os.system, f"touch {trace}")
    with pytest.raises(DataError, match=r"asks for '\w+\.system', .* not executed"):
        read_pickle(write(tmp_path, pickle.dumps(order, protocol=protocol)))
    assert not trace.exists()


HOSTILE: Mapping[str, Callable[[Path], object]] = {
    "builtin.*eval": lambda trace: Calls(eval, f"open({str(trace)!r}, 'w')"),
    "builtin.*exec": lambda trace: Calls(exec, f"open({str(trace)!r}, 'w')"),
    "io.open": lambda trace: Calls(open, str(trace), "w"),
    "Popen": lambda trace: Calls(subprocess.Popen, ["touch", str(trace)]),
    "numpy.*load": lambda trace: Calls(np.load, str(trace)),
    "numpy.*save": lambda trace: Calls(np.save, str(trace), [1]),
    "numpy.*frombuffer": lambda trace: Calls(np.frombuffer, b"abc", "u1"),
    "builtin.*bytearray": lambda trace: Calls(bytearray, 10),
    "collections.OrderedDict": lambda trace: OrderedDict(a=1),
    "_codecs.decode": lambda trace: Calls(codecs.decode, b"abc", "rot13"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_other_name_is_called_however_deep_it_hides(tmp_path: Path, name: str) -> None:
    trace = tmp_path / "executed"
    hidden = {"data": np.zeros(3, np.uint8), "labels": [0, ({"deep": HOSTILE[name](trace)},)]}
    with pytest.raises(DataError, match=f"asks for .*{name}.* not executed"):
        read_pickle(write(tmp_path, pickle.dumps(hidden, protocol=2)))
    assert list(tmp_path.iterdir()) == [tmp_path / "batch"]


RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\n"
EMPTY = RECONSTRUCT + b"cnumpy\nndarray\nK\x00\x85U\x01b\x87R"
BYTES = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R"
OBJECTS = b"cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R"
HUGE = b"M\xff\xffM\xff\xff\x86"

FORGED = {
    "an array of objects": EMPTY + b"(K\x01K\x01\x85" + OBJECTS + b"\x89]tb",
    "objects for bytes": EMPTY + b"(K\x01K\x01\x85" + BYTES + b"\x89]K\x07atb",
    "an array without a data type": EMPTY + b"(K\x01K\x01\x85U\x02u1\x89U\x01atb",
    "a data type with fields": BYTES + b"(K\x03U\x01|NU\x01aNK\x01K\x01K\x00tb",
    "a data type of no byte order": BYTES + b"(K\x03U\x01xNNNK\x01K\x01K\x00tb",
    "a data type by a long name": b"cnumpy\ndtype\nU\x05uint8\x85R",
    "a data type out of a list": b"cnumpy\ndtype\n]\x85R",
    "a shape larger than its bytes": EMPTY + b"(K\x01" + HUGE + BYTES + b"\x89U\x01atb",
    "a negative shape": EMPTY + b"(K\x01J\xff\xff\xff\xff\x85" + BYTES + b"\x89U\x01atb",
    "a subclass of array": RECONSTRUCT + b"cnumpy\ndtype\nK\x00\x85U\x01b\x87R",
    "a bare array": b"cnumpy\nndarray\nK\x05\x85R",
    "a changed function": RECONSTRUCT + b"}U\x0c__defaults__K\x01sb",
    "a codec": b"c_codecs\nencode\nX\x03\x00\x00\x00abcU\x05rot13\x86R",
    "an object from outside": b"U\x03abcQ",
    "numpy's matrix": RECONSTRUCT + b"cnumpy\nmatrix\nK\x00\x85U\x01b\x87R",
}


@pytest.mark.parametrize("forgery", FORGED)
def test_what_only_looks_like_an_array_is_refused(tmp_path: Path, forgery: str) -> None:
    with pytest.raises(DataError, match=r"asks for .* not executed"):
        read_pickle(write(tmp_path, b"\x80\x02" + FORGED[forgery] + b"."))


def test_a_hostile_name_cannot_write_on_the_terminal(tmp_path: Path) -> None:
    name = b"\x1b[2J" + b"x" * 5000
    with pytest.raises(DataError) as raised:
        read_pickle(write(tmp_path, b"\x80\x02cos\n" + name + b"\n."))
    assert "\x1b" not in str(raised.value)
    assert len(str(raised.value)) < 1000


def test_a_forged_function_does_not_spoil_later_files(tmp_path: Path) -> None:
    good = python2_pickle({"data": np.ones((2, 2), np.uint8)})
    with pytest.raises(DataError):
        read_pickle(write(tmp_path, b"\x80\x02" + FORGED["a changed function"] + b"."))
    read = read_pickle(write(tmp_path, good))
    assert isinstance(read, dict)
    np.testing.assert_array_equal(read["data"], [[1, 1], [1, 1]])


WHOLE = python2_pickle({"data": np.zeros((3, 40), np.uint8), "labels": [1, 2, 3]})


@pytest.mark.parametrize("length", range(0, len(WHOLE), 7))
def test_a_pickle_cut_short_is_said_to_be(tmp_path: Path, length: int) -> None:
    with pytest.raises(DataError, match="not a complete pickle"):
        read_pickle(write(tmp_path, WHOLE[:length]))


@given(garbage=st.binary(max_size=60))
@settings(max_examples=200, deadline=None)
def test_garbage_gives_plain_values_or_one_sentence(
    garbage: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Python's unpickler reserves memory up to whatever memo number a file names.
    assume(b"r" not in garbage and b"p" not in garbage)
    path = write(tmp_path_factory.getbasetemp(), garbage)
    with contextlib.suppress(DataError):
        read_pickle(path)


def test_a_missing_file_is_not_called_damaged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_pickle(tmp_path / "nowhere")
