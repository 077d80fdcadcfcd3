"""Problems whose labelling is known: does the test keep its level, and see what it says it sees?"""

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from onesided.core.labels import NEGATIVE
from onesided.metrics.audit import UNANSWERED
from onesided.metrics.audit_design import audit_sample
from onesided.metrics.typical import (
    DRAWS,
    Cells,
    Sample,
    Typical,
    TypicalByAudit,
    _chance_of_gap,
    _p,
    compare_with_audit,
    is_typical,
)

PRIOR, GAP = 0.3, 3.0


def drawn(
    seed: int, ratio: float, *, positives: int = 100, unlabelled: int = 600
) -> tuple[Sample, Sample, np.ndarray]:
    """Return P, U and the probabilities of U; one half of the positives is labelled more often."""
    random = np.random.default_rng(seed)
    hidden = random.random(unlabelled) < PRIOR
    pool = random.standard_normal((unlabelled, 3))
    pool[:, 0] += GAP * hidden
    every = random.standard_normal((20 * positives, 3))
    every[:, 0] += GAP
    chance = np.where(every[:, 1] > 0, ratio, 1.0)
    labelled = every[random.choice(len(every), positives, replace=False, p=chance / chance.sum())]
    return Sample(_scores(labelled), labelled), Sample(_scores(pool), pool), _scores(pool)


def _scores(samples: np.ndarray) -> np.ndarray:
    return np.asarray(expit(GAP * samples[:, 0] - GAP**2 / 2 + np.log(PRIOR / (1 - PRIOR))))


def rejected(ratio: float, problems: int, **sizes: int) -> float:
    found = 0
    for seed in range(problems):
        positive, unlabelled, _ = drawn(seed, ratio, **sizes)
        cells = Cells.of(unlabelled, PRIOR)
        p = _p(
            cells.counts(positive),
            len(positive.scores),
            cells.counts(unlabelled),
            len(unlabelled.scores),
            PRIOR,
        )
        found += p < 0.05
    return found / problems


def test_a_typical_p_is_rejected_no_more_often_than_the_level_says() -> None:
    assert rejected(1, 200) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)


def test_power_grows_with_the_bias() -> None:
    found = [rejected(ratio, 30, positives=200, unlabelled=2000) for ratio in (1, 4, 16)]
    assert found[0] <= 0.1
    assert found[0] < found[1] < found[2]
    assert found[2] > 0.9


def test_the_power_that_is_stated_is_the_power_that_it_has() -> None:
    sizes = {"positives": 200, "unlabelled": 2000}
    stated = []
    for seed in range(3):
        positive, unlabelled, probabilities = drawn(seed, 1, **sizes)
        stated.append(is_typical(positive, unlabelled, probabilities, prior=PRIOR).power[4])
    spread = 2 * np.sqrt(0.25 / 40 + 0.25 / (3 * DRAWS)) + 0.1  # of both, and of three pools
    assert np.mean(stated) == pytest.approx(rejected(4, 40, **sizes), abs=spread)


def slow_p(in_p: int, of_p: int, in_u: int, of_u: int, cells: int) -> float:
    """Return the smallest level at which exact bounds contradict each other, by trying them."""
    shares = np.linspace(0, 1, 4001)
    for level in np.geomspace(1e-8, 1, 400):
        error = level / (2 * cells)
        low = shares[binom.sf(in_p - 1, of_p, shares) >= error].min() if in_p else 0.0
        high = shares[binom.cdf(in_u, of_u, shares) >= error].max()
        if PRIOR * low > high:
            return float(level)
    return 1.0


@pytest.mark.parametrize(("in_p", "in_u"), [(60, 30), (45, 20), (30, 60), (0, 5), (80, 0)])
def test_p_is_that_of_a_slow_search_over_levels(in_p: int, in_u: int) -> None:
    others = (np.array([in_p, 1, 1]), 80, np.array([in_u, 300, 300]), 400)
    found = _p(*others, PRIOR)
    slow = slow_p(in_p, 80, in_u, 400, 3)
    assert found == pytest.approx(slow, rel=0.15, abs=1e-7)


