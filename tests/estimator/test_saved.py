import copy
import csv
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from onesided import PUClassifier
from onesided.core.errors import CheckpointError, DataNotFound, OnesidedError
from tests.cli.command import TINY as TINY_WORDS
from tests.cli.command import call, contents
from tests.cli.pictures import draw_data
from tests.estimator.clouds import TINY, two_clouds, two_greys

# A second of training makes a poor model, and that is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::onesided.estimator.DegenerateModelWarning")

COMMANDS_SETTINGS = {"backbone": {"width": 0.125}, "train": {"batch_size": 16}}


@pytest.fixture(scope="module")
def fitted() -> PUClassifier:
    problem = two_clouds()
    return PUClassifier("ce", epochs=5, settings=TINY).fit(problem.X, problem.y)


def test_what_is_loaded_predicts_and_knows_what_was_saved(
    fitted: PUClassifier, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "run")
    loaded = PUClassifier.load(tmp_path / "run")
    samples = two_clouds(seed=5).X
    np.testing.assert_array_equal(loaded.predict_proba(samples), fitted.predict_proba(samples))
    assert loaded.get_params() == fitted.get_params()
    assert loaded.classes_.tolist() == fitted.classes_.tolist()
    assert loaded.n_features_in_ == 6
    assert loaded.result_ == json.loads(json.dumps(fitted.result_))
    assert fitted.evaluation_ is not None
    assert loaded.evaluation_ == fitted.evaluation_
    assert clone(loaded).get_params() == fitted.get_params()
    loaded.save(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "run")


def test_other_labels_and_names_of_columns_come_back(tmp_path: Path) -> None:
    problem = two_clouds()
    random_state = np.random.RandomState(3)
    fitted = PUClassifier("ce", epochs=1, settings=TINY, random_state=random_state)
    fitted.fit(problem.X, problem.y == 1)
    fitted.feature_names_in_ = np.array(list("abcdef"), dtype=object)  # as a data frame gives
    fitted.save(str(tmp_path / "run"))
    loaded = PUClassifier.load(str(tmp_path / "run"))
    assert loaded.classes_.dtype == bool
    assert loaded.feature_names_in_.tolist() == list("abcdef")
    assert loaded.random_state == fitted.result_["seed"]


def test_a_data_frames_names_go_with_the_model_to_the_command(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas", reason="data frames are tested where pandas is installed")
    problem, names = two_clouds(), list("ABCDEF")
    frame = pd.DataFrame(problem.X, columns=names)
    fitted = PUClassifier("ce", epochs=1, settings=TINY).fit(frame, problem.y)
    fitted.save(tmp_path / "run")
    frame[names[::-1]].to_csv(tmp_path / "turned.csv", index_label="name")
    ranked = tmp_path / "ranked.csv"
    done = call("rank", tmp_path / "run", tmp_path / "turned.csv", "-o", ranked, "--quiet")
    assert done.exit_code == 0, done.err
    with ranked.open(newline="") as table:
        stored = {int(row["item"]): float(row["score"]) for row in csv.DictReader(table)}
    scores = fitted.predict_proba(frame)[:, 1]
    assert stored == pytest.approx(dict(enumerate(scores)), rel=1e-5)
    # Images have no names of columns, whatever was fitted before.
    images = two_greys()
    fitted.fit(images.X, images.y).save(tmp_path / "images")
    assert json.loads((tmp_path / "images" / "model.json").read_text())["feature_names"] == []


def test_a_forest_comes_back_with_its_importances(forest: PUClassifier, tmp_path: Path) -> None:
    problem = two_clouds()
    forest.save(tmp_path / "run")
    loaded = PUClassifier.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.feature_importances_, forest.feature_importances_)
    np.testing.assert_array_equal(loaded.predict(problem.X), forest.predict(problem.X))


