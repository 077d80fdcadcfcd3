import numpy as np
import pytest
from jaxtyping import TypeCheckError
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from onesided.core.errors import DataError
from onesided.metrics.truth import TruthMetrics, truth_metrics


def test_the_worked_example_of_the_protocol() -> None:
    truth = np.array([1, 1, 0, 0, 0])
    scores = np.array([0.9, 0.1, 0.8, 0.2, 0.3])  # decisions 1 0 1 0 0
    metrics = truth_metrics(truth, scores)
    assert (metrics.oa, metrics.precision, metrics.recall, metrics.f1) == (0.6, 0.5, 0.5, 0.5)


@pytest.mark.parametrize("seed", range(5))
def test_figures_agree_with_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 200)
    scores = np.round(rng.random(200) + 0.2 * truth, 1)  # rounded, so that scores tie
    called = scores > 0.6
    metrics = truth_metrics(truth, scores, threshold=0.6)
    assert metrics.oa == pytest.approx(accuracy_score(truth, called))
    assert metrics.precision == pytest.approx(precision_score(truth, called))
    assert metrics.recall == pytest.approx(recall_score(truth, called))
    assert metrics.f1 == pytest.approx(f1_score(truth, called))
    assert metrics.auc == pytest.approx(roc_auc_score(truth, scores))


def test_a_score_on_the_threshold_means_negative() -> None:
    assert truth_metrics(np.array([1, 0]), np.array([0.5, 0.5])).recall == 0
    assert truth_metrics(np.array([1, 0]), np.array([0.5, 0.5]), threshold=0.4).recall == 1


def test_labels_of_one_byte_are_labels_too() -> None:
    truth = np.array([1, 0], dtype=np.int8)
    assert truth_metrics(truth, np.array([0.9, 0.1], dtype=np.float32)).oa == 1


def test_unknown_classes_are_refused_and_counted() -> None:
    with pytest.raises(DataError, match="class of 2 of 3 items is unknown"):
        truth_metrics(np.array([1, -1, -1]), np.array([0.9, 0.1, 0.2]))


@pytest.mark.parametrize("only", [0, 1])
def test_one_class_has_no_auc(only: int) -> None:
    metrics = truth_metrics(np.full(3, only), np.array([0.9, 0.1, 0.2]))
    assert metrics.auc is None
    assert metrics.oa == pytest.approx(1 / 3 if only else 2 / 3)


def test_calling_nothing_positive_gives_zeros_not_errors() -> None:
    metrics = truth_metrics(np.array([1, 0, 0]), np.array([0.3, 0.1, 0.2]))
    assert metrics == TruthMetrics(oa=2 / 3, f1=0.0, precision=0.0, recall=0.0, auc=1.0)


@pytest.mark.parametrize(
    ("truth", "scores", "complaint"),
    [
        ([], [], "same length"),
        ([1, 2], [0.5, 0.6], r"1 \(positive\) or 0 \(negative\); got \[2\]"),
        ([1, 0], [0.5, np.nan], "NaN"),
    ],
)
def test_bad_input_is_named(truth: list[int], scores: list[float], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        truth_metrics(np.array(truth, dtype=np.int64), np.array(scores, dtype=np.float64))


def test_truth_and_scores_of_different_length_are_refused() -> None:
    # With run-time shape checks switched on, they refuse first.
    with pytest.raises((DataError, TypeCheckError)):
        truth_metrics(np.array([1, 0]), np.array([0.5]))


def test_json_has_the_keys_of_the_result_file() -> None:
    metrics = truth_metrics(np.array([1, 0]), np.array([0.9, 0.1]))
    assert metrics.to_json() == {"oa": 1, "f1": 1, "precision": 1, "recall": 1, "auc": 1}
