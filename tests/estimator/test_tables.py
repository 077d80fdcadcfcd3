"""Data frames, texts and sparse matrices: what scikit-learn users have."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from onesided import PUClassifier
from onesided.core.errors import ConfigError, DataError
from onesided.estimator import tables
from onesided.estimator.inputs import holds_paths
from onesided.estimator.tables import holds_texts
from tests.cli.command import call
from tests.estimator.clouds import TINY, two_clouds
from tests.run.mixed_tables import HEAD, mixed_rows, write_table

pd = pytest.importorskip("pandas", reason="data frames are tested where pandas is installed")


def quick(**parameters: Any) -> PUClassifier:  # noqa: ANN401
    return PUClassifier(**{"method": "ce", "epochs": 20, "settings": TINY, **parameters})


def frame_of(rows: list[list[str]]) -> Any:  # noqa: ANN401
    """Return the mixed table with the types that pandas has for them."""
    cells = [dict(zip(HEAD, row, strict=True)) for row in rows]
    frame = pd.DataFrame(cells)
    frame["area"] = pd.to_numeric(frame["area"])
    frame["built"] = pd.to_datetime(frame["built"])
    frame["pool"] = frame["pool"] == "yes"
    frame["town"] = frame["town"].astype("category")
    return frame.drop(columns=["label", "name"])


@pytest.fixture(scope="module")
def rows() -> list[list[str]]:
    return mixed_rows()


@pytest.fixture(scope="module")
def labels(rows: list[list[str]]) -> np.ndarray:
    return np.array([row[0] == "positive" for row in rows]).astype(int)


@pytest.fixture(scope="module")
def fitted(rows: list[list[str]], labels: np.ndarray) -> PUClassifier:
    return quick().fit(frame_of(rows), labels)


def test_a_frame_of_several_kinds_is_learnt_from(
    fitted: PUClassifier, rows: list[list[str]], labels: np.ndarray
) -> None:
    other = mixed_rows(seed=5)
    scores = fitted.predict_proba(frame_of(other))[:, 1]
    truth = np.arange(len(other)) % 2 == 1
    assert scores[truth].mean() > scores[~truth].mean() + 0.1
    assert fitted.n_features_in_ == 6
    assert fitted.feature_names_in_.tolist() == list(HEAD[2:])
    assert "Columns: 1 number, 1 category (town)" in fitted.result_["notices"][0]
    assert fitted.score(frame_of(rows), labels) > 0.7


def test_a_saved_and_a_pickled_model_take_the_frame_again(
    fitted: PUClassifier, rows: list[list[str]], tmp_path: Path
) -> None:
    import pickle

    frame = frame_of(rows)
    fitted.save(tmp_path / "saved")
    expected = fitted.predict_proba(frame)
    for again in (PUClassifier.load(tmp_path / "saved"), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(again.predict_proba(frame), expected)
        assert again.n_features_in_ == 6


def test_the_command_ranks_a_file_as_python_scores_the_frame(
    fitted: PUClassifier, rows: list[list[str]], tmp_path: Path
) -> None:
    fitted.save(tmp_path / "saved")
    table = write_table(tmp_path / "houses.csv", rows)
    outcome = call("rank", tmp_path / "saved", table, "-o", tmp_path / "ranked.csv")
    assert outcome.exit_code == 0, outcome.err
    ranked = pd.read_csv(tmp_path / "ranked.csv").set_index("item")["score"]
    scores = fitted.predict_proba(frame_of(rows))[:, 1]
    names = [row[1] for row in rows]
    np.testing.assert_allclose(ranked.loc[names].to_numpy(), scores, rtol=1e-5)


def test_a_run_of_the_command_takes_a_frame(rows: list[list[str]], tmp_path: Path) -> None:
    frame = frame_of(rows)[["town", "area"]]
    plain = [[row[0], row[2], row[3]] for row in rows]
    table = write_table(tmp_path / "t.csv", plain, ("label", "town", "area"))
    words = ("fit", "--table", table, "-o", tmp_path / "run", "--method", "ce", "--epochs", "1")
    assert call(*words, "--allow-degenerate").exit_code == 0
    assert PUClassifier.load(tmp_path / "run").predict(frame).shape == (120,)


def test_unknown_values_are_told_and_other_kinds_refused(
    fitted: PUClassifier, rows: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    frame = frame_of(rows)
    frame["town"] = "Atlantis"
    loud = clone(fitted).set_params(verbose=1)
    loud.__dict__.update({key: value for key, value in vars(fitted).items() if key != "verbose"})
    loud.predict(frame)
    assert "Column 'town': 120 rows hold values" in capsys.readouterr().out
    frame = frame_of(rows).astype({"area": object})
    frame.loc[3, "area"] = "large"
    with pytest.raises(DataError, match="Row 3 of X: column 'area' holds 'large'"):
        fitted.predict(frame)
    with pytest.raises(ValueError, match="area"):
        fitted.predict(frame_of(rows).drop(columns="area"))


def test_a_frame_of_polars_means_the_same(
    fitted: PUClassifier, rows: list[list[str]], labels: np.ndarray
) -> None:
    pl = pytest.importorskip("polars", reason="its frames are tested where it is installed")
    frame = frame_of(rows)
    other = pl.DataFrame({str(name): frame[name].tolist() for name in frame.columns})
    other = other.with_columns(pl.col("area").fill_nan(None), pl.col("town").cast(pl.Categorical))
    np.testing.assert_array_equal(fitted.predict_proba(other), fitted.predict_proba(frame))
    again = quick().fit(other, labels)
    np.testing.assert_array_equal(again.predict_proba(frame), fitted.predict_proba(frame))


def test_a_frame_of_numbers_is_the_array_of_its_numbers() -> None:
    problem = two_clouds()
    frame = pd.DataFrame(problem.X, columns=list("abcdef"))
    expected = quick(epochs=2).fit(problem.X, problem.y).predict_proba(problem.X)
    found = quick(epochs=2).fit(frame, problem.y).predict_proba(frame)
    np.testing.assert_array_equal(found, expected)


def test_gaps_in_an_array_are_filled_and_marked() -> None:
    problem = two_clouds()
    problem.X[::5, 2] = np.nan
    fitted = quick().fit(problem.X, problem.y)
    assert fitted.n_features_in_ == 6
    assert fitted.score(problem.X, problem.y) > 0.6
    with pytest.raises(DataError, match=r"row 1, column 3 \(x3\)"):
        fitted.predict([problem.X[1], np.where(np.arange(6) == 3, np.inf, problem.X[2])])


def test_a_frame_of_numbers_with_gaps_needs_no_names() -> None:
    problem = two_clouds()
    problem.X[::5, 2] = np.nan
    expected = quick(epochs=2).fit(problem.X, problem.y).predict_proba(problem.X)
    for names in (range(6), list("abcdef")):
        frame = pd.DataFrame(problem.X, columns=names)
        fitted = quick(epochs=2).fit(frame, problem.y)
        np.testing.assert_array_equal(fitted.predict_proba(frame), expected)
    mixed = pd.DataFrame({0: ["Ulm", "Bonn"] * 60, 1: range(120)})
    with pytest.raises(DataError, match="The column 0 of X has no name"):
        quick().fit(mixed, problem.y)


def test_a_column_that_holds_anything_else_is_refused(labels: np.ndarray) -> None:
    for cells, words in (
        ([[1]] * 120, "Row 0 of X: column 'x' holds list"),
        ([1.0] * 119 + ["high"], "Row 119 of X: column 'x' holds 'high'"),
        (["same"] * 120, r"No column of X is left .*x \(every row holds the same\)"),
        ([f"id{row}" for row in range(120)], "names the rows"),
    ):
        with pytest.raises(DataError, match=words):
            quick().fit(pd.DataFrame({"x": pd.Series(cells, dtype=object)}), labels)


def test_the_kind_of_a_column_can_be_given(labels: np.ndarray) -> None:
    frame = pd.DataFrame({"zip": np.arange(120) % 5, "area": np.arange(120.0)})
    settings = {**TINY, "data": {"kinds": {"zip": "category"}}}
    fitted = quick(epochs=1, settings=settings).fit(frame, labels)
    assert fitted.result_["notices"] == ["Columns: 1 number, 1 category (zip)."]
    assert fitted.predict(frame).shape == (120,)


def test_strings_are_files_or_texts(tmp_path: Path) -> None:
    (tmp_path / "a note").write_text("x")
    assert holds_paths([str(tmp_path / "a note")])
    assert not holds_paths(["the roof is gone", "all is fine"])
    assert holds_texts(["the roof is gone", None])
    assert holds_texts(pd.Series(["the roof is gone", "all is fine"]))
    for other in ([], "a text", [None], [1.0, "a"], np.zeros(3), np.array([["a"]])):
        assert not holds_texts(other)


def test_texts_are_learnt_from(rows: list[list[str]], labels: np.ndarray, tmp_path: Path) -> None:
    texts = [row[6] for row in rows]
    fitted = quick().fit(texts, labels)
    assert fitted.n_features_in_ == 1
    assert fitted.score(np.array(texts), labels) > 0.7
    fitted.save(tmp_path / "saved")
    again = PUClassifier.load(tmp_path / "saved")
    np.testing.assert_array_equal(again.predict_proba(texts), fitted.predict_proba(texts))
    assert fitted.predict([texts[0], "words that nobody has seen"]).shape == (2,)
    on_numbers = quick(epochs=1).fit(two_clouds().X, two_clouds().y)
    with pytest.raises(ValueError, match=r"[Tt]ext|1D array|array"):
        on_numbers.predict(texts)


def test_a_sparse_matrix_is_its_dense_one(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = two_clouds()
    expected = quick(epochs=2).fit(problem.X, problem.y).predict_proba(problem.X)
    for made in (sparse.csr_matrix, sparse.csc_array):
        found = quick(epochs=2).fit(made(problem.X), problem.y)
        np.testing.assert_array_equal(found.predict_proba(made(problem.X)), expected)
    monkeypatch.setattr(tables, "MOST_BYTES", 1000)
    with pytest.raises(DataError, match=r"sparse matrix of 120 x 6.*TruncatedSVD"):
        quick().fit(sparse.csr_matrix(problem.X), problem.y)


def test_groups_are_never_on_both_sides() -> None:
    problem = two_clouds()
    groups = np.array([f"street {row // 12}" for row in range(120)])
    fitted = quick(epochs=1, verbose=0).fit(problem.X, problem.y, groups=groups)
    assert "Whole groups are held out, of 10: none is on both sides." in fitted.result_["notices"]
    with pytest.raises(DataError, match="groups holds 119 entries and X 120 samples"):
        quick().fit(problem.X, problem.y, groups=groups[1:])
    for nothing in (None, float("nan")):
        partly = [nothing, *groups[1:]]
        with pytest.raises(DataError, match="groups has 1 missing values of 120"):
            quick().fit(problem.X, problem.y, groups=np.array(partly, dtype=object))
    with pytest.raises(DataError, match="groups cannot be divided"):
        quick().fit(problem.X, problem.y, groups=np.zeros(120))


def test_weights_that_differ_are_refused_and_equal_ones_say_nothing() -> None:
    problem = two_clouds()
    fitted = quick(epochs=1).fit(problem.X, problem.y, sample_weight=np.full(120, 2.0))
    same = quick(epochs=1).fit(problem.X, problem.y)
    np.testing.assert_array_equal(fitted.predict_proba(problem.X), same.predict_proba(problem.X))
    able = "auto, linear, forest, boosting, average"
    with pytest.raises(ConfigError, match=f"CE cannot weigh samples.*{able}"):
        quick().fit(problem.X, problem.y, sample_weight=np.arange(120))
    with pytest.raises(DataError, match="every positive sample is zero"):
        quick().fit(problem.X, problem.y, sample_weight=1 - problem.y)


def test_a_weight_says_how_much_a_sample_teaches() -> None:
    problem = two_clouds()
    weights = np.random.default_rng(0).integers(1, 9, len(problem.y)).astype(float)
    plain, weighed = (
        PUClassifier(settings={"method": {"candidates": ["linear"]}}).fit(
            problem.X, problem.y, sample_weight=given
        )
        for given in (None, weights)
    )
    assert not np.array_equal(plain.pool_scores_, weighed.pool_scores_)
    assert weighed.result_["n_unlabelled"] == plain.result_["n_unlabelled"]
    with pytest.raises(ConfigError, match="nnpu cannot weigh samples"):
        PUClassifier(settings={"method": {"also": ["nnpu"]}}).fit(
            problem.X, problem.y, sample_weight=weights
        )


def test_shuffling_a_column_that_matters_costs_more_than_one_of_noise(
    fitted: PUClassifier, rows: list[list[str]], labels: np.ndarray
) -> None:
    importances = fitted.permutation_importances(frame_of(rows), labels)
    assert importances.shape == (6,)
    by_name = dict(zip(HEAD[2:], importances, strict=True))
    assert by_name["serial"] == 0
    assert max(by_name.values()) > 0.01


def test_a_forest_tells_the_importance_of_columns_not_of_places(
    rows: list[list[str]], labels: np.ndarray
) -> None:
    settings = {"method": {"trees": 10}}
    forest = PUClassifier("puet", prior=0.33, settings=settings).fit(frame_of(rows), labels)
    assert forest.feature_importances_.shape == (6,)
    assert forest.feature_importances_[list(HEAD[2:]).index("serial")] == 0
    assert forest.feature_importances_.sum() > 0.5


def linear(**parameters: Any) -> PUClassifier:  # noqa: ANN401
    settings = {"method": {"candidates": ["linear"]}}
    return PUClassifier(settings=settings, **parameters)


def test_a_search_tells_how_much_its_model_relies_on_each_column(
    rows: list[list[str]], labels: np.ndarray
) -> None:
    frame = frame_of(rows)
    found = linear().fit(frame, labels)
    importances = found.feature_importances_
    assert importances.shape == (len(frame.columns),)
    by_name = dict(zip(frame.columns, importances, strict=True))
    assert by_name["serial"] == 0, "it names the rows and was left out"
    assert max(by_name.values()) > 0.01
    np.testing.assert_array_equal(importances, found.feature_importances_)


def test_where_there_are_no_columns_there_are_no_importances() -> None:
    others = ("roof", "tree", "lake", "hill", "road", "wall", "gate")
    texts = [
        f"{'fire smoke' if row % 2 else 'blue garden'} {others[row % 7]} {others[row % 5]}"
        for row in range(60)
    ]
    found = linear().fit(texts, np.arange(60) % 4 == 1)
    assert not hasattr(found, "feature_importances_")


def test_a_word_for_a_gap_may_mean_unlabelled() -> None:
    problem = two_clouds()
    words = np.where(problem.y == 1, "yes", "?")
    found = linear(positive="yes", unlabelled="?").fit(problem.X, words)
    assert found.classes_.tolist() == ["not yes", "yes"]
