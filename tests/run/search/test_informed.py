"""Known negatives and weights in a search: they teach, and no figure rests on what was taught."""

import signal
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import Interrupted
from onesided.engine.fit import Watcher
from onesided.metrics.pu import proxy_auc
from onesided.run.execute import run_in_memory
from onesided.run.presets import Amount
from onesided.run.problem import Problem
from onesided.run.search.candidates import Menu
from onesided.run.search.race import Search, search
from tests.run.running import run_in
from tests.run.search.searching import numbered, problem_of, spying

INFORMED = {"candidates": ["informed-spy"]}
ROWS = frozenset(map(float, range(60)))


def searched(problem: Problem) -> Search:
    return search(problem, problem, folder=None, watcher=Watcher())


def of(values: np.ndarray, rows: slice) -> frozenset[float]:
    """Return the first numbers of some rows."""
    return frozenset(values[rows, 0].tolist())


def test_each_known_negative_teaches_four_models_and_is_scored_by_the_fifth() -> None:
    values = numbered()
    negatives = of(values, slice(48, None))
    with spying() as seen:
        found = searched(problem_of(values, 20, negatives=12, method=INFORMED))
    assert len(seen.trained) == 5
    for (trained, scored), taught in zip(seen.scored, seen.negatives, strict=True):
        assert not trained & scored
        assert trained | scored == ROWS
        assert taught == trained & negatives
    assert found.negatives.shape == (12,)
    assert found.scores.shape == (48,), "the choice is by P and U alone"


def test_a_method_that_cannot_use_them_never_sees_them_and_still_scores_them() -> None:
    values = numbered()
    negatives = of(values, slice(48, None))
    with spying() as seen:
        finished = run_in_memory(
            problem_of(values, 20, negatives=12, method={"candidates": ["spy"]})
        )
    assert all(not trained & negatives for trained in seen.trained)
    assert finished.scored.negatives is not None
    assert len(finished.scored.negatives) == 12


def test_copies_of_a_known_negative_in_u_are_on_its_side() -> None:
    values = numbered()
    values[20:26] = values[54:]  # six of U are the last six known negatives again
    with spying() as seen:
        searched(problem_of(values, 20, negatives=12, method=INFORMED))
    for trained, scored in seen.scored:
        assert not trained & scored


def test_the_false_alarms_are_those_of_models_that_did_not_see_the_negative() -> None:
    values = numbered()
    with spying() as seen:
        finished = run_in_memory(problem_of(values, 20, negatives=12, method=INFORMED))
    assert seen.trained[-1] == ROWS, "the model in the folder learns from all"
    assert not any(trained == ROWS for trained, _ in seen.scored), "and scores none of them"
    told = finished.result["known_negatives"]
    assert told["count"] == 12
    wrong = (finished.scored.negatives > finished.result["threshold"]).mean()
    assert told["value"] == pytest.approx(wrong)


def test_figures_of_p_and_u_do_not_count_known_negatives() -> None:
    values = numbered(200, 50, seed=4)
    finished = run_in_memory(problem_of(values, 50, negatives=40))
    scored = finished.scored
    assert len(scored.train) == 160
    assert finished.result["n_unlabelled"] == 110
    auc = proxy_auc(scored.train[scored.train_labelled], scored.train[~scored.train_labelled])
    (won,) = [row for row in finished.result["leaderboard"] if row["won"]]
    assert won["proxy_auc"] == pytest.approx(auc)


def contaminated(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 60 of P, 240 of U of which 200 are positive, 60 known negatives; and the truth."""
    random = np.random.default_rng(seed)
    truth = np.repeat([True, False], [260, 100])
    points = random.normal(size=(360, 6)) + 0.6 * truth[:, None]
    return points, truth


def test_known_negatives_help_where_the_pool_is_mostly_positive() -> None:
    gains = []
    for seed in range(2):
        values, truth = contaminated(seed)
        with_them = run_in_memory(problem_of(values, 60, negatives=60))
        without = run_in_memory(problem_of(values[:300], 60))
        aucs = []
        for finished in (without, with_them):
            # Names are row numbers; out-of-fold scores are in the order of the split.
            pool = finished.scored.train[~finished.scored.train_labelled]
            names = problem_of(values[:300], 60).split.train.names
            hidden = np.array([truth[int(name)] for name in names if int(name) >= 60])
            aucs.append(proxy_auc(pool[hidden], pool[~hidden]))
        gains.append(aucs[1] - aucs[0])
    assert np.mean(gains) > 0.03, "true AUC of the pool, which nothing but this test sees"
    assert min(gains) > -0.01


def test_a_stopped_search_with_known_negatives_ends_with_the_same_bytes(tmp_path: Path) -> None:
    problem = problem_of(numbered(80, 25), 25, negatives=20)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    run_in(whole, problem.config, problem.data)
    told: list[int] = []

    def stop(done: int, total: int | None, status: str) -> None:
        told.append(done)
        if len(told) == 7:
            raise Interrupted("stopped", signal.SIGTERM)

    with pytest.raises(Interrupted):
        run_in(stopped, problem.config, problem.data, watcher=Watcher(tried=stop))
    run_in(stopped, problem.config, problem.data)
    for name in ("scores.npz", "scores.csv", "model.safetensors"):
        assert (stopped / name).read_bytes() == (whole / name).read_bytes(), name


def test_weights_reach_the_model_by_row_and_not_the_figures() -> None:
    values = numbered()
    weights = np.random.default_rng(1).integers(1, 5, 60).astype(float)
    weight_of = dict(zip(values[:, 0].tolist(), weights.tolist(), strict=True))
    with spying() as seen:
        found = searched(problem_of(values, 20, weights=weights, method=INFORMED))
    for trained, taught in zip(seen.trained, seen.weights, strict=True):
        assert taught == {row: weight_of[row] for row in trained}
    board = found.board
    auc = proxy_auc(found.scores[board.labelled], found.scores[~board.labelled])
    assert board.auc(board.winner) == auc, "every item counts once"


def test_weights_are_a_part_of_what_a_run_is() -> None:
    values, weights = numbered(), np.ones(60)
    weights[3] = 2.0
    plain, weighed = (problem_of(values, 20, weights=given) for given in (None, weights))
    assert plain.hashes().content != weighed.hashes().content


def test_networks_that_cannot_weigh_are_left_out_of_a_long_search() -> None:
    config = problem_of(numbered(), 20, method={"minutes": 30.0}).config
    amount = Amount(60, 20, False)
    names = [
        {each.family for each in Menu(config, amount, amount, 3, 5, weighed=weighed).third(0.3)}
        for weighed in (False, True)
    ]
    assert names == [{"nnpu", "teacher", "ncpu"}, set()]
