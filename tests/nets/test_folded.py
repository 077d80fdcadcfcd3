import pytest
import torch
from torch import Tensor

from onesided.nets import folded
from onesided.nets.efficientnet import EfficientNetLite0, Layers, _convolution, _rectified
from onesided.nets.folded import FoldedConvolution, batch_of, few_images
from onesided.nets.standardise import Standardise


def trained(module: torch.nn.Module) -> torch.nn.Module:
    """Let every BatchNorm have numbers of its own, as after a training."""
    random = torch.Generator().manual_seed(1)
    for layer in module.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            for tensor in (layer.weight, layer.bias, layer.running_mean, layer.running_var):
                assert isinstance(tensor, Tensor)
                tensor.data.copy_(0.5 + torch.rand(tensor.shape, generator=random))
    return module.eval()


@pytest.fixture(params=["fused", "plain"])
def build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both builds of torch: with oneDNN's fused convolutions, and without."""
    if request.param == "plain":
        monkeypatch.setattr(folded, "has_fused_convolutions", lambda: False)
    elif not folded.has_fused_convolutions():
        pytest.skip("this build of torch has no fused convolutions")


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("size", [(8, 8), (7, 7), (6, 9), (9, 6), (2, 2), (1, 1)])
@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("stride", [1, 2])
@torch.no_grad()
def test_a_folded_convolution_is_the_three_layers_one_after_the_other(
    size: tuple[int, int], kernel: int, stride: int
) -> None:
    torch.manual_seed(0)
    maps = torch.randn(3, 16, *size).contiguous(memory_format=torch.channels_last)
    for make, groups in ((_rectified, 16), (_convolution, 1)):
        layers = trained(make(16, 16, kernel=kernel, stride=stride, groups=groups))
        one = FoldedConvolution(layers, size, images=3)
        found, expected = one(maps), layers(maps)
        assert one.outputs == tuple(expected.shape[2:])
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("build")
@pytest.mark.parametrize("size", [(32, 32), (33, 47), (64, 40)])
@pytest.mark.parametrize("layers", ["last", "several"])
@torch.no_grad()
def test_the_folded_network_has_the_features_of_the_network(
    size: tuple[int, int], layers: Layers
) -> None:
    torch.manual_seed(0)
    network = EfficientNetLite0(Standardise([0.4] * 3, [0.2] * 3), size=size, layers=layers)
    trained(network)
    images = torch.rand(5, 3, 20, 20)
    found, expected = network.inference().features(images), network(images)
    assert found.std() > 0
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_folding_changes_no_weight() -> None:
    network = EfficientNetLite0(Standardise([0.4] * 3, [0.2] * 3), size=(32, 32)).eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    network.inference()
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


def test_larger_images_go_through_in_smaller_batches() -> None:
    sizes = [(32, 32), (96, 96), (128, 128), (224, 224), (1024, 1024)]
    assert [few_images(size) for size in sizes] == [36, 4, 2, 1, 1]
    assert [batch_of(size) for size in sizes] == [288, 32, 18, 5, 4]
