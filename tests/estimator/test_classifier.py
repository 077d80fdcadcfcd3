import copy
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from onesided import PUClassifier
from onesided.core.errors import ConfigError, DataError
from onesided.estimator import DegenerateModelWarning, DoubtfulFiguresWarning
from onesided.metrics.figure import PUEvaluation
from tests.estimator.clouds import TINY, two_clouds


@pytest.fixture(scope="module")
def fitted() -> PUClassifier:
    problem = two_clouds(seed=1)
    return PUClassifier("vpu", epochs=10, settings=TINY).fit(problem.X, problem.y)


def test_hidden_positives_are_found_by_the_default_method() -> None:
    problem, unseen = two_clouds(rows=400), two_clouds(seed=9)
    classifier = PUClassifier().fit(problem.X, problem.y)
    assert classifier.result_["chosen_by"] == "auto"
    assert roc_auc_score(unseen.truth, classifier.decision_function(unseen.X)) > 0.95
    assert (classifier.predict(unseen.X) == unseen.truth).mean() > 0.9


def test_hidden_positives_are_found_by_a_network() -> None:
    problem, unseen = two_clouds(), two_clouds(seed=9)
    classifier = PUClassifier("teacher", epochs=12, settings=TINY).fit(problem.X, problem.y)
    assert roc_auc_score(unseen.truth, classifier.decision_function(unseen.X)) > 0.95
    assert (classifier.predict(unseen.X) == unseen.truth).mean() > 0.9


def test_nothing_is_held_out_of_a_search_and_a_fifth_of_a_method_by_name() -> None:
    problem = two_clouds()
    search = PUClassifier().fit(problem.X, problem.y).result_
    named = PUClassifier("ce", epochs=1, settings=TINY).fit(problem.X, problem.y).result_
    labelled = int(problem.y.sum())
    assert (search["n_positive"], named["n_positive"]) == (labelled, labelled * 4 // 5)
    assert search["threshold_rule"]["rule"] == "prior"
    assert named["threshold_rule"]["rule"] == "0.5"


def test_probabilities_decisions_and_classes_say_the_same(fitted: PUClassifier) -> None:
    samples = two_clouds(seed=2).X
    probability = fitted.predict_proba(samples)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.classes_, [0, 1])
    np.testing.assert_array_equal(fitted.predict(samples), probability[:, 1] > 0.5)
    np.testing.assert_array_equal(fitted.predict(samples), fitted.decision_function(samples) > 0)
    assert fitted.n_features_in_ == 6


def test_the_score_is_how_often_a_positive_outscores_an_unlabelled(fitted: PUClassifier) -> None:
    problem = two_clouds(seed=3)
    scores = fitted.predict_proba(problem.X)[:, 1]
    positive, unlabelled = scores[problem.y == 1], scores[problem.y == 0]
    wins = [(p > u) + 0.5 * (p == u) for p in positive for u in unlabelled]
    assert fitted.score(problem.X, problem.y) == pytest.approx(np.mean(wins))
    with pytest.raises(DataError, match="X holds 119 samples and y 120 labels"):
        fitted.score(problem.X[1:], problem.y)


def test_known_negatives_are_no_part_of_the_score() -> None:
    problem = two_clouds(seed=3)
    labels = np.where((problem.truth == 0) & (np.arange(120) % 4 == 0), -1, problem.y)
    three_kinds = PUClassifier("ce", epochs=3, settings=TINY, labels_mean="pnu")
    three_kinds.fit(problem.X, labels)
    np.testing.assert_array_equal(three_kinds.classes_, [-1, 1])
    known = labels != -1
    assert three_kinds.score(problem.X, labels) == pytest.approx(
        three_kinds.score(problem.X[known], labels[known])
    )


def test_predictions_use_the_values_of_the_labels() -> None:
    problem = two_clouds()
    for labels in (2 * problem.y - 1, problem.y.astype(bool)):
        classifier = PUClassifier("ce", epochs=1, settings=TINY).fit(problem.X, labels)
        assert classifier.classes_.tolist() == np.unique(labels).tolist()
        assert classifier.predict(problem.X).dtype == labels.dtype


