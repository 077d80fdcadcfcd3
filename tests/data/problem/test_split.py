"""Who is labelled, who is unlabelled, who is held out: counted, disjoint, and repeatable."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.problem.dataset import LabelledDataset, PUDataset, PUSplit, Selection
from onesided.data.problem.samples import Samples, Source
from onesided.data.problem.split import SplitRecipe, split_one_sided, split_source

CIFAR10_POSITIVES = (0, 1, 8, 9)


def rows(count: int, part: str = "train", classes: int = 10) -> Samples:
    """Vectors that hold their own row, of shuffled classes of equal size."""
    shuffled = np.random.default_rng(1).permutation(np.arange(count) % classes)
    return Samples(
        values=np.arange(count, dtype=np.float32)[:, None],
        classes=shuffled.astype(np.int64),
        names=tuple(f"{part}/{row}" for row in range(count)),
        kind="vector",
    )


SOURCE = Source(train=rows(1000), test=rows(100, "test"))


def recipe(**changes: Any) -> SplitRecipe:  # noqa: ANN401 - a setting may be anything
    plain = {"positive_classes": CIFAR10_POSITIVES, "positives": 20, "unlabelled": 200}
    return SplitRecipe.from_settings({**plain, "prior": 0.4, **changes})


def index_of(part: PUDataset | LabelledDataset) -> np.ndarray:
    """The source's rows, read from the values themselves."""
    return part.values.take(slice(None))[:, 0].astype(np.int64)


def parts(split: PUSplit) -> list[PUDataset | LabelledDataset]:
    return [part for part in (split.train, split.held_out, split.clean) if part is not None]


@contextmanager
def restoring_numpys_global_state() -> Iterator[None]:
    state = np.random.get_state()
    try:
        yield
    finally:
        np.random.set_state(state)


def papers_division(
    classes: np.ndarray, positive_classes: tuple[int, ...], n_p: int, n_u: int, prior: float
) -> tuple[list[int], list[int]]:
    """P and U as the paper's authors divide, with numpy's global generator and seed 57."""
    positives = np.array([row for row, label in enumerate(classes) if label in positive_classes])
    negatives = np.array(
        [row for row, label in enumerate(classes) if label not in positive_classes]
    )
    with restoring_numpys_global_state():
        np.random.seed(57)
        np.random.shuffle(positives)
        np.random.shuffle(negatives)
        hidden = int(n_u * prior)
        unlabelled = np.concatenate(
            [positives[n_p : n_p + hidden], negatives[: int(n_u * (1 - prior))]]
        )
        np.random.shuffle(unlabelled)
    return positives[:n_p].tolist(), unlabelled.tolist()


@pytest.mark.parametrize(
    ("count", "classes", "positive_classes", "n_p", "n_u", "prior"),
    [
        (50000, 10, CIFAR10_POSITIVES, 1000, 40000, 0.4),
        (50000, 100, tuple(range(50)), 1000, 40000, 0.5),
        (8506, 2, (1,), 300, 4000, 0.5),
        (40000, 4, (0, 1), 500, 20000, 0.4),
    ],
    ids=["CIFAR-10", "CIFAR-100", "ABCD", "xBD"],
)
def test_seed_57_gives_the_papers_division(
    count: int, classes: int, positive_classes: tuple[int, ...], n_p: int, n_u: int, prior: float
) -> None:
    train = rows(count, classes=classes)
    wanted = SplitRecipe(
        positive_classes=positive_classes, positives=n_p, unlabelled=n_u, prior=prior
    )
    split = split_source(Source(train=train), wanted)
    labelled, unlabelled = papers_division(train.classes, positive_classes, n_p, n_u, prior)
    assert index_of(split.train).tolist() == labelled + unlabelled
    assert split.train.labelled.tolist() == [True] * n_p + [False] * n_u
    assert split.true_prior == prior


