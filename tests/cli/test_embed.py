"""`onesided embed`, and what people do with its files."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import save_file

import onesided
from onesided.core.rng import generator
from onesided.engine import sweep
from onesided.nets.build import BackboneConfig, build_backbone
from onesided.run import embed as filling
from tests.cli.command import TINY, assert_refused, call


@pytest.fixture
def words(tmp_path: Path) -> tuple[object, ...]:
    """A small backbone with weights, for the images of the shared folders."""
    drawn = build_backbone(
        BackboneConfig(name="small", width=1.0), (3, 8, 8), [0.5] * 3, [0.5] * 3, generator(1)
    )
    save_file(drawn.state_dict(), tmp_path / "mine.safetensors")
    return ("--backbone", "small", "--weights", tmp_path / "mine.safetensors")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_every_ending_holds_the_same_vectors(
    words: tuple[object, ...], shared_data: Path, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow", reason="pip install 'onesided[parquet]'")
    out = tmp_path / "out"
    out.mkdir()
    for name in ("a.npy", "a.npz", "a.parquet"):
        outcome = call("embed", shared_data / "P", "-o", out / name, *words, "--quiet")
        assert outcome.exit_code == 0, outcome.err
    assert names_in(out) == ["a.ids.csv", "a.npy", "a.npz", "a.parquet"]
    values = np.load(out / "a.npy")
    with np.load(out / "a.npz", allow_pickle=False) as both:
        assert np.array_equal(both["features"], values)
        ids = both["id"].tolist()
    assert ids == sorted(names_in(shared_data / "P"))
    assert (out / "a.ids.csv").read_text().split() == ["id", *ids]
    table = pytest.importorskip("pyarrow.parquet").read_table(out / "a.parquet")
    assert table.column("id").to_pylist() == ids
    assert np.array_equal(np.array(table.column("features").to_pylist(), np.float32), values)


def test_a_stopped_embedding_resumes(
    words: tuple[object, ...],
    shared_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, broken = tmp_path / "whole.npy", tmp_path / "broken.npy"
    assert call("embed", shared_data / "U", "-o", whole, *words).exit_code == 0

    def killed(*given: object) -> object:
        yield next(sweep.features_of(*given))  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(filling, "features_of", killed)
        assert call("embed", shared_data / "U", "-o", broken, *words).exit_code != 0
    assert not broken.exists()
    assert call("embed", shared_data / "U", "-o", broken, *words).exit_code == 0
    assert whole.read_bytes() == broken.read_bytes()
    assert not list(tmp_path.glob("*.partial"))


def test_vectors_train_a_model_that_ranks_vectors(
    words: tuple[object, ...], shared_data: Path, tmp_path: Path
) -> None:
    for side in ("P", "U"):
        found = onesided.embed(
            shared_data / side,
            tmp_path / f"{side}.npz",
            backbone="small",
            weights=tmp_path / "mine.safetensors",
        )
        assert len(found.names) == len(names_in(shared_data / side))
    files = ("-p", tmp_path / "P.npz", "-u", tmp_path / "U.npz")
    outcome = call("fit", *files, "-o", tmp_path / "run", *TINY, "--allow-degenerate")
    assert outcome.exit_code == 0, outcome.err
    ranked = tmp_path / "ranked.csv"
    outcome = call("rank", tmp_path / "run", tmp_path / "U.npz", "-o", ranked, "--quiet")
    assert outcome.exit_code == 0, outcome.err
    assert len(ranked.read_text().splitlines()) == len(found.names) + 1
    np.save(tmp_path / "narrow.npy", np.zeros((3, 2), np.float32))
    outcome = call("rank", tmp_path / "run", tmp_path / "narrow.npy", "-o", ranked)
    assert_refused(outcome, "vectors of 2 numbers that do not fit")


def test_a_table_of_vectors_with_labels_trains(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    labels = ["positive"] * 20 + ["unlabelled"] * 60
    np.savez(tmp_path / "items.npz", features=random.normal(size=(80, 4)), label=labels)
    words = ("--table", tmp_path / "items.npz", "-o", tmp_path / "run", *TINY)
    outcome = call("fit", *words, "--allow-degenerate")
    assert outcome.exit_code == 0, outcome.err


def test_fit_finds_what_embed_computed(
    words: tuple[object, ...], shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    for side in ("P", "U"):
        given = (shared_data / side, "-o", tmp_path / f"{side}.npy", "--cache", cache)
        assert call("embed", *given, *words, "--json").exit_code == 0
    folders = ("-p", shared_data / "P", "-u", shared_data / "U", "--cache", cache)
    monkeypatch.setattr(filling, "features_of", _nothing_is_left)
    training = (*TINY, "--set", "backbone.width=1.0", "--freeze", "--allow-degenerate")
    outcome = call("fit", *folders, *words, *training, "-o", tmp_path / "run")
    assert outcome.exit_code == 0, outcome.err


@pytest.mark.slow
def test_a_search_finds_what_embed_computed_by_default(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    for side in ("P", "U"):
        given = (shared_data / side, "-o", tmp_path / f"{side}.npy", "--cache", cache)
        assert call("embed", *given, "--quiet").exit_code == 0
    assert np.load(tmp_path / "P.npy").shape[1] == 1280 + 2 * (80 + 112 + 192)
    monkeypatch.setattr(filling, "features_of", _nothing_is_left)
    search = ("--set", 'method.candidates=["linear"]', "--set", "method.folds=2")
    folders = ("-p", shared_data / "P", "-u", shared_data / "U", "--cache", cache)
    outcome = call("fit", *folders, *search, "--allow-degenerate", "-o", tmp_path / "run")
    assert outcome.exit_code == 0, outcome.err


def test_layers_are_named_or_refused(shared_data: Path, tmp_path: Path) -> None:
    given = ("embed", shared_data / "P", "-o", tmp_path / "P.npy")
    assert call(*given, "--layers", "last", "--quiet").exit_code == 0
    assert np.load(tmp_path / "P.npy").shape[1] == 1280
    assert_refused(call(*given, "--layers", "first"), "'last' or 'several'")


def _nothing_is_left(backbone: object, values: object, device: object) -> list[np.ndarray]:
    assert len(values) == 0  # type: ignore[arg-type]
    return []


def test_json_says_what_was_written(
    words: tuple[object, ...], shared_data: Path, tmp_path: Path
) -> None:
    outcome = call("embed", shared_data / "P", "-o", tmp_path / "a.npy", *words, "--json")
    about = json.loads(outcome.out)
    assert about["items"] == len(names_in(shared_data / "P"))
    assert about["backbone"] == "small with weights of mine.safetensors"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("nowhere", "-o", "a.npy"), "There is no folder nowhere"),
        (("{P}", "-o", "a.csv"), "expected a file that ends in .npy, .npz, .parquet"),
        (("{P}", "-o", "no/folder/a.npy"), "cannot be written"),
        (("{P}", "-o", "a.npy", "--backbone", "small"), "needs pretrained weights"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    given: tuple[str, ...], sentence: str, shared_data: Path, tmp_path: Path
) -> None:
    paths = [word.replace("{P}", str(shared_data / "P")) for word in given]
    words = [str(tmp_path / word) if word.startswith(("a.", "no/")) else word for word in paths]
    assert_refused(call("embed", *words), sentence)
