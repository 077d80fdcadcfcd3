"""`pool = "whole"`: U holds the labelled positives, too, and what is held out stays unseen."""

from dataclasses import replace

import numpy as np
import pytest

from onesided.core.errors import ConfigError
from onesided.core.labels import POSITIVE
from onesided.data.problem.content import counted
from onesided.data.problem.dataset import PUDataset
from onesided.data.problem.samples import Source
from onesided.data.problem.split import SplitRecipe, split_source
from onesided.metrics.pu import proxy_accuracy_case_control
from onesided.run.search.folds import folds_of, groups_of
from tests.data.problem.test_split import SOURCE, index_of, publishers_source, recipe, rows

ALL = {"positives": 36, "unlabelled": 920, "held_out_positives": 20, "held_out_unlabelled": 30}


def whole(**changes: object) -> SplitRecipe:
    return recipe(**{"pool": "whole", **changes})


def held_out_of(source: Source, wanted: SplitRecipe) -> PUDataset:
    part = split_source(source, wanted).held_out
    assert part is not None
    return part


def test_each_labelled_sample_is_in_u_without_its_label() -> None:
    train = split_source(SOURCE, whole()).train
    labelled, unlabelled = index_of(train)[train.labelled], index_of(train)[train.unlabelled]
    assert (len(labelled), len(unlabelled)) == (20, 200)
    assert len(np.unique(labelled)) == 20
    assert len(np.unique(unlabelled)) == 200
    assert set(labelled) <= set(unlabelled)


def test_u_is_a_sample_of_the_population_so_the_study_is_case_control() -> None:
    """Also where P takes much of U's positives: in a single set U would hold fewer of them."""
    split = split_source(SOURCE, whole(positives=70, unlabelled=200))
    assert split.true_prior == 0.4
    assert split.scenario == "case-control"


def test_u_can_be_all_of_a_data_set() -> None:
    train = split_source(SOURCE, whole(positives=40, unlabelled=1000)).train
    assert sorted(index_of(train)[train.unlabelled]) == list(range(1000))
    assert train.truth[train.unlabelled].sum() == 400 * POSITIVE


def test_nothing_held_out_is_trained_on_and_held_out_p_and_u_are_apart() -> None:
    split = split_source(SOURCE, whole(**ALL))
    assert split.held_out is not None
    held_out = index_of(split.held_out)
    assert len(np.unique(held_out)) == len(held_out) == 50
    assert not np.isin(held_out, index_of(split.train)).any()
    assert counted(split.held_out, split.train) is None, "figures count all of them"


def test_a_held_out_copy_of_a_training_sample_is_left_out() -> None:
    twice = replace(SOURCE.train, values=SOURCE.train.values // 2)  # neighbours are copies
    left = held_out_of(Source(train=twice), whole(**ALL))
    trained = split_source(Source(train=twice), whole(**ALL)).train.values.take(slice(None))
    assert 0 < len(left) < 50
    assert not np.isin(left.values.take(slice(None)), trained).any()


def test_folds_keep_both_rows_of_a_labelled_sample_together() -> None:
    train = split_source(SOURCE, whole()).train
    fold = folds_of(train, groups_of(train), 5, seed=0)
    of_sample = dict(zip(index_of(train)[train.unlabelled], fold[train.unlabelled], strict=True))
    for sample, where in zip(index_of(train)[train.labelled], fold[train.labelled], strict=True):
        assert of_sample[sample] == where


def test_the_formula_of_case_control_gives_the_true_accuracy() -> None:
    """Mean over splits: of a scorer that is wrong about a fifth of P and a tenth of N."""
    positive = np.isin(SOURCE.train.classes, (0, 1, 8, 9))
    wrong = np.arange(1000) % np.where(positive, 5, 10) == 0
    called = positive ^ wrong
    estimates = []
    for seed in range(300):
        part = held_out_of(SOURCE, whole(**ALL, seed=seed))
        says = called[index_of(part)]
        rates = says[part.labelled].mean(), says[part.unlabelled].mean()
        estimates.append(proxy_accuracy_case_control(*rates, 0.4))
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert np.mean(estimates) == pytest.approx(1 - wrong.mean(), abs=4 * error)
    assert error < 0.01


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"positives": 90}, "P is drawn from the positives of U: 90 wanted, 80 there"),
        ({"scenario": "single-set"}, "in a single set U is what is left after labelling"),
    ],
)
def test_a_pool_that_cannot_hold_p_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        split_source(SOURCE, whole(**changes))


def test_a_publishers_own_pool_holds_no_labelled_positives() -> None:
    with pytest.raises(ConfigError, match="the publisher's own unlabelled part"):
        split_source(publishers_source(), whole(prior=None))


def test_all_held_out_samples_being_copies_is_refused() -> None:
    same = rows(1000)
    same = replace(same, values=same.values * 0)
    with pytest.raises(ConfigError, match="look like samples that are trained on"):
        split_source(Source(train=same), whole(**ALL))