def test_a_part_is_held_out_and_evaluated(fitted: PUClassifier) -> None:
    assert isinstance(fitted.evaluation_, PUEvaluation)
    assert fitted.evaluation_.figures["proxy_auc"].value is not None
    # A fifth of 30 positives and of 90 unlabelled.
    assert (fitted.result_["n_positive"], fitted.result_["n_unlabelled"]) == (24, 72)


def test_nothing_is_held_out_where_that_is_asked_for_or_data_is_too_small() -> None:
    problem = two_clouds(rows=40)
    whole = PUClassifier("ce", epochs=1, settings=TINY, held_out=0).fit(problem.X, problem.y)
    assert whole.evaluation_ is None
    assert whole.result_["n_positive"] == 10
    few = PUClassifier("ce", epochs=1, settings=TINY, min_positives=2)
    assert few.fit(problem.X[:17], [*problem.y[:7], *[0] * 10]).evaluation_ is None


def test_a_model_that_calls_nothing_positive_is_a_warning() -> None:
    problem = two_clouds()
    slow = {**TINY, "train": {"batch_size": 16, "learning_rate": 1e-9}}
    with pytest.warns(DegenerateModelWarning, match="nothing"):
        PUClassifier("ce", epochs=1, settings=slow, threshold=1.0).fit(problem.X, problem.y)


def test_figures_that_mean_nothing_are_a_warning_in_python_too() -> None:
    random = np.random.default_rng(0)
    leak = np.concatenate([random.normal(size=(360, 5)), np.arange(360)[:, None]], axis=1)
    with pytest.warns(DoubtfulFiguresWarning) as caught:
        PUClassifier("linear").fit(leak, np.arange(360) < 60)
    said = [str(warning.message) for warning in caught]
    assert any("told apart almost without error" in sentence for sentence in said)
    assert any("'number 5' (positives are lower" in sentence for sentence in said)
    with pytest.warns(DoubtfulFiguresWarning, match="No figure says how good this model is"):
        PUClassifier("linear").fit(leak * 1e-300, np.arange(360) < 60)


def test_the_threshold_can_be_chosen_on_the_held_out_part() -> None:
    problem = two_clouds()
    ranked = PUClassifier("ce", epochs=3, settings=TINY, threshold="top-k=20")
    assert ranked.fit(problem.X, problem.y).predict(problem.X)[problem.y == 0].sum() == 20


def test_few_positives_are_refused_unless_the_caller_insists() -> None:
    problem = two_clouds(rows=36)
    with pytest.raises(ValueError, match="9 positives are too few"):
        PUClassifier("ce", epochs=1, settings=TINY).fit(problem.X, problem.y)
    PUClassifier("ce", epochs=1, settings=TINY, min_positives=9).fit(problem.X, problem.y)
    with pytest.raises(ConfigError, match="min_positives is 0"):
        PUClassifier("ce", min_positives=0).fit(problem.X, problem.y)


def test_one_seed_gives_one_model_and_another_seed_another() -> None:
    problem = two_clouds()

    def scores(random_state: Any) -> np.ndarray:  # noqa: ANN401
        classifier = PUClassifier("ce", epochs=1, settings=TINY, random_state=random_state)
        return classifier.fit(problem.X, problem.y).decision_function(problem.X)

    np.testing.assert_array_equal(scores(7), scores(np.int64(7)))
    assert (scores(7) != scores(8)).any()
    np.testing.assert_array_equal(
        scores(np.random.RandomState(3)), scores(np.random.RandomState(3))
    )
    np.random.seed(5)
    first = scores(None)
    assert (first != scores(None)).any()
    np.random.seed(5)
    np.testing.assert_array_equal(first, scores(None))