def test_held_out_rows_change_nothing_about_the_rows_to_train_on() -> None:
    plain = split_source(SOURCE, recipe())
    held = split_source(SOURCE, recipe(held_out_positives=12, held_out_unlabelled=50, clean=10))
    assert np.array_equal(index_of(plain.train), index_of(held.train))


def hidden_positives(wanted: SplitRecipe, labelled: int, unlabelled: int) -> int:
    """How many positives U should hold."""
    assert wanted.prior is not None
    if wanted.scenario == "case-control":
        return round(unlabelled * wanted.prior)
    return round((labelled + unlabelled) * wanted.prior) - labelled


def sizes(wanted: SplitRecipe) -> list[tuple[int, int]]:
    held_out = (wanted.held_out_positives, wanted.held_out_unlabelled)
    return [(wanted.positives, wanted.unlabelled)] + [held_out] * any(held_out)


def is_possible(wanted: SplitRecipe) -> bool:
    """Whether 400 positives and 600 negatives are enough."""
    hidden = [hidden_positives(wanted, *size) for size in sizes(wanted)]
    positives = sum(labelled for labelled, _ in sizes(wanted)) + sum(hidden)
    negatives = sum(unlabelled for _, unlabelled in sizes(wanted)) - sum(hidden)
    enough = positives + wanted.clean <= 400 and negatives + wanted.clean <= 600
    return enough and min(hidden) >= 0


recipes = st.fixed_dictionaries(
    {
        "scenario": st.sampled_from(["case-control", "single-set"]),
        "positives": st.integers(10, 60),
        "unlabelled": st.integers(1, 500),
        "prior": st.floats(0.01, 0.99),
        "clean": st.integers(0, 30),
        "seed": st.integers(0, 2**32 - 1),
    },
).flatmap(
    lambda plain: (
        st.tuples(st.integers(1, 20), st.integers(1, 60)).map(
            lambda held: plain | {"held_out_positives": held[0], "held_out_unlabelled": held[1]}
        )
        | st.just(plain)
    )
)


@given(recipes.map(lambda changes: recipe(**changes)))
def test_a_split_is_what_its_recipe_says_or_refused(wanted: SplitRecipe) -> None:
    if not is_possible(wanted):
        with pytest.raises(ConfigError, match=r"than there are|fewer than"):
            split_source(SOURCE, wanted)
        return
    split = split_source(SOURCE, wanted)
    pu_parts = [split.train] + ([split.held_out] if split.held_out else [])
    for part, (labelled, unlabelled) in zip(pu_parts, sizes(wanted), strict=True):
        assert part.labelled.tolist() == [True] * labelled + [False] * unlabelled
        assert (part.truth[part.labelled] == POSITIVE).all()
        hidden = (part.truth[~part.labelled] == POSITIVE).sum()
        assert hidden == hidden_positives(wanted, labelled, unlabelled)
    known = [] if split.clean is None else split.clean.truth.tolist()
    assert known == [POSITIVE] * wanted.clean + [NEGATIVE] * wanted.clean


@given(recipes.map(lambda changes: recipe(**changes)).filter(is_possible))
def test_no_sample_is_in_two_parts_and_each_keeps_its_class_and_name(wanted: SplitRecipe) -> None:
    split = split_source(SOURCE, wanted)
    used = np.concatenate([index_of(part) for part in parts(split)])
    assert len(np.unique(used)) == len(used) == sum(map(sum, sizes(wanted))) + 2 * wanted.clean
    for part in parts(split):
        positive = np.isin(SOURCE.train.classes[index_of(part)], CIFAR10_POSITIVES)
        assert np.array_equal(part.truth == POSITIVE, positive)
        assert part.names == tuple(SOURCE.train.names[row] for row in index_of(part))


def test_in_a_single_set_u_holds_what_labelling_left() -> None:
    """pi_U = (pi (n_P + n_U) - n_P) / n_U: smaller than the prior of the whole set."""
    split = split_source(
        SOURCE, recipe(scenario="single-set", positives=50, unlabelled=250, prior=0.4)
    )
    assert split.scenario == "single-set"
    assert split.true_prior == pytest.approx((0.4 * 300 - 50) / 250)
    assert (split.train.truth == POSITIVE).mean() == pytest.approx(0.4)


