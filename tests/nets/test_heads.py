import pytest
import torch
from torch import nn

from onesided.nets.heads import classifier, predictor, projector
from onesided.nets.standardise import Normalisation


def count_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_sizes_are_those_of_the_paper() -> None:
    assert count_parameters(classifier(512)) == 512 * 2 + 2
    hidden = 512 * 2048 + 2048 + 2 * 2048
    assert count_parameters(projector(512)) == hidden + 2048 * 128 + 128
    hidden = 128 * 512 + 512 + 2 * 512
    assert count_parameters(predictor()) == hidden + 512 * 128 + 128


@pytest.mark.parametrize("head", [projector(512), predictor()])
def test_heads_are_linear_norm_relu_linear(head: nn.Sequential) -> None:
    kinds = [type(layer) for layer in head]
    assert kinds == [nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Linear]


@pytest.mark.parametrize("normalisation", ["batch", "none"])
def test_shapes(normalisation: Normalisation) -> None:
    features = torch.rand(4, 20)
    projection = projector(20, 16, 8, normalisation=normalisation)(features)
    assert projection.shape == (4, 8)
    assert predictor(8, 16, normalisation=normalisation)(projection).shape == (4, 8)
    assert classifier(20)(features).shape == (4, 2)


def test_without_normalisation_a_row_ignores_its_batch() -> None:
    head = projector(20, 16, 8, normalisation="none").double()
    features = torch.rand(4, 20, dtype=torch.float64)
    torch.testing.assert_close(head(features)[:1], head(features[:1]))
