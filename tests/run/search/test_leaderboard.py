"""Who wins, who is given up, and what the table says of it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from onesided.metrics.pu import proxy_auc
from onesided.metrics.selection import Optimism, difference
from onesided.metrics.stored import search_sentence
from onesided.run.search.candidates import Candidate
from onesided.run.search.leaderboard import Entry, Leaderboard
from tests.run.search.searching import numbered, problem_of

ROWS, POSITIVES, FOLDS = 300, 60, 5
LABELLED = np.arange(ROWS) < POSITIVES
FOLD = np.arange(ROWS) % FOLDS
CONFIG = problem_of(numbered(), 20).config


def entry(
    name: str, strength: float, *, rank: float, family: str = "", noise: int = 0, until: int = FOLDS
) -> Entry:
    """Return a candidate that sees a common signal, and noise of its own."""
    common = np.random.default_rng(99).normal(size=ROWS)
    own = np.random.default_rng(noise).normal(size=ROWS)
    logits = strength * LABELLED + common + 0.3 * own
    scores = np.where(until > FOLD, 1 / (1 + np.exp(-logits)), np.nan)
    candidate = Candidate(name, family or name, f"the {name}", CONFIG, False, 1.0, rank)
    return Entry(candidate, scores, 2.0)


def board(*entries: Entry) -> Leaderboard:
    return Leaderboard(entries, LABELLED, FOLD, np.arange(ROWS))


def names(entries: list[Entry]) -> list[str]:
    return [each.candidate.name for each in entries]


def test_a_clearly_better_candidate_wins_however_complex_it_is() -> None:
    found = board(entry("simple", 0.2, rank=0), entry("large", 1.5, rank=9, noise=1))
    assert found.highest.candidate.name == "large"
    assert found.winner.candidate.name == "large"


def with_average(*entries: Entry, family: str = "average") -> Leaderboard:
    """Return a board whose last entry is the average of others, not the highest of all."""
    tried = board(*entries)
    parts = tried.tied()
    candidate = Candidate(family, family, "the average", CONFIG, False, 1.0, 5)
    candidate = replace(candidate, config=replace(CONFIG, method_name="average"))
    mean = Entry(candidate, parts[-1].scores, 0.0, averages=tuple(names(parts)))
    return board(*entries, mean)


def pair() -> tuple[Entry, Entry]:
    """Return a linear model and a forest that are equally good but for chance, the better first."""
    one = entry("linear-1", 1.0, rank=0, family="linear")
    other = entry("forest", 1.0, rank=2, noise=1)
    first, second = sorted((one, other), key=lambda each: board(each).auc(each), reverse=True)
    return first, second


def test_models_within_one_standard_error_of_the_best_are_tied() -> None:
    for strength in np.linspace(1.0, 1.4, 9):
        simple = entry("linear-1", 1.0, rank=0, family="linear")
        large = entry("forest", strength, rank=9, noise=1)
        gap = difference(simple.scores, large.scores, LABELLED)
        expected = ["linear-1", "forest"] if abs(gap.value) <= gap.error else ["forest"]
        assert names(board(simple, large).tied()) == expected


def test_networks_are_not_averaged() -> None:
    assert names(board(*pair(), entry("teacher", 1.0, rank=9, noise=2)).tied()) == names(
        board(*pair()).tied()
    )
    assert board(entry("teacher", 1.0, rank=9)).tied() == []


def test_an_average_stands_for_all_that_could_be_averaged() -> None:
    better, worse = pair()
    found = with_average(better, worse)
    assert found.highest is better
    assert found.winner.candidate.name == "average"


def test_a_network_that_is_higher_than_the_average_wins() -> None:
    found = with_average(*pair(), entry("teacher", 1.5, rank=9, noise=2))
    assert found.winner.candidate.name == "teacher"


def test_a_network_between_the_average_and_the_best_of_its_parts_does_not_win() -> None:
    better, worse = pair()
    between = replace(entry("teacher", 1.0, rank=9), scores=better.scores.copy())
    # Lower than the better of the two by a single pair: one positive falls below the next of U.
    positive = np.flatnonzero(LABELLED)[np.argmax(better.scores[LABELLED])]
    below = better.scores[~LABELLED & (better.scores < better.scores[positive])]
    between.scores[positive] = below.max() - 1e-9
    found = with_average(better, worse, between)
    assert found.auc(worse) < found.auc(between) < found.auc(better)
    assert found.winner.candidate.name == "average"


def test_on_equal_figures_the_simpler_one_wins() -> None:
    simple, large = entry("simple", 1.0, rank=0), entry("large", 1.0, rank=9)
    assert board(large, simple).winner is simple


def test_within_a_family_the_highest_counts() -> None:
    tried = [entry(f"l{n}", 1.0, rank=n / 100, family="linear", noise=n) for n in range(6)]
    found = board(*tried)
    aucs = [proxy_auc(each.scores[LABELLED], each.scores[~LABELLED]) for each in tried]
    assert found.winner is tried[int(np.argmax(aucs))]
    assert found.best_of_families() == {"linear": found.winner.candidate}


def test_one_that_was_given_up_never_wins() -> None:
    best_so_far = entry("short", 3.0, rank=0, until=2)
    found = board(best_so_far, entry("whole", 0.5, rank=9, noise=1))
    assert found.winner.candidate.name == "whole"
    assert names(found.complete) == ["whole"]


def test_a_clearly_worse_candidate_is_given_up_and_an_equal_one_is_not() -> None:
    best = entry("best", 1.5, rank=0)
    found = board(best)
    assert found.clearly_worse(entry("poor", -0.5, rank=1, until=1, noise=1), best)
    assert not found.clearly_worse(entry("equal", 1.5, rank=1, until=1, noise=1), best)


def test_with_few_positives_nobody_is_given_up() -> None:
    best = entry("best", 1.5, rank=0)
    poor = entry("poor", -3.0, rank=1, noise=1)
    positives = np.flatnonzero(LABELLED)
    for scored in (1, 2, 9):
        hidden = poor.scores.copy()
        hidden[positives[scored:]] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not board(best).clearly_worse(Entry(poor.candidate, hidden, 1.0), best)
    hidden[positives[9]] = poor.scores[positives[9]]
    assert board(best).clearly_worse(Entry(poor.candidate, hidden, 1.0), best)


def test_only_families_that_are_not_clearly_worse_are_near() -> None:
    found = board(
        entry("best", 1.5, rank=0),
        entry("equal", 1.5, rank=1, noise=1),
        entry("poor", -0.5, rank=2, noise=2),
    )
    assert found.near() == ["best", "equal"]


def test_the_table_shows_the_best_of_each_family_and_given_up_ones_last() -> None:
    found = board(
        entry("l-strong", 0.1, rank=0, family="linear"),
        entry("l-weak", 1.5, rank=0.1, family="linear", noise=1),
        entry("short", 3.0, rank=1, until=2, noise=2),
        entry("poor", -0.5, rank=2, noise=3),
    )
    rows = found.to_json()
    assert [row["name"] for row in rows] == ["l-weak", "poor", "short"]
    assert [row["folds"] for row in rows] == [5, 5, 2]
    assert [row["won"] for row in rows] == [True, False, False]
    assert rows[0]["tried"] == 2
    assert rows[0]["seconds"] == 4.0
    scores = found.entries[1].scores
    assert rows[0]["proxy_auc"] == proxy_auc(scores[LABELLED], scores[~LABELLED])
    known = FOLD < 2
    few = found.entries[2].scores
    assert rows[2]["proxy_auc"] == proxy_auc(few[known & LABELLED], few[known & ~LABELLED])
    for row in rows:
        assert row["low"] < row["proxy_auc"] < row["high"]


def test_optimism_counts_those_that_could_have_won() -> None:
    tried = [entry(f"m{n}", 0.0, rank=n, noise=n) for n in range(8)]
    given_up = entry("short", 0.0, rank=9, until=1, noise=9)
    assert board(*tried, given_up).optimism() == board(*tried).optimism()
    assert board(*tried).optimism().auc > 0
    assert board(tried[0]).optimism() == Optimism()


def test_the_sentence_says_why_the_winner_was_kept() -> None:
    best = board(entry("simple", 0.2, rank=0), entry("large", 1.5, rank=9, noise=1))
    said = search_sentence({"leaderboard": best.to_json(), "optimism": 0.0123})
    assert said.startswith("2 models were tried")
    assert "The large was kept: none of the others ranks better." in said
    assert "lowered by 1.2 percentage points" in said
    said = search_sentence({"leaderboard": with_average(*pair()).to_json(), "optimism": 0.0})
    assert "The average was kept: these did equally well as far as can be told" in said
    simple = [
        {
            **row,
            "won": row["name"] != "large",
            "method": "teacher" if row["name"] == "large" else "linear",
        }
        for row in best.to_json()
    ]
    said = search_sentence({"leaderboard": simple, "optimism": 0.0})  # a result of before
    assert "A simple model did as well as a larger one. The simple was kept, because" in said
    assert "because the large is not better by more than chance explains." in said
    assert "No negative was needed for that" in said


@pytest.mark.parametrize("result", [{}, {"leaderboard": []}, {"leaderboard": [{"won": True}]}])
def test_without_a_search_there_is_no_sentence(result: dict[str, object]) -> None:
    assert search_sentence(result) == ""
