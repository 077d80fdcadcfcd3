"""`onesided fit` from weights that were there before: what it says, refuses and leaves."""

import sys
from pathlib import Path

import pytest
from safetensors.torch import save_file

from onesided.core.rng import generator
from onesided.nets.build import BackboneConfig, build_backbone
from onesided.nets.pretrained import PACKAGE
from tests.cli.command import TINY, assert_refused, call, fit


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """Weights for the network of `fit` and the images of the shared folders."""
    network = BackboneConfig(width=0.125)
    drawn = build_backbone(network, (3, 8, 8), [0.5] * 3, [0.5] * 3, generator(1))
    save_file(drawn.state_dict(), tmp_path / "mine.safetensors")
    return tmp_path / "mine.safetensors"


def test_a_missing_library_is_told_before_anything_is_read_or_written(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    folders = ("-p", shared_data / "P", "-u", shared_data / "U", "-o", tmp_path / "run")
    outcome = call("fit", *folders, "--backbone", "efficientnet_lite0", "--freeze")
    assert_refused(outcome, "pip install --force-reinstall onesided")
    assert not (tmp_path / "run").exists()


def test_a_frozen_run_ranks_images(shared_data: Path, weights: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    outcome = fit(shared_data, run, "--weights", weights, "--freeze")
    assert outcome.exit_code == 0, outcome.err
    weights.unlink()
    outcome = call("rank", run, shared_data / "U", "-o", tmp_path / "ranked.csv", "--quiet")
    assert outcome.exit_code == 0, outcome.err
    assert len((tmp_path / "ranked.csv").read_text().splitlines()) == 61


def test_the_network_and_its_weights_are_said(
    shared_data: Path, weights: Path, tmp_path: Path
) -> None:
    folders = ("-p", shared_data / "P", "-u", shared_data / "U", "-o", tmp_path / "run")
    words = ("--weights", weights, "--freeze", "--allow-degenerate")
    outcome = call("fit", *folders, *TINY, *words)
    assert outcome.exit_code == 0, outcome.err
    assert "weights of mine.safetensors, frozen under a head" in outcome.err.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--freeze",), "needs pretrained weights"),
        (("--weights", "lost.safetensors"), "There is no file of weights lost.safetensors"),
        (("--weights", "some.pth"), "not a .safetensors file"),
        (("--set", "backbone.weights=pretrained"), "no published weights for auto"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    words: tuple[str, ...], sentence: str, shared_data: Path, tmp_path: Path
) -> None:
    outcome = fit(shared_data, tmp_path / "run", *words)
    assert_refused(outcome, sentence)
    assert not (tmp_path / "run").exists()


def test_weights_of_another_network_are_refused_by_the_first_name(
    shared_data: Path, weights: Path, tmp_path: Path
) -> None:
    words = ("--weights", weights, "--backbone", "resnet18", "--set", "backbone.width=1.0")
    outcome = fit(shared_data, tmp_path / "run", *words)
    assert_refused(outcome, "do not fit the network PreActivationResNet", "they lack 'st")
