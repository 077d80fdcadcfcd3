"""model.safetensors and model.json: all that inference needs, and no code."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import safetensors.torch
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from onesided.core.batch import DataFacts
from onesided.core.config import Config
from onesided.core.errors import CheckpointError, ContractError, DataNotFound
from onesided.core.former import method_today
from onesided.data.columns.encoder import Encoder, EncoderDescription
from onesided.data.problem.samples import ImageKind
from onesided.engine.files import DESCRIPTION as DESCRIPTION
from onesided.engine.files import REFERENCE as REFERENCE
from onesided.engine.files import WEIGHTS as WEIGHTS
from onesided.engine.predict import Predictor
from onesided.engine.train_config import choose_device
from onesided.methods import method_named
from onesided.methods.base import GradientMethod, Method
from onesided.metrics.calibration import Calibration
from onesided.metrics.reference import Reference
from onesided.nets.build import BackboneConfig, build_backbone
from onesided.nets.standardise import Backbone
from onesided.storage.atomic import read_json, replacing, write_arrays, write_text
from onesided.storage.own_file import check, damaged, digest_of, read_arrays, why

EMBEDDER, ENCODER = "embedder.", "encoder."
LONGEST_AXIS = 2**24


class ModelDescription(Config):
    """How to rebuild the network that the weights belong to, and what it takes as input."""

    format: Literal[1] = 1
    """Version of this description."""
    method: str
    """Name of the method."""
    settings: dict[str, Any]
    """Its settings."""
    backbone: BackboneConfig
    """Its backbone."""
    sample_shape: tuple[int, ...]
    """(C, H, W) of an image or (D,) of a vector."""
    mean: tuple[float, ...]
    """Per channel or feature, subtracted first."""
    std: tuple[float, ...]
    """Per channel or feature, divided by second."""
    kind: ImageKind
    """What the samples are."""
    feature_names: tuple[str, ...] = ()
    """Names of the numbers of a vector, in their order. Empty where they have none, and in files
    of versions that kept no names."""
    encoder: EncoderDescription | None = None
    """How rows of a table become vectors; None where samples are taken as they are."""
    classes: tuple[Literal["negative"], Literal["positive"]] = ("negative", "positive")
    """Meaning of the two logits, in order."""
    threshold: float = Field(default=0.5, ge=0, le=1)
    """A score above it means positive."""
    prior: float | None = Field(default=None, gt=0, lt=1)
    """Class prior the method was given, if it needed one."""
    calibration: Calibration | None = None
    """From scores to probabilities; None where there are none, and in files of earlier versions."""
    weights_digest: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """SHA-256 of `model.safetensors`; None in files of versions that kept none."""

    @model_validator(mode="before")
    @classmethod
    def _open_older_files(cls, content: object) -> object:
        """Accept the names that these settings had in files of earlier versions."""
        if not isinstance(content, dict):
            return content
        method, settings = content.get("method"), content.get("settings")
        if isinstance(method, str) and isinstance(settings, dict):
            name, own = method_today(method, settings)
            content = {**content, "method": name, "settings": own}
        if not isinstance(content.get("network"), dict):
            return content
        backbone = dict(content["network"])
        if (trained := backbone.pop("trained", None)) in ("all", "head"):
            backbone["freeze"] = trained == "head"
        return {key: content[key] for key in content if key != "network"} | {"backbone": backbone}

    @model_validator(mode="after")
    def _check_samples(self) -> Self:
        shape = self.sample_shape
        if len(shape) != (1 if self.kind == "vector" else 3) or min(shape) < 1:
            raise ValueError(
                f"samples of the kind {self.kind} cannot have the shape {list(shape)}; expected "
                "[channels, height, width] of an image, or [numbers] of a vector"
            )
        if len(self.mean) != len(self.std) or (not self.encoder and len(self.mean) != shape[0]):
            raise ValueError(
                f"there are {len(self.mean)} means and {len(self.std)} standard deviations for "
                f"samples of the shape {list(shape)}; expected one for each channel or number"
            )
        if max(shape) > LONGEST_AXIS:
            raise ValueError(f"samples of the shape {list(shape)} are absurdly large")
        if self.feature_names and (len(self.feature_names),) != shape:
            raise ValueError(
                f"there are {len(self.feature_names)} feature_names for samples of the shape "
                f"{list(shape)}; expected one for each number of a vector, or none"
            )
        if self.encoder and (len(self.encoder.columns),) != shape:
            raise ValueError(
                f"the encoder has {len(self.encoder.columns)} columns for samples of the shape "
                f"{list(shape)}; expected one for each cell of a row"
            )
        return self

    def build(self) -> Method:
        """Return the untrained method that the weights fit into."""
        config = method_named(self.method).from_settings(self.settings, DESCRIPTION)
        shape, mean, std = self.sample_shape, self.mean, self.std
        made = self.build_embedder() or self.encoder
        if made is not None:
            # The statistics of its features are stored with the weights.
            shape, mean, std = (made.width,), (0.0,) * made.width, (1.0,) * made.width
        backbone = build_backbone(self.backbone.learner(), shape, mean, std)
        facts = DataFacts(rows=1, labelled=1, sample_shape=shape, prior=self.prior)
        return config.build(facts, backbone)

    def build_embedder(self) -> Backbone | None:
        """Return the frozen backbone without its weights; None if there is none."""
        if not self.backbone.freeze:
            return None
        return build_backbone(self.backbone, self.sample_shape, self.mean, self.std)


def save_model(
    folder: Path,
    method: Method,
    description: ModelDescription,
    *,
    embedder: Backbone | None = None,
    encoder: Encoder | None = None,
    reference: Reference | None = None,
) -> None:
    """Write the files of a trained model, each complete or not at all."""
    state = method.inference_state() if isinstance(method, GradientMethod) else method.state_dict()
    if (embedder is not None) != description.backbone.freeze:
        raise ContractError("A model on frozen features is saved with its embedder, others without")
    if embedder is not None:
        state = state | {EMBEDDER + name: value for name, value in embedder.state_dict().items()}
    if (None if encoder is None else encoder.description) != description.encoder:
        raise ContractError("A model is saved with the encoder that its description names")
    if encoder is not None:
        arrays = encoder.arrays.items()
        state = state | {ENCODER + name: torch.from_numpy(value) for name, value in arrays}
    tensors = {name: value.detach().cpu().contiguous() for name, value in state.items()}
    weights = safetensors.torch.save(tensors)
    with replacing(folder / WEIGHTS) as file:
        file.write(weights)
    digest = hashlib.sha256(weights).hexdigest()
    write_description(folder, description.model_copy(update={"weights_digest": digest}))
    if reference is not None:
        write_arrays(folder / REFERENCE, reference.to_arrays())


def write_description(folder: Path, description: ModelDescription) -> None:
    """Write how to rebuild the network, complete or not at all."""
    left_out = {name for name in ("encoder", "calibration") if getattr(description, name) is None}
    content = description.model_dump(mode="json", exclude=left_out)
    write_text(folder / DESCRIPTION, json.dumps(content, indent=2))


def load_model(folder: Path, device: str = "auto") -> tuple[Predictor, ModelDescription]:
    """Return the predictor saved in a run folder."""
    description = ModelDescription.from_settings(read_json(folder / DESCRIPTION), DESCRIPTION)
    path = folder / WEIGHTS
    tensors = _read_weights(path, description.weights_digest)
    method, embedder = description.build(), description.build_embedder()
    if embedder is not None:
        frozen = _taken(tensors, EMBEDDER)
        _load_into(embedder, frozen, set(embedder.state_dict()), path)
    encoder = None
    if description.encoder is not None:
        arrays = {name: tensor.numpy() for name, tensor in _taken(tensors, ENCODER).items()}
        encoder = Encoder(description.encoder, arrays)
    where = choose_device(device)  # type: ignore[arg-type]
    if isinstance(method, GradientMethod):
        _load_into(method, tensors, set(method.inference_state()), path)
        method.to(where)
    else:
        method.load_state_dict(tensors)
    predictor = Predictor(
        method,
        where,
        description.threshold,
        embedder,
        encoder,
        description.calibration,
        read_reference(folder),
    )
    return predictor, description


def read_reference(folder: Path) -> Reference | None:
    """Return what the model was trained on; None in folders that do not hold it."""
    path = folder / REFERENCE
    if not path.exists():
        return None
    found = Reference.of_arrays(read_arrays(path))
    if found is None:
        raise damaged(path, "its arrays do not fit")
    return found


def _read_weights(path: Path, digest: str | None) -> dict[str, Tensor]:
    """Return the tensors; a flipped bit is refused, because it would change the ranking."""
    try:
        found = digest_of(path)
        if digest is not None and found != digest:
            raise damaged(path, f"it does not have the checksum that {DESCRIPTION} names")
        check(path, found)
        return safetensors.torch.load_file(path)
    except (FileNotFoundError, NotADirectoryError):
        raise DataNotFound(
            f"{path.parent} holds no {WEIGHTS}, so its run is not finished. Finish it with the "
            "same fit command."
        ) from None
    except CheckpointError:
        raise
    except Exception as error:  # safetensors and torch raise several kinds for garbage
        raise damaged(path, why(error)) from None


def _taken(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Remove the tensors whose names start so, and return them without that start."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors.pop(name) for name in names}


def _load_into(
    module: nn.Module, tensors: Mapping[str, Tensor], expected: set[str], path: Path
) -> None:
    """Load exactly the expected tensors, or refuse with the name of one that does not fit."""
    if expected != set(tensors):
        different = sorted(expected.symmetric_difference(tensors))[0]
        raise CheckpointError(f"{path} does not fit {DESCRIPTION}: see '{different}'.")
    ours = module.state_dict()
    for name, tensor in tensors.items():
        # Torch would convert integers to weights silently.
        if tensor.is_floating_point() != ours[name].is_floating_point():
            raise CheckpointError(
                f"{path} does not fit {DESCRIPTION}: '{name}' holds numbers of another kind."
            )
    try:
        module.load_state_dict(tensors, strict=False)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise CheckpointError(f"{path} does not fit {DESCRIPTION}: {reason}") from None
