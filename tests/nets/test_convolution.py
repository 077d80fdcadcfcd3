import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from onesided.nets import convolution
from onesided.nets.convolution import Convolution3x3, winograd, winograd_pays
from onesided.nets.resnet import resnet18
from onesided.nets.small import SmallNetwork
from onesided.nets.standardise import Standardise


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def plain(maps: Tensor, kernel: Tensor) -> Tensor:
    """Return the convolution as a sum over nine entries, in double precision."""
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


def with_gradients(
    convolve: Callable[[Tensor, Tensor], Tensor], *given: Tensor
) -> tuple[Tensor, ...]:
    """Return value and gradients by maps and kernel of a convolution, weighed by noise."""
    maps, kernel = (one.clone().requires_grad_() for one in given)
    result = convolve(maps, kernel)
    by_both = torch.autograd.grad((result * drawn(*result.shape, seed=9)).sum(), (maps, kernel))
    return result.detach(), *by_both


def assert_nine_entries(maps: Tensor, kernel: Tensor) -> None:
    for ours, obvious in zip(
        with_gradients(winograd, maps, kernel),
        with_gradients(plain, maps, kernel),
        strict=True,
    ):
        scale = float(obvious.abs().max())
        torch.testing.assert_close(ours, obvious.float(), atol=2e-5 * scale, rtol=0)


@pytest.mark.parametrize("size", [(4, 4), (8, 8), (7, 7), (1, 1), (5, 9), (14, 3)])
@pytest.mark.parametrize("channels", [(16, 16), (3, 5), (48, 20)])
def test_winograds_form_is_the_sum_over_nine_entries_and_so_are_its_gradients(
    size: tuple[int, int], channels: tuple[int, int]
) -> None:
    into, out = channels
    given = drawn(6, into, *size), drawn(out, into, 3, 3, seed=1) / math.sqrt(9 * into)
    assert_nine_entries(*given)


def test_images_in_several_shares_give_what_they_give_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = drawn(11, 16, 8, 8), drawn(16, 16, 3, 3, seed=1) / 12
    at_once = with_gradients(winograd, *given)
    monkeypatch.setattr(convolution, "TILES", 8)
    for ours, whole in zip(with_gradients(winograd, *given), at_once, strict=True):
        torch.testing.assert_close(ours, whole, atol=1e-5 * float(whole.abs().max()), rtol=0)


def test_loops_on_several_threads_give_the_very_numbers_of_one() -> None:
    from onesided.kernels import winograd as kernels

    images = drawn(5, 8, 8, 16).numpy()

    def domain_and_back(spread: Callable[..., None], gather: Callable[..., None]) -> list[Tensor]:
        domain, back = torch.empty(20, 36, 16), torch.zeros(5, 8, 8, 16)
        spread(kernels.B_TRANSPOSED, images, 1, domain.numpy())
        gather(kernels.B, domain.numpy(), 1, back.numpy())
        return [domain, back]

    alone = domain_and_back(kernels.spread_alone, kernels.gather_alone)
    for parts in (1, 2, 3, 7):
        threaded = domain_and_back(partial(kernels.spread, parts), partial(kernels.gather, parts))
        assert all(map(torch.equal, alone, threaded)), parts


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("count", [1, 3])
def test_several_threads_convolve_even_one_image(count: int) -> None:
    given = drawn(count, 16, 9, 8), drawn(16, 16, 3, 3, seed=1) / 12
    assert_nine_entries(*given)


@pytest.mark.usefixtures("two_threads")
def test_callers_in_several_threads_get_what_one_gets() -> None:
    maps, kernel = drawn(8, 16, 8, 8), drawn(16, 16, 3, 3, seed=1)
    alone = [winograd(number * maps, kernel) for number in range(1, 9)]
    with ThreadPoolExecutor(3) as pool:
        together = pool.map(lambda number: winograd(number * maps, kernel), range(1, 9))
        assert all(map(torch.equal, alone, together))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_child_of_a_process_of_one_thread_convolves_too() -> None:
    code = """
import os, torch
from onesided.nets.convolution import winograd
torch.set_num_threads(1)
convolve = lambda: winograd(torch.ones(2, 16, 8, 8), torch.ones(16, 16, 3, 3)).sum()
mine = convolve()
child = os.fork()
if child == 0:
    os._exit(0 if torch.equal(convolve(), mine) else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    # In a process of its own, because the test process has threads.
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.usefixtures("two_threads")
def test_other_users_of_numba_keep_their_threads() -> None:
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    winograd(drawn(4, 16, 8, 8), drawn(16, 16, 3, 3, seed=1))
    assert numba.get_num_threads() == 1
    numba.set_num_threads(before)
    winograd(drawn(4, 16, 8, 8), drawn(16, 16, 3, 3, seed=1))
    assert numba.get_num_threads() == before


@pytest.mark.parametrize("threads", [1, 3, 64])
def test_torch_keeps_its_threads_when_numba_starts(threads: int) -> None:
    # In a process of its own, because numba starts once; no machine has all three numbers of cores.
    code = f"""
