"""The memory format changes speed, and nothing that is saved."""

from pathlib import Path

import pytest
import safetensors.torch
import torch

from onesided.engine.model_file import ModelDescription, load_model, save_model
from onesided.engine.predict import arrange
from onesided.methods.base import GradientMethod
from onesided.nets.build import BackboneConfig
from tests.contract.cases import Case, build, equal_states, toy_split, train

CPU = torch.device("cpu")


def untrained() -> GradientMethod:
    method = build(Case("ncpu"), toy_split())
    assert isinstance(method, GradientMethod)
    return method


def kernels(method: GradientMethod) -> list[torch.Tensor]:
    return [p for p in method.parameters() if p.ndim == 4 and p.shape[1] > 1 and p.shape[2] > 1]


def channels_are_last(method: GradientMethod) -> bool:
    return all(one.is_contiguous(memory_format=torch.channels_last) for one in kernels(method))


def test_networks_for_images_train_with_channels_last() -> None:
    method = untrained()
    assert not channels_are_last(method)
    train(method, toy_split())
    assert kernels(method)
    assert channels_are_last(method)


@pytest.mark.parametrize(
    ("shape", "device"), [((12,), CPU), ((3, 16, 16), torch.device("cuda"))], ids=["vector", "gpu"]
)
def test_other_networks_stay_as_they_are(shape: tuple[int, ...], device: torch.device) -> None:
    method = untrained()
    arrange(method, shape, device)
    assert not channels_are_last(method)


def test_arranging_changes_no_value_and_keeps_the_parameters() -> None:
    method, before = untrained(), untrained()
    parameters = list(method.parameters())
    arrange(method, (3, 16, 16), CPU)
    assert equal_states(method, before)
    assert all(old is new for old, new in zip(parameters, method.parameters(), strict=True))


def test_gradients_are_the_same_up_to_rounding() -> None:
    images = torch.rand(8, *toy_split().sample_shape, generator=torch.Generator().manual_seed(0))
    plain, fast = untrained(), untrained()
    arrange(fast, images.shape[1:], CPU)
    for method in (plain, fast):
        method.classify(images).square().sum().backward()  # type: ignore[no-untyped-call]
    for one, other in zip(kernels(plain), kernels(fast), strict=True):
        if one.grad is not None:
            assert other.grad is not None
            torch.testing.assert_close(one.grad, other.grad, atol=1e-4, rtol=1e-3)


def test_a_saved_model_holds_the_same_bytes_however_it_was_laid_out(tmp_path: Path) -> None:
    split = toy_split()
    method = untrained()
    shape = split.sample_shape
    description = ModelDescription(
        method="ncpu",
        settings=Case("ncpu").config().model_dump(mode="json"),
        backbone=BackboneConfig(width=0.125),
        sample_shape=shape,
        mean=(0.5,) * shape[0],
        std=(0.25,) * shape[0],
        kind=split.kind,
    )
    files = []
    for name in ("plain", "fast"):
        folder = tmp_path / name
        folder.mkdir()
        save_model(folder, method, description)
        files.append((folder / "model.safetensors").read_bytes())
        arrange(method, shape, CPU)
    assert files[0] == files[1]
    assert safetensors.torch.load(files[1])
    predictor, _ = load_model(tmp_path / "fast", "cpu")
    assert isinstance(predictor.method, GradientMethod)
    expected = method.inference_state()
    found = predictor.method.inference_state()
    assert all(torch.equal(found[name], value) for name, value in expected.items())