def test_cells_are_levels_of_the_score_and_halves_above_them() -> None:
    _, unlabelled, _ = drawn(0, 1)
    cells = Cells.of(unlabelled, PRIOR)
    counts = cells.counts(unlabelled)
    assert counts[0] == pytest.approx(PRIOR * 600, abs=1)
    assert counts[7] == pytest.approx(PRIOR * 300, abs=1)  # behind one level and its six halves
    for level in (counts[:7], counts[7:]):
        above, below = level[1:4], level[4:7]
        assert (above + below == level[0]).all()
        assert (np.abs(above - below) <= 1).all()


def test_each_outcome_has_its_words() -> None:
    strong, none = {2: 0.1, 4: 0.8, 8: 1.0}, {2: 0.0, 4: 0.0, 8: 0.1}
    assert "P is not typical of all positives (p = 0.001)" in Typical(0.001, strong).sentence
    assert "pusb and lbe" in Typical(0.001, none).sentence
    assert "4 times 80%, 8 times 100%" in Typical(0.4, strong).sentence
    assert "cannot be told from P and U" in Typical(0.4, none).sentence
    assert "typical." not in Typical(0.4, none).sentence


def audited(seed: int, *, easy: float, size: int = 250) -> TypicalByAudit | None:
    """Return the test of P against an audit; P is drawn by exp(easy * score) among positives."""
    random = np.random.default_rng(seed)
    positive, negative = random.beta(3, 2, 900), random.beta(1, 4, 2100)
    scores, truth = np.append(positive, negative), np.arange(3000) < 900
    chance = np.exp(easy * positive)
    labelled = random.choice(positive, 150, p=chance / chance.sum())
    design = audit_sample(scores, size=size, threshold=0.5, target="recall", seed=seed)
    answers = np.full(3000, UNANSWERED)
    answers[design.order] = truth[design.order]
    return compare_with_audit(labelled, scores, design, answers)


@pytest.mark.slow
def test_an_audit_rejects_a_typical_p_no_more_often_than_it_says() -> None:
    rejected = sum(found.rejected for seed in range(25) if (found := audited(seed, easy=0)))
    assert rejected <= 3


def test_an_audit_sees_a_p_of_easy_positives_that_p_and_u_cannot_show() -> None:
    found = [audited(seed, easy=6) for seed in range(6)]
    assert sum(each is not None and each.rejected for each in found) >= 5
    one = found[0]
    assert one is not None
    assert one.of_p[0] > one.of_all[0]
    assert "P is not typical of all positives" in one.sentence
    assert one.to_json()["rejected"] is True


def test_the_widest_of_several_gaps_that_chance_allows_is_told() -> None:
    found = audited(0, easy=0, size=60)
    assert found is not None
    assert not found.rejected
    assert 0.02 < found.of_all[0] < 0.98
    assert "a difference that chance allows" in found.sentence


def test_an_audit_without_a_positive_says_nothing_of_p() -> None:
    scores = np.linspace(0, 1, 500)
    design = audit_sample(scores, size=30)
    answers = np.full(500, UNANSWERED)
    answers[design.order] = NEGATIVE
    assert compare_with_audit(scores[-50:], scores, design, answers) is None


def test_few_positives_in_the_pool_do_not_make_p_untypical() -> None:
    # All items are answered, so the pool's recall is known; but 15 positives are a small sample.
    found = []
    for seed in range(30):
        random = np.random.default_rng(seed)
        truth = np.arange(300) < 15
        scores = expit(random.standard_normal(300) + 1.5 * truth - 1)
        design = audit_sample(scores, size=300, threshold=0.5, seed=seed)
        labelled = expit(random.standard_normal(100) + 0.5)
        found.append(compare_with_audit(labelled, scores, design, truth.astype(np.int64)))
    assert sum(each is not None and each.rejected for each in found) <= 4


def test_the_chance_of_a_gap_is_that_of_drawing_p_among_all_positives() -> None:
    # 4 of P and 2 to 3 of 4 positives of the pool score higher: P takes 4 of the 7 there are.
    ways = [math.comb(7, of_p) * math.comb(1, 4 - of_p) / math.comb(8, 4) for of_p in range(3, 5)]
    assert _chance_of_gap(4, 4, (0.5, 0.7), 4) == pytest.approx(ways[1])
    assert _chance_of_gap(4, 4, (0.5, 1.0), 4) == 1.0
    assert _chance_of_gap(0, 4, (0.3, 1.0), 4) == pytest.approx(1 - 4 / 8)
    assert _chance_of_gap(4, 4, (0.0, 0.5), 0) == 1.0
