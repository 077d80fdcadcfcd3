from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from onesided import PUClassifier
from onesided.core.errors import DataError, DataNotFound
from onesided.estimator.inputs import classes_of, holds_paths
from tests.estimator.clouds import TINY, Problem, two_clouds, two_greys


def quick(**parameters: Any) -> PUClassifier:  # noqa: ANN401
    return PUClassifier(**{"method": "ce", "epochs": 2, "settings": TINY, **parameters})


def write(problem: Problem, folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{row:02}.png" for row in range(len(problem.X))]
    for path, image in zip(paths, problem.X, strict=True):
        Image.fromarray(image.transpose(1, 2, 0)).save(path)
    return [str(path) for path in paths]


def test_images_mean_the_same_in_every_order_of_axes_and_as_floats() -> None:
    problem = two_greys()
    channels_last = problem.X.transpose(0, 2, 3, 1)
    first = quick().fit(problem.X, problem.y)
    expected = first.predict_proba(problem.X)
    for images in (channels_last, channels_last / 255, torch.from_numpy(problem.X)):
        other = quick().fit(images, problem.y)
        np.testing.assert_array_equal(other.predict_proba(images), expected)
        np.testing.assert_array_equal(first.predict_proba(images), expected)
    assert first.n_features_in_ == 3 * 8 * 9


def test_grey_images_need_no_axis_for_channels() -> None:
    problem = two_greys()
    grey = quick().fit(problem.X[:, 0], problem.y)
    np.testing.assert_array_equal(
        grey.predict_proba(problem.X[:, 0]), grey.predict_proba(problem.X[:, :1])
    )


def test_the_model_knows_the_axis_of_channels_where_the_shape_is_ambiguous() -> None:
    problem = two_greys(side=8)
    ambiguous = problem.X[:, :, :6, :3]
    with pytest.raises(DataError, match='channels="first"'):
        quick().fit(ambiguous, problem.y)
    fitted = quick(channels="first", backbone="mlp").fit(problem.X[:, :, :6, :6], problem.y)
    assert fitted.predict(problem.X[:, :, :6, :6]).shape == (60,)


def test_files_are_read_as_the_arrays_they_hold(tmp_path: Path) -> None:
    problem = two_greys()
    # Files are read group by group: positives first.
    order = np.argsort(-problem.y, kind="stable")
    problem = Problem(problem.X[order], problem.y[order], problem.truth[order])
    paths = write(problem, tmp_path / "images")
    from_arrays, from_files = quick(), quick()
    expected = from_arrays.fit(problem.X, problem.y).predict_proba(problem.X)
    from_files.fit(paths, problem.y)
    assert (from_arrays.result_["data"], from_files.result_["data"]) == ("arrays", "files")
    for samples in (paths, [Path(path) for path in paths], np.array(paths)):
        np.testing.assert_array_equal(from_files.predict_proba(samples), expected)
    np.testing.assert_array_equal(from_files.predict_proba(problem.X), expected)
    np.testing.assert_array_equal(from_arrays.predict_proba(paths), expected)


def test_files_that_cannot_be_read_are_a_warning_in_fit_and_an_error_in_predict(
    tmp_path: Path,
) -> None:
    problem = two_greys()
    paths = write(problem, tmp_path / "images")
    Path(paths[4]).write_bytes(b"no image")
    with pytest.warns(UserWarning, match=r"1 files of X were left out; the first: .*04\.png"):
        fitted = quick().fit(paths, problem.y)
    with pytest.raises(DataError, match=r"04\.png .*leave out"):
        fitted.predict(paths)
    with pytest.raises(DataNotFound, match="No readable image"):
        fitted.predict([tmp_path / "missing.png"])


def test_a_file_that_is_listed_twice_counts_twice(tmp_path: Path) -> None:
    problem = two_greys()
    paths = write(problem, tmp_path / "images")
    fitted = quick(held_out=0).fit([*paths, paths[1]], [*problem.y, 1])
    assert fitted.result_["n_positive"] == problem.y.sum() + 1
    assert len(fitted.predict([paths[0], paths[0]])) == 2


def test_a_data_frame_gives_its_columns_their_names() -> None:
    pd = pytest.importorskip("pandas", reason="data frames are tested where pandas is installed")
    problem = two_clouds()
    frame = pd.DataFrame(problem.X, columns=list("abcdef"))
    fitted = quick().fit(frame, pd.Series(problem.y))
    assert fitted.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match="same order"):
        fitted.predict(frame[list("fedcba")])


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 1, 2] * 40, "Only binary classification.*got 0, 1, 2"),
        ([0] * 120, "one class only, 0"),
        ([1] * 120, "one class only, 1"),
        ([1, 2] * 60, "got 1, 2"),
        ([0, -1] * 60, "got -1, 0"),
        (["yes", "no"] * 60, "got no, yes"),
        ([1, 0] * 59 + [1, float("nan")], "NaN"),
        ([1, 0] * 59, "118"),
        (None, "y"),
    ],
)
def test_labels_that_say_nothing_are_a_value_error(labels: Any, words: str) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=words):
        quick().fit(two_clouds().X, labels)


@pytest.mark.parametrize("labels", [[0, 1, 2] * 20, [0] * 60, [1, 0] * 20, None])
def test_labels_of_images_are_checked_as_well(labels: Any) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=r"y |shape"):
        quick().fit(two_greys().X, labels)


def test_gaps_and_infinities_are_named_by_row_and_column() -> None:
    problem = two_clouds()
    fitted = quick().fit(problem.X, problem.y)
    problem.X[3, 1] = np.nan
    with pytest.raises(DataError, match="row 3, column 1"):
        fitted.predict(problem.X)
    problem.X[3, 1] = np.inf
    with pytest.raises(DataError, match="row 3, column 1"):
        quick().fit(problem.X, problem.y)


def test_samples_of_another_shape_are_refused_by_a_trained_model(tmp_path: Path) -> None:
    images, vectors = two_greys(), two_clouds()
    on_images = quick().fit(images.X, images.y)
    with pytest.raises(DataError, match=r"trained on samples of shape \(3, 8, 9\)"):
        on_images.predict(images.X[:, :, :7])
    with pytest.raises(DataError, match=r"trained on samples of shape \(3, 8, 9\)"):
        on_images.predict(vectors.X)
    on_vectors = quick().fit(vectors.X, vectors.y)
    with pytest.raises(DataError, match=r"trained on samples of shape \(6,\)"):
        on_vectors.predict(images.X)
    with pytest.raises(DataError, match="trained on vectors of 6 numbers"):
        on_vectors.predict(write(images, tmp_path / "images"))


def test_a_kind_that_does_not_go_with_the_samples_is_refused(tmp_path: Path) -> None:
    problem = two_greys()
    with pytest.raises(DataError, match="kind='vector'"):
        quick(kind="vector").fit(problem.X, problem.y)
    with pytest.raises(DataError, match="kind='vector'"):
        quick(kind="vector").fit(write(problem, tmp_path / "images"), problem.y)


def test_rows_of_words_are_paths_and_anything_else_is_not() -> None:
    assert holds_paths(["a.png", Path("b.png")])
    assert holds_paths(np.array(["a.png"]))
    for other in ([], "a.png", [["a.png"]], [1.0], np.zeros((2, 2)), 3.0, ["a.png", 1]):
        assert not holds_paths(other)


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float64])
def test_negative_is_said_as_minus_one_though_no_known_negative_is_there(kind: type) -> None:
    classes = classes_of(np.array([1, 0, 1, 0], kind), "pnu")
    assert classes.tolist() == [-1, 1]
