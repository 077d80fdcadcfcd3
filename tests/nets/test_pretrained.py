import hashlib
import os
import pickle
import sys
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from onesided.core.errors import CheckpointError, ConfigError, DataNotFound
from onesided.core.rng import generator
from onesided.nets.build import initialise
from onesided.nets.mlp import MLP
from onesided.nets.momentum import TargetNetwork
from onesided.nets.pretrained import (
    PACKAGE,
    content_hash,
    own_file,
    published_file,
    read_weights,
    reset_to_initial_weights,
    set_initial_weights,
)
from onesided.nets.standardise import Standardise


def network(seed: int = 0) -> MLP:
    torch.manual_seed(seed)
    return MLP(Standardise([0.5] * 4, [0.5] * 4), hidden=8)


def state(seed: int = 0) -> dict[str, Tensor]:
    return dict(network(seed).state_dict())


def test_missing_weights_are_named_with_the_command_that_installs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    with pytest.raises(ConfigError, match="install --force-reinstall onesided"):
        published_file()


def test_the_published_file_is_the_one_its_name_promises() -> None:
    path = published_file()
    assert content_hash(path).startswith(path.stem.split("-")[-1])


@pytest.mark.parametrize("name", ["weights.pth", "weights.pt", "weights", "weights.npz"])
def test_formats_that_may_execute_code_are_refused_by_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"anything")
    with pytest.raises(ConfigError, match=r"safetensors\.torch\.save_file"):
        own_file(str(tmp_path / name))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound, match=r"lost\.safetensors"):
        own_file(str(tmp_path / "lost.safetensors"))


class Hostile:
    """An object that makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.folder),)


def test_a_pickle_is_searched_for_tensors_and_never_executed(tmp_path: Path) -> None:
    victim = tmp_path / "made-by-the-pickle"
    for name in ("bare.pth", "torch.pth"):
        path = tmp_path / name
        if name == "bare.pth":
            path.write_bytes(pickle.dumps(Hostile(victim), protocol=2))
        else:
            torch.save({"weight": Hostile(victim)}, path)
        with pytest.raises(CheckpointError, match=name):
            read_weights(path)
    assert not victim.exists()


@pytest.mark.parametrize("content", [b"", b"garbage", b"\xff" * 64])
def test_a_damaged_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"damaged\.safetensors cannot be read"):
        read_weights(path)


def test_of_a_model_of_ours_the_backbone_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    backbone = {f"backbone.{name}": value for name, value in state().items()}
    save_file({**backbone, "classifier.bias": torch.zeros(2)}, path)
    tensors = read_weights(path)
    assert tensors.keys() == state().keys()
    assert all(torch.equal(value, tensors[name]) for name, value in state().items())


def test_the_hash_is_of_the_content_and_not_of_the_place(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"weights")
    assert content_hash(tmp_path / "one") == content_hash(tmp_path / "two")
    assert content_hash(tmp_path / "one") == hashlib.sha256(b"weights").hexdigest()


def test_weights_that_fit_are_taken_over_whole() -> None:
    backbone = network(seed=1)
    set_initial_weights(backbone, state(seed=0), "here")
    assert all(torch.equal(backbone.state_dict()[name], value) for name, value in state().items())


def test_statistics_of_the_data_stay_where_the_weights_have_none() -> None:
    weights = {name: value for name, value in state().items() if "standardise" not in name}
    backbone = MLP(Standardise([0.1] * 4, [0.9] * 4), hidden=8)
    set_initial_weights(backbone, weights, "here")
    assert torch.allclose(backbone.standardise.mean, torch.full((4,), 0.1))


def test_missing_weights_are_named() -> None:
    weights = state()
    del weights["layers.0.weight"]
    with pytest.raises(CheckpointError, match=r"MLP: they lack 'layers\.0\.weight'\. Choose"):
        set_initial_weights(network(), weights, "here")


def test_of_many_missing_weights_two_are_named_and_the_rest_counted() -> None:
    weights = {name: value for name, value in state().items() if "standardise" in name}
    with pytest.raises(CheckpointError, match=r"'layers\.0\.weight', '.*' and \d+ more"):
        set_initial_weights(network(), weights, "here")


def test_unknown_weights_are_named() -> None:
    with pytest.raises(CheckpointError, match=r"also hold 'fc\.weight'"):
        set_initial_weights(network(), {**state(), "fc.weight": torch.zeros(2)}, "here")


def test_weights_of_another_shape_are_named_with_both() -> None:
    wrong = {**state(), "layers.0.weight": torch.zeros(8, 3)}
    with pytest.raises(CheckpointError, match=r"shape \(8, 3\) instead of \(8, 4\)"):
        set_initial_weights(network(), wrong, "here")


def test_weights_that_are_no_numbers_are_refused() -> None:
    broken = {**state(), "layers.0.weight": torch.full((8, 4), torch.nan)}
    with pytest.raises(CheckpointError, match=r"'layers\.0\.weight' is not finite"):
        set_initial_weights(network(), broken, "here")


def test_a_refused_file_leaves_the_network_as_it_was() -> None:
    backbone = network(seed=1)
    with pytest.raises(CheckpointError):
        set_initial_weights(backbone, {**state(), "fc.weight": torch.zeros(2)}, "here")
    assert all(torch.equal(backbone.state_dict()[n], value) for n, value in state(1).items())


def test_a_reset_network_gets_its_initial_weights_again() -> None:
    backbone = network(seed=1)
    set_initial_weights(backbone, state(), "here")
    with torch.no_grad():
        for parameter in backbone.parameters():
            parameter.add_(1.0)
    backbone(torch.rand(6, 4))
    initialise(backbone, generator(7))
    assert all(torch.equal(backbone.state_dict()[name], value) for name, value in state().items())


def test_a_network_without_initial_weights_is_not_reset() -> None:
    assert not reset_to_initial_weights(network())


def test_copies_share_what_they_started_from_and_no_state_holds_it() -> None:
    backbone = network(seed=1)
    names = set(backbone.state_dict())
    set_initial_weights(backbone, state(), "here")
    copy = deepcopy(backbone)
    assert vars(copy)["initial_weights"] is vars(backbone)["initial_weights"]
    assert set(backbone.state_dict()) == names
    assert len(TargetNetwork(backbone).state_dict()) == len(names)
