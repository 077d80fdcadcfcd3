"""Files of vectors: what is read, and what is refused in a sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onesided.core.errors import DataError, DataNotFound
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.read.vectors import (
    VectorItems,
    is_vector_file,
    read_vector_file,
    read_vector_files,
    read_vector_table,
)

VALUES = np.arange(12, dtype=np.float32).reshape(4, 3)
LABELS = ["positive", "unlabelled", "unlabelled", "negative"]
MEANT = [POSITIVE, UNKNOWN, UNKNOWN, NEGATIVE]


def parquet(path: Path, **columns: Any) -> Path:  # noqa: ANN401
    pyarrow = pytest.importorskip("pyarrow", reason="pip install 'onesided[parquet]'")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)
    return path


def npy(path: Path, values: np.ndarray = VALUES) -> Path:
    np.save(path, values)
    return path


def npz(path: Path, **arrays: Any) -> Path:  # noqa: ANN401
    np.savez(path, **arrays)
    return path


def test_an_array_has_row_numbers_for_names(tmp_path: Path) -> None:
    file = read_vector_file(npy(tmp_path / "a.npy"))
    assert np.array_equal(file.values, VALUES)
    assert file.names == ("0", "1", "2", "3")
    assert file.labels is None


def test_arrays_of_one_file_are_vectors_ids_and_labels(tmp_path: Path) -> None:
    path = npz(tmp_path / "a.npz", features=VALUES, id=list("abcd"), label=LABELS)
    read = read_vector_table(path)
    assert read.samples.names == ("a", "b", "c", "d")
    assert read.samples.classes.tolist() == MEANT
    assert read.labelled.tolist() == [True, False, False, False]
    assert read.samples.kind == "vector"


def test_a_parquet_file_has_lists_or_columns(tmp_path: Path) -> None:
    lists = parquet(tmp_path / "a.parquet", ID=list("abcd"), x=VALUES.tolist(), label=LABELS)
    read = read_vector_table(lists).samples
    assert np.array_equal(read.values, VALUES)
    assert (read.names, read.feature_names) == (("a", "b", "c", "d"), ())
    columns = parquet(tmp_path / "b.parquet", name=[1, 2, 3, 4], u=[1, 2, 3, 4], v=[0.5] * 4)
    file = read_vector_file(columns)
    assert file.feature_names == ("u", "v")
    assert file.names == ("1", "2", "3", "4")
    assert np.array_equal(file.values[:, 0], [1, 2, 3, 4])


def test_two_files_are_two_sides_and_names_stay_apart(tmp_path: Path) -> None:
    one, two = npy(tmp_path / "p.npy", VALUES[:2]), npy(tmp_path / "u.npy", VALUES[1:])
    read = read_vector_files(one, two)
    assert read.labelled.tolist() == [True, True, False, False, False]
    assert read.samples.names[0] == "positive/0"
    assert read.samples.names[2] == "unlabelled/0"
    with_negatives = read_vector_files(one, two, one).samples
    assert with_negatives.classes.tolist() == [1, 1, -1, -1, -1, 0, 0]


def test_rows_of_a_file_are_items_of_a_model(tmp_path: Path) -> None:
    items = VectorItems(read_vector_file(npy(tmp_path / "a.npy")))
    records = list(items.records(tmp_path))
    chunk = items.read(records[1:3])
    assert np.array_equal(chunk.values, VALUES[1:3])
    assert not chunk.reasons
    assert items.picture(records[0]) is None


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"features": VALUES, "id": ["a", "a", "b", "c"]}, "two rows are called 'a'"),
        ({"features": VALUES, "id": ["a"]}, "4 vectors and 1 ids"),
        ({"features": VALUES, "label": ["positive"]}, "4 vectors and 1 labels"),
        ({"features": VALUES, "label": [1, 0, 0, 0]}, "the label '1' is none of"),
        ({"features": VALUES, "label": ["unlabelled"] * 4}, "no row is positive"),
        ({"features": VALUES}, "it has no labels"),
        ({"one": VALUES, "two": VALUES}, "expected one array"),
        ({"features": VALUES * np.nan}, "NaN"),
        ({"features": np.array([["a", "b"]])}, "must be numbers"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    arrays: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=sentence):
        read_vector_table(npz(tmp_path / "a.npz", **arrays))


def test_pickled_objects_and_other_bytes_are_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    (tmp_path / "b.npy").write_bytes(b"nonsense")
    (tmp_path / "c.npz").write_bytes(b"")
    for name in ("a.npy", "b.npy", "c.npz"):
        with pytest.raises(DataError, match="cannot be read as vectors"):
            read_vector_file(tmp_path / name)
    with pytest.raises(DataNotFound, match="There is no file"):
        read_vector_file(tmp_path / "d.npy")


def test_parquet_files_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="column 'colour' holds no numbers"):
        read_vector_file(parquet(tmp_path / "a.parquet", colour=["red"], u=[1.0]))
    with pytest.raises(DataError, match="different lengths"):
        read_vector_file(parquet(tmp_path / "b.parquet", x=[[1.0], [1.0, 2.0]]))
    (tmp_path / "c.parquet").write_bytes(b"nonsense")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_vector_file(tmp_path / "c.parquet")


def test_vectors_of_other_lengths_do_not_go_together(tmp_path: Path) -> None:
    one, two = npy(tmp_path / "p.npy"), npy(tmp_path / "u.npy", VALUES[:, :2])
    with pytest.raises(DataError, match=r"2 numbers, and those of .* have 3"):
        read_vector_files(one, two)


def test_files_are_known_by_their_ending() -> None:
    known = [Path("a.npy"), Path("a.NPZ"), Path("a.parquet")]
    assert all(map(is_vector_file, known))
    assert not any(map(is_vector_file, [None, Path("a.csv"), Path("folder")]))
