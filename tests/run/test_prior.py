"""The prior a method gets: given, estimated or true; and the warning when it looks wrong."""

import pytest

from onesided.core.errors import ConfigError
from onesided.data.problem.dataset import PUSplit
from onesided.data.problem.split import SplitRecipe, split_source
from onesided.data.sources import SOURCES
from onesided.metrics.registry import assumption
from onesided.run.config import Prior
from onesided.run.load import LoadedData
from onesided.run.prior import bbe_prior, find_prior


@pytest.fixture(scope="module")
def split() -> PUSplit:
    """A problem in which the kernel means are right: two clouds, forty in a hundred positive."""
    entry = SOURCES["toy-vectors"]
    recipe = SplitRecipe(
        positive_classes=entry.positive_classes,
        positives=200,
        unlabelled=600,
        prior=0.4,
        held_out_positives=100,
        held_out_unlabelled=400,
    )
    return split_source(entry.load(None), recipe)


@pytest.mark.parametrize("wrong", [0.2, 0.6])
def test_a_prior_that_is_wrong_on_purpose_is_warned_of(split: PUSplit, wrong: float) -> None:
    used = find_prior(wrong, split, seed=0)
    assert used.value == wrong, "the person decides"
    assert used.origin == "given"
    assert any("The number given" in note and "KM2" in note for note in used.notes)


def test_a_right_prior_is_not_warned_of(split: PUSplit) -> None:
    assert find_prior(0.4, split, seed=0).notes == ()


@pytest.mark.parametrize("way", ["auto", "km2", "km1"])
def test_an_estimate_comes_with_its_origin_and_interval(split: PUSplit, way: Prior) -> None:
    used = find_prior(way, split, seed=0)
    assert used.origin == ("KM1" if way == "km1" else "KM2")
    assert used.low is not None
    assert used.high is not None
    assert used.low <= used.value <= used.high
    assert used.value == pytest.approx(0.4, abs=0.07)


def test_the_truth_is_an_oracle_and_says_so(split: PUSplit) -> None:
    used = find_prior("truth", split, seed=0)
    assert used.value == pytest.approx(0.4)
    assert used.origin == "truth"
    assert "oracle" in assumption(used.origin).text


def test_the_truth_is_refused_where_nobody_knows_it(split: PUSplit) -> None:
    from dataclasses import replace

    import numpy as np

    nobody = replace(split.train, truth=np.full(len(split.train), -1))
    with pytest.raises(ConfigError, match="nobody knows"):
        find_prior("truth", replace(split, train=nobody), seed=0)


def test_bbe_reads_held_out_scores_of_a_short_classifier(split: PUSplit) -> None:
    entry = SOURCES["toy-vectors"]
    estimate = bbe_prior(LoadedData(split, entry.mean, entry.std), seed=0)
    assert (estimate.n_positive, estimate.n_unlabelled) == (100, 400)
    assert estimate.value == pytest.approx(0.4, abs=0.12)
