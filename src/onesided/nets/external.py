"""Networks that others publish, as frozen backbones: `hf:`, `timm:` and `onnx:`.

`hf:` is a model of the library transformers (DINOv2, ViT, the image half of CLIP, …), from a folder
or by its name on the hub; `timm:` is one of the library timm, by its name. Of both only safetensors
are read. `onnx:` is a file that onnxruntime runs.

What is done with an image: channels become three (`three_channels`); the whole image is resized to
the network's size, without cropping, so proportions may change; mean and standard deviation are
those of the network's `preprocessor_config.json` (timm's are in its own table), and ImageNet's
where it has none. A feature vector is the pooled output of the network, or its first token, or the
mean over its map.

Their weights are not copied into a saved model: it keeps where they are and a hash of them.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Float
from pydantic import BaseModel, Field, FiniteFloat, ValidationError
from torch import Tensor, nn

from onesided.core.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    DataNotFound,
    OnesidedError,
    first_line,
)
from onesided.nets.efficientnet import resize
from onesided.nets.standardise import FORMAT, Backbone, Inference, Standardise, global_average
from onesided.storage.json_files import json_in
from onesided.storage.optional import library

KINDS = {"hf": "transformers", "onnx": "onnxruntime", "timm": "timm"}
"""Kind of network, written before the colon of its name, to the library that runs it."""
PREPROCESSING = "preprocessor_config.json"
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
USUAL_SIDE = 224
LARGEST_SIDE = 4096
BATCH = 16


@dataclass(frozen=True)
class Network:
    """A network of others, ready to run.

    Attributes:
        run: From standardised images (N, 3, H, W) to vectors (N, D).
        size: Height and width of its images.
        mean: Per colour, in the 0-1 scale.
        std: Likewise.
        content: Hash of all that decides its features.
        module: Its weights, if torch runs it.
    """

    run: Callable[[Tensor], Tensor]
    size: tuple[int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    content: str
    module: nn.Module | None = None


def is_external(name: str) -> bool:
    """Return whether a backbone's name means a network of others."""
    return name.partition(":")[0] in KINDS and ":" in name


def place_of(name: str) -> str:
    """Return the name with an absolute path, if it means a file or folder."""
    kind, _, place = name.partition(":")
    if kind == "timm":
        return name  # also where a folder happens to have the model's name
    return f"{kind}:{Path(place).resolve()}" if Path(place).exists() else name


def load_network(name: str) -> Network:
    """Return the network that a name means; read once while its files stay the same."""
    path = Path(name.partition(":")[2])
    files = sorted(path.iterdir()) if path.is_dir() else [path, path.with_name(PREPROCESSING)]
    stamps = [(str(file), file.stat().st_mtime_ns) for file in files if file.is_file()]
    return _loaded(name, repr(stamps))


@lru_cache(maxsize=1)
def _loaded(name: str, stamps: str) -> Network:
    kind, _, place = name.partition(":")
    found = library(KINDS[kind], f"The backbone {name}")
    with torch.random.fork_rng(devices=[]):  # a network that lacks weights draws some
        match kind:
            case "hf":
                return _hf(found, place)
            case "timm":
                return _timm(found, place)
            case _:
                return _onnx(found, Path(place))


