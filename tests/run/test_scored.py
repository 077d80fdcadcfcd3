"""All scores of a run: what counts as held out, with and without folds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import OnesidedError
from onesided.run.scored import NO_FIGURES, Scored, entries_at

LABELLED = np.array([True, True, False, False, False])
PLAIN = Scored(np.array([0.9, 0.8, 0.7, 0.2, 0.1]), LABELLED)
FOLDED = replace(PLAIN, fold=np.array([0, 1, 0, 1, 1]))


def test_without_folds_training_scores_are_not_held_out() -> None:
    assert PLAIN.held_out_pair() is None


def test_with_folds_every_training_score_is_of_a_model_that_did_not_see_it() -> None:
    pair = FOLDED.held_out_pair()
    assert pair is not None
    assert [part.tolist() for part in pair] == [[0.9, 0.8], [0.7, 0.2, 0.1]]


def test_a_held_out_part_counts_beside_the_folds() -> None:
    both = replace(FOLDED, held_out=np.array([0.6, 0.3]), held_out_labelled=np.array([True, False]))
    pair = both.held_out_pair()
    assert pair is not None
    assert [part.tolist() for part in pair] == [[0.9, 0.8, 0.6], [0.7, 0.2, 0.1, 0.3]]
    assert both.unlabelled.tolist() == [0.7, 0.2, 0.1, 0.3]


def test_a_model_without_any_figure_says_so() -> None:
    assert entries_at(PLAIN, 0.5, None, None)["warnings"] == [NO_FIGURES]
    tested = replace(PLAIN, test=np.array([0.9, 0.1]), test_truth=np.array([1, 0]))
    assert entries_at(tested, 0.5, None, None)["warnings"] == []


def warned(trained: int, held_out: int, fold: np.ndarray | None = None) -> list[str]:
    """Warnings where so many of 800 trained and of 200 held-out pool items are called."""
    sizes, called = (800, 200), (trained, held_out)
    pools = [
        np.where(np.arange(size) < many, 0.9, 0.1) for size, many in zip(sizes, called, strict=True)
    ]
    parts = [np.concatenate([np.full(50, 0.9), pool]) for pool in pools]
    labelled = [np.arange(len(part)) < 50 for part in parts]
    scored = Scored(parts[0], labelled[0], parts[1], labelled[1], fold=fold)
    warnings: list[str] = entries_at(scored, 0.5, None, None)["warnings"]
    return warnings


def test_a_list_that_remembers_its_training_is_told_apart_from_the_figures() -> None:
    (sentence,) = warned(80, 60)
    assert "80% of the pool were trained on as unlabelled" in sentence
    assert "10.0% of those are called positive, of the others 30.0%" in sentence
    assert "finds fewer positives than recall says" in sentence


def test_a_list_like_its_held_out_part_needs_no_word() -> None:
    assert warned(240, 60) == []
    assert warned(220, 60) == [], "chance explains it"
    assert warned(80, 60, fold=np.zeros(850, np.int64)) == [], "no item was scored as trained on"


@pytest.mark.parametrize("scored", [PLAIN, FOLDED])
def test_the_file_gives_back_what_was_saved(tmp_path: Path, scored: Scored) -> None:
    scored.save(tmp_path / "scores.npz")
    again = Scored.load(tmp_path / "scores.npz")
    for name, part in vars(scored).items():
        found = getattr(again, name)
        assert found is None if part is None else np.array_equal(found, part)


@pytest.mark.parametrize(
    "fold", [np.zeros(4, np.int64), np.zeros(5), np.array([0, 1, -1, 0, 0]), np.zeros((5, 1), int)]
)
def test_folds_that_do_not_fit_are_refused(tmp_path: Path, fold: np.ndarray) -> None:
    np.savez(tmp_path / "scores.npz", train=PLAIN.train, train_labelled=LABELLED, fold=fold)
    with pytest.raises(OnesidedError, match="is damaged"):
        Scored.load(tmp_path / "scores.npz")
