import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from onesided.nets.small import SmallNetwork, Whitening, halvings
from onesided.nets.standardise import Normalisation, Standardise


def network_for(
    channels: int,
    height: int,
    width: int,
    *,
    multiplier: float = 1.0,
    normalisation: Normalisation = "batch",
) -> SmallNetwork:
    torch.manual_seed(0)
    return SmallNetwork(
        Standardise([0.5] * channels, [0.25] * channels),
        size=(height, width),
        multiplier=multiplier,
        normalisation=normalisation,
    )


def images(channels: int, height: int, width: int, *, count: int = 4) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.rand(count, channels, height, width, generator=generator)


@pytest.mark.parametrize("channels", [1, 3, 6])
@pytest.mark.parametrize("size", [4, 8, 17, 32, 64, 128])
@pytest.mark.parametrize("normalisation", ["batch", "none"])
def test_any_image_gives_256_features(
    channels: int, size: int, normalisation: Normalisation
) -> None:
    network = network_for(channels, size, size, normalisation=normalisation).eval()
    features = network(images(channels, size, size, count=2))
    assert features.shape == (2, network.width) == (2, 256)
    assert features.isfinite().all()


def test_long_and_odd_images_run_too() -> None:
    for height, width in [(8, 128), (128, 8), (4, 200), (25, 37)]:
        assert network_for(3, height, width)(images(3, height, width)).shape == (4, 256)


def giga_macs(channels: int, size: int) -> float:
    network = network_for(channels, size, size).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(images(channels, size, size, count=1))
    return float(counter.get_total_flops()) / 2e9


@pytest.mark.parametrize(
    ("channels", "size", "cost"), [(3, 32, 0.052), (3, 64, 0.07), (3, 96, 0.16), (6, 128, 0.133)]
)
def test_cost_is_what_the_module_says(channels: int, size: int, cost: float) -> None:
    assert giga_macs(channels, size) == pytest.approx(cost, rel=0.02)


@pytest.mark.parametrize(
    ("height", "width", "count"),
    [
        (4, 4, 0),
        (8, 8, 0),
        (24, 24, 0),
        (25, 25, 1),
        (32, 32, 1),
        (64, 64, 2),
        (96, 96, 2),
        (128, 128, 3),
        (7, 1000, 0),
        (8, 1000, 1),
    ],
)
def test_stem_halves_until_the_image_is_small_but_not_below_four(
    height: int, width: int, count: int
) -> None:
    assert halvings(height, width) == count
    network = network_for(1, height, width)
    maps = network.stem(network.first(images(1, height, width, count=2)))
    assert min(maps.shape[2:]) >= 4


@pytest.mark.parametrize(("multiplier", "width"), [(0.25, 64), (0.5, 128), (2.0, 512), (0.01, 8)])
def test_the_multiplier_scales_the_width(multiplier: float, width: int) -> None:
    network = network_for(3, 16, 16, multiplier=multiplier)
    assert network.width == width
    assert network(images(3, 16, 16)).shape == (4, width)


def test_without_normalisation_there_is_none_and_a_sample_ignores_its_batch() -> None:
    network = network_for(3, 16, 16, normalisation="none").double().train()
    assert not any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in network.modules())
    samples = images(3, 16, 16).double()
    alone = torch.cat([network(samples[row : row + 1]) for row in range(4)])
    torch.testing.assert_close(network(samples), alone)


@pytest.mark.parametrize("size", [8, 32, 128])
def test_without_normalisation_signals_neither_fade_nor_explode(size: int) -> None:
    network = network_for(3, size, size, normalisation="none")
    samples = images(3, size, size, count=8)
    contrast = (samples - 0.5) / 0.25
    network.initialise_from(samples)
    maps = network.stages(network.stem(network.first(contrast)))
    assert 0.3 < (maps**2).mean().sqrt().item() < 3.0


def test_a_stage_halves_by_the_largest_of_four_neighbours() -> None:
    network = network_for(3, 16, 16)
    stage = network.stages[0]
    assert isinstance(stage, nn.Sequential)
    seen = stage[0](images(network.first.channels, 8, 8))
    largest = torch.stack([seen[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)]).amax(dim=0)
    assert torch.equal(stage[1](seen), largest)


