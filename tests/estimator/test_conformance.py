"""scikit-learn's own checks, and why some of them cannot hold for one-sided labels."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from onesided import PUClassifier
from tests.estimator.clouds import two_clouds

OTHER_LABELS = (
    "The check's labels are 1 and 2. In PU labels 1 is positive and 0 or -1 unlabelled; which of "
    "1 and 2 is the positive one would have to be guessed, so they are refused."
)
SINGLE_PRECISION = (
    "Networks compute in single precision, where the sums of a matrix product depend in the last "
    "bit on the place of a row in its batch; the check asks for more digits than that has."
)
NO_WEIGHTS = (
    "No method weighs samples: weights that differ are refused, where the check expects another "
    "model, or another sentence."
)
CONTRADICTIONS = {
    "check_sample_weights_pandas_series": OTHER_LABELS,
    "check_sample_weights_not_an_array": OTHER_LABELS,
    "check_sample_weights_shape": OTHER_LABELS,
    "check_sample_weights_not_overwritten": OTHER_LABELS,
    "check_sample_weight_equivalence_on_dense_data": NO_WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": NO_WEIGHTS,
    "check_classifiers_one_label_sample_weights": NO_WEIGHTS,
    "check_estimators_dtypes": OTHER_LABELS,
    "check_classifier_data_not_an_array": OTHER_LABELS,
    "check_fit2d_1feature": OTHER_LABELS,
    "check_classifiers_classes": "The check's labels are words, of which none means unlabelled.",
    "check_methods_sample_order_invariance": SINGLE_PRECISION,
    "check_methods_subset_invariance": SINGLE_PRECISION,
}
# The checks train on ten samples and fewer, which people are warned off by default.
TRAINED_IN_NO_TIME = PUClassifier(
    "ce",
    epochs=5,
    min_positives=1,
    settings={
        "backbone": {"width": 0.05},
        "train": {"batch_size": 4, "learning_rate": 0.05},
    },
)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [TRAINED_IN_NO_TIME], expected_failed_checks=lambda estimator: CONTRADICTIONS
)
def test_scikit_learns_checks_hold(
    estimator: PUClassifier, check: Callable[[PUClassifier], None]
) -> None:
    check(estimator)


@pytest.mark.filterwarnings("ignore")
def test_scores_depend_on_the_other_rows_by_rounding_alone(forest: PUClassifier) -> None:
    problem = two_clouds()
    network = clone(TRAINED_IN_NO_TIME).fit(problem.X, problem.y)
    for fitted, rounding in ((network, 1e-5), (forest, 0.0)):
        together = fitted.predict_proba(problem.X)
        one_by_one = np.concatenate([fitted.predict_proba(row[None]) for row in problem.X])
        backwards = fitted.predict_proba(problem.X[::-1])[::-1]
        np.testing.assert_allclose(one_by_one, together, rtol=0, atol=rounding)
        np.testing.assert_allclose(backwards, together, rtol=0, atol=rounding)
