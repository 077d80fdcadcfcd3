import builtins
import os
import pickle
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onesided.core.errors import DataError
from onesided.data.safe_pickle import read_pickle
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


# --- what is read ------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["u1", "<i8", ">i2", "f4", "?"])
def test_arrays_of_numbers_come_back_as_they_were(
    tmp_path: Path, protocol: int, kind: str
) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(kind)
    read = read_pickle(write(tmp_path, pickle.dumps({"data": array}, protocol=protocol)))
    assert isinstance(read, dict)
    np.testing.assert_array_equal(read["data"], array)
    assert read["data"].dtype == array.dtype


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


# --- what is refused ---------------------------------------------------------------


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_command_in_a_pickle_is_named_and_not_executed(tmp_path: Path, protocol: int) -> None:
    trace = tmp_path / "executed"
    order = Calls(os.system, f"touch {trace}")
    with pytest.raises(DataError, match=r"asks for \w+\.system, .* not executed"):
        read_pickle(write(tmp_path, pickle.dumps(order, protocol=protocol)))
    assert not trace.exists()


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (builtins.eval, ("__import__('pathlib').Path('{trace}').touch()",)),
        (builtins.exec, ("open('{trace}', 'w')",)),
        (builtins.open, ("{trace}", "w")),
        (builtins.getattr, (os, "system")),
        (subprocess.Popen, (["touch", "{trace}"],)),
        (np.load, ("{trace}",)),
        (np.save, ("{trace}", 1)),
        (np.array, ([1],)),
        (random.Random, (0,)),
        (bytearray, (10,)),
    ],
)
def test_no_other_name_is_called_however_deep_it_hides(
    tmp_path: Path, function: Callable[..., Any], arguments: tuple[object, ...]
) -> None:
    trace = tmp_path / "executed"
    filled = [a.format(trace=trace) if isinstance(a, str) else a for a in arguments]
    filled = [[t.format(trace=trace) for t in a] if isinstance(a, list) else a for a in filled]
    if function is builtins.getattr:  # a module cannot be pickled, its name can
        contents = b"\x80\x02cbuiltins\ngetattr\ncos\nsystem\nU\x06system\x86R."
    else:
        hidden = {"data": np.zeros(3, np.uint8), "labels": [0, ({"deep": Calls(function, *filled)},)]}
        contents = pickle.dumps(hidden, protocol=2)
    with pytest.raises(DataError, match="not executed"):
        read_pickle(write(tmp_path, contents))
    assert not trace.exists()
    assert not trace.with_suffix(".npy").exists()
