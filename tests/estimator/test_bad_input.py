"""Arrays, labels and parameters that cannot be: `ValueError` with one sentence, fast."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onesided import PUClassifier
from onesided.core.errors import ConfigError, DataError, OnesidedError
from tests.estimator.clouds import TINY, two_clouds, two_greys

CLOUDS, GREYS = two_clouds(60), two_greys()


def each(cases: Mapping[str, object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", list(cases.values()), ids=list(cases))


def refused(act: Callable[[], object]) -> None:
    """Check for a ValueError or a refusal of ours with one readable sentence."""
    with pytest.raises((ValueError, OnesidedError)) as caught:
        act()
    # What scikit-learn refuses, it refuses with the array below its sentence.
    sentence = str(caught.value).partition("\n")[0]
    assert 20 <= len(sentence) <= 900, sentence
    assert "object at 0x" not in sentence


def changed(values: np.ndarray, place: Any, value: Any) -> np.ndarray:  # noqa: ANN401
    copy = values.astype(object) if isinstance(value, str | None) else values.astype(np.float64)
    copy[place] = value
    return copy


def quick(**parameters: Any) -> PUClassifier:  # noqa: ANN401
    return PUClassifier(**{"method": "ce", "epochs": 1, "settings": TINY, **parameters})


X, Y = CLOUDS.X, CLOUDS.y
SAMPLES: dict[str, Any] = {
    "none": X[:0],
    "no features": X[:, :0],
    "one axis": X[:, 0],
    "a number": 5.0,
    "nothing": None,
    "five axes": np.zeros((60, 1, 2, 2, 2)),
    "infinity": changed(X, (3, 2), np.inf),
    "too large for a network": changed(X, (3, 2), 1e300),
    "words": changed(X, (3, 2), "high"),
    "infinity beside a gap": changed(changed(X, (3, 2), np.inf), (4, 1), np.nan),
    "complex numbers": X.astype(complex),
    "lists of other lengths": [[1.0], [1.0, 2.0]] * 30,
    "one too many": np.concatenate([X, X[:1]]),
    "one too few": X[1:],
    "images without pixels": np.zeros((60, 0, 8, 3), np.uint8),
    "images of 17 channels": np.zeros((60, 17, 8, 17), np.uint8),
    "images that are NaN": np.full((60, 8, 8, 3), np.nan),
    "images above 255": np.full((60, 8, 8, 3), 300.0),
    "images below zero": np.full((60, 8, 8, 3), -1.0),
    "images of words": np.full((60, 8, 8, 3), "a"),
    "files that are missing": [f"no-{row}.png" for row in range(60)],
    "paths and numbers": ["a.png"] * 59 + [5],
}


@each(SAMPLES)
def test_samples_that_cannot_be_learnt_from_are_refused(case: Any) -> None:  # noqa: ANN401
    refused(lambda: quick().fit(case, Y))


LABELS: dict[str, Any] = {
    "none": [],
    "nothing": None,
    "one too few": Y[1:],
    "one too many": np.append(Y, 1),
    "two axes": np.stack([Y, Y], axis=1),
    "a number": 1,
    "no positives": np.zeros(60, int),
    "no unlabelled": np.ones(60, int),
    "nine positives": np.r_[np.ones(9, int), np.zeros(51, int)],
    "nine unlabelled": np.r_[np.zeros(9, int), np.ones(51, int)],
    "three values": np.arange(60) % 3,
    "0, 1 and -1": np.arange(60) % 3 - 1,
    "one and two": Y + 1,
    "halves": Y / 2,
    "NaN": changed(Y, 3, np.nan),
    "infinity": changed(Y, 3, np.inf),
    "gaps": changed(Y, 3, None),
    "unknown words": np.where(Y, "yes", "perhaps"),
    "complex numbers": Y + 1j,
    "lists": [[1], [0, 1]] * 30,
}


@each(LABELS)
def test_labels_that_cannot_be_are_refused(case: Any) -> None:  # noqa: ANN401
    refused(lambda: quick().fit(X, case))


PARAMETERS: dict[str, list[Any]] = {
    "method": ["ncpo", "", None, 5, "supervised"],
    "preset": ["quik", "", 5],
    "prior": [0, 1, -0.5, 1.5, np.nan, "km3", None, [0.5]],
    "epochs": [0, -1, 1.5, "many"],
    "backbone": ["resnet19", "", 5],
    "settings": [5, [1], {"train": 5}, {"trains": {}}, {"train": {"epoch": 1}}, {5: 5}],
    "threshold": [-1, 2, np.nan, "best", "recall=2", "top-k=1000"],
    "held_out": [-0.1, 1, np.nan, "x"],
    "labels_mean": ["up", "", None],
    "min_positives": [0, -1, 1.5, "x", None],
    "random_state": [-1, "x", 1.5],
    "device": ["tpu", "", None],
    "kind": ["painting", 5],
}


@each({f"{key} is {v!r}"[:60]: {key: v} for key, values in PARAMETERS.items() for v in values})
def test_parameters_that_cannot_be_are_refused(case: dict[str, Any]) -> None:
    samples = GREYS.X if "kind" in case else X
    labels = GREYS.y if "kind" in case else Y
    refused(lambda: quick(**case).fit(samples, labels))


@pytest.fixture(scope="module")
def fitted() -> PUClassifier:
    return quick().fit(X, Y)


TO_SCORE = {name: SAMPLES[name] for name in SAMPLES if not name.startswith("one too")}
GAPS = {"NaN": changed(X, (3, 2), np.nan), "gaps": changed(X, (3, 2), None)}


@each(TO_SCORE | GAPS)  # which a model that was trained without gaps cannot fill
def test_samples_that_cannot_be_scored_are_refused(
    fitted: PUClassifier,
    case: Any,  # noqa: ANN401
) -> None:
    refused(lambda: fitted.predict_proba(case))


FILES: dict[str, tuple[str, str]] = {
    "no JSON": ("estimator.json", "{"),
    "a list": ("estimator.json", "[]"),
    "nothing in it": ("estimator.json", "{}"),
    "unknown entries": ("estimator.json", '{"parameters": {}, "classes": [0, 1], "x": 1}'),
    "parameters are no table": ("estimator.json", '{"parameters": 5, "classes": [0, 1]}'),
    "an unknown parameter": ("estimator.json", '{"parameters": {"x": 1}, "classes": [0, 1]}'),
    "one class": ("estimator.json", '{"parameters": {}, "classes": [0]}'),
    "three classes": ("estimator.json", '{"parameters": {}, "classes": [0, 1, 2]}'),
    "classes are a number": ("estimator.json", '{"parameters": {}, "classes": 5}'),
    "names are a number": (
        "estimator.json",
        '{"parameters": {}, "classes": [0, 1], "feature_names": 5}',
    ),
    "a result of something else": ("result.json", '{"a": 1}'),
    "a model of something else": ("model.json", '{"a": 1}'),
    "weights of something else": ("model.safetensors", "x"),
}


@each(FILES)
def test_a_saved_estimator_that_was_damaged_is_refused(
    fitted: PUClassifier, tmp_path: Path, case: tuple[str, str]
) -> None:
    fitted.save(tmp_path / "saved")
    name, content = case
    (tmp_path / "saved" / name).write_text(content)
    refused(lambda: PUClassifier.load(tmp_path / "saved"))


def test_integers_that_no_float_holds_are_refused() -> None:
    huge = [[10**400] * 3] * 60
    y = np.arange(60) < 20
    with pytest.raises(DataError, match="Features must be numbers"):
        PUClassifier(method="linear").fit(huge, y)
    with pytest.raises(DataError, match="sample_weight"):
        PUClassifier(method="linear").fit(np.eye(60), y, sample_weight=[10**400] * 60)
    with pytest.raises(ConfigError, match="The prior is"):
        PUClassifier(method="nnpu", prior=10**400).fit(np.eye(60), y)