def test_a_forest_has_feature_importances(forest: PUClassifier) -> None:
    importances = forest.feature_importances_
    assert forest.result_["prior"]["value"] == 0.33
    assert importances.shape == (6,)
    assert importances[:3].min() > importances[3:].max()


def test_importances_are_those_of_the_last_fit(forest: PUClassifier) -> None:
    problem = two_clouds()
    retrained = copy.deepcopy(forest).set_params(method="ce", epochs=1, settings=TINY)
    retrained.fit(problem.X, problem.y)
    of_network = retrained.feature_importances_
    assert of_network.shape == (6,)
    assert not np.array_equal(of_network, forest.feature_importances_)
    retrained.fit(problem.X[:, ::-1], problem.y)
    assert not np.array_equal(of_network, retrained.feature_importances_)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"method": "ncpx"}, "Did you mean 'ncpu'"),
        ({"preset": "fast"}, "no preset 'fast'"),
        ({"prior": 1.2}, "between 0 and 1"),
        ({"epochs": 0}, "epochs"),
        ({"backbone": "resnet18"}, "takes images"),
        ({"settings": {"train": {"batchsize": 3}}}, "Did you mean 'batch_size'"),
        ({"settings": "fast"}, "settings is 'fast'"),
        ({"settings": {"data": {"name": "digits"}}}, "X is the data"),
        ({"labels_mean": "np"}, "labels_mean is 'np'"),
        ({"method": "supervised"}, "needs the true class"),
        ({"method": "tedn", "held_out": 0}, "needs held-out positives"),
        ({"random_state": -1}, "seed is -1"),
        ({"settings": {"train": {"batch_size": 500}}}, "only 120 training samples"),
        (
            {"method": "teacher", "settings": {"train": {"batch_size": 500}}},
            "only 96 training samples",
        ),
    ],
)
def test_a_wrong_parameter_is_a_value_error_with_a_sentence(
    parameters: dict[str, Any], words: str
) -> None:
    problem = two_clouds()
    with pytest.raises(ValueError, match=words):
        PUClassifier(**parameters).fit(problem.X, problem.y)


def test_settings_of_tables_win_over_parameters() -> None:
    problem = two_clouds()
    settings = {**TINY, "train": {"batch_size": 32, "epochs": 2}, "data": {"held_out": 0.5}}
    fitted = PUClassifier("ce", epochs=9, settings=settings).fit(problem.X, problem.y)
    assert fitted.result_["epochs"] == 2
    assert fitted.result_["n_positive"] == 15


def test_before_fit_there_is_nothing_to_predict() -> None:
    with pytest.raises(NotFittedError):
        PUClassifier().predict(two_clouds().X)
    with pytest.raises(NotFittedError):
        PUClassifier().save("nowhere")


def test_a_verbose_classifier_prints_notices_and_a_line_per_epoch(
    capsys: pytest.CaptureFixture[str],
) -> None:
    problem = two_clouds()
    PUClassifier("ce", epochs=2, settings=TINY).fit(problem.X, problem.y)
    assert capsys.readouterr().out == ""
    PUClassifier("ce", epochs=2, settings=TINY, verbose=1).fit(problem.X, 2 * problem.y - 1)
    first, *epochs = capsys.readouterr().out.splitlines()
    assert first == "Labels 1 and -1 were read as positive and unlabelled."
    assert [line.partition(":")[0] for line in epochs] == ["train, epoch 1", "train, epoch 2"]


def test_ctrl_c_in_training_is_a_keyboard_interrupt() -> None:
    problem = two_clouds()
    classifier = PUClassifier("ce", epochs=100_000, settings=TINY)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt, match="nothing of it is kept"):
        classifier.fit(problem.X, problem.y)
    assert not hasattr(classifier, "classes_")


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = (
        "import sys, onesided; "
        "print(sorted({'torch', 'numpy', 'sklearn', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_package_says_what_it_lacks() -> None:
    import onesided

    with pytest.raises(AttributeError, match="no attribute 'PUClasifier'"):
        onesided.PUClasifier  # noqa: B018
