import json
from pathlib import Path

import pytest

from onesided.core.errors import DataError, OnesidedError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.metrics.registry import OWN_SCORES
from onesided.run.evaluate import compare_with_labels, read_labels, read_scores

SCORES = {"U/a.png": 0.9, "U/b.png": 0.7, "U/c.png": 0.4, "U/d.png": 0.1, "=e.png": 0.05}
RESULT = {
    **{"method": "ce", "seed": 0, "scenario": "single-set", "threshold": 0.5},
    **{"test": None, "pu": None, "warnings": []},
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    lines = [f"{name},{score}" for name, score in SCORES.items()]
    text = "\n".join(["item,score", *lines, ""]).replace("=e", "'=e")
    (tmp_path / "scores.csv").write_text(text)
    (tmp_path / "result.json").write_text(json.dumps(RESULT))
    return tmp_path


def labels(run: Path, text: str) -> Path:
    (run / "truth.csv").write_text(text)
    return run / "truth.csv"


def test_metrics_of_four_items_counted_by_hand(run: Path) -> None:
    truth = "item,label\nU/a.png,positive\nU/b.png,negative\nU/c.png,positive\nU/d.png,negative\n"
    found = compare_with_labels(run, labels(run, truth))
    assert (found["listed"], found["matched"]) == (4, 4)
    assert {row["name"]: row["true"] for row in found["figures"]} == {
        **{"recall": 0.5, "precision": 0.5, "f1": 0.5, "proxy_accuracy": 0.5, "auc": 0.75},
        **{"share_positive": 0.5, "prior": 0.5},
    }
    # a is a hit, b a false alarm, c is missed, d is right; of four pairs only c < b is wrong.
    assert found["test"] == {"oa": 0.5, "f1": 0.5, "precision": 0.5, "recall": 0.5, "auc": 0.75}


def test_decisions_are_those_of_the_run_s_own_threshold(run: Path) -> None:
    (run / "result.json").write_text(json.dumps({**RESULT, "threshold": 0.3}))
    truth = labels(run, "item,label\nU/c.png,positive\nU/d.png,negative\n")
    assert compare_with_labels(run, truth)["test"]["oa"] == 1.0


def test_a_score_that_nine_digits_carry_across_the_threshold_stays_on_its_side(run: Path) -> None:
    threshold = 1 - 1e-12
    (run / "result.json").write_text(json.dumps({**RESULT, "threshold": threshold}))
    (run / "scores.csv").write_text(
        "item,score,rank,decision\na,1,1,positive\nb,1,2,negative\nc,0.2,3,negative\n"
    )
    scores = read_scores(run / "scores.csv", threshold=threshold)
    assert [scores[item] > threshold for item in "abc"] == [True, False, False]
    truth = labels(run, "item,label\na,positive\nb,negative\nc,negative\n")
    assert compare_with_labels(run, truth)["test"]["oa"] == 1.0


def test_estimates_of_the_run_stand_beside_the_truth(run: Path) -> None:
    words = {"label": "Figure", "assumes": "Nothing."}
    figures = {
        "recall": {**words, "value": 0.8, "low": 0.7, "high": 0.9},
        "proxy_accuracy": {**words, "value": 0.6, "low": None, "high": None},
    }
    prior = {"value": 0.3, "low": 0.2, "high": 0.4, "origin": "given", "notes": []}
    content = {**RESULT, "pu": {"figures": figures, "degenerate": None}, "prior": prior}
    (run / "result.json").write_text(json.dumps(content))
    truth = labels(run, "item,label\nU/a.png,positive\nU/d.png,negative\n")
    rows = {row["name"]: row for row in compare_with_labels(run, truth)["figures"]}
    recall = {"value": 0.8, "low": 0.7, "high": 0.9, "bias": None, "true": 1.0}
    assert rows["recall"].items() >= recall.items()
    assert (rows["proxy_accuracy"]["value"], rows["proxy_accuracy"]["true"]) == (0.6, 1.0)
    assert rows["auc"]["value"] is None
    assert rows["prior"]["value"] == 0.3


def test_estimates_that_are_bounds_are_marked_beside_the_truth(run: Path) -> None:
    known = {"value": 0.6, "low": 0.5, "high": 0.7}
    figure = {**known, "bias": "high", "assumes": [OWN_SCORES]}
    pu = {"figures": {"precision": figure}, "degenerate": None}
    truth = labels(run, "item,label\nU/a.png,positive\nU/d.png,negative\n")
    prior = {**known, "origin": OWN_SCORES, "notes": []}
    (run / "result.json").write_text(json.dumps({**RESULT, "pu": pu, "prior": prior}))
    rows = compare_with_labels(run, truth)["figures"]
    assert [row["name"] for row in rows if row["bias"] == "high"] == ["precision", "prior"]


@pytest.mark.parametrize("name", ["=e.png", "'=e.png"])
def test_a_name_is_found_with_and_without_the_guard_against_formulas(run: Path, name: str) -> None:
    truth = labels(run, f"item,label\n{name},negative\n")
    assert compare_with_labels(run, truth)["matched"] == 1


def test_an_unknown_item_is_shown_beside_one_of_the_run(run: Path) -> None:
    with pytest.raises(DataError, match=r"'U/a\.png'.*'a\.png'"):
        compare_with_labels(run, labels(run, "item,label\na.png,positive\n"))


def test_labels_are_read_by_word_whatever_the_spelling(tmp_path: Path) -> None:
    (tmp_path / "truth.csv").write_text("path,label,note\na, Positive,x\nb,NEGATIVE ,\na,positive,")
    assert read_labels(tmp_path / "truth.csv") == {"a": POSITIVE, "b": NEGATIVE}


def test_scores_must_be_there_and_be_numbers(run: Path) -> None:
    assert read_scores(run / "scores.csv") == SCORES
    for text in ("item,score\na,high\n", "item,score\n", "item,rank\na,1\n"):
        (run / "scores.csv").write_text(text)
        with pytest.raises(OnesidedError, match=r"scores\.csv"):
            read_scores(run / "scores.csv")
