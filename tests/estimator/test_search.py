import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from onesided import PUClassifier
from tests.estimator.clouds import TINY, two_clouds, two_greys

# A second of training makes a poor model, and that is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::onesided.estimator.DegenerateModelWarning")


def test_a_clone_has_the_parameters_and_nothing_that_was_learned() -> None:
    problem = two_clouds()
    fitted = PUClassifier("ce", epochs=1, settings=TINY).fit(problem.X, problem.y)
    copied = clone(fitted)
    assert copied.get_params() == fitted.get_params()
    assert not hasattr(copied, "classes_")
    np.testing.assert_array_equal(
        copied.fit(problem.X, problem.y).predict_proba(problem.X), fitted.predict_proba(problem.X)
    )


def test_it_is_the_last_step_of_a_pipeline() -> None:
    problem = two_clouds()
    pipeline = make_pipeline(PCA(3), PUClassifier("ce", epochs=5, settings=TINY))
    pipeline.fit(problem.X, problem.y)
    assert pipeline[-1].n_features_in_ == 3
    assert pipeline.score(problem.X, problem.y) == pytest.approx(
        pipeline[-1].score(pipeline[0].transform(problem.X), problem.y)
    )


def test_a_search_chooses_by_proxy_auc_and_not_by_who_finds_nothing() -> None:
    problem = two_clouds()
    lazy = {**TINY, "train": {"batch_size": 16, "learning_rate": 1e-9}}
    search = GridSearchCV(
        PUClassifier("ce", epochs=5), {"settings": [lazy, TINY]}, cv=2, error_score="raise"
    )
    search.fit(problem.X, problem.y)
    assert search.best_params_ == {"settings": TINY}
    assert search.best_score_ == pytest.approx(search.cv_results_["mean_test_score"].max())
    assert search.best_estimator_.predict(problem.X).shape == (120,)


def test_images_can_be_cross_validated() -> None:
    problem = two_greys()
    scores = cross_val_score(
        PUClassifier("ce", epochs=3, settings=TINY, min_positives=7), problem.X, problem.y, cv=2
    )
    assert ((scores > 0) & (scores <= 1)).all()
