"""Choosing among models: paired differences, and the luck of the best."""

import tracemalloc

import numpy as np
import pytest

from onesided.metrics import selection
from onesided.metrics.intervals import AucSpread, auc_spread
from onesided.metrics.pu import evaluate_pu, proxy_auc
from onesided.metrics.selection import SHARES, Optimism, difference, optimism


def slow_placement(score: float, reference: np.ndarray) -> float:
    return float(np.mean([(score > other) + 0.5 * (score == other) for other in reference]))


def slow_difference(
    first: np.ndarray, second: np.ndarray, labelled: np.ndarray
) -> tuple[float, float]:
    """DeLong's paired variance, from the placements of every item, with loops."""
    gaps = []
    for mask in (labelled, ~labelled):
        gap = [
            slow_placement(first[i], first[~mask]) - slow_placement(second[i], second[~mask])
            for i in np.flatnonzero(mask)
        ]
        gaps.append(gap)
    variance = sum(
        sum((g - sum(gap) / len(gap)) ** 2 for g in gap) / (len(gap) - 1) / len(gap) for gap in gaps
    )
    return sum(gaps[0]) / len(gaps[0]), variance**0.5


def two_models(
    seed: int, *, positives: int = 40, unlabelled: int = 160, alike: float = 0.8
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores of two models that see the same signal with noise partly in common."""
    random = np.random.default_rng(seed)
    labelled = np.arange(positives + unlabelled) < positives
    common = labelled + random.normal(size=len(labelled))
    own = random.normal(size=(2, len(labelled)))
    first, second = alike * common + (1 - alike) * own
    return first, second, labelled


@pytest.mark.parametrize("seed", range(3))
def test_the_difference_is_delongs(seed: int) -> None:
    first, second, labelled = two_models(seed, positives=9, unlabelled=14)
    first = np.round(first, 1)  # with ties
    found = difference(first, second, labelled)
    value, error = slow_difference(first, second, labelled)
    assert found.value == pytest.approx(value)
    assert found.error == pytest.approx(error)


def test_the_error_is_that_of_a_bootstrap() -> None:
    first, second, labelled = two_models(1)
    random = np.random.default_rng(0)
    of_p, of_u = np.flatnonzero(labelled), np.flatnonzero(~labelled)
    drawn = []
    for _ in range(800):
        p, u = random.choice(of_p, len(of_p)), random.choice(of_u, len(of_u))
        drawn.append(proxy_auc(first[p], first[u]) - proxy_auc(second[p], second[u]))
    assert difference(first, second, labelled).error == pytest.approx(np.std(drawn), rel=0.15)


def test_what_two_models_have_in_common_cancels() -> None:
    first, second, labelled = two_models(2, alike=0.9)
    alone = auc_spread(first[labelled], first[~labelled])
    slope = alone.value * (1 - alone.value)
    assert difference(first, second, labelled).error < 0.5 * alone.error * slope


def test_a_model_does_not_differ_from_itself() -> None:
    first, _, labelled = two_models(0)
    found = difference(first, 3 * first - 7, labelled)
    assert (found.value, found.error) == (0, 0)


@pytest.mark.parametrize("of", ["positive", "unlabelled"])
def test_a_single_item_says_nothing_of_the_spread(of: str) -> None:
    first, second, labelled = two_models(0, positives=1, unlabelled=20)
    labelled = labelled if of == "positive" else ~labelled
    assert difference(first, second, labelled).error == np.inf


def noise(models: int, seed: int, rows: int = 150) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.uniform(size=(models, rows)), np.arange(rows) < rows // 3


def test_of_models_without_any_skill_all_of_the_lead_is_luck() -> None:
    leads, estimates = [], []
    for seed in range(12):
        scores, labelled = noise(20, seed)
        leads.append(max(proxy_auc(row[labelled], row[~labelled]) for row in scores) - 0.5)
        estimates.append(optimism(scores, labelled, np.arange(len(labelled))).auc)
    assert np.mean(leads) > 0.06, "the best of twenty looks good by luck"
    assert np.mean(estimates) == pytest.approx(np.mean(leads), rel=0.35)


def test_where_one_model_is_clearly_best_nothing_was_luck() -> None:
    scores, labelled = noise(5, 0, rows=600)
    scores[2] += labelled
    found = optimism(scores, labelled, np.arange(600))
    assert found.auc < 0.005
    assert max(found.recall) < 0.02


def test_the_recall_of_the_best_of_many_is_lowered_by_about_its_luck() -> None:
    """Models that differ by chance alone: of new positives 1 - t score above a threshold t."""
    luck, estimates = [], []
    for seed in range(40):
        scores, labelled = noise(20, seed, rows=200)
        best = max(scores, key=lambda row: proxy_auc(row[labelled], row[~labelled]))
        threshold = np.quantile(best[~labelled], 0.7)
        luck.append(float((best[labelled] > threshold).mean()) - (1 - threshold))
        estimates.append(optimism(scores, labelled, np.arange(200)).of_recall(0.3))
    assert np.mean(luck) > 0.04
    assert np.mean(estimates) == pytest.approx(np.mean(luck), rel=0.3)


def test_a_difference_of_models_knows_groups() -> None:
    random = np.random.default_rng(3)
    group = np.repeat(np.arange(40), 5)
    labelled = np.arange(200) < 100
    common = random.normal(size=(2, 40))[:, group]
    first, second = common + 0.1 * random.normal(size=(2, 200)) + labelled
    apart = difference(first, second, labelled)
    together = difference(first, second, labelled, group)
    assert together.value == apart.value
    assert together.error > 1.5 * apart.error
    assert difference(first, second, labelled, np.arange(200)) == apart


def test_a_single_model_was_not_chosen() -> None:
    scores, labelled = noise(1, 0)
    assert optimism(scores, labelled, np.arange(150)) == Optimism()
    assert Optimism().of_recall(0.3) == 0


def test_optimism_is_the_same_every_time() -> None:
    scores, labelled = noise(4, 1)
    groups = np.arange(150)
    assert optimism(scores, labelled, groups) == optimism(scores, labelled, groups)


def test_items_of_one_group_are_drawn_together() -> None:
    """Copies of every item make the draws no more certain than the originals do."""
    scores, labelled = noise(10, 2, rows=90)
    once = optimism(scores, labelled, np.arange(90))
    copied = np.tile(scores, 4), np.tile(labelled, 4)
    again = optimism(*copied, np.tile(np.arange(90), 4))
    assert again.auc == pytest.approx(once.auc, abs=1e-12)
    # A share of few items is rounded down further than that of their copies.
    assert np.mean(again.recall) == pytest.approx(np.mean(once.recall), rel=0.2)
    apart = optimism(*copied, np.arange(360))
    assert apart.auc < 0.8 * once.auc
    assert np.mean(apart.recall) < 0.8 * np.mean(once.recall)


def test_optimism_is_defined_where_every_positive_is_of_one_group() -> None:
    scores, labelled = noise(3, 0, rows=30)
    assert optimism(scores, labelled, np.where(labelled, 0, np.arange(30))).auc >= 0


def slow_optimism(
    scores: np.ndarray, labelled: np.ndarray, times: np.ndarray
) -> tuple[float, list[float]]:
    """BBC-CV of Tsamardinos et al. (2018) with items repeated rather than weighted.

    The recall at a share: the threshold is that below which this share of the drawn U is called.
    """

    def auc(row: np.ndarray, items: np.ndarray) -> float:
        p, u = items[labelled[items]], items[~labelled[items]]
        return float(np.mean([[(a > b) + 0.5 * (a == b) for b in row[u]] for a in row[p]]))

    def recall(row: np.ndarray, threshold: float, items: np.ndarray) -> float:
        return float(np.mean([row[i] > threshold for i in items[labelled[items]]]))

    def recalls(row: np.ndarray, inside: np.ndarray, counted: np.ndarray) -> list[float]:
        pool, found = np.sort(row[inside[~labelled[inside]]]), []
        for share in SHARES:
            # A positive is found above the highest item of U that is not called.
            left = [
                value for number, value in enumerate(pool, 1) if number <= (1 - share) * len(pool)
            ]
            found.append(recall(row, max(left, default=-np.inf), counted))
        return found

    elsewhere, outside_recalls = [], []
    for draw in times:
        inside, outside = np.repeat(np.arange(len(draw)), draw), np.flatnonzero(draw == 0)
        best = max(range(len(scores)), key=lambda k: auc(scores[k], inside))
        elsewhere.append(auc(scores[best], outside))
        outside_recalls.append(recalls(scores[best], inside, outside))
    every = np.arange(len(labelled))
    best_of_all = max(scores, key=lambda row: auc(row, every))
    lost = np.array(recalls(best_of_all, every, every)) - np.mean(outside_recalls, axis=0)
    return auc(best_of_all, every) - float(np.mean(elsewhere)), [max(0.0, one) for one in lost]


def test_weights_do_what_repeated_items_do(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, labelled = noise(3, 5, rows=24)
    scores = np.round(scores, 1)  # with ties
    random = np.random.default_rng(0)
    times = np.stack([np.bincount(random.integers(24, size=24), minlength=24) for _ in range(20)])
    monkeypatch.setattr(selection, "RESAMPLES", 20)
    monkeypatch.setattr(selection, "_draws", lambda groups, random: [times.astype(np.int32)])
    auc, recall = slow_optimism(scores, labelled, times)
    found = optimism(scores, labelled, np.arange(24))
    assert found.auc == pytest.approx(max(0.0, auc))
    assert found.recall == pytest.approx([max(0.0, one) for one in recall])


def test_few_draws_at_a_time_give_the_bits_of_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, labelled = noise(4, 3, rows=301)
    groups = np.arange(301) // 2
    whole = optimism(scores, labelled, groups)
    for cells in (1, 301 * 7, 301 * 64 + 5):
        monkeypatch.setattr(selection, "CELLS", cells)
        assert optimism(scores, labelled, groups) == whole


def test_memory_does_not_grow_with_the_number_of_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, labelled = noise(2, 3, rows=20_000)
    monkeypatch.setattr(selection, "CELLS", 2**17)
    tracemalloc.start()
    optimism(scores, labelled, np.arange(20_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    of_all_draws = 4 * selection.RESAMPLES * 20_000
    assert peak < 0.5 * of_all_draws


def test_an_optimism_lowers_the_auc_and_widens_its_interval() -> None:
    spread = AucSpread(0.8, float(np.log(4)), 0.2)
    lowered = spread.less(0.05)
    assert lowered.value == pytest.approx(0.75)
    (low, high), (old_low, old_high) = lowered.interval(0.95), spread.interval(0.95)
    assert low < old_low - 0.05
    assert high - low > old_high - old_low
    assert low < lowered.value < high


def test_without_optimism_nothing_changes() -> None:
    spread = AucSpread(0.8, float(np.log(4)), 0.2)
    assert spread.less(0.0) == spread


@pytest.mark.parametrize("value", [0.01, 0.5, 0.999])
def test_a_lowered_auc_stays_in_the_unit_interval(value: float) -> None:
    random = np.random.default_rng(0)
    spread = auc_spread(random.uniform(size=20) + (value > 0.9), random.uniform(size=20))
    low, high = spread.less(0.6).interval(0.95)
    assert 0 <= low <= spread.less(0.6).value <= high <= 1


def test_the_figures_lower_the_proxy_auc_and_leave_recall() -> None:
    random = np.random.default_rng(0)
    positive, unlabelled = random.beta(5, 2, 60), random.beta(2, 3, 200)
    plain, less = (
        evaluate_pu(
            positive, unlabelled, scenario="case-control", prior=0.1, optimism=optimism_of
        ).figures
        for optimism_of in (0.0, 0.04)
    )
    assert plain["proxy_auc"].value is not None
    assert less["proxy_auc"].value == pytest.approx(plain["proxy_auc"].value - 0.04)
    assert plain["auc"].value is not None
    assert less["auc"].value == pytest.approx(plain["auc"].value - 0.04 / 0.9)
    assert less["recall"] == plain["recall"]
    assert less["share_positive"] == plain["share_positive"]
