"""From training to new items: probabilities that go with the model, and a word on unlike items."""

import csv
import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onesided
from onesided import PUClassifier
from onesided.core.errors import CheckpointError
from onesided.core.monitor import Monitor
from onesided.estimator import UnfamiliarDataWarning
from tests.cli.pictures import BLUE, RED, draw

pandas = pytest.importorskip("pandas", reason="data frames are tested where pandas is installed")
QUICK: dict[str, Any] = {"method": {"candidates": ["linear"], "folds": 3}}
NAMES = ["height", "width", "age"]


class Listening(Monitor):
    """Keeps warnings."""

    def __init__(self) -> None:
        self.warned: list[str] = []

    def warn(self, sentence: str) -> None:
        self.warned.append(sentence)


def houses(seed: int, rows: int = 400, *, older: float = 0.0) -> Any:  # noqa: ANN401 - pandas is optional
    """Return numbers and a word; positives are four in ten, and higher."""
    random = np.random.default_rng(seed)
    values = random.standard_normal((rows, 3))
    values[:, 0] += 3 * (np.arange(rows) % 10 < 4)
    values[:, 2] += older
    frame = pandas.DataFrame(values, columns=NAMES)
    frame["town"] = random.choice(["Ulm", "Bonn"], rows)
    return frame


def labels(rows: int = 400) -> np.ndarray:
    """Return labels: some 60 of 160 positives."""
    labelled: np.ndarray = (np.arange(rows) % 10 < 4) & (np.arange(rows) % 3 == 0)
    return labelled.astype(np.int64)


@pytest.fixture(scope="module")
def fitted() -> PUClassifier:
    return PUClassifier(settings=QUICK, prior=0.29).fit(houses(0)[NAMES], labels())


