"""The y of scikit-learn users, and what its values mean."""

from typing import Any

import numpy as np
import pytest

from onesided import PUClassifier
from onesided.core.errors import DataError
from onesided.core.labels import normalise_pu_labels
from onesided.estimator.labels import read_labels
from tests.estimator.clouds import TINY, two_clouds


def known(labels: Any, **said: Any) -> tuple[list[int], list[Any]]:  # noqa: ANN401
    given = read_labels(labels, "pu", **{"positive": None, "unlabelled": None, **said})
    _, classes = normalise_pu_labels(given.values, labels_mean=given.scheme)
    return classes.tolist(), given.classes.tolist()


@pytest.mark.parametrize(
    ("labels", "said", "meant", "classes"),
    [
        ([1, 0, 1], {}, [1, -1, 1], [0, 1]),
        ([1, -1, 1], {}, [1, -1, 1], [-1, 1]),
        ([True, False], {}, [1, -1], [False, True]),
        ([1.0, np.nan], {}, [1, -1], [0.0, 1.0]),
        ([3, None], {}, [1, -1], [0, 3]),
        (["spam", None], {}, [1, -1], ["not spam", "spam"]),
        (["spam", np.nan], {}, [1, -1], ["not spam", "spam"]),
        (["Positive", "unlabeled", "negative"], {}, [1, -1, 0], ["negative", "positive"]),
        (["positive", None], {}, [1, -1], ["negative", "positive"]),
        (["yes", "?!"], {"positive": "yes"}, [1, -1], ["?!", "yes"]),
        (["yes", "no"], {"unlabelled": "no"}, [1, -1], ["no", "yes"]),
        (["a", "b", "c"], {"positive": "a", "unlabelled": "c"}, [1, 0, -1], ["b", "a"]),
        (["a", "b", None], {"positive": "a"}, [1, 0, -1], ["b", "a"]),
        ([1, 0, np.nan], {"positive": 1}, [1, 0, -1], [0, 1]),
        ([2, 1, 9], {"positive": 2, "unlabelled": 9}, [1, 0, -1], [1, 2]),
        ([1, 2], {"positive": 2}, [-1, 1], [1, 2]),
    ],
)
def test_values_mean_what_was_said(
    labels: list[Any], said: dict[str, Any], meant: list[int], classes: list[Any]
) -> None:
    assert known(labels, **said) == (meant, classes)


def test_labels_of_a_frame_may_have_its_own_gaps() -> None:
    pd = pytest.importorskip("pandas", reason="its gaps are tested where it is installed")
    assert known(pd.Series(["spam", pd.NA, None])) == ([1, -1, -1], ["not spam", "spam"])
    assert known(pd.Series([1, None], dtype="Int64")) == ([1, -1], [0, 1])


@pytest.mark.parametrize(
    ("labels", "said", "words"),
    [
        ([1, 0, np.nan], {}, r"got 0\.0, 1\.0, NaN or None.*positive="),
        (["yes", "no"], {}, "got no, yes"),
        (["a", "b", "c"], {"positive": "a"}, "got a, b, c"),
        (["a", "b", "c", None], {"positive": "a"}, "got a, b, c, NaN"),
        (["a", None], {"positive": "b"}, "positive is 'b', but no label is: y holds a"),
        (["a", "b"], {"unlabelled": "c"}, "unlabelled is 'c', but no label is"),
        ([None, None], {}, "y holds"),
        (["positive", "positive"], {}, "no sample is unlabelled"),
        (["a", "a"], {"positive": "a"}, "one class only, a"),
        ([0, None], {}, "cannot be the only one"),
    ],
)
def test_labels_that_do_not_say_enough_are_refused(
    labels: list[Any], said: dict[str, Any], words: str
) -> None:
    with pytest.raises(DataError, match=words):
        known(labels, **said)


def test_predictions_have_the_names_of_the_labels() -> None:
    problem = two_clouds()
    names = np.array(["spam" if label == 1 else None for label in problem.y], object)
    fitted = PUClassifier("ce", epochs=5, settings=TINY).fit(problem.X, names)
    assert fitted.classes_.tolist() == ["not spam", "spam"]
    assert set(fitted.predict(problem.X)) <= {"not spam", "spam"}
    numbers = PUClassifier("ce", epochs=5, settings=TINY).fit(problem.X, problem.y)
    np.testing.assert_array_equal(fitted.predict_proba(problem.X), numbers.predict_proba(problem.X))
    assert fitted.score(problem.X, names) == numbers.score(problem.X, problem.y)
