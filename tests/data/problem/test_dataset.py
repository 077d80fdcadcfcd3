"""A PU problem as rows of larger sets: nothing copied, everything accounted for."""

import hashlib
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.problem.dataset import Joined, LabelledDataset, PUDataset, PUSplit, Selection
from onesided.data.problem.samples import Samples


def pool(count: int = 20) -> np.ndarray:
    return np.arange(count * 12, dtype=np.uint8).reshape(count, 3, 2, 2)


def samples_of(values: np.ndarray, name: str) -> Samples:
    return Samples(
        values=values,
        classes=np.zeros(len(values), np.int64),
        names=tuple(f"{name}/{row}" for row in range(len(values))),
    )


def rows_of(labelled: list[bool], truth: list[int], names: list[str]) -> PUDataset:
    return PUDataset(
        values=Selection(pool(), np.arange(len(names))),
        labelled=np.array(labelled),
        truth=np.array(truth, dtype=np.int64),
        names=tuple(names),
    )


def small_split() -> PUSplit:
    known = LabelledDataset(
        Selection(pool(), np.array([7, 8])), np.array([POSITIVE, NEGATIVE]), ("g", "h")
    )
    return PUSplit(
        train=rows_of([True, False, False], [POSITIVE, NEGATIVE, POSITIVE], ["a", "b", "c"]),
        test=known,
        held_out=rows_of([False, True], [NEGATIVE, POSITIVE], ["d", "e"]),
        clean=replace(known, names=("i", "j")),
        kind="photograph",
        scenario="case-control",
    )


def test_a_selection_holds_the_rows_of_its_index() -> None:
    selection = Selection(pool(), np.array([4, 0, 4, 19]))
    assert len(selection) == 4
    assert selection.sample_shape == (3, 2, 2)
    assert np.array_equal(selection.take(slice(None)), pool()[[4, 0, 4, 19]])


@pytest.mark.parametrize(
    "rows",
    [slice(1, 3), np.array([2, 1]), np.array([False, True, True, False]), np.array([], int)],
    ids=["slice", "order", "mask", "none"],
)
def test_rows_are_taken_in_the_order_asked_for(rows: np.ndarray | slice) -> None:
    index = np.array([4, 0, 7, 19])
    assert np.array_equal(Selection(pool(), index).take(rows), pool()[index[rows]])


def test_what_is_taken_is_contiguous_and_ones_own() -> None:
    values = pool()
    turned = values.transpose(0, 1, 3, 2)  # as STL-10 lies in its file
    taken = Selection(turned, np.arange(20)).take(slice(None))
    assert taken.flags.c_contiguous
    taken[:] = 0
    assert np.array_equal(values, pool())


def file_of(path: Path, count: int = 2000) -> np.memmap:
    return np.memmap(path, dtype=np.uint8, mode="w+", shape=(count, 3, 32, 32))


def memory_to_take(selection: Selection, rows: np.ndarray) -> int:
    """Most bytes that were held at once; numpy reports its arrays, but not mapped files."""
    tracemalloc.start()
    try:
        selection.take(rows)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_rows_of_a_file_come_into_memory_as_plain_arrays(tmp_path: Path) -> None:
    on_disk = file_of(tmp_path / "pool.bin")
    on_disk[[3, 1999]] = 7
    taken = Selection(on_disk, np.arange(2000)[::-1].copy()).take(np.array([0, 1996]))
    assert (taken == 7).all()
    assert not isinstance(taken, np.memmap)


def test_taking_rows_of_a_file_copies_these_rows_only(tmp_path: Path) -> None:
    on_disk = file_of(tmp_path / "pool.bin")
    row = on_disk[0].nbytes
    memory = memory_to_take(Selection(on_disk, np.arange(2000)), np.array([7, 1500]))
    assert 2 * row <= memory < 20 * row < on_disk.nbytes / 10


def test_taking_rows_of_joined_files_copies_these_rows_only(tmp_path: Path) -> None:
    first, second = file_of(tmp_path / "train.bin"), file_of(tmp_path / "unlabelled.bin")
    row = first[0].nbytes
    joined = Joined(samples_of(first, "train"), samples_of(second, "unlabelled"))
    memory = memory_to_take(Selection(joined, np.arange(4000)), np.array([7, 3500]))
    assert 2 * row <= memory < 20 * row < first.nbytes / 10


def test_a_selection_of_no_rows_is_empty() -> None:
    assert Selection(pool(), np.array([], int)).take(slice(None)).shape == (0, 3, 2, 2)


@given(st.lists(st.integers(0, 24), max_size=30))
def test_two_sets_joined_are_addressed_as_one(index: list[int]) -> None:
    first, second = pool(20), pool(5)[::-1].copy()
    joined = Joined(samples_of(first, "first"), samples_of(second, "second"))
    rows = np.array(index, dtype=np.int64)
    assert joined.shape == (25, 3, 2, 2)
    assert np.array_equal(joined[rows], np.concatenate([first, second])[rows])
    assert joined[rows].dtype == np.uint8
    assert (joined.names[19], joined.names[20]) == ("first/19", "second/0")


