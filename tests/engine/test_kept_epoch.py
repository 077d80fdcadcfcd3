"""`train.keep`: the epoch that held-out P and U prefer, by AUC or accuracy, also after a stop."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from onesided.core.clock import Clock
from onesided.core.errors import ConfigError, Interrupted
from onesided.data.problem.dataset import PUSplit
from onesided.engine.checkpoint import Checkpoints
from onesided.engine.fit import Memory, Watcher, fit
from onesided.engine.log import EpochLog, Row
from onesided.engine.predict import Predictor
from onesided.engine.train_config import TrainConfig
from onesided.methods.base import GradientMethod
from onesided.metrics.pu import evaluate_pu, proxy_auc
from tests.contract.cases import Case, build, equal_states, toy_split

EPOCHS = 5
PRIOR = 0.4
FIGURES = {"last": "proxy_auc", "best": "proxy_auc", "best-accuracy": "proxy_accuracy"}
SETTINGS = {"epochs": EPOCHS, "batch_size": 24, "learning_rate": 0.5, "schedule": "constant"}


def trained(
    keep: str,
    *,
    method: str = "ce",
    folder: Path | None = None,
    watcher: Watcher | None = None,
    split: PUSplit | None = None,
    figure: str = "",
) -> tuple[GradientMethod, list[float]]:
    """Return the method, and after each epoch of this call the figure that it goes by."""
    split, curve = split or toy_split(), list[float]()
    built = build(Case(method), split)
    assert isinstance(built, GradientMethod)

    def epoch(row: Row) -> None:
        curve.append(row[figure or FIGURES[keep]])

    memory = Memory()
    if folder is not None:
        memory = Memory(Checkpoints(folder / "last.pt"), EpochLog(folder / "log.jsonl"))
    config = TrainConfig.from_settings({**SETTINGS, "keep": keep})
    told = Watcher(step=(watcher or Watcher()).step, epoch=epoch)
    fit(built, split, config, seed=1, memory=memory, watcher=told, prior=PRIOR)
    return built, curve


def held_out_scores(method: GradientMethod) -> tuple[np.ndarray, np.ndarray]:
    data = toy_split().held_out
    assert data is not None
    scores = Predictor(method, torch.device("cpu")).scores(data.values)
    return scores[data.labelled], scores[~data.labelled]


def held_out_auc(method: GradientMethod) -> float:
    return proxy_auc(*held_out_scores(method))


def in_single_set() -> PUSplit:
    return replace(toy_split(), scenario="single-set")


def test_the_best_epoch_is_delivered_and_the_last_one_by_default() -> None:
    best, curve = trained("best")
    last, same = trained("last")
    assert curve == same, "keeping an epoch changes no training"
    assert curve.index(max(curve)) != EPOCHS - 1, "a curve that falls, or this shows nothing"
    assert held_out_auc(best) == pytest.approx(max(curve), abs=1e-6)
    assert held_out_auc(last) == pytest.approx(curve[-1], abs=1e-6)


@pytest.mark.parametrize("scenario", ["case-control", "single-set"])
def test_the_most_accurate_epoch_is_delivered_by_the_formula_of_the_figures(scenario: str) -> None:
    """`evaluate_pu` is the other place that estimates accuracy: both must agree."""
    split = toy_split() if scenario == "case-control" else in_single_set()
    kept, curve = trained("best-accuracy", split=split)
    assert curve.index(max(curve)) != EPOCHS - 1, "a curve that falls, or this shows nothing"
    parts = [part for part in (split.train, split.held_out) if part is not None]
    share = float(np.concatenate([part.labelled for part in parts]).mean())
    said = evaluate_pu(
        *held_out_scores(kept),
        scenario=split.scenario,
        prior=PRIOR,
        labelled_share=share if scenario == "single-set" else None,
    )
    assert said.figures["proxy_accuracy"].value == pytest.approx(min(1, max(curve)), abs=1e-6)


def test_auc_and_accuracy_may_prefer_different_epochs_of_the_same_training() -> None:
    _, accuracies = trained("best-accuracy")
    _, ranked = trained("best-accuracy", figure="proxy_auc")
    _, alone = trained("best")
    assert ranked == alone, "what is kept changes no training"
    assert accuracies.index(max(accuracies)) != ranked.index(max(ranked))


def test_accuracy_without_a_prior_is_refused_before_the_first_step() -> None:
    split, config = toy_split(), TrainConfig.from_settings({**SETTINGS, "keep": "best-accuracy"})
    with pytest.raises(ConfigError, match="proxy accuracy needs the share of positives in U"):
        fit(build(Case("ce"), split), split, config)


def test_with_nothing_held_out_the_last_epoch_is_delivered() -> None:
    split = replace(toy_split(), held_out=None)
    kept, _ = trained("best-accuracy", split=split)
    last, _ = trained("last", split=split)
    assert equal_states(kept, last)


@pytest.mark.parametrize("keep", ["best", "best-accuracy"])
@pytest.mark.parametrize("steps", [2, 7, 11])
def test_a_stopped_run_keeps_the_same_epoch_to_the_bit(
    steps: int, keep: str, tmp_path: Path
) -> None:
    left = [steps]

    def stop(clock: Clock) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        trained(keep, folder=tmp_path, watcher=Watcher(step=stop))
    resumed, _ = trained(keep, folder=tmp_path)
    whole, _ = trained(keep)
    assert equal_states(whole, resumed)


def test_a_method_with_a_rule_of_its_own_keeps_it() -> None:
    own, _ = trained("last", method="vpu")
    for keep in ("best", "best-accuracy"):
        asked, _ = trained(keep, method="vpu")
        assert equal_states(own, asked)


@pytest.mark.parametrize("method", ["pusb", "tedn"])
def test_an_epoch_is_judged_as_it_would_be_delivered(method: str) -> None:
    """Both finish their work after the last epoch: PUSB's threshold is the quantile of U."""
    kept, curve = trained("best-accuracy", method=method)
    assert curve.index(max(curve)) != EPOCHS - 1, "a curve that falls, or this shows nothing"
    said = evaluate_pu(*held_out_scores(kept), scenario="case-control", prior=PRIOR)
    assert said.figures["proxy_accuracy"].value == pytest.approx(min(1, max(curve)), abs=1e-6)


@pytest.mark.parametrize("method", ["pusb", "tedn"])
def test_work_after_each_epoch_changes_no_training(method: str) -> None:
    _, asked = trained("best-accuracy", method=method, figure="loss")
    _, alone = trained("last", method=method, figure="loss")
    assert asked == alone
