"""The search: no row is scored by a model that saw it, and nothing depends on a clock."""

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onesided.core.errors import Interrupted, OnesidedError
from onesided.engine.fit import Watcher
from onesided.metrics.pu import proxy_auc
from onesided.run.execute import run_in_memory
from onesided.run.folder import SEARCH, read_result
from onesided.run.problem import Problem
from onesided.run.scored import Scored
from onesided.run.search.race import Search, search
from tests.run.running import run_in
from tests.run.search.searching import numbered, problem_of, spying

SPY = {"candidates": ["spy"]}


def searched(problem: Problem, folder: Path | None = None) -> Search:
    return search(problem, problem, folder=folder, watcher=Watcher())


def run_of(path: Path, problem: Problem, watcher: Watcher | None = None) -> dict[str, Any]:
    return run_in(path, problem.config, problem.data, watcher=watcher).content


def test_no_row_is_scored_by_a_model_that_was_trained_on_it() -> None:
    with spying() as seen:
        found = searched(problem_of(numbered(), 20, method=SPY))
    assert len(seen.trained) == 5
    for trained, scored in seen.scored:
        assert not trained & scored
        assert trained | scored == set(map(float, range(60))), "the model saw all other rows"
    assert frozenset().union(*(scored for _, scored in seen.scored)) == set(range(60))
    assert np.isfinite(found.scores).all()


def test_copies_are_never_on_both_sides() -> None:
    values = numbered(40)
    values = np.concatenate([values[:20], values, values[20:]])  # every row twice, P and U
    with spying() as seen:
        searched(problem_of(values, 20, method=SPY))
    assert seen.scored
    for trained, scored in seen.scored:
        assert not trained & scored, "the first number of a copy is that of its original"


def test_a_group_is_never_on_both_sides() -> None:
    values = numbered()
    groups = np.array([f"town {row % 9:.0f}" for row in values[:, 0]])
    with spying() as seen:
        searched(problem_of(values, 20, groups=groups, method=SPY))
    assert seen.scored
    for trained, scored in seen.scored:
        assert not {row % 9 for row in trained} & {row % 9 for row in scored}


def test_out_of_fold_scores_are_in_the_order_of_the_rows() -> None:
    values = numbered()
    with spying():
        found = searched(problem_of(values, 20, method=SPY))
        problem = problem_of(values, 20, method=SPY)
    rows = problem.split.train.values.take(slice(None))
    assert found.scores == pytest.approx(1 / (1 + np.exp(-rows[:, 1].astype(np.float64))))


def test_the_winner_is_trained_on_everything_and_its_training_scores_are_out_of_fold() -> None:
    with spying() as seen:
        finished = run_in_memory(problem_of(numbered(), 20, method=SPY))
    assert seen.trained[-1] == set(range(60))
    assert [len(rows) for rows in seen.trained[:-1]] == [48] * 5
    for trained, scored in seen.scored:
        assert not trained & scored, "the final model scores none of what it was taught"
    assert finished.scored.fold is not None
    assert finished.result["method"] == "spy"
    assert finished.result["chosen_by"] == "auto"
    assert finished.result["folds"] == 5


def test_the_figures_are_those_of_out_of_fold_scores_less_the_optimism() -> None:
    finished = run_in_memory(problem_of(numbered(120, 40, seed=3), 40))
    scores, labelled = finished.scored.train, finished.scored.train_labelled
    optimism = finished.result["optimism"]
    assert optimism > 0
    auc = finished.result["pu"]["figures"]["proxy_auc"]["value"]
    assert auc == pytest.approx(proxy_auc(scores[labelled], scores[~labelled]) - optimism)
    won = next(row for row in finished.result["leaderboard"] if row["won"])
    assert won["proxy_auc"] == pytest.approx(auc + optimism)


