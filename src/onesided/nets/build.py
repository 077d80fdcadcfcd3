"""From a name in a recipe to a network whose initial weights depend on the seed alone.

Torch's layers draw their weights from the global generator when they are constructed. We set
its state to that of our own generator during construction (`drawing_from`), rather than draw
every weight again afterwards by the type of its layer:

- this covers every layer, also a third party's; drawing again by type would leave an unknown
  layer unseeded, and silently;
- the global generator gets its state back, so users' own random numbers do not change;
- only the CPU generator is changed and layers are built on the CPU, so the weights are the
  same on every device (`torch.manual_seed` would reseed the GPU too).

Copies of a network (target networks, snapshots) draw nothing.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import prod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field, field_validator, model_validator
from torch import nn

from onesided.core import rng
from onesided.core.config import Config, nearest
from onesided.core.errors import ConfigError, ContractError
from onesided.nets.efficientnet import (
    BLOCKS,
    EfficientNetLite0,
    Layers,
    channels_in_words,
    from_published,
    working_size,
)
from onesided.nets.external import (
    KINDS,
    build_external,
    is_external,
    load_network,
    place_of,
)
from onesided.nets.mlp import MLP
from onesided.nets.pair import PairBackbone, check_pair
from onesided.nets.pretrained import (
    content_hash,
    own_file,
    published_file,
    read_weights,
    reset_to_initial_weights,
    set_initial_weights,
)
from onesided.nets.resnet import resnet18, resnet34
from onesided.nets.small import SmallNetwork
from onesided.nets.standardise import Backbone, Normalisation, Numbers, Standardise

SMALLEST_SIDE = 4
NAMES = ("auto", "small", "resnet18", "resnet34", "mlp", "efficientnet_lite0")

SEVERAL_LAYERS = (
    "layers = several is for a frozen efficientnet_lite0; add --backbone efficientnet_lite0 "
    "--freeze, or leave it out"
)
# All threads share the global generator: only one at a time may change its state.
_global_generator = threading.RLock()


class BackboneConfig(Config):
    """Which backbone, how wide, with or without BatchNorm, and its initial weights."""

    name: str = "auto"
    """Backbone: auto, small, resnet18, resnet34, mlp or efficientnet_lite0; auto takes mlp for
    vectors and small for images, and resnet18 is the paper's. hf:FOLDER (a model of the library
    transformers, or its name on the hub), timm:NAME and onnx:FILE are frozen ones of others."""
    width: float = Field(default=1.0, gt=0, le=16)
    """Multiplier of the layers' widths, for small and mlp; the others are as published."""
    normalisation: Normalisation = "batch"
    """batch, or none for small and mlp; the heads of the run follow it."""
    weights: str = Field(default="auto", min_length=1)
    """Initial weights: none draws them by the seed, pretrained takes the published ones, and any
    other word is a .safetensors file. auto is pretrained for efficientnet_lite0, else none."""
    freeze: bool = False
    """Whether the backbone is frozen, and only a head (an mlp) on its features learns.
    Features are computed once, so this takes minutes without a GPU."""
    resize: int = Field(default=0, ge=0, le=1024)
    """Shorter side to which efficientnet_lite0 resizes images; 0 chooses by their size."""
    layers: Layers = "last"
    """Whose averages are the features of a frozen efficientnet_lite0: last, the published ones, or
    several: also mean and deviation of three stages in the middle, which see texture where the
    last sees objects. A search without --backbone takes several."""
    tune: int = Field(default=0, ge=0, le=BLOCKS)
    """How many of the last blocks of a pretrained efficientnet_lite0 learn, at a tenth of the
    learning rate; all before them stays as it is. 0: everything learns, unless freeze is set."""
    views: int = Field(default=0, ge=0, le=64)
    """How many weak and how many strong views of every training image a frozen backbone embeds,
    once; a step takes one of them. 0: views are made of the features, by noise and exchange."""

    pair: bool = False
    """Whether the channels are those of two images, before and after, which a frozen backbone sees
    one by one: features of both and of how much they differ. onesided map sets it with --pre."""

    content: str = ""
    """Hash of the network that hf:, timm: or onnx: named, in model.json; a run computes it."""

    renamed: ClassVar[Mapping[str, str]] = {"trained": "freeze (true instead of head)"}

    @field_validator("name")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name in NAMES or is_external(name):
            return name
        kinds = " or ".join(f"{kind}:…" for kind in KINDS)
        raise ValueError(
            f"there is no backbone '{name}'; choose {', '.join(NAMES)}, {kinds}"
            f"{nearest(name, NAMES)}"
        )

    @model_validator(mode="after")
    def _networks_of_others_are_frozen(self) -> "BackboneConfig":
        if is_external(self.name) and (not self.freeze or self.weights != "auto"):
            raise ValueError(
                f"{self.name} is used frozen and brings its weights; add --freeze and leave out "
                "--weights"
            )
        return self

    @model_validator(mode="after")
    def _published_networks_are_as_published(self) -> "BackboneConfig":
        changed = self.width != 1.0 or self.normalisation != "batch"
        if self.name.startswith(("resnet", "efficientnet")) and changed:
            raise ValueError(
                f"{self.name} is the published network, with width 1 and normalisation 'batch'. "
                f"For width {self.width:g} and normalisation '{self.normalisation}' choose small"
            )
        return self

    @model_validator(mode="after")
    def _has_initial_weights(self) -> "BackboneConfig":
        if self.weights == "pretrained" and self.name != "efficientnet_lite0":
            raise ValueError(
                f"there are no published weights for {self.name}; give a .safetensors file with "
                "--weights, or choose --backbone efficientnet_lite0"
            )
        if self.freeze and self._origin == "none" and not is_external(self.name):
            raise ValueError(
                "a frozen backbone needs pretrained weights; choose "
                "--backbone efficientnet_lite0, or give a .safetensors file with --weights"
            )
        if self.resize and self.name != "efficientnet_lite0":
            raise ValueError(
                f"resize is a setting of efficientnet_lite0, and this is {self.name}; leave it out"
            )
        return self

    @model_validator(mode="after")
    def _tunes_what_is_pretrained_and_embeds_what_is_frozen(self) -> "BackboneConfig":
        if self.tune and (self.name != "efficientnet_lite0" or self._origin == "none"):
            raise ValueError(
                "tune is for a pretrained efficientnet_lite0, and this is "
                f"{self.name} with weights '{self.weights}'; leave it out"
            )
        if self.views and not self.freeze:
            raise ValueError(
                f"views = {self.views} are views that a frozen backbone embeds, and this one "
                "learns; add --freeze or leave it out"
            )
        if self.pair and not self.freeze:
            raise ValueError(
                "pair is for a frozen backbone, and this one learns; add --freeze or leave it out"
            )
        frozen = self.name == "efficientnet_lite0" and self.freeze
        if self.layers != "last" and not (frozen or self.name == "auto"):  # a search freezes it
            raise ValueError(SEVERAL_LAYERS)
        if self.tune and self.freeze:
            raise ValueError(
                f"freeze lets no block of the backbone learn, and tune = {self.tune} lets some; "
                "choose one of them"
            )
        return self

    @property
    def _origin(self) -> str:
        if self.weights != "auto":
            return self.weights
        return "pretrained" if self.name == "efficientnet_lite0" else "none"

    @property
    def starts_trained(self) -> bool:
        """Whether it begins with weights of earlier training rather than drawn ones."""
        return self._origin != "none"

    def weights_file(self) -> Path | None:
        """Return the file of the initial weights, or None where they are drawn."""
        if is_external(self.name):
            load_network(self.name)  # or say why it cannot be
        match self._origin:
            case "none":
                return None
            case "pretrained":
                return published_file()
            case path:
                return own_file(path)

    def learner(self) -> "BackboneConfig":
        """Return the network that learns: this one, or the head on its features."""
        return BackboneConfig(name="mlp") if self.freeze else self

    def from_scratch(self) -> "BackboneConfig":
        """Return the small network without pretrained weights, for images."""
        return BackboneConfig(name="small", width=0.25)

    def tuned(self, blocks: int) -> "BackboneConfig":
        """Return the same pretrained network, of which so many last blocks learn on images."""
        learning = {"freeze": False, "tune": blocks, "views": 0, "pair": False, "layers": "last"}
        return self.model_copy(update=learning)

    def for_samples(self, sample_shape: Sequence[int]) -> "BackboneConfig":
        """Return these settings as a model file keeps them: what was chosen is written out.

        That is `resize` for samples of this shape; of a network of others, where it is and what.
        """
        if is_external(self.name):
            content = load_network(self.name).content
            return self.model_copy(update={"name": place_of(self.name), "content": content})
        if self.name != "efficientnet_lite0" or len(sample_shape) != 3:
            return self
        _, height, width = sample_shape
        return self.model_copy(update={"resize": min(working_size(height, width, self.resize))})

    def identity(self) -> dict[str, Any]:
        """Return what decides results: a file by its content, not by its path.

        Settings of initial weights that are not used are left out, so that runs from before
        these settings existed keep their identity.
        """
        settings = self.model_dump(mode="json")
        del settings["content"]
        for key, unused in (("tune", 0), ("views", 0), ("pair", False), ("layers", "last")):
            if settings[key] == unused:
                del settings[key]
        if is_external(self.name):
            kind = self.name.partition(":")[0]
            return settings | {"name": kind, "weights": load_network(self.name).content}
        start = {key: settings.pop(key) for key in ("weights", "resize")}
        start["trained"] = "head" if settings.pop("freeze") else "all"  # the setting's old name
        file = self.weights_file()
        if file is None and self.name != "efficientnet_lite0":
            return settings
        return settings | start | {"weights": content_hash(file) if file else "none"}

    def in_words(self, sample_shape: Sequence[int]) -> str:
        """Return a short description of the backbone for people."""
        words: str = self.name
        channels = sample_shape[0] // 2 if self.pair else sample_shape[0]
        if self._origin != "none":
            origin = "ImageNet" if self._origin == "pretrained" else Path(self._origin).name
            words += f" with weights of {origin}"
        if self.name == "efficientnet_lite0" and len(sample_shape) == 3:
            height, width = working_size(sample_shape[1], sample_shape[2], self.resize)
            words += f" at {height}x{width} pixels{channels_in_words(channels)}"
        if self.layers == "several":
            words += ", features of its last and of three middle layers"
        if is_external(self.name):
            network = load_network(self.name)
            height, width = network.size
            numbers = "/".join(f"{value:.3g}" for value in (*network.mean, *network.std))
            words += f" at {height}x{width} pixels, standardised by {numbers}"
            words += channels_in_words(channels)
        if self.tune:
            words += f", tuned from block {BLOCKS - self.tune + 1} of {BLOCKS} on"
        if self.pair:
            words += ", before and after one by one"
        return f"{words}, frozen under a head" if self.freeze else words