import torch
from onesided.nets.convolution import winograd
torch.set_num_threads({threads})
maps, kernel = torch.ones(2, 16, 8, 8), torch.ones(16, 16, 3, 3, requires_grad=True)
winograd(maps, kernel).sum().backward()
assert torch.get_num_threads() == {threads}, torch.get_num_threads()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_memory_kept_between_calls_does_not_depend_on_the_first_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    maps, kernel = drawn(2, 16, 8, 8), drawn(16, 16, 3, 3, seed=1).requires_grad_()
    # Earlier tests of this thread may have made it already.
    monkeypatch.delattr(convolution._kept, "memory", raising=False)
    with torch.inference_mode():
        seen = winograd(maps, kernel)
    later = winograd(maps, kernel)
    later.sum().backward()  # type: ignore[no-untyped-call]
    assert torch.equal(seen, later.detach())


def test_a_result_can_be_changed_in_place_like_torchs_own() -> None:
    maps, kernel = drawn(2, 16, 8, 8), drawn(16, 16, 3, 3, seed=1) / 12
    ours = with_gradients(lambda *given: torch.relu_(winograd(*given)), maps, kernel)
    theirs = with_gradients(lambda x, k: torch.relu_(F.conv2d(x, k, padding=1)), maps, kernel)
    torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=0)


def test_what_needs_no_gradient_gets_none() -> None:
    maps, kernel = drawn(2, 16, 8, 8), drawn(16, 16, 3, 3, seed=1)
    for learned, frozen in [(maps, kernel), (kernel, maps)]:
        learned.requires_grad_()
        winograd(maps, kernel).sum().backward()  # type: ignore[no-untyped-call]
        assert learned.grad is not None
        assert frozen.grad is None
        learned.requires_grad_(False)
        learned.grad = None


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


def test_tensors_without_numbers_are_left_to_torch() -> None:
    with FakeTensorMode():
        maps, kernel = torch.empty(64, 64, 8, 8), torch.empty(64, 64, 3, 3)
        assert not winograd_pays(maps, kernel)


def test_half_precision_and_doubles_are_left_to_torch() -> None:
    maps, kernel = torch.empty(64, 64, 8, 8), torch.empty(64, 64, 3, 3)
    assert winograd_pays(maps, kernel)
    assert not winograd_pays(maps.double(), kernel.double())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not winograd_pays(maps, kernel)


@pytest.mark.parametrize("network", ["small", "resnet18"])
def test_a_network_gives_the_features_and_gradients_of_torchs_convolutions(
    network: str, monkeypatch: pytest.MonkeyPatch, in_winograds_form: list[torch.Size]
) -> None:
    standardise = Standardise([0.5] * 3, [0.25] * 3)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        backbone = resnet18(standardise) if network == "resnet18" else SmallNetwork(standardise)
    images = drawn(16, 3, 32, 32).sigmoid()

    def features_and_gradients() -> list[Tensor]:
        backbone.zero_grad()
        features = backbone(images)
        features.square().sum().backward()
        return [features.detach(), *(p.grad.clone() for p in backbone.parameters())]  # type: ignore[union-attr]

    fast = features_and_gradients()
    assert in_winograds_form
    in_winograds_form.clear()
    monkeypatch.setitem(os.environ, "ONESIDED_CONVOLUTIONS", "direct")
    direct = features_and_gradients()
    assert not in_winograds_form
    for ours, theirs in zip(fast, direct, strict=True):
        # Rectifiers choose, so noise of single precision may turn a few of a deep network's.
        assert float((ours - theirs).norm() / theirs.norm()) < 1e-2
