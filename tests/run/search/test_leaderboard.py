"""Who wins, who is given up, and what the table says of it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from onesided.metrics.pu import proxy_auc
from onesided.metrics.selection import difference
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


def tied() -> Leaderboard:
    """Return a large candidate that is a little better than a simple one, by chance."""
    one, other = entry("one", 1.0, rank=0), entry("other", 1.0, rank=0, noise=1)
    highest, lower = sorted((one, other), key=lambda each: board(each).auc(each), reverse=True)
    large = replace(highest.candidate, rank=9, words="the large one")
    return board(replace(highest, candidate=large), lower)


def test_within_one_standard_error_the_simplest_family_wins() -> None:
    found = tied()
    gap = difference(found.winner.scores, found.highest.scores, LABELLED)
    assert -gap.error <= gap.value < 0
    assert (found.winner.candidate.rank, found.highest.candidate.rank) == (0, 9)


def test_just_beyond_one_standard_error_the_better_one_wins() -> None:
    for strength in np.linspace(1.0, 1.4, 9):
        simple, large = entry("simple", 1.0, rank=0), entry("large", strength, rank=9, noise=1)
        gap = difference(simple.scores, large.scores, LABELLED)
        expected = "simple" if gap.value >= -gap.error else "large"
        assert board(simple, large).winner.candidate.name == expected


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
    assert board(*tried, given_up).optimism() == board(*tried).optimism() > 0
    assert board(tried[0]).optimism() == 0


def test_the_sentence_says_why_the_winner_was_kept() -> None:
    best = board(entry("simple", 0.2, rank=0), entry("large", 1.5, rank=9, noise=1))
    said = search_sentence({"leaderboard": best.to_json(), "optimism": 0.0123})
    assert said.startswith("2 models were tried")
    assert "The large was kept: it has the highest proxy AUC." in said
    assert "lowered by 0.012" in said
    said = search_sentence({"leaderboard": tied().to_json(), "optimism": 0.0})
    assert "was kept: it is simpler than the large one, which is not better" in said


@pytest.mark.parametrize("result", [{}, {"leaderboard": []}, {"leaderboard": [{"won": True}]}])
def test_without_a_search_there_is_no_sentence(result: dict[str, object]) -> None:
    assert search_sentence(result) == ""
