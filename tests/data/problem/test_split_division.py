from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.core.errors import ConfigError
from onesided.core.labels import POSITIVE, UNKNOWN
from onesided.data.problem.dataset import PUSplit
from onesided.data.problem.samples import Samples, Source
from onesided.data.problem.split import SplitRecipe, divide_for_test, split_source


def source_of(count: int, *, share: float | None = 0.6, groups: int = 40) -> Source:
    """Return samples of two classes in groups of unequal size; a value is its own number."""
    tile = np.sort(np.random.default_rng(0).integers(0, groups, count))
    return Source(
        Samples(
            values=np.arange(count, dtype=np.float32)[:, None],
            classes=np.arange(count, dtype=np.int64) % 2,
            names=tuple(f"item-{row}" for row in range(count)),
            class_names=("sound", "damaged"),
            kind="vector",
            groups={"tile": np.array([f"tile-{number}" for number in tile]), "event": tile // 10},
        ),
        train_share=share,
    )


def split(source: Source, grouping: str | None, seed: int = 57, clean: int = 0) -> PUSplit:
    recipe = SplitRecipe(
        positive_classes=(1,),
        positives=20,
        unlabelled=100,
        prior=0.4,
        held_out_positives=5,
        held_out_unlabelled=20,
        clean=clean,
        grouping=grouping,
        seed=seed,
    )
    return split_source(source, recipe)


def rows_of(names: tuple[str, ...]) -> set[int]:
    return {int(name.removeprefix("item-")) for name in names}


@pytest.mark.parametrize(
    ("count", "test"), [(8441, 3377), (8442, 3377), (94203, 37682), (94204, 37682), (94205, 37682)]
)
def test_the_papers_test_counts_come_out(count: int, test: int) -> None:
    division = divide_for_test(source_of(count), None, np.random.RandomState(57))
    assert division is not None
    assert len(division.test) == test
    assert len(division.train) == count - test


def test_the_division_is_numpys_shuffle_by_seed_57() -> None:
    order = list(range(1000))
    random = np.random.RandomState(57)
    shuffled = np.array(order)
    random.shuffle(shuffled)
    division = divide_for_test(source_of(1000), None, np.random.RandomState(57))
    assert division is not None
    np.testing.assert_array_equal(division.train, shuffled[:600])
    np.testing.assert_array_equal(division.test, shuffled[600:])


@given(st.integers(2, 30), st.integers(0, 99), st.floats(0.1, 0.9))
def test_no_group_is_ever_on_both_sides(groups: int, seed: int, share: float) -> None:
    source = source_of(300, share=share, groups=groups)
    for kind, group in source.train.groups.items():
        if len(set(group)) < 2:
            continue
        division = divide_for_test(source, kind, np.random.RandomState(seed))
        assert division is not None
        assert not set(group[division.train]) & set(group[division.test])
        assert sorted([*division.train, *division.test]) == list(range(300))
        assert len(division.train)
        assert len(division.test)


def test_many_small_groups_come_near_the_wanted_share() -> None:
    division = divide_for_test(source_of(4000, groups=200), "tile", np.random.RandomState(57))
    assert division is not None
    assert len(division.train) / 4000 == pytest.approx(0.6, abs=0.005)


@pytest.mark.parametrize("kind", ["tile", "event"])
def test_a_grouped_split_trains_on_no_group_that_it_tests_on(kind: str) -> None:
    source = source_of(2000)
    made = split(source, kind, clean=10)
    assert made.test is not None
    assert made.held_out is not None
    assert made.clean is not None
    group = source.train.groups[kind]
    tested = {group[row] for row in rows_of(made.test.names)}
    for part in (made.train, made.held_out, made.clean):
        assert not tested & {group[row] for row in rows_of(part.names)}


def test_without_grouping_neighbours_end_up_on_both_sides() -> None:
    source = source_of(2000)
    made = split(source, None)
    assert made.test is not None
    tile = source.train.groups["tile"]
    both = {tile[row] for row in rows_of(made.test.names)} & {
        tile[row] for row in rows_of(made.train.names)
    }
    assert both, "which is why the other divisions exist"


@pytest.mark.parametrize("kind", [None, "tile"])
def test_training_and_test_rows_are_disjoint_and_true(kind: str | None) -> None:
    made = split(source_of(2000), kind)
    assert made.test is not None
    assert not rows_of(made.test.names) & rows_of(made.train.names)
    classes = [row % 2 for row in map(int, made.test.values.take(slice(None))[:, 0])]
    assert classes == made.test.truth.tolist()
    assert (made.train.truth[made.train.labelled] == POSITIVE).all()


def test_the_same_seed_divides_alike_and_another_differently() -> None:
    source = source_of(2000)
    for kind in (None, "tile"):
        prints = [split(source, kind, seed).fingerprint() for seed in (57, 57, 58)]
        assert prints[0] == prints[1] != prints[2]


def test_items_of_unknown_class_are_not_tested_on() -> None:
    source = source_of(2000)
    source.train.classes[::5] = UNKNOWN
    made = split(source, "tile")
    assert made.test is not None
    assert not any(row % 5 == 0 for row in rows_of(made.test.names))


def test_an_unknown_kind_of_group_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'county', but .* Choose 'tile' or 'event', or"):
        split(source_of(500), "county")


def test_a_data_set_that_comes_divided_cannot_be_grouped() -> None:
    source = source_of(500)
    divided = Source(source.train, test=source.train)
    with pytest.raises(ConfigError, match="comes divided by its publisher"):
        split(divided, "tile")
    assert divide_for_test(divided, None, np.random.RandomState(0)) is None


def test_a_single_group_leaves_nothing_to_test_on() -> None:
    with pytest.raises(ConfigError, match="All samples are of one event, 0"):
        split(source_of(500, groups=5), "event")


def test_a_division_by_the_publisher_is_kept_unless_groups_are_asked_for() -> None:
    side = np.where(np.arange(300) % 5 == 0, "test", "train")
    source = replace(source_of(300), side=side)
    division = divide_for_test(source, None, np.random.RandomState(0))
    assert division is not None
    assert division.test.tolist() == list(range(0, 300, 5))
    assert sorted([*division.train, *division.test]) == list(range(300))
    grouped = divide_for_test(source, "tile", np.random.RandomState(0))
    assert grouped is not None
    assert set(grouped.test) != set(division.test)
