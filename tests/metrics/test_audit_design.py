import numpy as np
import pytest

from onesided.core.errors import ConfigError, DataError
from onesided.metrics.audit_design import FEW, audit_sample

POOL = np.random.default_rng(0).beta(0.3, 1.5, 3000)


def test_a_larger_draw_continues_a_smaller_one() -> None:
    small, large = (audit_sample(POOL, size=size, seed=3) for size in (50, 400))
    assert (large.order[:50] == small.order).all()


def test_no_item_is_drawn_twice_and_a_pool_can_be_drawn_whole() -> None:
    drawn = audit_sample(POOL, size=10_000).order
    assert sorted(drawn) == list(range(len(POOL)))


def test_every_stratum_has_a_few_items_first() -> None:
    design = audit_sample(POOL, size=100, target="precision")
    first = design.stratum[design.order[: design.first]]
    assert (np.bincount(first) == FEW).all()


def test_the_threshold_is_a_cut_between_strata() -> None:
    design = audit_sample(POOL, size=1, threshold=0.37)
    above = design.stratum[POOL > 0.37]
    assert above.max() < design.stratum[POOL <= 0.37].min()


def test_precision_is_asked_of_items_that_are_called_positive() -> None:
    above = {
        target: (POOL[audit_sample(POOL, size=300, target=target).order] > 0.5).mean()
        for target in ("precision", "left")
    }
    assert above["precision"] > 0.6 > 0.2 > above["left"]


def test_another_seed_draws_other_items() -> None:
    one, other = (set(audit_sample(POOL, size=100, seed=seed).order) for seed in (0, 1))
    assert len(one & other) < 50


def test_each_draw_takes_a_stratum_with_its_chance() -> None:
    counts = np.zeros(6)
    for seed in range(60):
        design = audit_sample(POOL, size=100, seed=seed)
        late = design.stratum[design.order[design.first :]]
        counts += np.bincount(late, minlength=6)
    expected = design.chance * counts.sum()
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_a_pool_of_one_item_and_of_equal_scores_can_be_drawn() -> None:
    assert audit_sample(np.array([0.7]), size=5).order.tolist() == [0]
    assert len(audit_sample(np.full(50, 0.5), size=20).order) == 20


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one item"):
        audit_sample(POOL, size=0)
    with pytest.raises(ConfigError, match="left, positives, precision, recall, f1"):
        audit_sample(POOL, size=5, target="auc")
    for score in (np.nan, 1.5, -0.5):
        with pytest.raises(DataError, match="from 0 to 1"):
            audit_sample(np.array([0.5, score]), size=1)