def build_backbone(
    config: BackboneConfig,
    sample_shape: Sequence[int],
    mean: Numbers,
    std: Numbers,
    generator: torch.Generator | None = None,
) -> Backbone:
    """Return the untrained backbone for samples of this shape.

    Args:
        sample_shape: (channels, height, width) of an image or (features,) of a vector.
        mean: One number per channel in the 0-1 scale of the views, or per feature.
        generator: Source of the weights, on the CPU. Without one they are those of seed 0,
            enough for a network whose weights are then loaded from a file.
    """
    shape = _checked(sample_shape)
    if config.pair and len(shape) == 3:
        check_pair(shape[0])
        half = shape[0] // 2
        numbers = (np.asarray(mean)[:half], np.asarray(std)[:half])
        single = config.model_copy(update={"pair": False})
        return PairBackbone(
            build_backbone(single, (half, *shape[1:]), *numbers, generator), shape[0]
        )
    if is_external(config.name):
        if len(shape) != 3:
            raise ConfigError(f"The backbone {config.name} takes images, and these are vectors.")
        return build_external(config.name, shape[0], config.content)
    standardise = Standardise(mean, std)
    if standardise.channels != shape[0]:
        raise ConfigError(
            f"Samples of shape {shape} have {shape[0]} channels (or features), but mean and "
            f"standard deviation have {standardise.channels}; give one number for each."
        )
    with drawing_from(generator or rng.generator(0, "backbone")):
        return _construct(config, shape, standardise)