def test_positives_of_few_groups_are_worth_fewer_in_every_figure() -> None:
    values = numbered(240, 60, seed=3)
    group = np.concatenate([np.arange(60) // 6, 100 + np.arange(180) // 2])
    values[:60, 1] += np.repeat(np.linspace(-2, 2, 10), 6)  # alike within a group
    widths = {}
    for name, groups in (("alone", None), ("grouped", group)):
        figures = run_in_memory(problem_of(values, 60, groups=groups)).result["pu"]["figures"]
        for figure in ("recall", "proxy_auc"):
            widths[name, figure] = figures[figure]["high"] - figures[figure]["low"]
    for figure in ("recall", "proxy_auc"):
        assert widths["grouped", figure] > 1.3 * widths["alone", figure], figure


def test_a_given_prior_is_handed_over_to_methods_that_need_one() -> None:
    with spying() as seen:
        finished = run_in_memory(
            problem_of(numbered(), 20, method={"candidates": ["prior-spy"]}, prior=0.21)
        )
    assert set(seen.priors) == {0.21}
    assert finished.result["prior"]["value"] == 0.21


def test_the_prior_of_the_first_ones_is_handed_over_to_those_that_need_one() -> None:
    values = numbered(300, 60)
    values[:120, 1] = np.random.default_rng(1).normal(4, 1, 120)  # sixty of P, sixty of U
    with spying() as seen:
        found = searched(problem_of(values, 60, method={"candidates": ["linear", "prior-spy"]}))
    assert len(set(seen.priors)) == 1, "one prior for all folds"
    (prior,) = set(seen.priors)
    assert prior == pytest.approx(60 / 240, abs=0.15)
    assert found.winner.name.startswith("linear") == (found.prior is None)


def test_without_any_scores_a_method_that_needs_a_prior_takes_that_of_the_data() -> None:
    with spying() as seen:
        finished = run_in_memory(problem_of(numbered(), 20, method={"candidates": ["prior-spy"]}))
    assert finished.result["method"] == "prior-spy"
    assert set(seen.priors) == {finished.result["prior"]["value"]}, "once, for all folds"
    assert finished.result["prior"]["origin"] == "KM2"


def test_a_method_that_was_asked_for_is_not_given_up() -> None:
    values = np.random.default_rng(0).normal(size=(400, 3))
    values[:100, 0] += 3.0  # the spy looks at the second number: noise
    with spying() as seen:
        found = searched(problem_of(values, 100, method={"candidates": ["boosting", "spy"]}))
    assert len(seen.trained) == 5
    assert found.winner.name == "boosting"


def test_clearly_worse_candidates_stop_before_their_last_fold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from onesided.run.search import candidates

    values = np.random.default_rng(0).normal(size=(400, 3))
    values[:100, 0] += 3.0
    monkeypatch.setattr(candidates, "TRAINED", ("spy",))
    with spying() as seen:
        found = searched(problem_of(values, 100, method={"minutes": 20}))
    assert len(seen.trained) == 1, "one fold of twenty positives shows that noise cannot win"
    row = next(row for row in found.board.to_json() if row["name"] == "spy")
    assert row["folds"] == 1
    assert found.winner.name != "spy"


def test_a_fold_on_disk_is_not_trained_again(tmp_path: Path) -> None:
    with spying() as seen:
        problem = problem_of(numbered(), 20, method=SPY)
        first = searched(problem, tmp_path)
        (tmp_path / "spy" / "3.npz").unlink()
        again = searched(problem, tmp_path)
    assert len(seen.trained) == 5 + 1
    assert np.array_equal(first.scores, again.scores)


def rewritten(**arrays: np.ndarray) -> Callable[[Path], None]:
    return lambda path: np.savez(path, **arrays)  # type: ignore[arg-type]


DAMAGED: dict[str, Callable[[Path], object]] = {
    "no archive": lambda path: path.write_bytes(b"nonsense"),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "empty": rewritten(seconds=np.ones(1)),
    "few": rewritten(scores=np.full(11, 0.5), seconds=np.ones(1)),
    "NaN": rewritten(scores=np.full(12, np.nan), seconds=np.ones(1)),
    "beyond": rewritten(scores=np.full(12, 1.5), seconds=np.ones(1)),
    "words": rewritten(scores=np.array(["a"] * 12), seconds=np.ones(1)),
    "no time": rewritten(scores=np.full(12, 0.5), seconds=np.full(1, np.nan)),
    "time of words": rewritten(scores=np.full(12, 0.5), seconds=np.array(["x"])),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_fold_is_refused_with_the_remedy(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    with spying():
        problem = problem_of(numbered(), 20, method=SPY)
        searched(problem, tmp_path)
        damage(tmp_path / "spy" / "2.npz")
        with pytest.raises(OnesidedError, match="Delete it, and give the same command") as error:
            searched(problem, tmp_path)
    assert str(tmp_path / "spy" / "2.npz") in str(error.value)
    assert "\n" not in str(error.value)


NETWORK = {
    "method": {"candidates": ["linear", "nnpu"], "folds": 3},
    "train": {"epochs": 3, "threads": 1, "device": "cpu"},
    "prior": 0.3,
}
KEPT = ("model.safetensors", "model.json", "scores.csv", "config.toml", "split.csv")


def network_problem() -> Problem:
    return problem_of(numbered(66, 30), 30, **NETWORK)  # type: ignore[arg-type]


def without_seconds(result: dict[str, Any]) -> str:
    rows = [{**row, "seconds": 0} for row in result["leaderboard"]]
    return json.dumps({**result, "seconds": 0, "search_seconds": 0, "leaderboard": rows})


def assert_same_run(one: Path, other: Path) -> None:
    for name in KEPT:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    assert without_seconds(read_result(one)) == without_seconds(read_result(other))
    first, second = (Scored.load(path / "scores.npz") for path in (one, other))
    for name, part in vars(first).items():
        assert np.array_equal(getattr(second, name), part) or part is None, name


def files_in(folder: Path) -> int:
    return sum(1 for path in folder.glob("*/*") if not path.name.startswith("."))


def test_killed_again_and_again_a_search_ends_with_the_same_bytes(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_of(whole, network_problem())
    folds = files_in(whole / SEARCH)
    random = np.random.default_rng(0)
    killed = 0
    for files in np.linspace(1, folds - 1, 6).astype(int):
        process = multiprocessing.get_context("fork").Process(
            target=run_of, args=(broken, network_problem())
        )
        process.start()
        while process.is_alive() and files_in(broken / SEARCH) < files:
            time.sleep(0.001)
        time.sleep(float(random.uniform(0, 0.05)))
        assert process.pid is not None
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        killed += process.exitcode == -signal.SIGKILL
    assert killed >= 4
    assert not (broken / "result.json").exists(), "a killed run does not look finished"
    run_of(broken, network_problem())
    assert_same_run(whole, broken)
    assert not list((broken / SEARCH).glob("*/*.pt")), "no checkpoint is left of a finished fold"


def test_stopped_inside_a_fold_it_resumes_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onesided.engine import fit as engine
    from onesided.engine import optimise

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_of(whole, network_problem())
    steps = 0
    plain = optimise.descend

    def stop_after_a_few(*words: Any) -> None:  # noqa: ANN401
        nonlocal steps
        plain(*words)
        steps += 1
        if steps == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(engine, "descend", stop_after_a_few)
        with pytest.raises(Interrupted, match="the same command resumes there"):
            run_of(broken, network_problem())
    assert list((broken / SEARCH).glob("nnpu/*.pt")), "the state of the fold is kept"
    run_of(broken, network_problem())
    assert_same_run(whole, broken)


def test_overwriting_forgets_the_folds_of_another_search(tmp_path: Path) -> None:
    with spying():
        run_of(tmp_path / "run", problem_of(numbered(), 20, method=SPY))
        other = problem_of(numbered(seed=1), 20, method=SPY)
        run_in(tmp_path / "run", other.config, other.data, overwrite=True)
        alone = run_in_memory(other)
    assert np.array_equal(Scored.load(tmp_path / "run" / "scores.npz").train, alone.scored.train)


def test_twelve_positives_and_few_unlabelled_are_enough() -> None:
    finished = run_in_memory(problem_of(numbered(25, 12), 12, method={}, train={"device": "cpu"}))
    assert finished.result["folds"] == 5
    assert {row["method"] for row in finished.result["leaderboard"]} >= {"linear", "forest"}


def test_fewer_groups_than_folds_give_as_many_folds_as_groups() -> None:
    groups = np.array([f"site {row % 3}" for row in range(60)])
    finished = run_in_memory(problem_of(numbered(), 20, groups=groups))
    assert finished.result["folds"] == 3