def ranked(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_probabilities_keep_the_order_and_decisions_stay_at_the_threshold(
    fitted: PUClassifier,
) -> None:
    new = houses(1)[NAMES]
    assert fitted.result_["calibration"]["basis"] == "prior"
    probability, margin = fitted.predict_proba(new), fitted.decision_function(new)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    order = np.argsort(margin, kind="stable")
    assert (np.diff(probability[order, 1])[np.diff(margin[order]) > 0] > 0).all()
    np.testing.assert_array_equal(fitted.predict(new) == 1, margin > 0)
    true = np.arange(400) % 10 < 4
    assert np.abs(probability[:, 1].mean() - true.mean()) < 0.15
    pool = fitted.pool_probabilities_
    assert pool is not None
    assert pool.shape == fitted.pool_scores_.shape
    assert pool.mean() == pytest.approx(0.29, rel=0.2)


def test_a_method_by_name_has_scores_and_says_so() -> None:
    named = PUClassifier("linear").fit(houses(0)[NAMES], labels())
    assert named.pool_probabilities_ is None
    assert "a method by name" in named.result_["calibration"]["explained"]
    score = named.decision_function(houses(1)[NAMES]) + named.result_["threshold"]
    np.testing.assert_allclose(named.predict_proba(houses(1)[NAMES])[:, 1], score)


def test_a_saved_a_packed_and_a_ranking_model_give_the_same_probabilities(
    fitted: PUClassifier, tmp_path: Path
) -> None:
    new = houses(1)[NAMES]
    fitted.save(tmp_path / "run")
    expected = fitted.predict_proba(new)[:, 1]
    for again in (PUClassifier.load(tmp_path / "run"), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(again.predict_proba(new)[:, 1], expected)
    new.to_csv(tmp_path / "new.csv", index=False)
    listening = Listening()
    onesided.rank(
        tmp_path / "run", tmp_path / "new.csv", tmp_path / "ranked.csv", monitor=listening
    )
    rows = ranked(tmp_path / "ranked.csv")
    assert list(rows[0]) == ["item", "score", "probability", "rank", "decision"]
    found = [float(row["probability"]) for row in rows]
    np.testing.assert_allclose(found, np.sort(expected)[::-1], rtol=1e-4)
    assert listening.warned == []


def test_a_run_folder_holds_the_curve_and_another_threshold_leaves_it(tmp_path: Path) -> None:
    frame = houses(0)[NAMES]
    frame.insert(0, "label", np.where(labels() == 1, "positive", "unlabelled"))
    frame.to_csv(tmp_path / "houses.csv", index=False)
    run = tmp_path / "run"
    onesided.fit(table=tmp_path / "houses.csv", output=run, prior=0.29, settings=QUICK)
    before = {row["item"]: row["probability"] for row in ranked(run / "scores.csv")}
    curve = json.loads((run / "model.json").read_text())["calibration"]
    onesided.evaluate(run, threshold=0.9)
    assert {row["item"]: row["probability"] for row in ranked(run / "scores.csv")} == before
    assert json.loads((run / "model.json").read_text())["calibration"] == curve
    page = (run / "report.html").read_text()
    assert "It rests on the prior 0.290" in page
    assert "Is P typical?" in page
    truth = [f"{row['item']},{_class(row['item'])}" for row in ranked(run / "scores.csv")]
    (tmp_path / "truth.csv").write_text("\n".join(["item,label", *truth, ""]))
    found = onesided.evaluate(run, labels=tmp_path / "truth.csv").truth
    assert found is not None
    assert found["reliability"]["items"] == len(before)
    assert found["reliability"]["error"] < 0.15


def _class(item: str) -> str:
    row = int("".join(filter(str.isdigit, item)))
    return "positive" if (row - 2) % 10 < 4 else "negative"  # line 1 has the names


@pytest.mark.parametrize("columns", [NAMES, [*NAMES, "town"]], ids=["vectors", "mixed table"])
def test_unlike_rows_are_told_and_like_ones_are_not(columns: list[str], tmp_path: Path) -> None:
    classifier = PUClassifier(settings=QUICK).fit(houses(0)[columns], labels())
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnfamiliarDataWarning)
        classifier.predict(houses(1)[columns])
    old = houses(1, older=3)[columns]
    with pytest.warns(UnfamiliarDataWarning, match="differ in 'age'"):
        classifier.predict(old)
    classifier.save(tmp_path / "run")
    old.to_csv(tmp_path / "old.csv", index=False)
    listening = Listening()
    found = onesided.rank(
        tmp_path / "run", tmp_path / "old.csv", tmp_path / "ranked.csv", monitor=listening
    )
    assert found.compared is not None
    assert [one for one in listening.warned if "unlike those" in one]
    assert found.items == 400  # nothing is refused


def test_unlike_images_are_told(tmp_path: Path) -> None:
    for number in range(100):
        draw(tmp_path / "U" / f"{number}.png", number, RED if number % 3 == 0 else BLUE)
        draw(tmp_path / "like" / f"{number}.png", 500 + number, RED if number % 3 == 0 else BLUE)
        draw(tmp_path / "green" / f"{number}.png", 900 + number, 1)
    for number in range(20):
        draw(tmp_path / "P" / f"{number}.png", 2000 + number)
    run = tmp_path / "run"
    onesided.fit(
        tmp_path / "P",
        tmp_path / "U",
        output=run,
        method="ce",
        epochs=1,
        backbone="small",
        settings={"backbone": {"width": 0.125}},
    )
    for kind, told in (("like", False), ("green", True)):
        listening = Listening()
        onesided.rank(run, tmp_path / kind, tmp_path / f"{kind}.csv", monitor=listening)
        assert any("unlike those" in one for one in listening.warned) is told, kind


def test_a_flipped_bit_in_the_reference_is_told(fitted: PUClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "run")
    path = tmp_path / "run" / "reference.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"reference.npz .*checksum"):
        PUClassifier.load(tmp_path / "run")


def test_a_copy_without_a_reference_still_ranks(fitted: PUClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "run")
    for name in ("reference.npz", "checksums.txt"):
        (tmp_path / "run" / name).unlink()
    houses(1, older=3)[NAMES].to_csv(tmp_path / "old.csv", index=False)
    found = onesided.rank(tmp_path / "run", tmp_path / "old.csv", tmp_path / "ranked.csv")
    assert found.compared is None
    assert found.items == 400