def load_initial_weights(config: BackboneConfig, backbone: Backbone) -> None:
    """Load the file of initial weights into a new backbone, if its settings name one."""
    if isinstance(backbone, PairBackbone):
        backbone = backbone.single
    path = config.weights_file()
    if path is None:
        return
    tensors = read_weights(path)
    if isinstance(backbone, EfficientNetLite0) and any(n.startswith("_conv") for n in tensors):
        tensors = from_published(tensors, backbone.standardise.channels)
    set_initial_weights(backbone, tensors, str(path))


def _construct(
    config: BackboneConfig, shape: tuple[int, ...], standardise: Standardise
) -> Backbone:
    is_image = len(shape) == 3
    name = config.name if config.name != "auto" else ("small" if is_image else "mlp")
    if config.layers != "last" and name != "efficientnet_lite0":
        raise ConfigError(f"backbone.{SEVERAL_LAYERS}.")
    if name == "mlp":
        hidden = max(8, round(256 * config.width))
        pixels = prod(shape[1:])
        return MLP(standardise, pixels=pixels, hidden=hidden, normalisation=config.normalisation)
    if not is_image:
        raise ConfigError(
            f"The backbone {name} takes images, and these samples are vectors of {shape[0]} "
            "features. Choose backbone.name = 'auto' or 'mlp'."
        )
    if name == "efficientnet_lite0":
        size = working_size(shape[1], shape[2], config.resize)
        return EfficientNetLite0(standardise, size=size, tuned=config.tune, layers=config.layers)
    if name == "small":
        return SmallNetwork(
            standardise,
            size=(shape[1], shape[2]),
            multiplier=config.width,
            normalisation=config.normalisation,
        )
    return resnet18(standardise) if name == "resnet18" else resnet34(standardise)


