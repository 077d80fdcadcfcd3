"""`train.keep = "best"`: the epoch that held-out P and U prefer, also after a stop."""

import os
import signal
from pathlib import Path

import pytest
import torch

from onesided.core.clock import Clock
from onesided.core.errors import Interrupted
from onesided.engine.checkpoint import Checkpoints
from onesided.engine.fit import Memory, Watcher, fit
from onesided.engine.log import EpochLog, Row
from onesided.engine.predict import Predictor
from onesided.engine.train_config import TrainConfig
from onesided.methods.base import GradientMethod
from onesided.metrics.pu import proxy_auc
from tests.contract.cases import Case, build, equal_states, toy_split

EPOCHS = 5
SETTINGS = {"epochs": EPOCHS, "batch_size": 24, "learning_rate": 0.5, "schedule": "constant"}


def trained(
    keep: str, *, method: str = "ce", folder: Path | None = None, watcher: Watcher | None = None
) -> tuple[GradientMethod, list[float]]:
    """Return the method and the proxy AUC after each epoch of this call."""
    split, curve = toy_split(), list[float]()
    built = build(Case(method), split)
    assert isinstance(built, GradientMethod)

    def epoch(row: Row) -> None:
        curve.append(row["proxy_auc"])

    memory = Memory()
    if folder is not None:
        memory = Memory(Checkpoints(folder / "last.pt"), EpochLog(folder / "log.jsonl"))
    config = TrainConfig.from_settings({**SETTINGS, "keep": keep})
    told = Watcher(step=(watcher or Watcher()).step, epoch=epoch)
    fit(built, split, config, seed=1, memory=memory, watcher=told)
    return built, curve


def held_out_auc(method: GradientMethod) -> float:
    data = toy_split().held_out
    assert data is not None
    scores = Predictor(method, torch.device("cpu")).scores(data.values)
    return proxy_auc(scores[data.labelled], scores[~data.labelled])


def test_the_best_epoch_is_delivered_and_the_last_one_by_default() -> None:
    best, curve = trained("best")
    last, same = trained("last")
    assert curve == same, "keeping an epoch changes no training"
    assert curve.index(max(curve)) != EPOCHS - 1, "a curve that falls, or this shows nothing"
    assert held_out_auc(best) == pytest.approx(max(curve), abs=1e-6)
    assert held_out_auc(last) == pytest.approx(curve[-1], abs=1e-6)


@pytest.mark.parametrize("steps", [2, 7, 11])
def test_a_stopped_run_keeps_the_same_epoch_to_the_bit(steps: int, tmp_path: Path) -> None:
    left = [steps]

    def stop(clock: Clock) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        trained("best", folder=tmp_path, watcher=Watcher(step=stop))
    resumed, _ = trained("best", folder=tmp_path)
    whole, _ = trained("best")
    assert equal_states(whole, resumed)


def test_a_method_with_a_rule_of_its_own_keeps_it() -> None:
    own, _ = trained("last", method="vpu")
    asked, _ = trained("best", method="vpu")
    assert equal_states(own, asked)
