"""The page on speed and budgets: verdicts follow from the result files."""

from typing import Any

import pytest

from benchmarks.performance import (
    Goal,
    Reached,
    goals,
    growth,
    memory,
    upper_bounds,
    what_matters,
)
from tests.benchmarks.fakes import fake_content, fake_record, figures


def on_cifar10(label: str, seed: int, accuracy: float, *, seconds: float = 60) -> dict[str, Any]:
    record = fake_record(label, seed, figures(accuracy))
    return {**record, "data": "cifar10", "seconds": seconds}


def cells(table: str, first: str) -> list[str]:
    line = next(line for line in table.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize(
    ("accuracy", "minutes", "verdict"),
    [
        (95.0, 60.0, "reached by `long`"),
        (94.0, 60.0, "`long` is 1.0 points short, 0 minutes unspent"),
        (99.0, 60.1, "`short` is 2.0 points short, 54 minutes unspent"),
    ],
)
def test_a_preset_that_takes_too_long_does_not_reach_a_goal(
    accuracy: float, minutes: float, verdict: str
) -> None:
    presets = {"short": Reached([(93.0, 6)]), "long": Reached([(accuracy, minutes)])}
    assert Goal(95, 60).verdict(presets) == verdict


def test_a_verdict_says_how_many_runs_took_too_long() -> None:
    presets = {"long": Reached([(96.0, 30), (99.0, 62)])}
    assert Goal(95, 60).verdict(presets) == "reached by `long` in 1 of 2 runs"
    assert presets["long"].words == "97.5 ± 2.1 % in 30.0 to 62.0"


def test_where_nothing_is_fast_enough_the_verdict_says_so() -> None:
    assert Goal(95, 60).verdict({"long": Reached([(99, 70)])}) == "no preset is fast enough"


def test_a_goal_is_compared_with_the_mean_of_the_seeds() -> None:
    runs = [on_cifar10("Teacher", seed, 0.9 + 0.05 * seed, seconds=600) for seed in (0, 1)]
    assert cells(goals({"quick": fake_content(*runs)}), "92 % in 20 minutes") == [
        "92 % in 20 minutes",
        "92.5 ± 3.5 % in 10.0",
        "reached by `quick`",
    ]


def test_the_upper_bound_is_compared_on_seeds_that_both_have() -> None:
    runs = [
        on_cifar10("Teacher", 0, 0.9),
        on_cifar10("Teacher", 1, 0.5),
        on_cifar10("Supervised", 0, 0.96),
        on_cifar10("Supervised", 2, 0.5),
    ]
    table = upper_bounds({"quick": fake_content(*runs)})
    assert cells(table, "`quick`")[1:] == ["1", "90.0", "96.0", "6.0"]


def test_switches_that_hardly_matter_are_listed_apart_from_those_that_do() -> None:
    rows = {"budget": 0.9, "views": 0.85, "votes": 0.905}
    content = fake_content(*(on_cifar10(label, 0, one) for label, one in rows.items()))
    large, small = what_matters(content).split(". ")
    assert large == "A point of accuracy or more from `budget`: views (-5.0)"
    assert small.endswith("so few seeds: votes.")


def test_without_an_upper_bound_the_page_says_so() -> None:
    assert "no seed has finished both" in upper_bounds({"quick": fake_content()})


def test_a_preset_above_the_bound_of_memory_is_called_too_much() -> None:
    rows = [{"preset": "quick", "peak_mb": 900.2}, {"preset": "standard", "peak_mb": 1200.0}]
    place = {"commit": "0123", "dirty": False, "machine": {"cpu": "any", "cores": 2, "threads": 1}}
    table = memory({"bound_mb": 1000, "rows": rows, "origin": place})
    assert cells(table, "`quick`")[1] == "900 MB"
    assert cells(table, "`standard`")[1] == "1200 MB: too much"
    assert cells(table, "`evening`")[1] == "not measured"


def test_the_memory_of_one_more_image_is_the_difference_of_two_folders_per_image() -> None:
    def row(images: int, fit: float, rank: float) -> dict[str, Any]:
        return {"images": images, "fit": {"peak_mb": fit}, "rank": {"peak_mb": rank}}

    content: dict[str, Any] = {"side": 64, "rows": [row(1024, 700, 500), row(3072, 702, 499)]}
    assert growth(content) == (
        "One more image takes 1.0 KB with `fit` and 0.0 KB with `rank`; its pixels are 12 KB."
    )
    content["rows"].pop()
    assert growth(content) == "The larger folder is not measured yet."
