"""A table of texts read by a pretrained encoder: fitted, stored, saved, and refused in time."""

import csv
from pathlib import Path

import numpy as np
import pytest

import onesided
from onesided import PUClassifier
from onesided.core.errors import CheckpointError, ConfigError
from onesided.nets import sentences
from tests.nets.tiny_bert import write_bert

LINEAR = {"method": {"candidates": ["linear"]}}


def texts(rows: int = 60) -> list[tuple[str, str]]:
    """Return labels and texts; those of P, and a third of U, are about fire."""
    random = np.random.default_rng(0)
    other, fire = ["blue", "garden", "green", "tree"], ["fire", "smoke", "roof"]
    found = []
    for row in range(rows):
        words = random.choice(fire if row % 3 == 0 else other, 5)
        filled = random.choice(["the", "a", "is", "of", "house", "old"], 4)
        label = "positive" if row % 3 == 0 and row < rows // 2 else "unlabelled"
        found.append((label, " ".join(random.permutation([*words, *filled])) + f" {row}"))
    return found


@pytest.fixture(scope="module")
def name(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "texts.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("label", "text"), *texts()])
    return path


def test_each_text_is_read_once_for_all_folds_and_runs(
    tmp_path: Path, table: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    plain = sentences._means

    def counted(model: object, tokens: list[list[int]], length: int) -> np.ndarray:
        read.append(len(tokens))
        return plain(model, tokens, length)

    monkeypatch.setattr(sentences, "_means", counted)
    for run in ("one", "two"):
        found = onesided.fit(
            table=table,
            text_encoder=name,
            output=tmp_path / run,
            cache=tmp_path / "cache",
            settings=LINEAR,
        )
    # One text more each time: the empty one, which tells how wide a vector is.
    assert sum(read) == 60 + 2
    assert found.result["method"] == "linear"
    first, second = ((tmp_path / run / "scores.csv").read_bytes() for run in ("one", "two"))
    assert first == second
    ranked = onesided.rank(tmp_path / "one", table, output=tmp_path / "ranked.csv")
    assert ranked is not None


@pytest.mark.slow
def test_a_saved_estimator_reads_new_texts_by_the_same_encoder(tmp_path: Path, name: str) -> None:
    labels, words = zip(*texts(), strict=True)
    settings = {**LINEAR, "data": {"text_encoder": name}}
    fitted = PUClassifier(settings=settings).fit(list(words), np.array(labels) == "positive")
    fitted.save(tmp_path / "model")
    loaded = PUClassifier.load(tmp_path / "model")
    new = ["fire of the roof", "a green garden"]
    np.testing.assert_allclose(loaded.predict_proba(new), fitted.predict_proba(new), rtol=1e-6)
    scores = fitted.predict_proba(new)[:, 1]
    assert scores[0] > scores[1]


def test_an_encoder_without_texts_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "numbers.csv"
    rows = "".join(
        f"{'positive' if n < 12 else 'unlabelled'},{n % 7},x{n % 3}\n" for n in range(40)
    )
    path.write_text("label,size,kind\n" + rows)
    with pytest.raises(ConfigError, match="no column of this data is a text"):
        onesided.fit(table=path, text_encoder=name, output=tmp_path / "run")


def test_a_model_whose_encoder_changed_is_refused(tmp_path: Path, table: Path) -> None:
    folder = tmp_path / "bert"
    found = onesided.fit(
        table=table, text_encoder=write_bert(folder), output=tmp_path / "run", settings=LINEAR
    )
    for file in folder.iterdir():
        file.unlink()
    write_bert(folder, seed=9)
    with pytest.raises(CheckpointError, match="changed since the model was trained"):
        onesided.rank(found.folder, table, output=tmp_path / "ranked.csv")