def test_unlabelled_positives_and_negatives_are_mixed() -> None:
    truth = split_source(SOURCE, recipe()).train.truth[20:]
    # Runs of equal neighbours: 97 expected, with a standard deviation of 6.8; sorted has 2.
    assert 60 < 1 + (truth[1:] != truth[:-1]).sum() < 140


def test_a_split_is_a_function_of_its_recipe() -> None:
    with restoring_numpys_global_state():
        np.random.seed(3)
        first = split_source(SOURCE, recipe())
        second = split_source(SOURCE, recipe())
    assert np.array_equal(index_of(first.train), index_of(second.train))
    assert first.fingerprint() == second.fingerprint()


def test_splitting_changes_neither_the_global_generator_nor_the_samples() -> None:
    classes = SOURCE.train.classes.copy()
    before = np.random.get_state(legacy=False)["state"]
    split_source(SOURCE, recipe(clean=5))
    after = np.random.get_state(legacy=False)["state"]
    assert (before["key"].tolist(), before["pos"]) == (after["key"].tolist(), after["pos"])
    assert np.array_equal(classes, SOURCE.train.classes)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 58},
        {"positives": 21},
        {"unlabelled": 201},
        {"prior": 0.5},
        {"positive_classes": (0, 1, 8)},
        {"scenario": "single-set"},
        {"held_out_positives": 5, "held_out_unlabelled": 5},
        {"clean": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_recipe_gives_another_fingerprint(change: dict[str, Any]) -> None:
    assert (
        split_source(SOURCE, recipe()).fingerprint()
        != split_source(SOURCE, recipe(**change)).fingerprint()
    )


def test_a_split_copies_no_values() -> None:
    split = split_source(SOURCE, recipe(held_out_positives=5, held_out_unlabelled=5, clean=1))
    assert all(part.values.pool is SOURCE.train.values for part in parts(split))


def test_the_test_part_is_complete_in_order_and_with_its_truth() -> None:
    test = split_source(SOURCE, recipe()).test
    assert test is not None
    assert SOURCE.test is not None
    assert index_of(test).tolist() == list(range(100))
    assert test.names == SOURCE.test.names
    expected = [int(label in CIFAR10_POSITIVES) for label in SOURCE.test.classes]
    assert test.truth.tolist() == expected


def test_parts_that_are_not_asked_for_are_not_made() -> None:
    split = split_source(Source(train=rows(1000)), recipe())
    assert (split.test, split.held_out, split.clean) == (None, None, None)


def test_samples_of_unknown_class_are_never_called_negative() -> None:
    def half_unknown(samples: Samples) -> Samples:
        known = np.arange(len(samples)) % 2 == 0
        return replace(samples, classes=np.where(known, samples.classes, UNKNOWN))

    source = Source(train=half_unknown(rows(1000)), test=half_unknown(rows(100, "test")))
    split = split_source(source, recipe(positives=10, unlabelled=300, prior=0.4))
    assert (index_of(split.train) % 2 == 0).all()
    assert split.test is not None
    assert index_of(split.test).tolist() == list(range(0, 100, 2))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"positives": 401}, "more positives than there are: 401 wanted, 400 of 400 left"),
        (
            {"positives": 321, "unlabelled": 200},
            "more positives than there are: 80 wanted, 79 of 400 left. Lower data.positives",
        ),
        ({"unlabelled": 1001, "prior": 0.1}, "more negatives.*901 wanted, 600 of 600 left"),
        (
            {"held_out_positives": 301, "held_out_unlabelled": 1},
            "more positives.*301 wanted, 300 of 400 left",
        ),
        ({"clean": 301}, "more positives.*301 wanted, 300 of 400 left"),
        ({"clean": 290, "unlabelled": 400, "prior": 0.1}, "negatives.*290 wanted, 240 of 600 left"),
        (
            {"scenario": "single-set", "positives": 100, "unlabelled": 100, "prior": 0.4},
            "prior of 0.4 in 200 samples gives 80 positives, fewer than the 100 to be labelled",
        ),
        ({"prior": None}, "data.prior is missing: give the share"),
        ({"positive_classes": (11,)}, "more positives.*20 wanted, 0 of 0 left"),
        ({"seed": -1}, "data.seed is -1; expected a whole number from 0 to 4294967295"),
        ({"seed": 2**32}, "data.seed is 4294967296"),
    ],
)
def test_a_recipe_that_cannot_be_followed_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        split_source(SOURCE, recipe(**change))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"positives": 9}, "positives: Input should be greater than or equal to 10. Got 9"),
        ({"unlabelled": 0}, "unlabelled: Input should be greater than or equal to 1"),
        ({"prior": 0}, "prior: Input should be greater than 0"),
        ({"prior": 1.2}, "prior: Input should be less than 1. Got 1.2"),
        ({"clean": -1}, "clean: Input should be greater than or equal to 0"),
        ({"scenario": "two-set"}, "scenario: Input should be 'case-control' or 'single-set'"),
        (
            {"held_out_positives": 5},
            "held_out_positives is 5 and held_out_unlabelled is 0; hold out some of both",
        ),
        ({"held_out_unlabelled": 5}, "or set both to 0"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        recipe(**change)


def publishers_source() -> Source:
    """As STL-10: a labelled part, and a larger one without classes."""
    pool = rows(600, "unlabelled")
    pool = replace(pool, values=pool.values + 5000, classes=np.full(600, UNKNOWN))
    return replace(SOURCE, unlabelled=pool)


def test_the_truth_of_a_publishers_unlabelled_part_stays_unknown() -> None:
    wanted = recipe(
        prior=None, positives=30, unlabelled=400, held_out_positives=10, held_out_unlabelled=90
    )
    split = split_source(publishers_source(), wanted)
    assert split.true_prior is None
    assert split.held_out is not None
    for part, labelled, unlabelled in ((split.train, 30, 400), (split.held_out, 10, 90)):
        index = index_of(part)
        assert part.labelled.tolist() == [True] * labelled + [False] * unlabelled
        assert part.truth.tolist() == [POSITIVE] * labelled + [UNKNOWN] * unlabelled
        assert np.isin(SOURCE.train.classes[index[:labelled]], CIFAR10_POSITIVES).all()
        assert (index[labelled:] >= 5000).all()
        expected = [f"train/{row}" for row in index[:labelled]]
        expected += [f"unlabelled/{row - 5000}" for row in index[labelled:]]
        assert list(part.names) == expected


def test_parts_with_a_publishers_unlabelled_part_are_disjoint_too() -> None:
    wanted = recipe(
        prior=None,
        positives=30,
        unlabelled=400,
        held_out_positives=10,
        held_out_unlabelled=90,
        clean=15,
    )
    split = split_source(publishers_source(), wanted)
    assert split.clean is not None
    assert split.clean.truth.tolist() == [POSITIVE] * 15 + [NEGATIVE] * 15
    used = np.concatenate([index_of(part) for part in parts(split)])
    assert len(np.unique(used)) == len(used) == 30 + 400 + 10 + 90 + 30


def test_more_than_the_publishers_unlabelled_part_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"more unlabelled samples.*601 wanted, 600 of 600"):
        split_source(publishers_source(), recipe(prior=None, unlabelled=601))


