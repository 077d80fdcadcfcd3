"""Problems, figures and records of the panel, and the rules that are compared on its scores."""

from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import f1_score

from benchmarks import panel
from benchmarks.panel import Asked, figures, is_finished, named, precision_at, put, run_one
from benchmarks.panel_data import SETS, PanelSet, Places, Pool, Pools, Problem, draw, numbers_of
from benchmarks.panel_page import cells_of, figure_table, is_worse, page
from benchmarks.panel_rows import (
    ROWS,
    Row,
    Scored,
    elkan_noto,
    elkan_noto_in_pool,
    logistic_regression,
    platt,
    random_forest,
    supervised,
)
from benchmarks.selection import Tried, choices
from benchmarks.threshold_rules import best_threshold, decisions
from onesided.core.errors import ConfigError, DataError
from onesided.storage.atomic import read_json


def clouds(places: Places | None = None) -> Pools:
    random = np.random.default_rng(3)
    positive = np.arange(600) < 250
    values = random.normal(size=(600, 4)) + 2.5 * positive[:, None]
    return Pool(values.astype(np.float32), positive), None


CLOUDS = PanelSet("clouds", "two clouds", "vectors", 40, 300, 0.3, 100, clouds)


def asked(row: Row, key: str = "lr", seed: int = 0) -> Asked:
    return Asked(SETS["wine"], key, row, seed)


def test_a_problem_has_the_sizes_and_the_prior_it_promises() -> None:
    problem = draw(CLOUDS, clouds(), 0)
    assert problem.labels.sum() == 40
    assert len(problem.truth) == len(problem.pool) == 300
    assert problem.truth.sum() == 90
    assert problem.test_truth is not None
    assert problem.test_truth.sum() == 30


def test_no_sample_is_in_two_parts_of_a_problem() -> None:
    problem = draw(CLOUDS, clouds(), 1)
    assert problem.test is not None
    every = np.concatenate([problem.samples, problem.test])
    assert len(np.unique(every, axis=0)) == len(every)


def test_truth_and_labels_belong_to_their_samples() -> None:
    pool = clouds()[0]
    classes = {
        sample.tobytes(): bool(c) for sample, c in zip(pool.values, pool.positive, strict=True)
    }
    problem = draw(CLOUDS, clouds(), 2)
    of_samples = [classes[sample.tobytes()] for sample in problem.samples]
    assert of_samples == problem.classes.astype(bool).tolist()
    assert problem.test is not None
    assert problem.test_truth is not None
    of_test = [classes[sample.tobytes()] for sample in problem.test]
    assert of_test == problem.test_truth.astype(bool).tolist()


def test_a_seed_draws_the_same_problem_and_another_seed_another() -> None:
    first, again, other = (draw(CLOUDS, clouds(), seed) for seed in (5, 5, 6))
    assert np.array_equal(first.samples, again.samples)
    assert not np.array_equal(first.samples, other.samples)


def test_a_source_that_is_too_small_is_refused_in_a_sentence() -> None:
    with pytest.raises(
        DataError, match="needs 330 positive samples to train and its source has 250"
    ):
        draw(replace(CLOUDS, positives=240), clouds(), 0)


def test_sets_have_sizes_from_small_to_large() -> None:
    assert {one.form for one in SETS.values()} == {
        *("vectors", "images", "features", "tf-idf", "texts")
    }
    assert min(one.prior for one in SETS.values()) == 0.05
    assert max(one.unlabelled for one in SETS.values()) == 40_000


def test_categories_become_columns_and_numbers_stay() -> None:
    found = numbers_of([("1.5", "2", "-1"), ("red", "blue", "red")])
    assert found.tolist() == [[1.5, 0, 1], [2, 1, 0], [-1, 0, 1]]


def test_precision_at_is_the_mean_over_all_orders_of_ties() -> None:
    truth = np.array([1, 0, 1, 0, 0])
    scores = np.array([0.9, 0.5, 0.5, 0.5, 0.1])
    tops = [
        truth[list(order)[:2]].mean()
        for order in permutations(range(5))
        if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]
    assert precision_at(truth, scores, 2) == pytest.approx(np.mean(tops))
    assert precision_at(truth, scores, 100) == pytest.approx(2 / 5)


