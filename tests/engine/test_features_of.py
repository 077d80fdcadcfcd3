"""Features of a frozen backbone: each image's own, in order, whatever is beside it."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from onesided.data.problem.dataset import Selection
from onesided.engine.sweep import features_of
from onesided.nets.efficientnet import EfficientNetLite0
from onesided.nets.small import SmallNetwork
from onesided.nets.standardise import Backbone, Standardise

CPU = torch.device("cpu")
IMAGES = np.random.default_rng(0).integers(0, 256, (41, 3, 12, 12), dtype=np.uint8)


def backbone(name: str) -> Backbone:
    torch.manual_seed(0)
    standardise = Standardise([0.5] * 3, [0.25] * 3)
    if name == "efficientnet":
        return EfficientNetLite0(standardise, size=(96, 96)).eval()
    return SmallNetwork(standardise, size=(12, 12), multiplier=0.25).eval()


def features(network: Backbone, rows: np.ndarray) -> np.ndarray:
    return np.concatenate(list(features_of(network, Selection(IMAGES, rows), CPU)))


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", ["efficientnet", "small"])
def test_features_are_those_of_the_network_in_row_order(name: str, threads: int) -> None:
    network = backbone(name)
    with torch.no_grad():
        expected = network(torch.from_numpy(IMAGES).float() / 255).numpy()
    found = features(network, np.arange(41))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("name", ["efficientnet", "small"])
def test_an_image_has_the_same_features_to_the_bit_whatever_is_beside_it(
    name: str, threads: int
) -> None:
    network = backbone(name)
    together = features(network, np.arange(41))
    order = np.random.default_rng(1).permutation(41)
    assert np.array_equal(features(network, order), together[order])
    assert np.array_equal(features(network, np.array([40])), together[40:])


def test_batches_are_computed_in_as_many_threads_as_torch_has(threads: int) -> None:
    network, seen = backbone("efficientnet"), set()
    way = network.inference()

    def watched(images: torch.Tensor) -> torch.Tensor:
        seen.add(threading.get_ident())
        return way.features(images)

    network.inference = lambda: type(way)(watched, batch=4, in_threads=True)  # type: ignore[method-assign]
    features(network, np.arange(41))
    assert (threading.get_ident() in seen) == (threads == 1)


def test_the_network_stays_in_its_mode() -> None:
    for name in ("efficientnet", "small"):
        network = backbone(name).train()
        features(network, np.arange(3))
        assert network.training
