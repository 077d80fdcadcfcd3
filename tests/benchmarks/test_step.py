"""The benchmark of a step: the reference trains the same model, the page shows the file."""

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from benchmarks.step import Goal, Size, main, page, tables
from benchmarks.step_reference import PlainNcPU, plain_views, window
from benchmarks.step_sides import Problem, Product, Sides, recorded_products
from onesided.core.batch import Mixed
from onesided.core.clock import Clock
from onesided.core.labels import NEGATIVE
from onesided.data.loader import Loader
from onesided.data.problem.dataset import Selection
from onesided.engine.optimise import build_optimizer, descend
from onesided.engine.predict import arrange
from onesided.methods.ncpu import NcPUConfig
from onesided.nets import convolution
from onesided.nets.small import Whitening
from onesided.storage.atomic import read_json

CPU = torch.device("cpu")
SMALL = NcPUConfig(warmup_epochs=1, projector_width=16, target_momentum=0.5)


def small_problem() -> Problem:
    """Return images of which every second is bright; half of the bright are labelled."""
    problem = Problem.drawn("small", batch=24, scored=5, side=12, width=0.125, config=SMALL)
    rows = np.arange(24)
    pixels = (
        problem.data.values.pool[rows] // 3
        + 160 * (rows % 2 == 0).astype(np.uint8)[:, None, None, None]
    )
    values = Selection(pixels, rows)
    return replace(problem, data=replace(problem.data, values=values, labelled=rows % 4 == 0))


