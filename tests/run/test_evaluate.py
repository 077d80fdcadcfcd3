import json
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import DataError, OnesidedError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.metrics.registry import OWN_SCORES
from onesided.run.evaluate import compare_with_labels, read_labels, read_scores
from onesided.run.scored import Scored

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


def test_bare_file_names_are_understood_where_only_one_item_has_them(run: Path) -> None:
    with (run / "scores.csv").open("a") as file:
        file.write("V/c.png,0.3\n")
    truth = labels(run, "item,label\na.png,positive\nd.png,negative\nc.png,positive\n")
    found = compare_with_labels(run, truth)
    assert (found["listed"], found["matched"]) == (3, 2), "c.png could be U/c.png or V/c.png"
    assert found["test"]["oa"] == 1.0


def test_a_full_name_wins_over_a_bare_one(run: Path) -> None:
    truth = labels(run, "item,label\nU/a.png,positive\na.png,negative\nU/d.png,negative\n")
    assert compare_with_labels(run, truth)["matched"] == 2


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
    with pytest.raises(DataError, match=r"'U/a\.png'.*'elsewhere\.png'"):
        compare_with_labels(run, labels(run, "item,label\nelsewhere.png,positive\n"))


def test_a_mere_file_name_is_found_where_only_one_item_has_it(run: Path) -> None:
    truth = labels(run, "item,label\na.png,positive\n")
    assert compare_with_labels(run, truth)["matched"] == 1


def test_labels_are_read_by_word_whatever_the_spelling(tmp_path: Path) -> None:
    (tmp_path / "truth.csv").write_text("path,label,note\na, Positive,x\nb,NEGATIVE ,\na,positive,")
    assert read_labels(tmp_path / "truth.csv") == {"a": POSITIVE, "b": NEGATIVE}


def test_scores_must_be_there_and_be_numbers(run: Path) -> None:
    assert read_scores(run / "scores.csv") == SCORES
    for text in ("item,score\na,high\n", "item,score\n", "item,rank\na,1\n"):
        (run / "scores.csv").write_text(text)
        with pytest.raises(OnesidedError, match=r"scores\.csv"):
            read_scores(run / "scores.csv")


def write_split(run: Path, *, fold: bool = False, counted: bool = False) -> Path:
    """Write a run of 60 unlabelled items, of which 30 were trained on; return true labels."""
    items = [f"U/{number:02}" for number in range(60)]
    roles = ["train-positive", *["train-unlabelled"] * 30, "held-out-positive"]
    roles += ["held-out-unlabelled"] * 30
    names = ["P/0", *items[:30], "P/1", *items[30:]]
    lines = [f"{name},{role}" for name, role in zip(names, roles, strict=True)]
    (run / "split.csv").write_text("\n".join(["item,role", *lines, ""]))
    (run / "scores.csv").write_text(
        "\n".join(["item,score", *(f"{name},0.5" for name in items), ""])
    )
    half, first = np.full(31, 0.5), np.arange(31) == 0
    Scored(
        train=half,
        train_labelled=first,
        held_out=half,
        held_out_labelled=first,
        fold=np.zeros(31, np.int64) if fold else None,
        held_out_counted=np.arange(31) < 26 if counted else None,
    ).save(run / "scores.npz")
    words = [f"{name},{('positive', 'negative')[row % 2]}" for row, name in enumerate(items)]
    return labels(run, "\n".join(["item,label", *words, ""]))


def test_items_that_were_trained_on_are_left_out_of_true_figures(run: Path) -> None:
    found = compare_with_labels(run, write_split(run))
    assert (found["matched"], found["tested"]) == (60, 30)


def test_after_a_search_every_item_has_a_score_by_a_model_that_did_not_see_it(run: Path) -> None:
    assert compare_with_labels(run, write_split(run, fold=True))["tested"] == 60


def test_copies_count_once_against_true_labels(run: Path) -> None:
    assert compare_with_labels(run, write_split(run, counted=True))["tested"] == 25


def test_where_too_few_items_are_left_there_is_no_figure(run: Path) -> None:
    truth = write_split(run)
    truth.write_text("\n".join(truth.read_text().splitlines()[:40]))
    with pytest.raises(DataError, match="30 of 39 listed items were trained on"):
        compare_with_labels(run, truth)
