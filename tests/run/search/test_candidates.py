"""Which candidates a search tries: the time decides, and what a person asked for."""

from dataclasses import replace

import numpy as np
import pytest

from onesided.data.problem.dataset import PUDataset, Selection
from onesided.methods.average import AverageConfig
from onesided.methods.linear import PENALTIES, LinearConfig
from onesided.run.presets import Amount
from onesided.run.search.candidates import Candidate, Menu, smallest_part
from tests.run.search.searching import numbered, problem_of

CONFIG = problem_of(numbered(), 20).config
FEW = Amount(60, 20, images=False)


def menu(
    *, minutes: float = 2, amount: Amount = FEW, part: Amount | None = None, **method: object
) -> Menu:
    settings = type(CONFIG.method).from_settings({"minutes": minutes, **method})
    return Menu(replace(CONFIG, method=settings), amount, part or amount, 10, folds=5)


def names(candidates: list[Candidate]) -> list[str]:
    return [candidate.name for candidate in candidates]


def methods(candidates: list[Candidate]) -> list[str]:
    return [candidate.config.method_name for candidate in candidates]


def test_two_minutes_try_penalties_and_trees_and_no_network() -> None:
    usual = menu()
    first = usual.first()
    penalties = {
        each.config.method.penalty for each in first if isinstance(each.config.method, LinearConfig)
    }
    assert penalties == set(PENALTIES)
    assert {"linear", "forest", "boosting"} == set(methods(first))
    assert len(set(names(first))) == len(first), "each has a folder of its own"
    assert usual.third(0.3) == []


def test_twenty_minutes_try_networks_beside_them() -> None:
    long = menu(minutes=20)
    long.first()
    assert methods(long.third(0.3)) == ["nnpu", "teacher", "ncpu"]


def test_simple_ones_come_before_large_ones() -> None:
    long = menu(minutes=20)
    first, third = long.first(), long.third(0.3)
    assert max(each.rank for each in first) < min(each.rank for each in third)
    linear = [each.rank for each in first if each.family == "linear"]
    assert max(linear) < min(each.rank for each in first if each.family != "linear")


def test_what_the_time_does_not_allow_is_left_out() -> None:
    large = Amount(3_000_000, 1000, images=False)
    short, long = menu(minutes=0.5, amount=large).first(), menu(minutes=9999, amount=large).first()
    assert len(short) < len(long)
    for budget in (0.1, 1, 10):
        chosen = menu(minutes=budget, amount=large).first()
        assert sum(6 * each.seconds for each in chosen) <= budget * 60


def test_candidates_are_tried_alone_and_whatever_they_cost() -> None:
    asked = menu(minutes=0.001, candidates=["forest", "nnpu"])
    assert methods(asked.first()) == ["forest"]
    assert methods(asked.third(0.3)) == ["nnpu"]


def test_also_adds_to_the_usual_ones() -> None:
    asked = menu(also=["nnpu", "puet"])
    assert set(methods(asked.first())) == {"linear", "forest", "boosting"}
    assert methods(asked.third(0.3)) == ["nnpu", "puet"]


def test_what_was_tried_already_is_not_tried_again() -> None:
    asked = menu(also=["linear", "forest"])
    asked.first()
    assert asked.third(0.3) == []


def test_an_average_that_was_asked_for_alone_is_tried() -> None:
    asked = menu(candidates=["average"])
    assert asked.first() == []
    (average,) = asked.third(None)
    assert average.config.method == AverageConfig()


def test_near_families_get_a_second_pass() -> None:
    usual = menu()
    best = {each.family: each for each in reversed(usual.first())}
    (twice,) = usual.second(best, ["linear", "boosting"])
    assert twice.name == f"{best['linear'].name}-twice"
    assert twice.config.method == best["linear"].config.method.model_copy(update={"passes": 2})


def test_an_average_is_of_these_parts_with_their_spreads() -> None:
    usual = menu()
    best = {each.family: each for each in reversed(usual.first())}
    (twice,) = usual.second(best, ["linear"])
    parts = {"linear-twice": twice, "boosting": best["boosting"]}
    average = usual.average(parts, {"linear-twice": 0.5, "boosting": 2.0})
    settings = average.config.method
    assert isinstance(settings, AverageConfig)
    assert settings.parts() == {
        "linear_twice": twice.config.method,
        "boosting": best["boosting"].config.method,
    }
    assert settings.spreads == {"linear_twice": 0.5, "boosting": 2.0}
    assert average.words == "the average of a linear model fitted again and boosted trees"


def test_an_average_is_made_unless_only_others_are_asked_for() -> None:
    assert menu().may_average
    assert menu(candidates=["linear", "forest", "average"]).may_average
    assert not menu(candidates=["linear", "forest"]).may_average


def test_methods_get_the_prior_that_they_need() -> None:
    (nnpu,) = menu(candidates=["nnpu"]).third(0.37)
    assert nnpu.config.prior == 0.37
    (forest,) = menu(candidates=["forest"]).first()
    assert forest.config.prior == "auto"


def test_without_a_prior_methods_that_need_one_are_left_out() -> None:
    long = menu(minutes=20)
    assert "nnpu" not in methods(long.third(None))
    assert not long.wants_prior, "nobody asked for it"
    assert menu(candidates=["nnpu"]).wants_prior
    assert menu(also=["nnpu"]).wants_prior
    assert not menu(also=["forest"]).wants_prior


def test_a_batch_is_full_in_the_smallest_fold() -> None:
    """Of 13 unlabelled items a batch takes 12, and without a fold there are only 10."""
    part = Amount(18, 8, images=False)
    whole = Amount(23, 10, images=False)
    (planned,) = menu(candidates=["nnpu"], amount=whole, part=part).third(0.3)
    train = planned.config.train
    positives = train.positives_per_batch if train.batching == "stratified" else 0
    assert train.batch_size <= part.rows
    assert train.batch_size - positives <= part.rows - part.labelled


def test_the_smallest_part_is_what_the_largest_folds_leave() -> None:
    labelled = np.arange(20) < 8
    fold = np.array([0, 0, 0, 0, 1, 1, 2, 2] + [1] * 7 + [0] * 2 + [2] * 3)
    data = PUDataset(
        Selection(np.zeros((20, 1)), np.arange(20)), labelled, np.zeros(20, int), ("",) * 20
    )
    assert smallest_part(data, fold, images=False) == Amount(4 + 5, 4, images=False)


@pytest.mark.parametrize("minutes", [6, 61])
def test_more_time_trains_networks_for_longer(minutes: float) -> None:
    (short,) = menu(minutes=6, candidates=["nnpu"], amount=Amount(9000, 900, False)).third(0.3)
    (long,) = menu(minutes=minutes, candidates=["nnpu"], amount=Amount(9000, 900, False)).third(0.3)
    assert (long.config.train.epochs > short.config.train.epochs) == (minutes > 60)
