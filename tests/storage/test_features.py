"""The store of features: keys by content, chunks that are whole or gone, rows in any order."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import OnesidedError
from onesided.storage import features
from onesided.storage.features import FeatureStore, key_of

WIDTH = 5


def keys(count: int) -> list[bytes]:
    return [key_of(np.full((1, 2, 2), row, np.uint8)) for row in range(count)]


def vectors(count: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, WIDTH)).astype(np.float32)


def filled(folder: Path | None, count: int = 25) -> FeatureStore:
    store = FeatureStore(folder, "network", WIDTH)
    store.fill(zip(keys(count), vectors(count), strict=True))
    return store


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "ROWS", 10)


def test_a_key_is_that_of_values_shape_and_type() -> None:
    image = np.arange(12, dtype=np.uint8).reshape(1, 3, 4)
    assert key_of(image) == key_of(image.copy())
    others = [image + 1, image.reshape(1, 4, 3), image.astype(np.int8), image[:, ::-1]]
    assert len({key_of(image), *map(key_of, others)}) == 5


@pytest.mark.parametrize("in_memory", [True, False])
def test_vectors_are_found_by_key_in_any_order(in_memory: bool, tmp_path: Path) -> None:
    store = filled(None if in_memory else tmp_path)
    order = np.random.default_rng(1).permutation(25)
    rows = store.rows([keys(25)[row] for row in order])
    assert rows.shape == (25, WIDTH)
    assert len(rows) == 25
    assert np.array_equal(rows[np.arange(25)], vectors(25)[order])
    assert np.array_equal(rows[np.array([3, 3, 0])], vectors(25)[order][[3, 3, 0]])
    assert np.array_equal(rows[slice(2, 4)], vectors(25)[order][2:4])
    assert rows[np.array([], np.int64)].shape == (0, WIDTH)


def test_another_process_finds_all_and_another_backbone_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    again = FeatureStore(tmp_path, "network", WIDTH)
    assert all(key in again for key in keys(25))
    assert np.array_equal(again.rows(keys(25))[slice(None)], vectors(25))
    assert keys(1)[0] not in FeatureStore(tmp_path, "other", WIDTH)


def test_only_the_damaged_chunk_is_lost(tmp_path: Path) -> None:
    filled(tmp_path)
    path = sorted(tmp_path.glob("network/*.chunk"))[0]
    content = bytearray(path.read_bytes())
    content[3] ^= 4  # one bit of a key
    path.write_bytes(content)
    again = FeatureStore(tmp_path, "network", WIDTH)
    lost = sum(key not in again for key in keys(25))
    assert lost in (5, 10)
    assert not path.exists()
    again.fill(zip(keys(25), vectors(25), strict=True))
    assert np.array_equal(again.rows(keys(25))[slice(None)], vectors(25))


def test_a_chunk_of_another_width_is_not_taken(tmp_path: Path) -> None:
    filled(tmp_path)
    assert not any(key in FeatureStore(tmp_path, "network", WIDTH + 1) for key in keys(25))


def test_slow_features_are_saved_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "SECONDS", -1.0)
    filled(tmp_path, count=3)
    assert len(list(tmp_path.glob("network/*.chunk"))) == 3


def test_only_forgotten_parts_are_removed(tmp_path: Path) -> None:
    filled(tmp_path)
    young, old = (tmp_path / "network" / f".a.chunk.{number}.part" for number in (1, 2))
    for part in (young, old):
        part.write_bytes(b"half")
    long_ago = time.time() - 2 * features.FORGOTTEN
    os.utime(old, (long_ago, long_ago))
    FeatureStore(tmp_path, "network", WIDTH)
    assert young.exists()
    assert not old.exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OnesidedError, match="Cannot write features to"):
        filled(tmp_path / "file")
