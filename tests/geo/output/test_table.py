from dataclasses import replace

import numpy as np

from tests.geo.maps import houses, table


def test_only_unmarked_buildings_are_ranked_highest_first() -> None:
    drawn = table(houses(30))
    ranks = drawn.ranks
    assert (ranks[:4] == 0).all()
    assert ranks[-1] == 0
    ranked = np.argsort(ranks)[np.sort(ranks) > 0]
    assert sorted(ranks[ranks > 0]) == list(range(1, 26))
    assert (np.diff(drawn.scores[ranked]) <= 0).all()


def test_equal_scores_are_ranked_in_the_order_of_the_file() -> None:
    drawn = table(houses(12))
    drawn.scores[4:11] = 0.25
    assert drawn.ranks[4:11].tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_a_tie_with_the_threshold_means_negative_and_skipped_is_no_decision() -> None:
    drawn = table(houses(8))
    drawn.scores[:3] = (0.5, 0.5001, 0.1)
    assert drawn.decisions[:3] == ["negative", "positive", "negative"]
    assert drawn.decisions[-1] is None


def test_the_role_says_who_was_marked_and_who_was_trained_on() -> None:
    roles = table(houses(8)).roles
    assert roles[:2] == ["positive", "held-out positive"]
    assert roles[4:6] == ["unlabelled", "held-out unlabelled"]


def test_attributes_are_kept_and_give_way_to_ours_in_any_case() -> None:
    columns = table(houses(8)).columns()
    assert columns["original_Score"][0] == "theirs"
    assert columns["street"][2] == "2 <Main> & 'Co'"
    assert "Score" not in columns
    assert list(columns)[-5:] == ["score", "rank", "decision", "role", "reason"]
    assert columns["id"].tolist() == [f"h{row}" for row in range(8)]


def test_columns_differ_in_more_than_capitals_and_none_takes_anothers_place() -> None:
    buildings = houses(8)
    theirs = {name: np.full(8, name, object) for name in ("fixme", "FIXME", "original_Score")}
    columns = table(replace(buildings, columns={**buildings.columns, **theirs})).columns()
    assert len({name.lower() for name in columns}) == len(columns)
    assert columns["original_Score"][0] == "theirs"
    assert columns["original_original_Score"][0] == "original_Score"
    assert columns["original_FIXME"][0] == "FIXME"


def test_the_id_that_is_written_is_what_a_building_is_called() -> None:
    buildings = houses(8)
    own = np.array([None, *(f"h{row}" for row in range(1, 8))], object)
    columns = table(replace(buildings, columns={"ID": own})).columns()
    assert columns["id"].tolist() == list(buildings.names)
    assert columns["original_ID"][0] is None
