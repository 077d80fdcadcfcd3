import numpy as np
import pytest
from scipy.stats import ks_2samp

from onesided.metrics.reference import (
    EDGES,
    Comparison,
    Reference,
    compare,
    fit_reference,
    holm,
)


def drawn(seed: int, items: int = 1000, width: int = 4, *, shift: float = 0.0) -> np.ndarray:
    """Return normal samples; the first column is moved by `shift` standard deviations."""
    samples = np.random.default_rng(seed).standard_normal((items, width))
    samples[:, 0] += shift
    return samples


def fitted(width: int = 4, scores: np.ndarray | None = None) -> Reference:
    names = ("height", *(f"other {k}" for k in range(1, width))) if width <= 32 else ()
    found = fit_reference(drawn(0, 2000, width), scores, names=names)
    assert found is not None
    return found


def compared(samples: np.ndarray, scores: np.ndarray | None = None) -> Comparison:
    reference = fitted(samples.shape[1], None if scores is None else _scores(0))
    between = None
    if scores is not None and reference.scores is not None:
        between = reference.scores.counts(scores[:, None])
    found = compare(reference, reference.counts(samples), between)
    assert found is not None
    return found


def _scores(seed: int, *, power: float = 1.0) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).random(1000) ** power)


def test_the_distance_is_that_of_kolmogorov_and_smirnov_at_the_edges() -> None:
    reference, new = fitted(), drawn(1, shift=0.7)
    distance, _ = reference.edges.distances(reference.counts(new))
    positions = reference.positions(new)[:, 0]
    at_edges = [
        abs((positions <= edge).mean() - share)
        for edge, share in zip(reference.edges.values[0], reference.edges.shares[0], strict=True)
    ]
    assert distance[0] == pytest.approx(max(at_edges))
    training = reference.positions(drawn(0, 2000))[:, 0]
    assert distance[0] <= ks_2samp(positions, training).statistic + 0.05


def test_counts_of_chunks_add_up() -> None:
    reference, new = fitted(), drawn(2, 700)
    parts = sum(reference.counts(part) for part in np.array_split(new, 5))
    np.testing.assert_array_equal(parts, reference.counts(new))
    assert (reference.counts(new).sum(axis=1) == 700).all()


@pytest.mark.parametrize("width", [4, 60])
def test_items_of_the_same_kind_raise_no_alarm(width: int) -> None:
    reference = fitted(width)
    found = [compare(reference, reference.counts(drawn(s, 300, width)), None) for s in range(1, 60)]
    small = [min(each.p for each in one.features) < 0.05 for one in found if one]
    assert np.mean(small) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 59)
    assert not any(one.warning for one in found if one)


def test_a_moved_column_is_named() -> None:
    said = compared(drawn(1, shift=1.5)).warning
    assert said is not None
    assert "unlike those that the model was trained on: they differ in 'height'" in said
    assert "other" not in said.split("differ in")[1].split(". Its")[0]


def test_a_million_items_do_not_alarm_for_a_small_difference() -> None:
    found = compared(drawn(1, 200_000, shift=0.25))
    assert found.features[0].p < 1e-6
    assert found.warning is None


def test_wide_samples_off_every_direction_are_noticed() -> None:
    new = drawn(1, 300, 60) * 1.5
    said = compared(new).warning
    assert said is not None
    assert "directions of their features" in said


def test_other_scores_of_like_items_are_told_apart_from_other_items() -> None:
    same = compared(drawn(1), _scores(1))
    assert same.warning is None
    said = compared(drawn(1), _scores(1, power=3.0)).warning
    assert said is not None
    assert "look like those that the model was trained on, but their scores do not" in said


def test_columns_of_two_values_are_compared_by_their_shares() -> None:
    random = np.random.default_rng(0)
    reference = fit_reference((random.random((2000, 1)) < 0.3).astype(float), names=("door",))
    assert reference is not None
    new = (random.random((5000, 1)) < 0.8).astype(float)
    found = compare(reference, reference.counts(new), None)
    assert found is not None
    assert found.features[0].distance == pytest.approx(0.5, abs=0.05)
    assert found.warning is not None


def test_few_items_are_not_compared() -> None:
    assert fit_reference(drawn(0, 79)) is None
    reference = fitted()
    assert compare(reference, reference.counts(drawn(1, 39)), None) is None


def test_a_file_gives_the_same_reference_and_a_changed_one_none() -> None:
    reference = fitted(60, _scores(0))
    arrays = reference.to_arrays()
    again = Reference.of_arrays(arrays)
    assert again is not None
    new = drawn(3, 200, 60)
    np.testing.assert_array_equal(again.counts(new), reference.counts(new))
    assert again.scores is not None
    assert again.scores.items == 1000
    for name in arrays:
        assert Reference.of_arrays({key: arrays[key] for key in arrays if key != name}) is None or (
            name == "directions"
        )
        assert Reference.of_arrays({**arrays, name: arrays[name][:1]}) is None or (
            name in ("score_values", "score_shares")
        )
    broken = {**arrays, "values": np.full((9, EDGES), np.nan)}
    assert Reference.of_arrays(broken) is None
    by_nothing = {**arrays, "scale": np.zeros_like(arrays["scale"])}
    assert Reference.of_arrays(by_nothing) is None


def test_holm_multiplies_by_the_number_of_those_that_are_left() -> None:
    assert holm(np.array([0.01, 0.04, 0.03])).tolist() == pytest.approx([0.03, 0.06, 0.06])