class ExternalBackbone(Backbone):
    """A frozen network of others; its own preprocessing comes first.

    Its weights are no part of the `state_dict`.
    """

    def __init__(self, name: str, channels: int, network: Network) -> None:
        probe = network.run(torch.zeros(1, 3, *network.size))
        super().__init__(Standardise(network.mean, network.std), width=probe.shape[1])
        self.name, self.channels, self._network = name, channels, [network]

    def forward(self, samples: Float[Tensor, "b c h w"]) -> Float[Tensor, "b width"]:
        """Return one feature vector per image in [0, 1]."""
        return self.features(self.prepared(samples))

    def prepared(self, samples: Float[Tensor, "b c h w"]) -> Float[Tensor, "b 3 rows columns"]:
        """Return standardised images of the network's size and colours."""
        standardised: Tensor = self.standardise(
            resize(three_channels(samples), self._network[0].size)
        )
        return standardised

    def features(self, samples: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b width"]:
        """Return one feature vector per standardised image of the network's size."""
        with torch.no_grad():
            return self._network[0].run(samples)

    def inference(self) -> Inference:
        """Return its features in batches that suit large networks."""
        return Inference(self, batch=BATCH)

    def identity(self) -> str:
        """Return a hash of the network and its preprocessing."""
        words = f"{FORMAT} {type(self).__name__} {self._network[0].content}"
        return hashlib.sha256(words.encode()).hexdigest()

    def reset_parameters(self) -> None:
        """Do nothing: the weights are others', and frozen."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "ExternalBackbone":
        if self._network[0].module is not None:
            self._network[0].module._apply(fn)  # type: ignore[no-untyped-call]
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self


def build_external(name: str, channels: int, content: str = "") -> ExternalBackbone:
    """Return the frozen network; refuse one that is not the network of this content hash."""
    network = load_network(name)
    if content and network.content != content:
        raise CheckpointError(
            f"The backbone {name} changed since the model was trained on its features. Restore "
            "its files, or train again."
        )
    return ExternalBackbone(name, channels, network)


def three_channels(images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b 3 h w"]:
    """Return images of red, green and blue, for networks that take nothing else.

    Stacked RGB images, such as before and after, become their mean. Any other channels become
    their mean, as grey. Both are what `stem_for_channels` does to EfficientNet-Lite0's first
    layer.
    """
    count, channels, height, width = images.shape
    if channels == 3:
        return images
    if channels % 3 == 0:
        return images.reshape(count, channels // 3, 3, height, width).mean(dim=1)
    return images.mean(dim=1, keepdim=True).expand(-1, 3, -1, -1)


def hf_model(transformers: Any, place: str) -> tuple[Any, Mapping[str, Any]]:  # noqa: ANN401
    """Return a model of transformers, and what its files lack; only safetensors are read."""
    local = Path(place).is_dir()
    if not local and (Path(place).is_absolute() or place.count("/") > 1):
        raise DataNotFound(f"There is no folder {place}. Check the backbone hf:{place}.")
    if local and not list(Path(place).glob("*.safetensors")):
        raise ConfigError(
            f"The folder {place} holds no .safetensors file. Other formats can execute code and "
            "are not read; save the model again with save_pretrained()."
        )
    bars = transformers.utils.logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        model, info = transformers.AutoModel.from_pretrained(
            place,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=local,
            dtype=torch.float32,
            output_loading_info=True,
        )
    except (OSError, ValueError, ImportError, KeyError, RuntimeError) as error:
        raise DataNotFound(
            f"There is no model hf:{place} that transformers can read ({first_line(error)}). Give "
            "a folder that save_pretrained() wrote, or a name on the hub while you are online."
        ) from None
    finally:
        if shown:
            bars.enable_progress_bar()
    return model, info


def settings_of(model: Any) -> str:  # noqa: ANN401 - of a library
    """Return what a model of transformers says of itself, without what decides nothing."""
    settings = model.config.to_dict()
    for key in ("_name_or_path", "transformers_version"):
        settings.pop(key, None)
    return json.dumps(settings, sort_keys=True, default=str)


def _hf(transformers: Any, place: str) -> Network:  # noqa: ANN401 - a library
    """Return a model of transformers for images; nothing but safetensors and JSON is read."""
    model, info = hf_model(transformers, place)
    found = _hf_file(transformers, place)
    model = getattr(model, "vision_model", model).requires_grad_(False).eval()
    lacking = [key for key in info["missing_keys"] if "text" not in key]
    has_pooler = not any("pooler" in key for key in lacking)
    if others := [key for key in lacking if "pooler" not in key]:
        raise CheckpointError(f"The model hf:{place} lacks the weights of '{sorted(others)[0]}'.")
    usual = int(getattr(model.config, "image_size", 0) or USUAL_SIDE)
    mean, std, size = _read_preprocessing(found).numbers(usual)

    def run(images: Tensor) -> Tensor:
        outputs = model(pixel_values=images)
        pooled = getattr(outputs, "pooler_output", None) if has_pooler else None
        return _vectors(outputs.last_hidden_state if pooled is None else pooled)

    content = content_of(model, f"{mean} {std} {size} {has_pooler}{settings_of(model)}")
    return Network(run, size, mean, std, content, model)


def _timm(timm: Any, name: str) -> Network:  # noqa: ANN401 - a library
    """Return a model of timm with its pretrained weights; nothing but safetensors is read.

    The weights are given to timm as a file: by itself it would also take a pickled one.
    """
    try:
        about = dict(timm.create_model(name, pretrained=False, num_classes=0).pretrained_cfg)
        over = {"file": str(_timm_file(name, about)), "custom_load": False}
        model = timm.create_model(name, pretrained=True, num_classes=0, pretrained_cfg_overlay=over)
    except OnesidedError:
        raise  # it says already what is wrong
    except (OSError, ValueError, ImportError, KeyError, RuntimeError) as error:
        raise DataNotFound(
            f"There is no model timm:{name} that timm can read ({first_line(error)}). Give a name "
            "of timm.list_models(pretrained=True), once while you are online."
        ) from None
    model.requires_grad_(False).eval()
    mean = tuple(float(value) for value in about.get("mean") or IMAGENET_MEAN)
    std = tuple(float(value) for value in about.get("std") or IMAGENET_STD)
    channels, height, width = about.get("input_size") or (3, USUAL_SIDE, USUAL_SIDE)
    if channels != 3:
        raise ConfigError(f"timm:{name} takes {channels} channels; expected one of 3 channels.")
    size = (int(height), int(width))
    content = content_of(model, f"{mean} {std} {size} {about.get('architecture', name)}")
    return Network(lambda images: _vectors(model(images)), size, mean, std, content, model)


def _timm_file(name: str, about: Mapping[str, Any]) -> Path:
    """Return the safetensors file of a model's weights on the hub, downloaded if need be."""
    place, file = about.get("hf_hub_id"), about.get("hf_hub_filename") or "model.safetensors"
    file = {"open_clip_pytorch_model.bin": "open_clip_model.safetensors"}.get(file, file)
    if not place or not file.endswith(".safetensors"):
        raise ConfigError(
            f"timm:{name} has no pretrained weights as safetensors. Other formats can execute code "
            "and are not read; choose another model of timm.list_models(pretrained=True)."
        )
    hub = library("huggingface_hub", f"The backbone timm:{name}")
    return Path(hub.hf_hub_download(place, file))


def content_of(model: Any, words: str) -> str:  # noqa: ANN401 - of a library
    """Return a hash of preprocessing, settings and weights, wherever they were read from."""
    digest = hashlib.sha256(words.encode())
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(key.encode() + tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _hf_file(transformers: Any, place: str) -> Path | None:  # noqa: ANN401 - a library
    if Path(place).is_dir():
        return Path(place) / PREPROCESSING
    found = transformers.utils.cached_file(
        place, PREPROCESSING, _raise_exceptions_for_missing_entries=False
    )
    return None if found is None else Path(found)


def _onnx(onnxruntime: Any, path: Path) -> Network:  # noqa: ANN401 - a library
    """Return the network of an .onnx file: images (N, 3, H, W) in, vectors or maps out."""
    if not path.is_file():
        raise DataNotFound(f"There is no file {path}. Check --backbone onnx:FILE.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's own errors have no common type
        raise CheckpointError(
            f"onnxruntime cannot read {path} ({first_line(error)}). Export the network again."
        ) from None
    given, output = session.get_inputs()[0], session.get_outputs()[0]
    shape = given.shape
    if len(session.get_inputs()) != 1 or len(shape) != 4 or shape[1] not in (3, "3"):
        raise ConfigError(
            f"{path} takes {[one.shape for one in session.get_inputs()]}; expected one input of "
            "images, (N, 3, height, width) in single precision."
        )
    sides = tuple(side if isinstance(side, int) else USUAL_SIDE for side in shape[2:])
    mean, std, size = _read_preprocessing(path.with_name(PREPROCESSING)).numbers(USUAL_SIDE)
    size = (sides[0], sides[1]) if any(isinstance(side, int) for side in shape[2:]) else size
    at_once = shape[0] if isinstance(shape[0], int) else BATCH

    def run(images: Tensor) -> Tensor:
        parts = [
            session.run([output.name], {given.name: part.cpu().numpy()})[0]
            for part in torch.split(_filled(images, at_once), at_once)
        ]
        return _vectors(torch.from_numpy(np.concatenate(parts)[: len(images)])).to(images.device)

    digest = hashlib.sha256(f"{mean} {std} {size}".encode())
    for file in (path, path.with_name(f"{path.name}.data")):
        if file.is_file():
            digest.update(file.read_bytes())
    return Network(run, size, mean, std, digest.hexdigest())


def _filled(images: Tensor, multiple: int) -> Tensor:
    """Return the images with empty ones behind them, for a network of a fixed batch."""
    missing = -len(images) % multiple
    return torch.cat([images, images.new_zeros(missing, *images.shape[1:])])


def _vectors(output: Tensor) -> Tensor:
    """Return one vector per image: of pooled outputs, tokens (the first) or maps (their mean)."""
    if output.ndim == 4:
        return global_average(output)
    return output[:, 0] if output.ndim == 3 else output.flatten(1)


_Side = Annotated[int, Field(ge=1, le=LARGEST_SIDE)]
_Colour = tuple[FiniteFloat, FiniteFloat, FiniteFloat]
_Spread = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Sides(BaseModel):
    height: _Side | None = None
    width: _Side | None = None
    shortest_edge: _Side | None = None


class _Preprocessing(BaseModel):
    """What we use of a `preprocessor_config.json`; entries may be missing or null."""

    image_mean: _Colour | None = None
    image_std: tuple[_Spread, _Spread, _Spread] | None = None
    crop_size: _Side | _Sides | None = None
    size: _Side | _Sides | None = None

    def numbers(self, side: int) -> tuple[tuple[float, ...], tuple[float, ...], tuple[int, int]]:
        """Return mean, standard deviation and size, the usual ones where they are missing."""
        mean, std = self.image_mean or IMAGENET_MEAN, self.image_std or IMAGENET_STD
        size = self.crop_size or self.size or side
        if isinstance(size, int):
            return mean, std, (size, size)
        edge = size.shortest_edge or side
        return mean, std, (size.height or edge, size.width or edge)


def _read_preprocessing(path: Path | None) -> _Preprocessing:
    if path is None or not path.is_file():
        return _Preprocessing()
    try:
        content = json_in(path)
        return _Preprocessing.model_validate(content if isinstance(content, dict) else {})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (OSError, ValueError, OverflowError) as error:
        reason = first_line(error)
    raise DataError(f"{path} cannot be used ({reason}). Restore it, or remove it.")
