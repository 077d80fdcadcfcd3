"""Models of timm as frozen backbones: with timm's own preprocessing, from safetensors alone."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from onesided.core.errors import ConfigError, DataNotFound
from onesided.nets.build import BackboneConfig
from onesided.nets.external import _loaded
from tests.nets.test_external import IMAGES, built

ABOUT = {
    "architecture": "tiny",
    "hf_hub_id": "timm/tiny",
    "mean": (0.1, 0.2, 0.3),
    "std": (0.5, 0.6, 0.7),
    "input_size": (3, 20, 12),
}


class Tiny(nn.Module):
    """A model as timm gives it with `num_classes=0`: pooled features."""

    def __init__(self, about: Mapping[str, object]) -> None:
        super().__init__()
        self.pretrained_cfg = about
        self.convolution = nn.Conv2d(3, 5, 3)

    def forward(self, images: Tensor) -> Tensor:
        pooled: Tensor = self.convolution(images).mean(dim=(2, 3))
        return pooled


class FakeHub:
    """Stands for timm and for the hub; it notes which file was asked for."""

    def __init__(self, folder: Path) -> None:
        self.about: dict[str, Any] = dict(ABOUT)
        self.file, self.asked = folder / "model.safetensors", list[tuple[str, str]]()
        torch.manual_seed(1)
        save_file(Tiny(ABOUT).state_dict(), self.file)

    def create_model(
        self,
        name: str,
        *,
        pretrained: bool,
        num_classes: int,
        pretrained_cfg_overlay: Mapping[str, object] | None = None,
    ) -> Tiny:
        if name != "tiny":
            raise RuntimeError(f"Unknown model ({name})")
        assert num_classes == 0
        model = Tiny(self.about)
        if pretrained:
            assert pretrained_cfg_overlay is not None
            model.load_state_dict(load_file(str(pretrained_cfg_overlay["file"])))
        return model

    def hf_hub_download(self, place: str, file: str) -> str:
        self.asked.append((place, file))
        return str(self.file)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    fake = FakeHub(tmp_path)
    for name, function in (
        ("timm", "create_model"),
        ("huggingface_hub", "hf_hub_download"),
    ):
        module = ModuleType(name)
        setattr(module, function, getattr(fake, function))
        monkeypatch.setitem(sys.modules, name, module)
    _loaded.cache_clear()
    return fake


def expected_features(model: nn.Module, about: Mapping[str, Any]) -> Tensor:
    resized = nn.functional.interpolate(
        IMAGES, size=about["input_size"][1:], mode="bilinear", antialias=True
    )
    mean, std = (torch.tensor(about[key])[:, None, None] for key in ("mean", "std"))
    with torch.no_grad():
        features: Tensor = model.eval()((resized - mean) / std)
    return features


def test_features_are_those_of_the_model_with_its_own_preprocessing(hub: FakeHub) -> None:
    model = Tiny(ABOUT)
    model.load_state_dict(load_file(hub.file))
    found = built("timm:tiny")(IMAGES)
    torch.testing.assert_close(found, expected_features(model, ABOUT), rtol=1e-3, atol=1e-5)
    assert hub.asked == [("timm/tiny", "model.safetensors")]
    settings = BackboneConfig(name="timm:tiny", freeze=True)
    assert "at 20x12 pixels, standardised by 0.1/0.2/0.3" in settings.in_words((3, 9, 9))


def test_the_weights_and_the_preprocessing_decide_the_content(hub: FakeHub) -> None:
    first = BackboneConfig(name="timm:tiny", freeze=True).for_samples((3, 9, 9))
    assert first.name == "timm:tiny"
    contents = {first.content}
    hub.about["mean"] = (0.0, 0.0, 0.0)
    _loaded.cache_clear()
    contents.add(first.for_samples((3, 9, 9)).content)
    save_file(Tiny(ABOUT).state_dict(), hub.file)
    _loaded.cache_clear()
    contents.add(first.for_samples((3, 9, 9)).content)
    assert len(contents) == 3


@pytest.mark.parametrize(
    "about", [{"hf_hub_id": None}, {"hf_hub_filename": "weights.bin"}, {"input_size": (1, 9, 9)}]
)
def test_a_model_without_safetensors_for_colour_images_is_refused(
    about: Mapping[str, object], hub: FakeHub
) -> None:
    hub.about |= about
    with pytest.raises(ConfigError, match=r"safetensors|3 channels"):
        built("timm:tiny")


def test_a_clip_model_is_read_from_its_safetensors(hub: FakeHub) -> None:
    hub.about["hf_hub_filename"] = "open_clip_pytorch_model.bin"
    built("timm:tiny")
    assert hub.asked == [("timm/tiny", "open_clip_model.safetensors")]


def test_a_name_that_timm_does_not_know_is_refused(hub: FakeHub) -> None:
    with pytest.raises(DataNotFound, match="There is no model timm:other"):
        built("timm:other")


def test_a_model_of_timm_itself_gives_its_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timm = pytest.importorskip("timm", reason="pip install 'onesided[timm]'")
    hub = pytest.importorskip("huggingface_hub", reason="pip install 'onesided[timm]'")
    _loaded.cache_clear()
    torch.manual_seed(2)
    name = "test_resnet.r160_in1k"
    whole = timm.create_model(name, pretrained=False)  # with classes, as the published files
    save_file(whole.state_dict(), tmp_path / "model.safetensors")
    monkeypatch.setattr(hub, "hf_hub_download", lambda *_: str(tmp_path / "model.safetensors"))
    found = built(f"timm:{name}")(IMAGES)
    whole.reset_classifier(0)
    expected = expected_features(whole, whole.pretrained_cfg)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
