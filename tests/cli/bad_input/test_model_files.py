"""`onesided rank` with a model whose files somebody damaged."""

import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.cli.bad_input.refusals import (
    NO_JSON,
    Damage,
    assert_refused_untouched,
    cut,
    drop,
    each,
    make_folder,
    put,
    remove,
    write,
)

Tensors = dict[str, Tensor]


@pytest.fixture
def rank(run: Path, shared_data: Path, tmp_path: Path) -> Callable[[], None]:
    """Rank a folder, which must be refused."""

    def refuse() -> None:
        words = ("rank", run, shared_data / "U", "-o", tmp_path / "ranked.csv", "--quiet")
        assert_refused_untouched(tmp_path, *words)

    return refuse


ENTRIES: dict[str, list[object]] = {
    "format": [2, "1", None, 1.5],
    "method": ["cee", 5, None, "", "puet", "../ce"],
    "settings": [5, None, [], {"bogus": 1}, {"alignment": "x"}, {"balance": 5}],
    "backbone": [5, None, {"name": "x"}, {"width": 0}, {"width": -1}, {"width": "x"}],
    "backbone.width": [1e9, float("nan"), 0.25],
    "backbone.freeze": [True, "x"],
    "backbone.name": ["mlp", "resnet18", "efficientnet_lite0", "/etc/passwd"],
    "sample_shape": [
        *([], [3], [8, 8], [0, 8, 8], [-3, 8, 8], [3, 0, 8], [3, 8, 8, 8], ["a", 8, 8], 5, None),
        *([4, 8, 8], [3, 10**7, 10**7], [3.5, 8, 8], [10**12]),
    ],
    "mean": [[], [0.5], [0.5] * 4, ["x"] * 3, [float("nan")] * 3, [float("inf")] * 3, None, 5],
    "std": [[-1.0] * 3, [1.0], [float("nan")] * 3, None],
    "kind": ["x", 5, None, "vector"],
    "classes": [["positive", "negative"], ["a", "b", "c"], [], 5],
    "threshold": [-0.1, 1.5, "x", None, float("nan"), []],
    "prior": [0, 1, 1.5, "x", float("nan"), []],
}
WRONG_ENTRIES = {
    f"{key} is {json.dumps(value)[:40]}": put(key, value)
    for key, values in ENTRIES.items()
    for value in values
}
LOST_ENTRIES = {
    f"{key} is lost": drop(key)
    for key in ("method", "settings", "backbone", "sample_shape", "mean", "std", "kind")
}


@each({**NO_JSON, **WRONG_ENTRIES, **LOST_ENTRIES, "an unknown entry": put("speed", 9)})
def test_a_damaged_description_is_refused(
    run: Path, rank: Callable[[], None], case: Damage
) -> None:
    case(run / "model.json")
    rank()


def header(content: bytes, data: bytes = b"") -> Damage:
    """Return what writes a safetensors file with this header."""
    return write(struct.pack("<Q", len(content)) + content + data)


def changed(change: Callable[[Tensors], object]) -> Damage:
    """Return what changes the tensors of a safetensors file."""

    def damage(path: Path) -> None:
        tensors = load_file(path)
        change(tensors)
        save_file(tensors, path)

    return damage


def largest(tensors: Tensors) -> str:
    return max(tensors, key=lambda name: tensors[name].numel())


def fill(value: float) -> Callable[[Tensors], object]:
    return lambda tensors: tensors[largest(tensors)].fill_(value)


def replace(change: Callable[[Tensor], Tensor]) -> Callable[[Tensors], object]:
    return lambda tensors: tensors.update(
        {largest(tensors): change(tensors[largest(tensors)]).contiguous()}
    )


def beside(shape: list[int], offsets: list[int], dtype: str = "F32") -> bytes:
    entry = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
    return json.dumps({"weight": entry}).encode()


WEIGHTS: dict[str, Damage] = {
    "missing": remove,
    "a folder": make_folder,
    **{f"{kept} of it": cut(kept) for kept in (0.1, 0.5, 0.9)},
    **{f"{kept} bytes": cut(kept) for kept in (0, 1, 8, 9, 64)},
    "text": write("these are my weights"),
    "a pickle": write(pickle.dumps({"weight": [1.0]})),
    "a picture": write(b"\x89PNG\r\n\x1a\n" + bytes(1000)),
    "zero bytes": write(bytes(1000)),
    "a header of 16 EB": write(b"\xff" * 8 + b"{}"),
    "a header that is no JSON": header(b"{" * 20),
    "a header that is a list": header(b"[]"),
    "a header that is not UTF-8": header(b'{"\xff": 1}'),
    "no tensors": header(b"{}"),
    "a tensor beyond the end": header(beside([4], [0, 16])),
    "a tensor before the beginning": header(beside([4], [16, 0]), bytes(16)),
    "a tensor of another length": header(beside([4], [0, 8]), bytes(8)),
    "a tensor of 10^18 numbers": header(beside([10**18], [0, 8]), bytes(8)),
    "a tensor of unknown type": header(beside([4], [0, 16], "F33"), bytes(16)),
    "bytes behind the end": lambda path: path.write_bytes(path.read_bytes() + b"more"),
    "a stranger among the tensors": changed(lambda all: all.update(stranger=torch.ones(2))),
    "a tensor lost": changed(lambda all: all.pop(largest(all))),
    "a tensor renamed": changed(lambda all: all.update(renamed=all.pop(largest(all)))),
    "a tensor turned": changed(replace(lambda tensor: tensor.flatten())),
    "a tensor cut": changed(replace(lambda tensor: tensor[:1])),
    "whole numbers for weights": changed(replace(lambda tensor: tensor.long())),
    "truths for weights": changed(replace(lambda tensor: tensor > 0)),
    "NaN": changed(fill(float("nan"))),
    "infinity": changed(fill(float("inf"))),
}


@each(WEIGHTS)
def test_damaged_weights_are_refused(run: Path, rank: Callable[[], None], case: Damage) -> None:
    case(run / "model.safetensors")
    rank()
