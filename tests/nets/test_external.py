"""Frozen networks of others: what they take, what they give, and how a model remembers them."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from onesided.core.errors import CheckpointError, ConfigError, DataNotFound, MissingLibrary
from onesided.nets.build import BackboneConfig, build_backbone, load_initial_weights
from onesided.nets.efficientnet import stem_for_channels
from onesided.nets.external import PREPROCESSING, _Preprocessing, place_of, three_channels
from onesided.nets.standardise import Backbone

TINY = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
IMAGES = torch.rand(3, 3, 40, 24, generator=torch.Generator().manual_seed(0))


def transformers() -> Any:  # noqa: ANN401 - a library
    return pytest.importorskip("transformers", reason="pip install 'onesided[hf]'")


def saved(folder: Path, kind: str, numbers: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401
    """Write a tiny network with random weights as transformers does, and return it."""
    library = transformers()
    torch.manual_seed(0)
    sizes = {"image_size": 28, "patch_size": 14}
    if kind == "clip":
        vision = TINY | sizes | {"intermediate_size": 32, "projection_dim": 8}
        text = TINY | {"intermediate_size": 32, "vocab_size": 99, "projection_dim": 8}
        config = library.CLIPConfig(vision_config=vision, text_config=text, projection_dim=8)
        model = library.CLIPModel(config)
    elif kind == "dinov2":
        model = library.Dinov2Model(library.Dinov2Config(**TINY, **sizes))
    else:
        config = library.ViTConfig(**TINY, **sizes, intermediate_size=32)
        model = library.ViTModel(config, add_pooling_layer=kind == "vit")
    model.save_pretrained(folder)
    if numbers is not None:
        (folder / PREPROCESSING).write_text(json.dumps(numbers))
    return model.eval()


def built(name: str, channels: int = 3, content: str = "") -> Backbone:
    config = BackboneConfig(name=name, freeze=True, content=content)
    backbone = build_backbone(config, (channels, 40, 24), [0.5] * channels, [0.5] * channels)
    load_initial_weights(config, backbone)
    return backbone.eval()


@pytest.mark.parametrize("kind", ["dinov2", "vit", "vit-without-pooler", "clip"])
@torch.no_grad()
def test_features_are_the_pooled_output_of_the_model_or_its_first_token(
    kind: str, tmp_path: Path
) -> None:
    numbers = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.5, 0.6, 0.7], "size": 28}
    model = saved(tmp_path, kind, numbers)
    found = built(f"hf:{tmp_path}")(IMAGES)
    resized = torch.nn.functional.interpolate(
        IMAGES, size=(28, 28), mode="bilinear", antialias=True
    )
    mean, std = (torch.tensor(numbers[key])[:, None, None] for key in ("image_mean", "image_std"))
    inner = getattr(model, "vision_model", model)
    outputs = inner(pixel_values=(resized - mean) / std)
    without = kind == "vit-without-pooler"
    expected = outputs.last_hidden_state[:, 0] if without else outputs.pooler_output
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)


def test_a_model_file_knows_where_the_network_is_and_what_it_was(tmp_path: Path) -> None:
    saved(tmp_path / "net", "dinov2")
    settings = BackboneConfig(name=f"hf:{tmp_path / 'net'}", freeze=True).for_samples((3, 9, 9))
    assert settings.name == f"hf:{(tmp_path / 'net').resolve()}"
    backbone = built(settings.name, content=settings.content)
    assert set(backbone.state_dict()) == {"standardise.mean", "standardise.std"}
    (tmp_path / "net" / PREPROCESSING).write_text('{"image_mean": [0, 0, 0]}')
    with pytest.raises(CheckpointError, match="changed since the model was trained"):
        built(settings.name, content=settings.content)
    (tmp_path / "net").rename(tmp_path / "elsewhere")
    with pytest.raises(DataNotFound, match="There is no folder"):
        built(settings.name, content=settings.content)


def test_the_same_network_elsewhere_is_the_same_run_and_the_same_store(tmp_path: Path) -> None:
    for name in ("one", "two"):
        saved(tmp_path / name, "vit")
    one, two = (f"hf:{tmp_path / name}" for name in ("one", "two"))
    settings = [BackboneConfig(name=name, freeze=True) for name in (one, two)]
    assert settings[0].identity() == settings[1].identity()
    assert built(one).identity() == built(two).identity()
    assert "at 28x28 pixels" in settings[0].in_words((3, 9, 9))


def test_loading_leaves_the_global_generator_alone(tmp_path: Path) -> None:
    saved(tmp_path, "vit-without-pooler")
    torch.manual_seed(3)
    before = torch.get_rng_state()
    built(f"hf:{tmp_path}")
    assert torch.equal(torch.get_rng_state(), before)


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    saved(tmp_path, "vit")
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=r"holds no \.safetensors file"):
        built(f"hf:{tmp_path}")


def write_onnx(path: Path, *, batch: int | str = "n", side: int | str = 12) -> None:
    """Write a network that returns the mean of each colour's map, as a map of one pixel."""
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    make, number = onnx.helper, onnx.TensorProto.FLOAT
    graph = make.make_graph(
        [make.make_node("GlobalAveragePool", ["x"], ["y"])],
        "means",
        [make.make_tensor_value_info("x", number, [batch, 3, side, side])],
        [make.make_tensor_value_info("y", number, [batch, 3, 1, 1])],
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path))


