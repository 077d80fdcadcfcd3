"""Features by workers of Ray: those of one process, in its order, and nothing twice."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

import onesided
from onesided.core.errors import ConfigError, DataError
from onesided.core.rng import generator
from onesided.jobs.embed import Embedded
from onesided.nets.build import BackboneConfig, build_backbone
from onesided.run import embed_chunks
from onesided.run.ray_engine import Listed, RayEngine
from onesided.storage.journal import Journal
from tests.cli.pictures import RED, draw

IMAGES, CHUNK = 60, 8
needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="pip install 'onesided[ray]'")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some of them equal; one without a header, and one with half of its pixels."""
    folder = tmp_path_factory.mktemp("images")
    for number in range(IMAGES):
        draw(folder / f"i{number:03}.png", number % 50, RED)
    (folder / "i020.png").write_bytes(b"no image")
    whole = (folder / "i030.png").read_bytes()
    (folder / "i030.png").write_bytes(whole[: len(whole) // 2])
    return folder


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    drawn = build_backbone(
        BackboneConfig(name="small", width=1.0), (3, 8, 8), [0.5] * 3, [0.5] * 3, generator(1)
    )
    path = tmp_path_factory.mktemp("weights") / "mine.safetensors"
    save_file(drawn.state_dict(), path)
    return path


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_chunks, "chunk_length", lambda shape: CHUNK)


def embedded(images: Path, output: Path, weights: Path, engine: str) -> Embedded:
    return onesided.embed(
        images, output, backbone="small", weights=weights, image_size=8, engine=engine
    )


@needs_ray
@pytest.mark.slow
def test_workers_give_the_features_of_one_process_and_compute_none_twice(
    images: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = embedded(images, tmp_path / "one.npy", weights, "local")
    # A stop after some chunks: their entries stay, and the next command begins behind them.
    true = RayEngine.entries
    begun: list[int] = []

    def stopping(self: RayEngine, work: object, listed: Listed) -> object:
        begun.append(len(listed.offsets))
        for number, entry in enumerate(true(self, work, listed)):  # type: ignore[arg-type]
            if len(begun) == 1 and number == 3:
                raise KeyboardInterrupt
            yield entry

    monkeypatch.setattr(RayEngine, "entries", stopping)
    with pytest.raises(KeyboardInterrupt):
        embedded(images, tmp_path / "two.npy", weights, "ray")
    two = embedded(images, tmp_path / "two.npy", weights, "ray")
    assert begun == [8, 5], "59 files can be opened; three chunks of eight were kept"
    assert (one.names, one.skipped, one.width) == (two.names, two.skipped, two.width)
    assert [name for name, _ in two.skipped] == ["i020.png", "i030.png"]
    features = [np.load(tmp_path / f"{name}.npy") for name in ("one", "two")]
    assert np.abs(features[0] - features[1]).max() <= 1e-6
    ids = [(tmp_path / f"{name}.ids.csv").read_bytes() for name in ("one", "two")]
    assert ids[0] == ids[1]
    assert not list(tmp_path.glob("*.partial"))


@needs_ray
@pytest.mark.slow
def test_features_that_vanished_from_the_store_are_computed_again(
    images: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = embedded(images, tmp_path / "one.npy", weights, "local")
    with monkeypatch.context() as patch:
        patch.setattr("onesided.jobs.embed._write", _full_disk)
        with pytest.raises(OSError, match="full"):
            embedded(images, tmp_path / "two.npy", weights, "ray")
    chunks = sorted((tmp_path / "two.npy.partial").rglob("*.chunk"))
    damaged = bytearray(chunks[0].read_bytes())
    damaged[-1] ^= 1
    chunks[0].write_bytes(damaged)
    two = embedded(images, tmp_path / "two.npy", weights, "ray")
    assert one.names == two.names
    assert np.allclose(np.load(tmp_path / "one.npy"), np.load(tmp_path / "two.npy"), atol=1e-6)


def _full_disk(*given: object) -> None:
    raise OSError("the disk is full")


@needs_ray
def test_what_workers_cannot_do_is_refused_before_anything_is_read(
    images: Path, weights: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="embeds on processors"):
        onesided.embed(images, tmp_path / "a.npy", engine="ray", device="cuda")
    tensors = load_file(weights)
    bare = {name: one for name, one in tensors.items() if not name.startswith("standardise.")}
    save_file(bare, tmp_path / "bare.safetensors")
    with pytest.raises(ConfigError, match="do not say how images are standardised"):
        embedded(images, tmp_path / "a.npy", tmp_path / "bare.safetensors", "ray")
    with pytest.raises(DataError, match="cannot be read, more than"):
        onesided.embed(images, tmp_path / "a.npy", tolerate=0.01, engine="ray")


def test_entries_that_do_not_fit_their_files_are_called_damaged(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "embedded", {})
    whole = {"keys": ["00" * 32], "reasons": ["", "is empty"], "brightest": [9, 0]}
    others: list[object] = [whole | {"keys": []}, whole | {"brightest": [9]}, [], {"keys": ["zz"]}]
    for entry in others:
        with journal.writing() as append:
            append(whole)
            append(entry)
        with pytest.raises(DataError, match="an entry does not fit its files"):
            embed_chunks._known(journal, 4, 2)
        journal.path.unlink()
    with journal.writing() as append:
        append(whole)
    assert embed_chunks._known(journal, 2, 2) == [whole]