def test_with_a_prior_the_publishers_unlabelled_part_is_not_used() -> None:
    split = split_source(publishers_source(), recipe())
    assert split.fingerprint() == split_source(SOURCE, recipe()).fingerprint()


def own_data(positives: int, unlabelled: int, negatives: int = 0) -> tuple[Samples, np.ndarray]:
    """People's own samples: some positive, some known to be negative, the rest unlabelled."""
    counts = [positives, unlabelled, negatives]
    classes = np.repeat([POSITIVE, UNKNOWN, NEGATIVE], counts).astype(np.int64)
    classes = np.random.default_rng(5).permutation(classes)
    return replace(rows(sum(counts)), classes=classes), classes == POSITIVE


def split_own(
    samples: Samples,
    labelled: np.ndarray,
    held_out_share: float = 0.2,
    seed: int = 57,
    test: LabelledDataset | None = None,
) -> PUSplit:
    return split_one_sided(
        samples,
        labelled,
        held_out_share=held_out_share,
        scenario="single-set",
        seed=seed,
        test=test,
    )


def test_known_negatives_are_in_neither_part() -> None:
    samples, labelled = own_data(50, 200, negatives=70)
    split = split_own(samples, labelled)
    used = np.concatenate([index_of(part) for part in parts(split)])
    assert sorted(used) == np.flatnonzero(samples.classes != NEGATIVE).tolist()


