import numpy as np
import pytest
import torch

from onesided.core.errors import ConfigError, ContractError
from onesided.nets.build import BackboneConfig, build_backbone
from onesided.nets.standardise import (
    Backbone,
    Standardise,
    features_by_batch_statistics,
    global_average,
)


def test_each_channel_is_shifted_and_scaled_by_its_own_numbers() -> None:
    mean, std = [0.1, 0.5, 0.9], [0.2, 0.3, 0.4]
    images = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    result = Standardise(mean, std)(images)
    for channel in range(3):
        expected = (images[:, channel] - mean[channel]) / std[channel]
        torch.testing.assert_close(result[:, channel], expected)


def test_each_feature_of_a_vector_has_its_own_numbers() -> None:
    result = Standardise([1.0, 2.0], [0.5, 4.0])(torch.tensor([[2.0, 10.0]]))
    assert result.tolist() == [[2.0, 2.0]]


def test_preprocessing_is_saved_and_loaded_with_the_model() -> None:
    saved = Standardise([0.1, 0.2], [0.3, 0.4]).state_dict()
    assert set(saved) == {"mean", "std"}
    assert all(value.dtype == torch.float32 for value in saved.values())
    other = Standardise([0.0, 0.0], [1.0, 1.0])
    other.load_state_dict(saved)
    assert other.mean.tolist() == pytest.approx([0.1, 0.2])
    assert other.std.tolist() == pytest.approx([0.3, 0.4])


def test_preprocessing_is_not_learned() -> None:
    assert not list(Standardise([0.5], [0.5]).parameters())


@pytest.mark.parametrize("constant", [0.0, 0.1, 300.0])
def test_a_constant_feature_becomes_zero_and_not_noise(constant: float) -> None:
    values = np.full(1000, constant, dtype=np.float32)
    rounding = abs(constant) * 1e-7
    layer = Standardise([values.mean()], [values.std() + rounding])
    assert layer(torch.full((1, 1), constant)).abs().item() < 1e-3


def test_a_quiet_feature_is_scaled_like_any_other() -> None:
    layer = Standardise([0.0, 1.0], [1e-9, 1e-4])
    assert layer.std.tolist() == pytest.approx([1e-9, 1e-4])


def test_statistics_may_be_lists_arrays_or_tensors() -> None:
    as_lists = Standardise([0.5, 0.25], [2, 1])
    as_arrays = Standardise(np.array([0.5, 0.25]), np.array([2.0, 1.0]))
    as_tensors = Standardise(torch.tensor([0.5, 0.25]), torch.tensor([2.0, 1.0]))
    for layer in (as_arrays, as_tensors):
        assert torch.equal(layer.mean, as_lists.mean)
        assert torch.equal(layer.std, as_lists.std)


def test_the_callers_array_stays_the_callers() -> None:
    std = np.zeros(1, dtype=np.float32)
    layer = Standardise(np.zeros(1, dtype=np.float32), std)
    std[0] = 7.0
    assert layer.std.item() == 1.0


@pytest.mark.parametrize(
    ("mean", "std"),
    [([0.5], [0.5, 0.5]), ([], []), ([float("nan")], [1.0]), ([0.0], [-1.0]), ([0.0], [np.inf])],
)
def test_statistics_that_cannot_be_are_refused(mean: list[float], std: list[float]) -> None:
    with pytest.raises(ConfigError, match=r"[Mm]ean and standard deviation"):
        Standardise(mean, std)


def test_scaled_to_bytes_instead_of_one_is_refused() -> None:
    with pytest.raises(ContractError, match="Divide uint8 images by 255"):
        Standardise([0.5], [0.5])(torch.zeros(1, 1, 4, 4, dtype=torch.uint8))


def test_a_wrong_number_of_channels_is_named() -> None:
    with pytest.raises(ContractError, match="built for 3 channels"):
        Standardise([0.5] * 3, [0.5] * 3)(torch.zeros(1, 1, 4, 4))


def test_global_average_is_the_mean_over_places() -> None:
    maps = torch.arange(12.0).reshape(1, 2, 2, 3)
    assert global_average(maps).tolist() == [[2.5, 8.5]]


def network(shape: tuple[int, ...]) -> Backbone:
    config = BackboneConfig(width=0.125)
    return build_backbone(config, shape, [0.5] * shape[0], [0.25] * shape[0])


@pytest.mark.parametrize("shape", [(3, 8, 8), (5,)], ids=["images", "vectors"])
def test_features_by_batch_statistics_leave_the_network_unchanged(
    shape: tuple[int, ...],
) -> None:
    backbone = network(shape).train()
    samples = torch.rand(6, *shape, generator=torch.Generator().manual_seed(0))
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    seen = features_by_batch_statistics(backbone, samples)
    assert all(torch.equal(value, before[name]) for name, value in backbone.state_dict().items())
    assert not seen.requires_grad
    assert torch.equal(seen, backbone(samples).detach())
    after = backbone.state_dict()
    assert any(not torch.equal(after[name], before[name]) for name in after), "training remembers"
