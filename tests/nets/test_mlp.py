import pytest
import torch
from torch import nn
from torch.nn import functional as F

from onesided.nets.mlp import MLP
from onesided.nets.standardise import Normalisation, Standardise


def network_for(features: int, *, normalisation: Normalisation = "batch") -> MLP:
    torch.manual_seed(0)
    standardise = Standardise([0.0] * features, [1.0] * features)
    return MLP(standardise, hidden=32, normalisation=normalisation)


def vectors(count: int, features: int) -> torch.Tensor:
    return torch.randn(count, features, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("features", [1, 2, 64])
@pytest.mark.parametrize("normalisation", ["batch", "none"])
def test_vectors_of_any_length_give_hidden_features(
    features: int, normalisation: Normalisation
) -> None:
    network = network_for(features, normalisation=normalisation)
    assert network(vectors(5, features)).shape == (5, network.width) == (5, 32)


def test_without_normalisation_it_equals_the_written_out_formula() -> None:
    network = network_for(3, normalisation="none")
    samples = vectors(4, 3)
    first, second = (layer for layer in network.layers if isinstance(layer, nn.Linear))
    hidden = (samples @ first.weight.T + first.bias).clamp(min=0)
    expected = (hidden @ second.weight.T + second.bias).clamp(min=0)
    torch.testing.assert_close(network(samples), expected)


def test_batchnorm_brings_the_only_bias() -> None:
    counts = {name: value.numel() for name, value in network_for(3).named_parameters()}
    assert sum(counts.values()) == 3 * 32 + 2 * 32 + 32 * 32 + 2 * 32


def test_images_are_standardised_by_channel_and_laid_out_flat() -> None:
    torch.manual_seed(0)
    network = MLP(Standardise([0.5, 0.2], [0.1, 0.3]), pixels=12, hidden=8, normalisation="none")
    images = torch.rand(2, 2, 3, 4)
    by_hand = (images - torch.tensor([0.5, 0.2])[:, None, None]) / torch.tensor([0.1, 0.3])[
        :, None, None
    ]
    torch.testing.assert_close(network(images), network.layers(by_hand.reshape(2, 24)))


def test_without_normalisation_the_variance_is_kept() -> None:
    network = network_for(64, normalisation="none")
    mean_square = network(vectors(500, 64)).square().mean().item()
    assert 0.5 < mean_square < 2.0


@pytest.mark.parametrize("normalisation", ["batch", "none"])
def test_a_few_steps_separate_two_clouds(normalisation: Normalisation) -> None:
    samples = vectors(64, 2)
    truth = (samples[:, 0] * samples[:, 1] > 0).long()
    network = network_for(2, normalisation=normalisation)
    learner = nn.Sequential(network, nn.Linear(32, 2))
    optimizer = torch.optim.SGD(learner.parameters(), lr=0.1, momentum=0.9)
    for _ in range(100):
        loss = F.cross_entropy(learner(samples), truth)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    assert loss.item() < 0.2