def _checked(sample_shape: Sequence[int]) -> tuple[int, ...]:
    shape = tuple(sample_shape)
    if len(shape) not in (1, 3) or min(shape) < 1:
        raise ConfigError(
            f"Samples must have the shape (channels, height, width) or (features,); got {shape}."
        )
    if len(shape) == 3 and min(shape[1:]) < SMALLEST_SIDE:
        raise ConfigError(
            f"Images must be at least {SMALLEST_SIDE}x{SMALLEST_SIDE} pixels; got "
            f"{shape[1]}x{shape[2]}. Enlarge them, or pass them as vectors of "
            f"{prod(shape)} features."
        )
    return shape


def seeded(seed: int, *coordinates: rng.Coordinate) -> AbstractContextManager[None]:
    """Let layers built in this block depend on the seed and the coordinates alone.

    The global generator is restored when the block ends. Use one block per network or
    group of heads, each with its own coordinates: then a new layer in one does not change
    the weights of the others.
    """
    return drawing_from(rng.generator(seed, *coordinates))


@contextmanager
def drawing_from(generator: torch.Generator) -> Iterator[None]:
    """Let torch draw from this generator in the block; the global one is then restored.

    The generator keeps the state that it has at the end of the block. Threads wait for each other.
    """
    if generator.device.type != "cpu":
        raise ContractError(f"Weights are drawn on the CPU; got a generator of {generator.device}.")
    with _global_generator:
        outside = torch.get_rng_state()
        torch.set_rng_state(generator.get_state())
        try:
            with torch.device("cpu"):
                yield
        finally:
            generator.set_state(torch.get_rng_state())
            torch.set_rng_state(outside)


def initialise(module: nn.Module, generator: torch.Generator) -> None:
    """Draw all weights of a network anew from this generator.

    A network that was given initial weights gets these again instead. For methods that train a
    new network in a later stage. A target network among the modules would get weights of its
    own; let it `follow` with momentum 0 afterwards.
    """
    with drawing_from(generator), torch.no_grad():
        _redraw(module)


def _redraw(module: nn.Module) -> None:
    if reset_to_initial_weights(module):
        return
    reset = getattr(module, "reset_parameters", None)
    if callable(reset):
        reset()
        return
    if next(module.parameters(recurse=False), None) is not None:
        raise ContractError(
            f"{type(module).__name__} has weights but no reset_parameters(), so it cannot be "
            "drawn anew. Add that method, as torch's own layers have it."
        )
    for child in module.children():
        _redraw(child)