@pytest.mark.parametrize(("batch", "side"), [("n", 12), (1, 12), (2, 12), ("n", "s")])
def test_a_network_in_onnx_gives_its_output(
    batch: int | str, side: int | str, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime", reason="pip install 'onesided[onnx]'")
    write_onnx(tmp_path / "net.onnx", batch=batch, side=side)
    (tmp_path / PREPROCESSING).write_text('{"image_mean": [0, 0, 0], "image_std": [1, 1, 1]}')
    found = built(f"onnx:{tmp_path / 'net.onnx'}")(IMAGES)
    torch.testing.assert_close(found, IMAGES.mean(dim=(2, 3)), rtol=0.02, atol=0.02)


def test_an_onnx_file_that_is_none_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="pip install 'onesided[onnx]'")
    (tmp_path / "net.onnx").write_bytes(b"nonsense")
    with pytest.raises(CheckpointError, match="onnxruntime cannot read"):
        built(f"onnx:{tmp_path / 'net.onnx'}")
    with pytest.raises(DataNotFound, match="There is no file"):
        built(f"onnx:{tmp_path / 'other.onnx'}")


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 6])
def test_channels_become_colours_as_in_the_first_layer_of_efficientnet(channels: int) -> None:
    random = torch.Generator().manual_seed(1)
    images = torch.rand(2, channels, 4, 4, generator=random)
    kernel = torch.rand(5, 3, 3, 3, generator=random)
    expected = torch.conv2d(images, stem_for_channels(kernel, channels))
    torch.testing.assert_close(torch.conv2d(three_channels(images), kernel), expected)


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ({}, (32, 32)),
        ({"size": 64}, (64, 64)),
        ({"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 200}}, (224, 200)),
        ({"size": {"shortest_edge": 48}}, (48, 48)),
    ],
)
def test_sizes_are_read_in_every_form(given: Mapping[str, object], size: tuple[int, int]) -> None:
    assert _Preprocessing.model_validate(given).numbers(32)[2] == size


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"name": "efficientnet_lite1"}, "Did you mean 'efficientnet_lite0'"),
        ({"name": "hf:some/net"}, "add --freeze"),
        ({"name": "onnx:net.onnx", "freeze": True, "weights": "a.safetensors"}, "leave out"),
        ({"name": "timm:resnet50"}, "add --freeze"),
        ({"name": "keras:resnet50"}, "there is no backbone 'keras:resnet50'"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: Mapping[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        BackboneConfig.from_settings(dict(settings), "backbone")


@pytest.mark.parametrize(
    ("kind", "package"), [("hf", "transformers"), ("onnx", "onnxruntime"), ("timm", "timm")]
)
def test_a_missing_library_is_named_with_its_extra(
    kind: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingLibrary, match=rf"pip install 'onesided\[{kind}\]'"):
        BackboneConfig(name=f"{kind}:nowhere-{package}", freeze=True).weights_file()


def test_a_name_that_is_no_place_stays(tmp_path: Path) -> None:
    assert place_of("hf:facebook/dinov2-small") == "hf:facebook/dinov2-small"
    assert place_of(f"timm:{tmp_path}") == f"timm:{tmp_path}"
    assert place_of(f"onnx:{tmp_path}") == f"onnx:{tmp_path.resolve()}"
