import numpy as np
import pytest
import shapely  # type: ignore[import-untyped, unused-ignore]

from onesided.core.errors import DataError
from onesided.geo.input.coordinates import system
from onesided.geo.input.footprints import Buildings
from onesided.geo.scene.chips import Chips
from onesided.geo.scene.holdout import (
    choose_held_out,
    load_chips,
    neighbourhoods,
    out_of_fold_scores,
)
from onesided.run.config import ChipsConfig
from onesided.run.scored import Scored


def town(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 1000, (count, 2))


def problem(count: int, marked: int, skipped: int = 0) -> tuple[Buildings, Chips, np.ndarray]:
    values = np.random.default_rng(1).integers(0, 256, (count, 3, 8, 8), dtype=np.uint8)
    buildings = Buildings(
        tuple(map(str, range(count))), shapely.points(town(count)), system("EPSG:32615"), {}
    )
    is_marked = np.random.default_rng(2).permutation(np.arange(count) < marked)
    return buildings, Chips(values, dict.fromkeys(range(skipped), "far away")), is_marked


def test_neighbourhoods_are_small_and_of_equal_numbers() -> None:
    places = town(640)
    group = neighbourhoods(places)
    counts = np.bincount(group)
    assert len(counts) == 64
    assert counts.min() == counts.max() == 10
    spread = [np.ptp(places[group == number], axis=0).max() for number in range(64)]
    # A 64th of a square kilometre is 125 m wide.
    assert np.median(spread) < 200


def test_a_hamlet_is_not_divided_to_dust() -> None:
    assert np.bincount(neighbourhoods(town(30))).min() >= 4
    assert set(neighbourhoods(town(5))) == {0}


def test_whole_neighbourhoods_are_held_out_with_about_the_share_of_the_marked() -> None:
    group = neighbourhoods(town(640))
    marked = np.random.default_rng(0).permutation(np.arange(640) < 100)
    held_out, notices = choose_held_out(group, marked, 0.2, seed=57)
    assert notices == ()
    assert 20 <= int((held_out & marked).sum()) <= 30
    for number in range(64):
        assert len(set(held_out[group == number])) == 1


def test_marks_in_one_corner_hold_out_single_buildings_with_a_notice() -> None:
    group = neighbourhoods(town(640))
    held_out, notices = choose_held_out(group, group == 7, 0.2, seed=57)
    assert "close together" in notices[0]
    assert int((held_out & (group == 7)).sum()) == 2


def test_nothing_is_held_out_if_nothing_is_wanted() -> None:
    group = neighbourhoods(town(64))
    held_out, _ = choose_held_out(group, group < 4, 0.0, seed=57)
    assert not held_out.any()


def test_the_problem_holds_every_building_that_can_be_seen_once() -> None:
    buildings, chips, marked = problem(200, 40, skipped=15)
    split = load_chips(buildings, chips, marked, ChipsConfig()).split
    assert split.held_out is not None
    rows = [*split.train.values.index, *split.held_out.values.index]
    assert sorted(rows) == list(range(15, 200))
    for part in (split.train, split.held_out):
        np.testing.assert_array_equal(part.labelled, marked[part.values.index])
        assert part.names == tuple(map(str, part.values.index))
        np.testing.assert_array_equal(
            part.values.take(slice(None)), chips.values[part.values.index]
        )


@pytest.mark.parametrize(
    ("count", "marked", "expected"), [(60, 4, "4 marked"), (45, 41, "4 unmarked")]
)
def test_too_few_to_train_on_are_refused(count: int, marked: int, expected: str) -> None:
    with pytest.raises(DataError, match=expected):
        load_chips(*problem(count, marked), ChipsConfig())


def test_nothing_to_be_seen_is_refused_with_the_reason() -> None:
    with pytest.raises(DataError, match="far away"):
        load_chips(*problem(30, 15, skipped=30), ChipsConfig())


def test_after_a_search_every_building_has_a_score_of_a_model_that_did_not_see_it() -> None:
    buildings, chips, marked = problem(200, 60, skipped=7)
    split = load_chips(buildings, chips, marked, ChipsConfig(held_out=0.0)).split
    scores = np.random.default_rng(0).uniform(size=len(split.train))
    scored = Scored(scores, split.train.labelled, fold=np.zeros(len(scores), np.int64))
    found = out_of_fold_scores(split, scored, 200)
    by_name = dict(zip(split.train.names, scores, strict=True))
    for row in range(200):
        expected = by_name.get(buildings.names[row], np.nan)
        assert found[row] == expected or (np.isnan(found[row]) and np.isnan(expected))
    assert np.isnan(found).sum() == 7, "those that were skipped"
    without = out_of_fold_scores(split, Scored(scores, split.train.labelled), 200)
    assert np.isnan(without).all()


def test_neighbourhoods_are_the_groups_of_a_search() -> None:
    buildings, chips, marked = problem(200, 60)
    train = load_chips(buildings, chips, marked, ChipsConfig(held_out=0.0)).split.train
    assert train.groups is not None
    together = same_numbers(neighbourhoods(town(200)))
    assert np.array_equal(same_numbers(train.groups), together)


def same_numbers(numbers: np.ndarray) -> np.ndarray:
    same: np.ndarray = numbers[:, None] == numbers[None, :]
    return same
