"""Texts by a pretrained encoder: the mean of its tokens, whatever stands beside them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from onesided.core.errors import CheckpointError, ConfigError, DataNotFound
from onesided.nets.sentences import SentenceEncoder, load_sentence_encoder
from onesided.storage.features import FeatureStore
from tests.nets.tiny_bert import write_bert

TEXTS = ["a house of fire", "", "the old tree is green " * 5, "roof", "water water"]


@pytest.fixture(scope="module")
def name(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="module")
def encoder(name: str) -> SentenceEncoder:
    return load_sentence_encoder(name)


def slow_mean(name: str, text: str) -> np.ndarray:
    """Return the mean over the tokens of one text that is alone, without any filling."""
    transformers: Any = pytest.importorskip("transformers")
    folder = name.removeprefix("hf:")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    given = tokenizer(text, return_tensors="pt", truncation=True, max_length=64)
    with torch.no_grad():
        hidden = model(**given).last_hidden_state[0]
    mean: np.ndarray = np.mean([token.numpy() for token in hidden], axis=0)
    return mean


def test_a_vector_is_the_mean_of_the_last_layer_over_the_tokens(
    name: str, encoder: SentenceEncoder
) -> None:
    found = encoder.vectors(TEXTS)
    assert found.shape == (5, encoder.width)
    for vector, text in zip(found, TEXTS, strict=True):
        np.testing.assert_allclose(vector, slow_mean(name, text), atol=1e-5)


def test_a_text_has_the_same_bits_whatever_its_neighbours(encoder: SentenceEncoder) -> None:
    together = encoder.vectors([*TEXTS, *(f"tree {word} new" for word in "abcdefghijklmnopqrst")])
    alone = np.concatenate([encoder.vectors([text]) for text in TEXTS])
    np.testing.assert_array_equal(together[:5], alone)


def test_of_a_long_text_the_beginning_counts(encoder: SentenceEncoder) -> None:
    long = ["tree " * 500 + end for end in ("fire", "water")]
    first, second = encoder.vectors(long)
    np.testing.assert_array_equal(first, second)


def test_a_store_has_every_text_once_and_serves_another_run(
    tmp_path: Path, encoder: SentenceEncoder
) -> None:
    def with_store() -> SentenceEncoder:
        store = FeatureStore(tmp_path, encoder.content, encoder.width)
        return SentenceEncoder(encoder.name, encoder.content, encoder.width, store)

    told: list[tuple[int, int]] = []
    first = with_store().vectors([*TEXTS, *TEXTS], lambda done, total: told.append((done, total)))
    assert told[-1] == (5, 5)
    told.clear()
    again = with_store().vectors(TEXTS, lambda done, total: told.append((done, total)))
    assert not told, "nothing was computed again"
    np.testing.assert_array_equal(first[:5], again)


def test_another_encoder_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "bert"
    before = load_sentence_encoder(write_bert(folder, seed=0))
    for file in folder.iterdir():
        file.unlink()
    changed = write_bert(folder, seed=1)
    with pytest.raises(CheckpointError, match="changed since the model was trained"):
        load_sentence_encoder(changed, before.content)


def test_wrong_names_get_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no encoder of texts 'bert'"):
        load_sentence_encoder("bert")
    with pytest.raises(DataNotFound, match="There is no folder"):
        load_sentence_encoder(f"hf:{tmp_path / 'nowhere'}")
    bare = tmp_path / "bare"
    bare.mkdir()
    for file in Path(name.removeprefix("hf:")).iterdir():
        if "token" not in file.name and "vocab" not in file.name:
            (bare / file.name).write_bytes(file.read_bytes())
    with pytest.raises(DataNotFound, match="no tokenizer in"):
        load_sentence_encoder(f"hf:{bare}")