def test_a_share_of_p_and_of_u_is_held_out() -> None:
    samples, labelled = own_data(50, 200)
    split = split_own(samples, labelled, held_out_share=0.2)
    assert split.held_out is not None
    assert (split.held_out.labelled.sum(), len(split.held_out)) == (10, 50)
    assert (split.train.labelled.sum(), len(split.train)) == (40, 200)
    for part in (split.train, split.held_out):
        assert np.array_equal(part.labelled, labelled[index_of(part)])
        assert np.array_equal(part.truth, samples.classes[index_of(part)])
    assert split.true_prior is None


def test_at_most_1000_positives_and_5000_unlabelled_are_held_out() -> None:
    split = split_own(*own_data(3000, 12000), held_out_share=0.5)
    assert split.held_out is not None
    assert split.held_out.labelled.sum() == 1000
    assert len(split.held_out) == 6000


@pytest.mark.parametrize(
    ("positives", "unlabelled", "share"), [(50, 200, 0.0), (10, 1000, 0.04), (1000, 10, 0.04)]
)
def test_rows_that_cannot_be_held_out_are_trained_on(
    positives: int, unlabelled: int, share: float
) -> None:
    split = split_own(*own_data(positives, unlabelled), held_out_share=share)
    assert split.held_out is None
    assert len(split.train) == positives + unlabelled


@settings(max_examples=40)
@given(st.integers(10, 80), st.integers(10, 300), st.floats(0, 0.89), st.integers(0, 1000))
def test_every_row_of_ones_own_is_either_trained_on_or_held_out(
    positives: int, unlabelled: int, share: float, seed: int
) -> None:
    split = split_own(*own_data(positives, unlabelled), held_out_share=share, seed=seed)
    used = np.concatenate([index_of(part) for part in parts(split)])
    assert sorted(used) == list(range(positives + unlabelled))
    assert split.train.labelled.any()
    assert not split.train.labelled.all()


def test_ones_own_split_is_repeatable_and_depends_on_its_seed() -> None:
    data = own_data(50, 200)
    assert split_own(*data).fingerprint() == split_own(*data).fingerprint()
    assert split_own(*data).fingerprint() != split_own(*data, seed=58).fingerprint()


def test_ten_positives_are_enough_and_nine_are_not() -> None:
    split_own(*own_data(10, 50))
    with pytest.raises(DataError, match="9 positives are too few to learn from; at least 10"):
        split_own(*own_data(9, 50))


def test_nine_unlabelled_are_too_few_and_known_negatives_do_not_count() -> None:
    with pytest.raises(DataError, match="9 unlabelled samples are too few; at least 10"):
        split_own(*own_data(50, 9, negatives=100))


def test_a_negative_seed_of_ones_own_split_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"data\.seed is -3"):
        split_own(*own_data(50, 200), seed=-3)


def test_a_test_set_of_ones_own_is_passed_on() -> None:
    samples, labelled = own_data(50, 200)
    test = LabelledDataset(Selection(samples.values, np.arange(1)), np.array([1]), ("x",))
    split = split_own(samples, labelled, test=test)
    assert split.test is test
    assert (split.clean, split.kind, split.scenario) == (None, "vector", "single-set")