def test_the_true_prior_is_the_share_of_positives_in_u() -> None:
    labelled = [True, True, False, False, False, False]
    truth = [POSITIVE, POSITIVE, POSITIVE, NEGATIVE, NEGATIVE, NEGATIVE]
    split = replace(small_split(), train=rows_of(labelled, truth, list("abcdef")))
    assert split.true_prior == 0.25


def test_one_unknown_truth_makes_the_prior_unknown() -> None:
    split = replace(
        small_split(),
        train=rows_of([True, False, False], [POSITIVE, POSITIVE, UNKNOWN], list("abc")),
    )
    assert split.true_prior is None


def test_a_split_has_the_shape_of_its_training_rows() -> None:
    assert small_split().sample_shape == (3, 2, 2)


def test_roles_name_every_sample_once_in_row_order() -> None:
    assert small_split().roles() == [
        ("train-positive", "a"),
        ("train-unlabelled", "b"),
        ("train-unlabelled", "c"),
        ("held-out-unlabelled", "d"),
        ("held-out-positive", "e"),
        ("clean", "i"),
        ("clean", "j"),
        ("test", "g"),
        ("test", "h"),
    ]


def test_parts_that_are_not_there_have_no_role() -> None:
    split = replace(small_split(), test=None, held_out=None, clean=None)
    assert {role for role, _ in split.roles()} == {"train-positive", "train-unlabelled"}


def test_equal_splits_have_equal_fingerprints() -> None:
    assert small_split().fingerprint() == small_split().fingerprint()


def test_another_name_role_or_order_changes_the_fingerprint() -> None:
    split = small_split()
    train = split.train
    others = [
        replace(split, train=replace(train, names=("a", "b", "x"))),
        replace(split, train=replace(train, names=("a", "c", "b"))),
        replace(split, train=replace(train, labelled=np.array([True, True, False]))),
        replace(split, held_out=None),
        replace(split, clean=None),
        replace(split, test=None),
        replace(split, clean=split.test, test=split.clean),
    ]
    fingerprints = {each.fingerprint() for each in (split, *others)}
    assert len(fingerprints) == 1 + len(others)


def test_no_file_name_can_pose_as_two_rows() -> None:
    honest = replace(
        small_split(), train=rows_of([True, False], [1, UNKNOWN], ["a", "b"]), held_out=None
    )
    forged = replace(honest, train=rows_of([True], [1], ["a\x1etrain-unlabelled\x1fb"]))
    assert honest.fingerprint() != forged.fingerprint()


def test_names_that_are_no_text_have_a_fingerprint() -> None:
    name = b"\xff.png".decode("utf-8", "surrogateescape")
    split = replace(small_split(), train=rows_of([True], [POSITIVE], [name]))
    assert split.fingerprint() != small_split().fingerprint()


@pytest.mark.parametrize("row", [0, 4095, 4096, 4999])
def test_one_other_pixel_to_train_on_changes_the_content_hash(row: int) -> None:
    def split_of(values: np.ndarray) -> PUSplit:
        count = len(values)
        train = PUDataset(
            values=Selection(values, np.arange(count)),
            labelled=np.arange(count) < 10,
            truth=np.full(count, UNKNOWN),
            names=("same",) * count,
        )
        return replace(small_split(), train=train)

    values = np.zeros((5000, 1, 2, 2), np.uint8)
    changed = values.copy()
    changed[row, 0, 1, 1] = 1
    assert split_of(values).content_hash() == split_of(values.copy()).content_hash()
    assert split_of(values).content_hash() != split_of(changed).content_hash()


def test_one_changed_evaluation_pixel_changes_only_the_held_out_hash() -> None:
    split = small_split()
    assert split.held_out is not None
    assert split.clean is not None
    assert split.test is not None
    negatives = replace(split.test, names=("k", "l"))
    other = pool()
    other[[0, 7], 0, 0, 0] += 1

    def seen(values: Selection) -> Selection:
        return replace(values, pool=other)

    hashes = {
        split.held_out_hash(),
        split.held_out_hash(negatives),
        split.held_out_hash(replace(negatives, values=seen(negatives.values))),
    }
    changed = [
        replace(split, held_out=replace(split.held_out, values=seen(split.held_out.values))),
        replace(split, clean=replace(split.clean, values=seen(split.clean.values))),
        replace(split, test=replace(split.test, values=seen(split.test.values))),
    ]
    hashes |= {one.held_out_hash() for one in changed}
    assert len(hashes) == 3 + len(changed)
    assert {one.content_hash() for one in changed} == {split.content_hash()}
    trained = replace(split, train=replace(split.train, values=seen(split.train.values)))
    assert trained.held_out_hash() == split.held_out_hash()
    assert trained.content_hash() != split.content_hash()


def test_hashing_takes_a_chunk_of_large_images_at_a_time() -> None:
    images = np.zeros((30, 3, 1024, 1024), np.uint8)
    train = replace(small_split().train, values=Selection(images, np.arange(30)))
    split = replace(small_split(), train=train)
    tracemalloc.start()
    found = split.content_hash()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == hashlib.sha256(images.tobytes()).hexdigest()
    assert peak < images.nbytes / 2


def test_names_are_no_content() -> None:
    split = small_split()
    renamed = replace(split, train=replace(split.train, names=("x", "y", "z")))
    assert renamed.content_hash() == split.content_hash()
