"""A tiny random BERT with a tokenizer in a folder, as `save_pretrained` writes one."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

WORDS = (
    *("roof", "fire", "smoke", "water", "the", "a", "is", "of"),
    *("house", "garden", "blue", "green", "old", "new", "tree"),
)


def write_bert(folder: Path, *, seed: int = 0, width: int = 16) -> str:
    """Write the model, and return the name of the encoder."""
    transformers: Any = pytest.importorskip("transformers")
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": True})
    )
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = transformers.BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=width,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
        )
        transformers.BertModel(config).save_pretrained(folder, safe_serialization=True)
    return f"hf:{folder}"
