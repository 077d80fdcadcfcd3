"""`pool_scores_`: the unlabelled samples in the order of X, by models that did not see them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from onesided import PUClassifier
from onesided.core.errors import ConfigError
from onesided.metrics.pu import proxy_auc
from tests.estimator.clouds import TINY, two_clouds, two_greys

SPLITTING = {"method": {"candidates": ["linear"], "folds": 3}}
PIXELS = {**SPLITTING, "backbone": {"name": "small", "width": 0.125}}


def quick(settings: dict[str, Any] | None = None, **parameters: Any) -> PUClassifier:  # noqa: ANN401
    return PUClassifier(settings=settings or SPLITTING, **parameters)


def test_scores_of_arrays_are_in_the_order_of_the_unlabelled_rows() -> None:
    problem = two_clouds(rows=90)
    order = np.random.default_rng(0).permutation(90)
    fitted = quick().fit(problem.X[order], problem.y[order])
    truth = problem.truth[order][problem.y[order] == 0]
    assert fitted.pool_scores_.shape == truth.shape
    assert proxy_auc(fitted.pool_scores_[truth == 1], fitted.pool_scores_[truth == 0]) > 0.95


def test_a_method_by_name_gives_those_of_its_one_model() -> None:
    problem = two_clouds()
    fitted = PUClassifier("ce", epochs=2, settings=TINY).fit(problem.X, problem.y)
    every = fitted.predict_proba(problem.X)[:, 1]
    assert fitted.pool_scores_ == pytest.approx(every[problem.y == 0])


def test_known_negatives_are_no_part_of_the_pool() -> None:
    problem = two_clouds()
    labels = problem.y.copy()
    labels[:10:2] = -1
    fitted = quick(labels_mean="pnu").fit(problem.X, labels)
    assert len(fitted.pool_scores_) == (labels == 0).sum()
    assert fitted.result_["known_negatives"]["count"] == 5


def test_scores_of_files_are_in_order_and_one_that_cannot_be_read_has_none(
    tmp_path: Path,
) -> None:
    problem = two_greys(rows=60)
    paths = [tmp_path / f"{row}.png" for row in np.random.default_rng(0).permutation(60)]
    for path, image in zip(paths, problem.X, strict=True):
        Image.fromarray(image.transpose(1, 2, 0)).save(path)
    broken = np.flatnonzero(problem.y == 0)[7]
    paths[broken].write_bytes(b"no image")
    with pytest.warns(UserWarning, match="1 files of X were left out"):
        fitted = quick(PIXELS).fit(paths, problem.y)
    scores, truth = fitted.pool_scores_, problem.truth[problem.y == 0]
    assert np.flatnonzero(np.isnan(scores)).tolist() == [7]
    assert scores[(truth == 1) & ~np.isnan(scores)].min() > scores[truth == 0].max(
        initial=0, where=~np.isnan(scores[truth == 0])
    )


def test_auto_holds_nothing_out_and_a_method_by_name_a_fifth() -> None:
    problem = two_clouds()
    assert quick().fit(problem.X, problem.y).result_["n_positive"] == 30
    named = PUClassifier("linear").fit(problem.X, problem.y)
    assert named.result_["n_positive"] == 24
    assert named.result_["threshold"] == 0.5


def test_a_budget_reaches_auto_and_no_other_method() -> None:
    problem = two_clouds()
    fitted = quick(budget="90s").fit(problem.X, problem.y)
    assert fitted.result_["chosen_by"] == "auto"
    with pytest.raises(ConfigError, match="time of auto"):
        PUClassifier("linear", budget="90s").fit(problem.X, problem.y)
    with pytest.raises(ConfigError, match="expected a time"):
        quick(budget="soon").fit(problem.X, problem.y)


def test_groups_stay_together_in_folds() -> None:
    problem = two_clouds(rows=80)
    groups = np.arange(80) // 4 % 2
    fitted = quick().fit(problem.X, problem.y, groups=groups)
    assert fitted.result_["folds"] == 2
