"""`fit` on folders larger than memory, played with folders that are not."""

import json
from pathlib import Path

import pytest
from safetensors.torch import save_file

from onesided.data.read import cache, images, picture
from onesided.nets.build import BackboneConfig, build_backbone
from tests.cli.command import TINY, call, fit

COMPARED = ("model.safetensors", "model.json", "scores.csv", "split.csv", "config.toml")


@pytest.fixture
def in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every data set counts as larger than memory."""
    monkeypatch.setattr(cache, "WORTH_A_FILE", 0)


def results(run: Path) -> dict[str, object]:
    content = json.loads((run / "result.json").read_text())
    return {key: value for key, value in content.items() if key != "seconds"}


@pytest.mark.usefixtures("in_files")
def test_with_a_cache_a_run_is_the_same_to_the_last_byte(
    trained: Path, shared_data: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert fit(shared_data, run).exit_code == 0
    for name in COMPARED:
        assert (run / name).read_bytes() == (trained / name).read_bytes(), name
    assert results(run) == results(trained)
    assert "may be deleted" in (run / "cache" / "README.txt").read_text()


def test_small_folders_leave_no_cache_behind(trained: Path) -> None:
    assert not (trained / "cache").exists()


@pytest.mark.usefixtures("in_files")
def test_runs_share_a_cache_and_are_told_of_it(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    words = ("-p", shared_data / "P", "-u", shared_data / "U", "--cache", shared)
    first = call("fit", *words, "-o", tmp_path / "one", *TINY, "--allow-degenerate")
    assert f"Decoded images are kept in {shared}" in first.err.replace("\n", "")
    monkeypatch.delattr(images, "decode")  # nothing is decoded twice
    second = call("fit", *words, "-o", tmp_path / "two", *TINY, "--seed", "1", "--allow-degenerate")
    assert second.exit_code == 0, second.err
    assert not (tmp_path / "two" / "cache").exists()


@pytest.mark.usefixtures("in_files")
def test_stopped_while_decoding_the_same_command_goes_on(
    shared_data: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, count = tmp_path / "run", iter(range(50))
    really = picture.decode

    def decode(path: Path, **wanted: object) -> object:
        if next(count, None) is None:
            raise KeyboardInterrupt
        return really(path, **wanted)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(images, "decode", decode)
        assert fit(shared_data, run).exit_code == 130
    assert [path.name for path in run.iterdir()] == ["cache"]
    assert fit(shared_data, run).exit_code == 0
    assert (run / "scores.csv").read_bytes() == (trained / "scores.csv").read_bytes()


@pytest.mark.slow
def test_a_cache_keeps_features_of_published_data_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = build_backbone(BackboneConfig(name="small", width=0.125), (3, 8, 8), [0.5] * 3, [1] * 3)
    save_file(drawn.state_dict(), tmp_path / "mine.safetensors")
    words = ("--data", "toy-images", "--cache", tmp_path / "shared", "--backbone", "small", *TINY)
    frozen = (*words, "--weights", tmp_path / "mine.safetensors", "--freeze", "--allow-degenerate")
    assert call("fit", *frozen, "-o", tmp_path / "one").exit_code == 0
    chunks = sorted((tmp_path / "shared").rglob("*.chunk"))
    assert call("fit", *frozen, "-o", tmp_path / "two", "--seed", "1").exit_code == 0
    assert chunks == sorted((tmp_path / "shared").rglob("*.chunk")) != []
    assert not (tmp_path / "two" / "cache").exists()
