"""Texts as vectors by a pretrained encoder of the library transformers: the mean of its tokens.

Such an encoder (all-MiniLM-L6-v2, multilingual ones, …) knows words that the training texts do not
hold. It is frozen, so a text has the same vector in every fold. Only safetensors and JSON are read;
nothing of it is copied into a saved model, which keeps where it is and a hash of it.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from onesided.core.errors import CheckpointError, ConfigError, DataNotFound, first_line
from onesided.nets.external import content_of, hf_model, place_of, settings_of
from onesided.storage.features import FeatureStore
from onesided.storage.optional import library
from onesided.storage.progress import Progress

KIND = "hf:"
MOST_TOKENS = 512
"""Of a longer text the beginning counts."""
VOCABULARIES = (
    *("tokenizer.json", "vocab.txt", "vocab.json"),
    *("tokenizer.model", "spiece.model", "sentencepiece.bpe.model"),
)
"""Files of which a tokenizer has one at least."""
BATCH, STEP = 16, 16
"""Texts at once, and the multiple of tokens to which they are filled up. Every batch is full, so
that the vector of a text does not depend on its neighbours."""


@dataclass(frozen=True)
class SentenceEncoder:
    """A pretrained encoder of texts.

    Attributes:
        name: `hf:` and the folder of the model, or its name on the hub.
        content: Hash of all that decides its vectors.
        width: Numbers of a vector.
        store: Vectors that are computed once; None computes them every time.
    """

    name: str
    content: str
    width: int
    store: FeatureStore | None = None

    def vectors(
        self, texts: Sequence[str], progress: Progress | None = None
    ) -> Float32[np.ndarray, "n width"]:
        """Return one vector for each text; equal texts are computed once."""
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        store = self.store or FeatureStore(None, self.content, self.width)
        lacking = {key: text for key, text in zip(keys, texts, strict=True) if key not in store}
        if lacking:
            store.fill(self._computed(lacking, progress or (lambda done, total: None)))
        return store.rows(keys)[:]

    def _computed(
        self, lacking: dict[bytes, str], progress: Progress
    ) -> Iterator[tuple[bytes, np.ndarray]]:
        model, tokens_of = _loaded(self.name, _stamps(self.name))
        tokens = {key: tokens_of(text) for key, text in lacking.items()}
        # Texts of about one length at a time: an empty place costs as much as a word.
        lengths = {key: -(-len(ids) // STEP) * STEP for key, ids in tokens.items()}
        order = sorted(tokens, key=lambda key: lengths[key])
        done = 0
        while done < len(order):
            length = lengths[order[done]]
            same = [key for key in order[done : done + BATCH] if lengths[key] == length]
            means = _means(model, [tokens[key] for key in same], length)
            yield from zip(same, means, strict=True)
            done += len(same)
            progress(done, len(order))


def is_sentence_encoder(name: str) -> bool:
    """Return whether a name means an encoder of texts."""
    return name.startswith(KIND) and len(name) > len(KIND)


def load_sentence_encoder(name: str, content: str = "") -> SentenceEncoder:
    """Return the encoder of this name; refuse one that is not of this content hash."""
    if not is_sentence_encoder(name):
        raise ConfigError(
            f"There is no encoder of texts '{name}'; expected hf:FOLDER, a model of the library "
            "transformers, or hf: and its name on the hub."
        )
    model, tokens_of = _loaded(name, _stamps(name))
    found = content_of(model, f"{settings_of(model)} {tokens_of.content}")
    if content and found != content:
        raise CheckpointError(
            f"The encoder {name} changed since the model was trained on its vectors. Restore its "
            "files, or train again."
        )
    width = _means(model, [tokens_of("")], STEP).shape[1]
    return SentenceEncoder(place_of(name), found, width)


@dataclass(frozen=True)
class _Tokens:
    """From a text to the numbers of its tokens, the beginning of a long one.

    `content` is all that decides the tokens, as it was before the first text: a tokenizer keeps
    how long the last text might be.
    """

    tokenizer: Any
    most: int
    content: str

    def __call__(self, text: str) -> list[int]:
        found = self.tokenizer(text, truncation=True, max_length=self.most)
        ids: list[int] = found["input_ids"]
        return ids


def _stamps(name: str) -> str:
    """Return when the files of an encoder changed, so that it is read again then."""
    place = Path(name.removeprefix(KIND))
    files = sorted(place.iterdir()) if place.is_dir() else []
    return repr([(file.name, file.stat().st_mtime_ns) for file in files if file.is_file()])


@lru_cache(maxsize=1)
def _loaded(name: str, stamps: str) -> tuple[Any, _Tokens]:
    transformers = library("transformers", f"The encoder of texts {name}")
    place = name.removeprefix(KIND)
    with torch.random.fork_rng(devices=[]):  # a network that lacks weights draws some
        model, info = hf_model(transformers, place)
    lacking = [key for key in info["missing_keys"] if "pooler" not in key]
    if lacking:
        raise CheckpointError(f"The model {name} lacks the weights of '{sorted(lacking)[0]}'.")
    if Path(place).is_dir() and not any((Path(place) / name).exists() for name in VOCABULARIES):
        # transformers would make one that knows no word.
        raise DataNotFound(
            f"There is no tokenizer in {place}. Save it beside the model with "
            "tokenizer.save_pretrained()."
        )
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            place, trust_remote_code=False, local_files_only=Path(place).is_dir()
        )
    except (OSError, ValueError, ImportError, KeyError, TypeError) as error:
        raise DataNotFound(
            f"There is no tokenizer in {place} that transformers can read ({first_line(error)}). "
            "Save it beside the model with tokenizer.save_pretrained()."
        ) from None
    if not hasattr(model.config, "vocab_size"):
        raise ConfigError(f"The model {name} takes no texts. Choose an encoder of sentences.")
    positions = int(getattr(model.config, "max_position_embeddings", 0) or MOST_TOKENS)
    most = min(MOST_TOKENS, positions // STEP * STEP or positions, tokenizer.model_max_length)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    words = sorted(tokenizer.get_vocab().items()) if backend is None else backend.to_str()
    return model.requires_grad_(False).eval(), _Tokens(tokenizer, most, f"{most} {words}")


@torch.no_grad()
def _means(model: Any, tokens: Sequence[Sequence[int]], length: int) -> np.ndarray:  # noqa: ANN401
    """Return the mean of the last layer over the tokens of each text."""
    length = max(length, 1)
    ids = torch.zeros(BATCH, length, dtype=torch.int64)
    mask = torch.zeros(BATCH, length, dtype=torch.int64)
    mask[:, 0] = 1  # empty places of the batch see something, or they would be NaN
    for row, found in enumerate(tokens):
        ids[row, : len(found)] = torch.tensor(found, dtype=torch.int64)
        mask[row, : len(found)] = 1
    hidden: Tensor = model(input_ids=ids, attention_mask=mask).last_hidden_state
    weight = mask[:, :, None].to(hidden)
    means = (hidden * weight).sum(dim=1) / weight.sum(dim=1)
    vectors: np.ndarray = means[: len(tokens)].float().numpy()
    if not np.isfinite(vectors).all():
        raise CheckpointError("The encoder of texts gives vectors that are no numbers.")
    return vectors