def test_figures_are_those_of_the_decisions() -> None:
    truth, scores = np.array([1, 1, 0, 0]), np.array([0.9, 0.2, 0.4, 0.1])
    found = figures(truth, scores, scores > 0.3)
    assert (found["f1"], found["share"], found["auc"]) == (0.5, 0.5, 0.75)


@pytest.mark.parametrize("prior", [0.2, 0.6])
def test_the_cut_in_the_pool_is_right_where_the_published_one_calls_too_many(prior: float) -> None:
    # One binary feature, by counting: x = 1 for all positives and for a share of negatives.
    positives, unlabelled, doubt = 4000, 10_000, 0.75
    inside = prior * unlabelled
    mixed = doubt * inside  # as many negatives look positive: 1 / (1 + doubt) > 1/2 of x = 1 in U
    g = positives / (positives + inside + mixed)
    c = positives / (positives + inside)
    among_pool = inside / (inside + mixed)
    assert (1 - c) / c * g / (1 - g) == pytest.approx(among_pool)
    among_all = (positives + inside) / (positives + inside + mixed)
    assert g / c == pytest.approx(among_all)
    assert among_all > among_pool


def test_both_cuts_follow_their_formulas() -> None:
    positive, scores = np.array([0.4, 0.8]), np.linspace(0.01, 0.99, 99)
    c = 0.6
    assert elkan_noto(positive, scores).tolist() == [bool(g / c > 0.5) for g in scores]
    posterior = [(1 - c) / c * g / (1 - g) for g in scores]
    assert elkan_noto_in_pool(positive, scores).tolist() == [bool(p > 0.5) for p in posterior]


def test_scaling_undoes_shrinkage_and_keeps_the_order() -> None:
    random = np.random.default_rng(0)
    logits = random.normal(size=20_000)
    true = 1 / (1 + np.exp(-logits))
    labels = (random.random(20_000) < true).astype(np.int64)
    shrunk = 1 / (1 + np.exp(-(0.01 * logits - 2)))
    scaled = platt(labels, shrunk)(shrunk)
    assert np.abs(scaled - true).max() < 0.03
    assert np.array_equal(np.argsort(scaled), np.argsort(shrunk))


@pytest.mark.parametrize("row", [logistic_regression, random_forest, supervised])
def test_simple_rows_score_every_item_and_separate_clouds(row: object) -> None:
    problem = draw(CLOUDS, clouds(), 0)
    assert callable(row)
    found = row(problem, 0)
    assert found.pool.shape == found.called.shape == (300,)
    assert found.test is not None
    assert found.test.shape == (100,)
    assert figures(problem.truth, found.pool, found.called)["auc"] > 0.97  # type: ignore[operator]


def test_out_of_fold_scores_do_not_know_their_own_labels() -> None:
    random = np.random.default_rng(0)
    labels = (np.arange(400) < 80).astype(np.int64)
    noise = random.normal(size=(400, 30)).astype(np.float32)
    problem = Problem("vectors", noise, labels, np.zeros(320, np.int64), None, None)
    for row in (logistic_regression, random_forest):
        found = row(problem, 0)
        assert found.positive is not None
        ahead = (found.positive[:, None] > found.pool).mean()
        # In sample a forest has 1; C is chosen among six, so a little above one half is chance.
        assert 0.35 < ahead < 0.68


def fake_row(fails: bool = False) -> Row:
    def run(problem: Problem, seed: int) -> Scored:
        if fails:
            raise ValueError("no such luck")
        called = problem.truth == 1
        return Scored(None, problem.truth.astype(float), called, None, None)

    return Row("fake", "knows the truth", dict(ROWS["lr"].settings), run)


def test_a_failed_row_stays_as_a_row_and_is_tried_again(tmp_path: Path) -> None:
    file, pools = tmp_path / "panel.json", SETS["wine"].read(Places(tmp_path, tmp_path))
    failing = asked(fake_row(fails=True))
    put(file, run_one(failing, pools, tmp_path))
    (record,) = read_json(file)["runs"]
    assert (record["status"], record["failure"]) == ("failed", "ValueError: no such luck")
    assert not is_finished(file, failing)
    assert "no such luck" in page(read_json(file), "Title")
    put(file, run_one(asked(fake_row()), pools, tmp_path))
    assert is_finished(file, failing)
    assert len(read_json(file)["runs"]) == 1


