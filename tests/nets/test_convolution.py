import math
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from onesided.nets import convolution
from onesided.nets.convolution import Convolution3x3, winograd, winograd_pays
from onesided.nets.resnet import resnet18
from onesided.nets.small import SmallNetwork
from onesided.nets.standardise import Standardise


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def plain(maps: Tensor, kernel: Tensor) -> Tensor:
    """Return the convolution as a sum over nine taps, in double precision."""
    padded = F.pad(maps.double(), (1, 1, 1, 1))
    height, width = maps.shape[2:]
    return torch.stack(
        [
            torch.einsum("bchw,oc->bohw", padded[:, :, i : i + height, j : j + width], tap)
            for i in range(3)
            for j in range(3)
            for tap in [kernel.double()[:, :, i, j]]
        ]
    ).sum(dim=0)


def slopes(convolve: Callable[[Tensor, Tensor], Tensor], *given: Tensor) -> tuple[Tensor, ...]:
    """Return value and slopes by maps and kernel of a convolution, weighed by noise."""
    maps, kernel = (one.clone().requires_grad_() for one in given)
    result = convolve(maps, kernel)
    by_both = torch.autograd.grad((result * drawn(*result.shape, seed=9)).sum(), (maps, kernel))
    return result.detach(), *by_both


@pytest.mark.parametrize("size", [(4, 4), (8, 8), (7, 7), (1, 1), (5, 9), (14, 3)])
@pytest.mark.parametrize("channels", [(16, 16), (3, 5), (48, 20)])
def test_winograds_form_is_the_sum_over_nine_taps_and_so_are_its_slopes(
    size: tuple[int, int], channels: tuple[int, int]
) -> None:
    into, out = channels
    given = drawn(6, into, *size), drawn(out, into, 3, 3, seed=1) / math.sqrt(9 * into)
    for ours, obvious in zip(slopes(winograd, *given), slopes(plain, *given), strict=True):
        scale = float(obvious.abs().max())
        torch.testing.assert_close(ours, obvious.float(), atol=2e-5 * scale, rtol=0)


def test_images_in_several_shares_give_what_they_give_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = drawn(11, 16, 8, 8), drawn(16, 16, 3, 3, seed=1) / 12
    at_once = slopes(winograd, *given)
    monkeypatch.setattr(convolution, "TILES", 8)
    for ours, whole in zip(slopes(winograd, *given), at_once, strict=True):
        torch.testing.assert_close(ours, whole, atol=1e-5 * float(whole.abs().max()), rtol=0)


def test_two_threads_give_the_very_numbers_of_one() -> None:
    import numba

    from onesided.kernels import winograd as kernels

    images = drawn(5, 8, 8, 16).numpy()
    found = []
    before = numba.get_num_threads()
    for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):  # type: ignore[attr-defined]
        numba.set_num_threads(threads)
        domain, back = torch.empty(20, 36, 16).numpy(), torch.zeros(5, 8, 8, 16).numpy()
        kernels.spread(kernels.B_TRANSPOSED, images, 1, domain, 2)
        kernels.gather(kernels.B, domain, 1, back, 2)
        found.append((domain, back))
    numba.set_num_threads(before)
    assert (found[0][0] == found[1][0]).all()
    assert (found[0][1] == found[1][1]).all()


def test_other_users_of_numba_keep_their_threads() -> None:
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    winograd(drawn(4, 16, 8, 8), drawn(16, 16, 3, 3, seed=1))
    assert numba.get_num_threads() == 1
    numba.set_num_threads(before)
    winograd(drawn(4, 16, 8, 8), drawn(16, 16, 3, 3, seed=1))
    assert numba.get_num_threads() == before


def test_torch_keeps_its_threads_when_numba_starts() -> None:
    code = (
        "import torch; torch.set_num_threads(1); from onesided.nets.convolution import winograd; "
        "winograd(torch.zeros(2, 16, 8, 8), torch.zeros(16, 16, 3, 3)); "
        "assert torch.get_num_threads() == 1"
    )
    # In a process of its own: numba starts once in each.
    subprocess.run([sys.executable, "-c", code], check=True)


def test_memory_between_two_calls_is_not_shared_by_their_results() -> None:
    maps, kernel = drawn(4, 16, 8, 8), drawn(16, 16, 3, 3, seed=1)
    first = winograd(maps, kernel)
    kept = first.clone()
    winograd(2 * maps, kernel)
    assert torch.equal(first, kept)


def test_a_layer_is_torchs_layer_with_the_same_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Convolution3x3(64, 64, bias=True)
    maps = drawn(40, 64, 8, 8)
    assert winograd_pays(maps, layer.weight)
    fast = layer(maps)
    monkeypatch.setitem(os.environ, "ONESIDED_CONVOLUTIONS", "direct")
    assert not winograd_pays(maps, layer.weight)
    torch.testing.assert_close(fast, layer(maps), atol=1e-4, rtol=0)
    torch_layer = nn.Conv2d(64, 64, 3, padding=1)
    torch_layer.load_state_dict(layer.state_dict())
    torch.testing.assert_close(fast, torch_layer(maps), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("maps", "kernel", "why"),
    [
        ((64, 32, 16, 16), (32, 32, 3, 3), "few channels"),
        ((256, 64, 4, 4), (64, 64, 3, 3), "little work"),
        ((1, 256, 8, 8), (256, 256, 3, 3), "one image"),
    ],
)
def test_small_layers_are_left_to_torch(
    maps: tuple[int, ...], kernel: tuple[int, ...], why: str
) -> None:
    assert not winograd_pays(torch.empty(maps), torch.empty(kernel)), why


def test_half_precision_and_doubles_are_left_to_torch() -> None:
    maps, kernel = torch.empty(64, 64, 8, 8), torch.empty(64, 64, 3, 3)
    assert winograd_pays(maps, kernel)
    assert not winograd_pays(maps.double(), kernel.double())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not winograd_pays(maps, kernel)


@pytest.mark.parametrize("network", ["small", "resnet18"])
def test_a_network_gives_the_features_and_slopes_of_torchs_convolutions(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    standardise = Standardise([0.5] * 3, [0.25] * 3)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        backbone = resnet18(standardise) if network == "resnet18" else SmallNetwork(standardise)
    images = drawn(16, 3, 32, 32).sigmoid()

    def features_and_slopes() -> list[Tensor]:
        backbone.zero_grad()
        features = backbone(images)
        features.square().sum().backward()
        return [features.detach(), *(p.grad.clone() for p in backbone.parameters())]  # type: ignore[union-attr]

    used: list[torch.Size] = []

    def noted(maps: Tensor, kernel: Tensor) -> Tensor:
        used.append(maps.shape)
        return winograd(maps, kernel)

    monkeypatch.setattr(convolution, "winograd", noted)
    fast = features_and_slopes()
    assert used
    used.clear()
    monkeypatch.setitem(os.environ, "ONESIDED_CONVOLUTIONS", "direct")
    direct = features_and_slopes()
    assert not used
    for ours, theirs in zip(fast, direct, strict=True):
        # Rectifiers choose, so noise of single precision may turn a few of a deep network's.
        assert float((ours - theirs).norm() / theirs.norm()) < 1e-2