# Winograd's sums round differently, and 18 steps amplify that. Half precision rounds every number
# by up to 0.4 %: losses may differ by so much, and variances of feature maps by some more.
@pytest.mark.parametrize(
    ("convolutions", "precision", "noise", "noise_of_state"),
    [
        ("torch's", torch.float32, 1e-5, 1e-4),
        ("Winograd's", torch.float32, 1e-3, 1e-3),
        ("torch's", torch.bfloat16, 4e-3, 3e-2),
    ],
)
def test_reference_and_fast_path_train_the_same_model(
    convolutions: str,
    precision: torch.dtype,
    noise: float,
    noise_of_state: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Torch would compute so narrow a network; here all of its layers must agree.
    monkeypatch.setattr(
        convolution, "winograd_pays", lambda maps, kernel: convolutions == "Winograd's"
    )
    problem = small_problem()
    # At a higher rate so few images train chaotically, and rounding grows a thousandfold.
    train = problem.train.model_copy(update={"learning_rate": 1e-4})
    method = problem.method
    reference = PlainNcPU(method, train)
    arrange(method, problem.sample_shape, CPU)
    method.train()
    loader = Loader(problem.data, "photograph", train.batch_size, CPU)
    optimizer = build_optimizer(method, train)
    half = precision == torch.bfloat16
    curves: list[tuple[float, float]] = []
    for epoch in range(3):
        clock = Clock(0, "train", epoch, 3, 0, 6)
        for now, batch in loader.epoch(clock, method.views, Mixed()):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
                outputs = method(batch, now)
            assert outputs["logits"].dtype == precision
            losses = method.loss(outputs.in_full_precision(), batch, now)
            descend(losses, optimizer, train.clip)
            theirs = reference.step(batch.views, batch.row, batch.labelled, epoch)
            curves.append((losses.total.item(), theirs))
    ours, plainly = np.array(curves).T
    np.testing.assert_allclose(ours, plainly, rtol=noise)
    assert np.ptp(ours) > 1
    for fast, plain in (
        (method.backbone, reference.backbone),
        (method.branch.predictor, reference.predictor),
        (method.branch.target.copies, reference.target),
    ):
        assert_near(fast.state_dict(), plain.state_dict(), noise=noise_of_state)
    prototypes = (method.prototypes.vectors, reference.prototypes)
    torch.testing.assert_close(*prototypes, atol=noise_of_state, rtol=noise_of_state)
    targets = (method.targets.phantom, reference.phantom)
    near = torch.isclose(*targets, atol=noise_of_state, rtol=noise_of_state).all(dim=1)
    # A vote is one class or the other: where a row lies between both prototypes, the rounding of
    # half precision turns it, on some CPUs and not on others.
    assert (~near).sum() <= (len(near) // 10 if half else 0)
    # Otherwise equality would prove little: votes changed some targets, and not others.
    assert 0.1 < (method.targets.phantom[:, NEGATIVE] % 1 > 0).double().mean() < 0.9


def assert_near(state: Mapping[str, Tensor], other: Mapping[str, Tensor], *, noise: float) -> None:
    assert list(state) == list(other)
    for name, value in state.items():
        torch.testing.assert_close(value, other[name], atol=noise, rtol=noise)


def test_reference_and_fast_path_give_the_same_scores() -> None:
    sides = Sides(small_problem())
    for _ in range(2):
        sides.reference_step()
    sides.method.load_state_dict(
        sides.method.state_dict()
        | {f"backbone.{k}": v for k, v in sides.reference.backbone.state_dict().items()}
        | {f"classifier.{k}": v for k, v in sides.reference.classifier.state_dict().items()}
    )
    np.testing.assert_allclose(sides.our_scores(), sides.reference_scores(), rtol=1e-4)


def test_plain_views_are_images_of_the_same_size_and_all_differ() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, size=(6, 9, 9, 3), dtype=np.uint8)
    views = plain_views([Image.fromarray(one) for one in pixels], random.Random(0))
    assert list(views) == ["classify", "query", "key"]
    for view in views.values():
        assert view.shape == (6, 3, 9, 9)
        assert 0 <= view.min() <= view.max() <= 1
    assert not torch.equal(views["query"], views["key"])


def test_plain_windows_lie_inside_and_show_the_documented_share() -> None:
    chance = random.Random(0)
    boxes = np.array([window(32, 32, chance) for _ in range(2000)])
    left, top, across, down = boxes.T
    assert min(left.min(), top.min()) == 0
    assert max((left + across).max(), (top + down).max()) == 32
    share = across * down / 32**2
    assert share.min() == pytest.approx(0.2, abs=0.02)
    assert share.max() == pytest.approx(1.0, abs=0.02)
    assert share.mean() == pytest.approx(0.57, abs=0.04)


def test_the_limit_counts_every_product_of_the_step_with_the_gradients_it_needs() -> None:
    sides = Sides(small_problem())
    products = sides.products_of_a_step()
    convolutions = [one for one in products if one.kernel[2] > 1]
    learned = sum(isinstance(m, torch.nn.Conv2d) for m in sides.method.backbone.modules())
    # The first layer is computed: it runs three times and needs no gradients.
    assert len(convolutions) == 3 * (learned + 1)
    first = next(m for m in sides.method.backbone.modules() if isinstance(m, Whitening))
    assert {one.kernel for one in convolutions if not one.learns} >= {tuple(first.filters.shape)}
    assert first.channels == 2 * len(first.filters)  # half of its outputs need no product
    assert sum(one.learns for one in convolutions) == 2 * learned
    assert all(one.passes_on == one.learns for one in convolutions)
    # Classifier once, two layers each of projector (online and target) and predictor.
    assert len(products) - len(convolutions) == 1 + 2 + 2 + 2


def test_products_are_counted_as_two_operations_per_pair_and_pass() -> None:
    layer = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
    with recorded_products(layer) as products:
        layer(torch.zeros(4, 3, 10, 6))
        layer(torch.zeros(4, 3, 10, 6, requires_grad=True))
    multiplied = 4 * 5 * 3 * 8 * 3 * 9
    assert [one.flop() for one in products] == [2 * multiplied * 2, 2 * multiplied * 3]


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(("kernel", "shape"), [(3, (2, 4, 8, 8)), (1, (2, 4, 1, 1))])
def test_the_limit_runs_forward_and_backward(
    kernel: int, shape: tuple[int, ...], memory_format: torch.memory_format
) -> None:
    product = Product(shape, (6, 4, kernel, kernel), (1, 1), (kernel // 2,) * 2, True, True)
    with torch.no_grad():
        product.work(torch.float32, memory_format)()


def fake_content() -> dict[str, Any]:
    machine = {
        "cpu": "Pocket 1",
        "cores": 2,
        "threads": 1,
        "memory_gb": 4.0,
        "platform": "Here",
    }
    origin = {
        "date": "2030-01-01T00:00:00+00:00",
        "commit": "0123456789abcdef",
        "dirty": False,
        "machine": machine,
        "versions": {"torch": "2.13"},
    }
    seconds = {
        "step": {"reference": 6.0, "direct": 3.0, "ours": 2.0, "limit": 1.0},
        "views": {"reference": 0.5, "ours": 0.05},
        "loss": {"reference": 0.02, "ours": 0.01},
        "inference": {"reference": 4.0, "direct": 1.6, "ours": 1.0, "limit": 0.8},
    }
    record = {
        "network": "small",
        "load": 0.4,
        "sample_shape": [3, 32, 32],
        "batch": 256,
        "scored": 512,
        "repeats": 5,
        "gflop": {"step": 80.0, "inference": 10.0},
        "seconds": seconds,
    }
    return {
        "title": "The cost of a training step",
        "origin": origin,
        "precision": "float32",
        "networks": [record],
    }


def test_the_page_shows_times_and_ratios_of_the_file() -> None:
    text = page(fake_content(), source="somewhere.json", command="a command")
    assert "| whole step | 6000 ms | 3000 ms | 2000 ms | 1000 ms | 3.00x | 50% |" in text
    assert "| views of a batch | 500 ms | - | 50 ms | - | 10.00x | - |" in text
    assert "| inference | 4000 ms | 1600 ms | 1000 ms | 800 ms | 4.00x | 80% |" in text
    assert "80 GFLOP and run at 80 GFLOP/s" in text
    assert "would be 6.00 times as fast" in text
    assert "2.00 times as fast with the same convolutions, and 3.00 times as fast with" in text
    assert "Pocket 1, 2 cores, 1 thread" in text
    assert "0123456789ab." in text


COMPILED = {"eager": 0.2, "direct": 0.3, "compiled": 0.25, "warm_up": 30.0}


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (COMPILED, "200 ms as it is, 300 ms with torch's convolutions"),
        (COMPILED, "250 ms with these compiled by `torch.compile`"),
        (COMPILED, "Compiling takes 30 s. It is never faster here"),
        ({**COMPILED, "compiled": 0.1}, "Compiling takes 30 s, and pays off after 300 such passes"),
        ({"failed": "No compiler."}, "could not be timed: No compiler."),
    ],
)
def test_the_page_says_whether_compiling_pays_off(measured: dict[str, Any], words: str) -> None:
    content = fake_content()
    assert "torch.compile" not in tables(content)
    content["networks"][0]["compiling"] = measured
    assert words in tables(content)


@pytest.mark.parametrize(
    ("goal", "ours", "limit", "words"),
    [
        (Goal("step", "reference", 5), 2.0, 1.0, "5.00x, reached"),
        (Goal("step", "reference", 5), 4.0, 1.0, "2.50x, missed"),
        (
            Goal("step", "reference", 5),
            5.0,
            4.0,
            "2.00x, missed; torch's convolutions alone allow 2.50x",
        ),
        (Goal("step", "limit", 0.7), 5.0, 4.0, "80%, reached"),
        (Goal("step", "limit", 0.7), 8.0, 4.0, "50%, missed"),
        (Goal("views", "reference", 5), 4.0, None, "2.50x, missed"),
    ],
)
def test_a_missed_goal_says_what_torchs_convolutions_would_have_allowed(
    goal: Goal, ours: float, limit: float | None, words: str
) -> None:
    seconds = {"reference": 10.0, "ours": ours} | ({} if limit is None else {"limit": limit})
    assert goal.verdict(seconds) == words


def test_the_command_measures_writes_and_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = ["--quick", "--network", "small", "--batch", "4", "--work", str(tmp_path)]
    assert main(quick) == 0
    shown = capsys.readouterr().out
    content = read_json(tmp_path / "step.json")
    assert shown.strip() == tables(content).strip()
    for part in ("step", "views", "loss", "inference"):
        assert min(content["networks"][0]["seconds"][part].values()) > 0
    assert main([*quick, "--docs"]) == 0
    assert (tmp_path / "step.md").read_text().endswith(tables(content))


def test_times_are_kept_only_with_the_same_committed_code_and_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.step.times", lambda network, size: {"network": network})
    monkeypatch.setattr("benchmarks.step.tables", str)

    def networks_of(asked: str, *, dirty: bool, commit: str) -> list[str]:
        code = {"commit": commit, "dirty": dirty}
        monkeypatch.setattr("onesided.bench.origin.code_in_memory", lambda: code)
        assert main(["--network", asked, "--work", str(tmp_path)]) == 0
        return [one["network"] for one in read_json(tmp_path / "step.json")["networks"]]

    assert networks_of("resnet18", dirty=False, commit="a") == ["resnet18"]
    assert networks_of("small", dirty=False, commit="a") == ["small", "resnet18"]
    assert networks_of("small", dirty=False, commit="b") == ["small"]
    assert networks_of("resnet18", dirty=True, commit="b") == ["resnet18"]
    assert networks_of("small", dirty=True, commit="b") == ["small"]


def test_a_stop_after_the_first_network_keeps_its_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped_at_the_second(network: str, size: Size) -> dict[str, Any]:
        if network == "resnet18":
            raise KeyboardInterrupt
        return {"network": network}

    monkeypatch.setattr("benchmarks.step.times", stopped_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        main(["--work", str(tmp_path)])
    assert [one["network"] for one in read_json(tmp_path / "step.json")["networks"]] == ["small"]


def test_without_a_result_there_is_no_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--docs", "--work", str(tmp_path)]) != 0
    assert "step.json" in capsys.readouterr().err