@pytest.mark.parametrize("normalisation", ["batch", "none"])
def test_a_few_steps_tell_upright_stripes_from_lying_ones(normalisation: Normalisation) -> None:
    network = network_for(3, 16, 16, multiplier=0.25, normalisation=normalisation)
    classifier = nn.Linear(network.width, 2)
    learner = nn.Sequential(network, classifier)
    samples, truth = images(3, 16, 16, count=16), torch.arange(16) % 2
    stripes = (torch.arange(16) % 4 < 2).float().expand(16, 16)
    samples = (samples + torch.where(truth.view(-1, 1, 1, 1) == 1, stripes, stripes.T)) / 2
    optimizer = torch.optim.SGD(learner.parameters(), lr=0.02, momentum=0.9)
    losses = []
    for _ in range(80):
        loss = F.cross_entropy(learner(samples), truth)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize("normalisation", ["batch", "none"])
def test_every_weight_gets_a_gradient(normalisation: Normalisation) -> None:
    network = network_for(3, 32, 32, normalisation=normalisation)
    network(images(3, 32, 32)).square().sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


def smooth_images(channels: int, size: int, *, count: int = 400) -> Tensor:
    """Images whose neighbouring pixels are similar, as in photographs."""
    generator = torch.Generator().manual_seed(2)
    rough = torch.randn(count, channels, size, size, generator=generator, dtype=torch.float64)
    return F.avg_pool2d(rough, 5, stride=1, padding=2)


@pytest.mark.parametrize(("halve", "channels"), [(True, 3), (False, 1), (True, 6)])
def test_the_first_layer_makes_patches_uncorrelated_and_of_unit_variance(
    halve: bool, channels: int
) -> None:
    layer = Whitening(channels, halve=halve).double()
    samples = smooth_images(channels, 24)
    layer.initialise_from(samples)
    with torch.no_grad():
        # The very patches it looked at: side by side, none over the rim.
        answers = F.conv2d(samples, layer.filters, stride=layer.kernel).transpose(0, 1).flatten(1)
    assert len(answers) * 2 == layer.channels == 2 * min(24, channels * layer.kernel**2)
    covariance = torch.cov(answers)
    shrunk = covariance.diagonal()
    assert torch.allclose(covariance, torch.diag(shrunk), atol=1e-6)
    assert 0.5 < shrunk.min() < shrunk.max() < 1.0001, "quiet patterns stay below 1"
    assert (shrunk.diff() < 1e-9).all(), "the loudest pattern comes first"


def test_both_signs_of_a_filter_survive_the_rectifier() -> None:
    layer = Whitening(3, halve=True)
    answers = layer(images(3, 16, 16))
    first, second = answers.chunk(2, dim=1)
    assert torch.allclose(first, -second, atol=1e-6)


def test_the_first_layer_is_a_convolution_with_both_signs_and_a_bias() -> None:
    layer = Whitening(3, halve=True).double()
    with torch.no_grad():
        layer.bias.copy_(torch.linspace(-1, 1, layer.channels))
    samples = images(3, 16, 16).double()
    both = torch.cat([layer.filters, -layer.filters])
    plain = F.conv2d(samples, both, layer.bias, stride=2, padding=1)
    answers = layer(samples)
    assert torch.allclose(answers, plain)
    sums = (answers.square().sum(), plain.square().sum())
    mine, theirs = (torch.autograd.grad(one, layer.bias)[0] for one in sums)
    assert torch.allclose(mine, theirs)


def test_the_first_layer_stays_in_half_precision() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert Whitening(3, halve=True)(images(3, 16, 16)).dtype == torch.bfloat16


def test_images_that_are_all_alike_give_finite_filters() -> None:
    network = network_for(1, 8, 8)
    network.initialise_from(torch.full((20, 1, 8, 8), 0.25))
    assert network(images(1, 8, 8)).isfinite().all()


def test_drawing_anew_keeps_the_computed_first_layer() -> None:
    network = network_for(3, 16, 16)
    network.initialise_from(images(3, 16, 16, count=50))
    seen = network.first.filters.clone()
    with torch.no_grad():
        network.first.bias.fill_(3.0)
    network.reset_parameters()
    assert torch.equal(network.first.filters, seen)
    assert torch.equal(network.first.bias, torch.zeros_like(network.first.bias))
