from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.core.errors import OnesidedError
from onesided.data.read.items import open_items
from onesided.run.rank import _descending, _from_descending, partial_scores
from tests.data.image_files import write_png

scores = st.floats(min_value=0, max_value=1)


@given(scores, scores)
def test_bytes_sort_as_scores_do_best_first(one: float, other: float) -> None:
    keys = _descending(one), _descending(other)
    assert (keys[0] < keys[1]) == (one > other)
    assert (keys[0] == keys[1]) == (one == other)


@given(scores)
def test_a_score_comes_back_to_the_last_bit(score: float) -> None:
    assert _from_descending(_descending(score)) == score


def start(folder: Path, *, model: str = "m", chunk: int = 4, stop: bool = True) -> int:
    """Score the first chunk and stop; return how many were scored before."""
    items = open_items(folder / "items", (3, 8, 8), "The model")
    with partial_scores(folder / "ranked.csv", model, items, chunk=chunk) as partial:
        before = partial.done()
        with partial.journal.writing() as append:
            append({"scores": [0.5], "reasons": {}})
        if stop:
            raise KeyboardInterrupt
    return before


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A folder in which a command was stopped after one chunk."""
    write_png(tmp_path / "items" / "a.png")
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path)
    return tmp_path


def test_what_was_scored_is_there_for_the_next_command_and_gone_at_the_end(stopped: Path) -> None:
    assert start(stopped, stop=False) == 1
    assert not (stopped / "ranked.csv.partial").exists()


def test_scores_of_another_model_are_not_used(stopped: Path) -> None:
    assert start(stopped, model="other", stop=False) == 0


def test_scores_in_chunks_of_another_length_are_not_used(stopped: Path) -> None:
    assert start(stopped, chunk=3, stop=False) == 0


@pytest.mark.parametrize("change", ["new", "gone", "replaced"])
def test_scores_of_items_that_changed_are_not_used(stopped: Path, change: str) -> None:
    match change:
        case "new":
            write_png(stopped / "items" / "b.png")
        case "gone":
            (stopped / "items" / "a.png").rename(stopped / "items" / "c.png")
        case "replaced":
            write_png(stopped / "items" / "a.png", seed=1, shape=(9, 9, 3))
    assert start(stopped, stop=False) == 0


@pytest.mark.parametrize("is_folder", [True, False])
def test_what_is_not_ours_stays_where_it_is(stopped: Path, is_folder: bool) -> None:
    other = stopped / "other.csv.partial"
    if is_folder:
        other.mkdir()
        (other / "diary.txt").write_text("mine")
    else:
        other.write_text("mine")
    items = open_items(stopped / "items", (3, 8, 8), "The model")
    with (
        pytest.raises(OnesidedError, match="is not ours"),
        partial_scores(stopped / "other.csv", "m", items, chunk=4),
    ):
        pass
    assert (other / "diary.txt" if is_folder else other).read_text() == "mine"


def test_two_commands_do_not_write_one_ranking(stopped: Path) -> None:
    items = open_items(stopped / "items", (3, 8, 8), "The model")
    with partial_scores(stopped / "ranked.csv", "m", items, chunk=4):
        with (
            pytest.raises(OnesidedError, match="Another command is ranking"),
            partial_scores(stopped / "ranked.csv", "m", items, chunk=4),
        ):
            pass
        assert (stopped / "ranked.csv.partial").exists()
