"""KM1 and KM2 as people call them: samples in, a prior with an interval out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.stats import norm

from onesided.core.errors import ConfigError, DataError
from onesided.priors import PriorEstimate, km1, km2
from onesided.priors.estimate import agreement
from onesided.priors.kernel_mean import REACHABLE
from onesided.priors.km2 import _interval

Samples = Float[np.ndarray, "n d"]


def toy(prior: float, seed: int, positives: int = 200, unlabelled: int = 400) -> list[Samples]:
    """Two round normals four apart: positives, and unlabelled with this share of them."""
    rng = np.random.default_rng(seed)
    among = round(prior * unlabelled)
    positive, hidden, negative = (
        rng.normal(size=(count, 2)) + centre
        for count, centre in [
            (positives, [2, 0]),
            (among, [2, 0]),
            (unlabelled - among, [-2, 0]),
        ]
    )
    return [positive, np.concatenate([hidden, negative])]


def small() -> list[Samples]:
    return toy(0.4, seed=0, positives=40, unlabelled=80)


@pytest.mark.parametrize("prior", [0.2, 0.4, 0.6])
@pytest.mark.slow
def test_toy_prior_is_found(prior: float) -> None:
    found = [km2(*toy(prior, seed), replicates=0).value for seed in range(3)]
    errors = np.abs(np.array(found) - prior)
    assert errors.max() < 0.07
    assert errors.mean() <= 0.05


def test_one_feature_may_come_as_a_plain_list_of_numbers() -> None:
    positive = norm.ppf((np.arange(60) + 0.5) / 60) + 2
    negative = norm.ppf((np.arange(90) + 0.5) / 90) - 2
    unlabelled = np.concatenate([positive, negative])
    for estimator in (km1, km2):
        value = estimator(positive, unlabelled, replicates=0).value
        assert value == pytest.approx(343 / 855, abs=0.0101)


@pytest.mark.parametrize(("estimator", "name"), [(km1, "KM1"), (km2, "KM2")])
def test_interval_holds_the_value_and_says_what_it_came_from(
    estimator: Callable[..., PriorEstimate], name: str
) -> None:
    estimate = estimator(*small(), replicates=4)
    assert 0 <= estimate.low < estimate.value < estimate.high <= 1
    assert (estimate.n_positive, estimate.n_unlabelled) == (40, 80)
    assert estimate.method == name
    assert estimate.reachable == REACHABLE


def test_same_seed_gives_the_same_estimate_and_another_seed_another() -> None:
    samples = small()
    options = {"max_unlabelled": 50, "replicates": 4}
    estimates = [km2(*samples, seed=seed, **options) for seed in (0, 0, 1)]
    assert estimates[0] == estimates[1]
    assert estimates[0].value != estimates[2].value


def test_interval_widens_with_coverage_and_narrows_with_more_samples() -> None:
    few, many = small(), toy(0.4, seed=0)
    widths = [
        estimate.high - estimate.low
        for estimate in (
            km2(*few, replicates=5, coverage=0.99),
            km2(*few, replicates=5, coverage=0.8),
            km2(*many, replicates=5, coverage=0.8),
        )
    ]
    assert widths[0] > widths[1] > widths[2]


def test_without_replicates_the_interval_is_the_cell_of_the_search() -> None:
    estimate = km2(*small(), replicates=0)
    stretches = 1 / (1 - np.array([estimate.low, estimate.high]))
    assert stretches[1] - stretches[0] == pytest.approx(7 / 256)
    assert any("No replicates" in note for note in estimate.notes)


def test_no_more_samples_are_used_than_allowed_and_a_note_says_so() -> None:
    estimate = km2(*small(), max_positive=30, max_unlabelled=50, replicates=0)
    assert (estimate.n_positive, estimate.n_unlabelled) == (30, 50)
    assert any("30 of 40 positives" in note for note in estimate.notes)
    assert any("50 of 80 unlabelled" in note for note in estimate.notes)


def test_repeats_average_over_different_sub_samples() -> None:
    options = {"max_unlabelled": 50, "replicates": 0}
    once, twice = (km2(*small(), repeats=repeats, **options).value for repeats in (1, 2))
    second = 2 * twice - once
    position = (512 / (1 - second) - 512) / 7
    assert second != once
    assert position == pytest.approx(round(position), abs=1e-6)


def test_repeats_change_nothing_when_all_samples_are_used() -> None:
    assert km2(*small(), repeats=3, replicates=0) == km2(*small(), replicates=0)


@pytest.mark.parametrize("factor", [2.0**-600, 2.0**900])
def test_unit_of_the_features_does_not_matter(factor: float) -> None:
    positive, unlabelled = small()
    scaled = km2(positive * factor, unlabelled * factor, replicates=0)
    assert scaled == km2(positive, unlabelled, replicates=0)


def test_components_keep_what_separates_and_drop_constant_features() -> None:
    rng = np.random.default_rng(0)
    positive, unlabelled = toy(0.4, seed=1, positives=100, unlabelled=200)
    wide = [
        np.hstack([part, 0.01 * rng.normal(size=(len(part), 60)), np.full((len(part), 9), 3.0)])
        for part in (positive, unlabelled)
    ]
    plain = km2(positive, unlabelled, replicates=0).value
    assert km2(*wide, dimensions=5, replicates=0).value == pytest.approx(plain, abs=0.03)


def test_images_are_flattened_and_bytes_are_read_as_numbers() -> None:
    rng = np.random.default_rng(0)
    positive = rng.integers(100, 256, size=(30, 3, 4, 5), dtype=np.uint8)
    unlabelled = np.concatenate([positive[:20] // 2, positive[10:] - 1])
    as_rows = [part.reshape(len(part), -1).astype(float) for part in (positive, unlabelled)]
    images = km2(positive, unlabelled, dimensions=10, replicates=0)
    assert images == km2(*as_rows, dimensions=10, replicates=0)


def test_prior_beyond_the_range_is_said_to_be_so() -> None:
    positive, _ = small()
    estimate = km2(positive, positive, replicates=3)
    assert estimate.value == REACHABLE[1]
    assert estimate.high == 1
    assert any("cannot return more than 0.8748" in note for note in estimate.notes)


def test_no_positives_at_all_give_the_lower_end_and_a_note() -> None:
    positive, _ = small()
    estimate = km2(positive, -100 - positive, replicates=3)
    assert estimate.value == pytest.approx(REACHABLE[0])
    assert estimate.low == 0
    assert any("cannot return less than 0.0135" in note for note in estimate.notes)


def test_a_handful_of_positives_is_called_a_guess() -> None:
    positive, unlabelled = small()
    estimate = km2(positive[:3], unlabelled, replicates=2)
    assert estimate.low <= estimate.value <= estimate.high
    assert any("Only 3 positives" in note for note in estimate.notes)


@pytest.mark.parametrize(
    ("positive", "unlabelled", "sentence"),
    [
        ([[0.0, np.nan]], [[1.0, 2.0]], "1 of 1 positives hold NaN"),
        ([[0.0, 1.0]], [[1.0, 2.0], [np.inf, 0.0]], "1 of 2 unlabelled samples hold NaN"),
        (np.zeros((0, 2)), [[1.0, 2.0]], "at least one sample"),
        ([[1.0, 2.0]], np.zeros((3, 0)), "at least one sample"),
        (np.array(3.0), [1.0], "at least one sample"),
        ([[1.0, 2.0]], [[1.0, 2.0, 3.0]], r"one positive has \(2,\)"),
        ([["a"]], [["b"]], "must be numbers"),
        ([[1.0], [1.0, 2.0]], [[1.0]], "different length"),
        (np.ones((5, 60)), np.ones((9, 60)), "are equal, so nothing can be estimated"),
        (np.zeros((5, 2)), np.zeros((9, 2)), "are equal, so nothing can be estimated"),
    ],
)
def test_bad_samples_are_refused_in_one_sentence(
    positive: ArrayLike, unlabelled: ArrayLike, sentence: str
) -> None:
    with pytest.raises(DataError, match=sentence):
        km2(positive, unlabelled)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_positive": 0}, "max_positive must be at least 1; got 0"),
        ({"dimensions": 0}, "dimensions must be at least 1"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"replicates": -1}, "replicates must be at least 0"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"coverage": 95.0}, "coverage must lie between 0 and 1"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        km1(*small(), **options)


@pytest.mark.parametrize("seed", range(3))
def test_where_nearly_all_are_positive_the_interval_reaches_one_and_nothing_is_contradicted(
    seed: int,
) -> None:
    estimate = km2(*toy(1.0, seed), replicates=2)
    assert estimate.high == 1.0
    assert any("hardly differ from the positives" in note for note in estimate.notes)
    given = PriorEstimate(0.97, 0.97, 0.97, "The number given", 0, 0)
    assert not agreement([given, estimate])


def test_a_distinct_prior_has_an_upper_end() -> None:
    estimate = km2(*toy(0.6, 0), replicates=2)
    assert estimate.is_distinct
    assert estimate.high < 1.0


def test_an_interval_ends_at_one_also_below_the_end_of_the_range() -> None:
    low, high = _interval(0.8, 0.5)
    assert low == pytest.approx(0.3)
    assert high == 1.0
