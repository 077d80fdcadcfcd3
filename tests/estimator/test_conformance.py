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
    "CE cannot weigh samples: weights that differ are refused, where the check expects another "
    "model, or another sentence."
)
REPEATED_ROWS = (
    "A sample of weight two counts twice in the loss. A sample that is there twice also counts "
    "twice in folds and figures, and in the scale of its features."
)
CHOSEN_THRESHOLD = (
    "After a search the threshold calls as many samples positive as the estimated prior says; the "
    "check expects the more probable of two classes."
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
CONTRADICTIONS_OF_A_SEARCH = {
    **{name: reason for name, reason in CONTRADICTIONS.items() if reason == OTHER_LABELS},
    "check_sample_weight_equivalence_on_dense_data": REPEATED_ROWS,
    "check_sample_weight_equivalence_on_sparse_data": REPEATED_ROWS,
    "check_classifiers_classes": CONTRADICTIONS["check_classifiers_classes"],
    "check_classifiers_train": CHOSEN_THRESHOLD,
    "check_classifiers_one_label_sample_weights": (
        "With weights of zero for all unlabelled samples there is nothing to learn from, and that "
        "is said in other words than the check looks for."
    ),
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


# In a second there is time for linear models alone.
SEARCHED_IN_NO_TIME = PUClassifier(budget="1s", min_positives=1)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [SEARCHED_IN_NO_TIME], expected_failed_checks=lambda estimator: CONTRADICTIONS_OF_A_SEARCH
)
def test_scikit_learns_checks_hold_for_the_default(
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