def test_records_of_other_settings_are_dropped_and_others_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, pools = tmp_path / "panel.json", SETS["wine"].read(Places(tmp_path, tmp_path))
    for seed in (1, 0):
        put(file, run_one(asked(fake_row(), seed=seed), pools, tmp_path))
    assert [record["seed"] for record in read_json(file)["runs"]] == [0, 1]
    changed = {**SETS, "wine": replace(SETS["wine"], prior=0.2)}
    monkeypatch.setattr(panel, "SETS", MappingProxyType(changed))
    assert not is_finished(file, asked(fake_row()))


def test_options_take_names_and_beginnings() -> None:
    known = {"news-a": 1, "news-b": 2, "wine": 3}
    assert named(None, known, "--only") == list(known)
    assert named("wine,news-*", known, "--only") == ["wine", "news-a", "news-b"]
    with pytest.raises(ConfigError, match="--only takes some of news-a, news-b, wine; got 'beer'"):
        named("beer", known, "--only")


def test_a_small_constant_loss_is_worse_and_a_noisy_one_is_not() -> None:
    best = {0: 0.90, 1: 0.95, 2: 0.85}
    assert is_worse({seed: value - 0.01 for seed, value in best.items()}, best)
    assert not is_worse({0: 0.91, 1: 0.90, 2: 0.84}, best)


def test_the_best_row_is_bold_and_the_ceiling_never_is() -> None:
    runs = [
        {"data": "d", "row": row, "seed": seed, "status": "finished", "pool": {"auc": value}}
        for row, values in (("lr", (0.9, 0.8)), ("rf", (0.7, 0.6)), ("supervised", (1.0, 1.0)))
        for seed, value in enumerate(values)
    ]
    table = figure_table(cells_of(runs, "pool", "auc"), runs, "auc")
    assert "| d | **85.0** | 65.0 | 100.0 |" in table


def test_the_best_threshold_is_the_best_of_all() -> None:
    random = np.random.default_rng(1)
    truth = (random.random(200) < 0.3).astype(np.int64)
    scores = np.round(random.random(200) + 0.4 * truth, 1)  # with ties
    tried = [f1_score(truth, scores > level) for level in (-np.inf, *np.unique(scores)[:-1])]
    assert f1_score(truth, scores > best_threshold(scores, truth)) == pytest.approx(max(tried))


def test_no_rule_beats_the_best_f1() -> None:
    random = np.random.default_rng(2)
    truth = (random.random(500) < 0.3).astype(np.int64)
    pool = 1 / (1 + np.exp(-random.normal(size=500) - 3 * truth + 3))
    positive = 1 / (1 + np.exp(-random.normal(size=80)))
    found = decisions(positive, pool, truth)
    assert all(rule["f1"] <= found["best"]["f1"] for rule in found.values())
    assert found["true-prior"]["share"] == pytest.approx(truth.mean())


def test_scores_of_zero_do_not_decide_the_scaling() -> None:
    random = np.random.default_rng(4)
    true = random.random(20_000)
    labels = (random.random(20_000) < true).astype(np.int64)
    votes = random.binomial(50, true) / 50  # of a forest: some are exactly zero or one
    scaled = platt(labels, votes)(votes)
    middle = (votes > 0.2) & (votes < 0.8)
    assert np.abs(scaled - votes)[middle].max() < 0.1


def test_an_average_of_tied_models_may_beat_each_of_them() -> None:
    random = np.random.default_rng(0)
    truth = np.repeat([1, 1, 0], [200, 300, 700])
    labelled = np.arange(len(truth)) < 200
    noisy = [expit(truth + random.normal(scale=1.0, size=len(truth))) for _ in range(2)]
    tried = Tried(labelled, truth, ["a", "b"], ["linear", "forest"], [0.0, 2.0], np.stack(noisy))
    found = choices(tried)
    assert found["average"]["auc"] > found["truly best"]["auc"]
    assert found["simplest"]["auc"] in {found["linear"]["auc"], found["highest"]["auc"]}