def test_a_pickle_and_a_deep_copy_predict_the_same(fitted: PUClassifier) -> None:
    samples = two_clouds(seed=5).X
    pickled = pickle.dumps(fitted)
    assert b"torch" not in pickled.replace(b"safetensors", b"")
    for copied in (pickle.loads(pickled), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(copied.predict_proba(samples), fitted.predict_proba(samples))
        assert copied.evaluation_ == fitted.evaluation_
    unfitted = pickle.loads(pickle.dumps(PUClassifier(epochs=3)))
    assert unfitted.get_params() == PUClassifier(epochs=3).get_params()


def test_a_folder_that_is_not_empty_is_refused_without_overwrite(
    fitted: PUClassifier, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OnesidedError, match="overwrite=True"):
        fitted.save(tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "notes.txt"]
    fitted.save(tmp_path, overwrite=True)
    fitted.save(tmp_path, overwrite=True)
    assert PUClassifier.load(tmp_path).n_features_in_ == 6
    with pytest.raises(OnesidedError, match="is a file"):
        fitted.save(tmp_path / "notes.txt")


def test_folders_that_hold_no_model_or_a_damaged_one_are_refused(
    fitted: PUClassifier, tmp_path: Path
) -> None:
    with pytest.raises(DataNotFound, match=r"model\.json"):
        PUClassifier.load(tmp_path)
    fitted.save(tmp_path / "run")
    (tmp_path / "run" / "checksums.txt").unlink()  # it would be the first to say so
    (tmp_path / "run" / "estimator.json").write_text('{"parameters": {}, "other": 1}')
    with pytest.raises(CheckpointError, match=r"estimator\.json is damaged"):
        PUClassifier.load(tmp_path / "run")
    (tmp_path / "run" / "estimator.json").unlink()
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    result["pu"]["figures"] = {"recall": {"value": 1}}
    (tmp_path / "run" / "result.json").write_text(json.dumps(result))
    with pytest.raises(OnesidedError, match=r"result\.json lacks 'pu\.figures\.recall"):
        PUClassifier.load(tmp_path / "run")


def test_the_command_ranks_with_what_python_saved(tmp_path: Path) -> None:
    data = draw_data(tmp_path / "data")
    files = sorted((data / "P").iterdir()), sorted((data / "U").iterdir())
    paths = [*files[0], *files[1]]
    fitted = PUClassifier("ce", epochs=3, settings=TINY)
    fitted.fit(paths, [1] * len(files[0]) + [0] * len(files[1])).save(tmp_path / "run")
    ranked = tmp_path / "ranked.csv"
    done = call("rank", tmp_path / "run", data / "U", "-o", ranked, "--quiet")
    assert done.exit_code == 0, done.err
    with ranked.open(newline="") as table:
        stored = {Path(row["item"]).name: float(row["score"]) for row in csv.DictReader(table)}
    scores = fitted.predict_proba(files[1])[:, 1]
    assert stored == pytest.approx({path.name: s for path, s in zip(files[1], scores, strict=True)})


def test_python_and_the_command_train_the_same_model_to_the_bit(tmp_path: Path) -> None:
    problem = two_clouds()
    labels = np.where(problem.y == 1, "positive", "unlabelled")
    rows = [
        ",".join(map(str, [*row.tolist(), label]))
        for row, label in zip(problem.X, labels, strict=True)
    ]
    (tmp_path / "items.csv").write_text("\n".join(["a,b,c,d,e,f,label", *rows]))
    words = ("--table", tmp_path / "items.csv", "-o", tmp_path / "run", "--quiet", *TINY_WORDS)
    done = call("fit", *words, "--seed", 3, "--allow-degenerate")
    assert done.exit_code == 0, done.err
    fitted = PUClassifier(
        "ce", epochs=1, device="cpu", settings=COMMANDS_SETTINGS, random_state=3
    ).fit(problem.X, problem.y)
    fitted.save(tmp_path / "python")
    places = (tmp_path / "run", tmp_path / "python")
    weights = [(place / "model.safetensors").read_bytes() for place in places]
    assert weights[0] == weights[1]
    stored = [json.loads((place / "model.json").read_text()) for place in places]
    # An array has no names of columns, and that is all it lacks.
    assert [model.pop("feature_names") for model in stored] == [list("abcdef"), []]
    assert stored[0] == stored[1]
    loaded = [PUClassifier.load(place) for place in places]
    assert loaded[0].feature_names_in_.tolist() == list("abcdef")
    assert not hasattr(loaded[1], "feature_names_in_")
    ours, theirs = fitted.result_, json.loads((tmp_path / "run" / "result.json").read_text())
    assert json.loads(json.dumps(ours["pu"])) == theirs["pu"]


def test_a_run_of_the_command_is_loaded_with_parameters_that_would_repeat_it(
    tmp_path: Path,
) -> None:
    data = draw_data(tmp_path / "data")
    folders = ("-p", data / "P", "-u", data / "U", "-o", tmp_path / "run")
    done = call("fit", *folders, *TINY_WORDS, "--quiet", "--allow-degenerate", "--seed", 2)
    assert done.exit_code == 0, done.err
    loaded = PUClassifier.load(tmp_path / "run", device="cpu")
    paths = [*sorted((data / "P").iterdir()), *sorted((data / "U").iterdir())]
    labels = [1] * 30 + [0] * 60
    again = clone(loaded).fit(paths, labels)
    np.testing.assert_array_equal(again.predict_proba(paths), loaded.predict_proba(paths))
    assert loaded.classes_.tolist() == [0, 1]
    assert again.evaluation_ is not None
    assert loaded.evaluation_ == again.evaluation_


def test_model_files_alone_predict_as_well(tmp_path: Path) -> None:
    problem = two_greys()
    fitted = PUClassifier("ce", epochs=1, settings=TINY).fit(problem.X, problem.y)
    fitted.save(tmp_path / "run")
    for name in ("estimator.json", "result.json"):
        (tmp_path / "run" / name).unlink()
    loaded = PUClassifier.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.predict(problem.X), fitted.predict(problem.X))
    assert (loaded.evaluation_, loaded.result_) == (None, {})
    assert clone(loaded).set_params(epochs=1).fit(problem.X, problem.y).n_features_in_ == 216
