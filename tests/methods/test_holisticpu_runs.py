"""HolisticPU in whole runs: what it records, how it resumes, when trends mislead."""

import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from onesided.core.clock import Clock
from onesided.core.errors import Interrupted
from onesided.core.labels import POSITIVE
from onesided.data.problem.dataset import PUSplit
from onesided.data.sources import SOURCES
from onesided.engine.fit import Watcher, fit
from onesided.engine.train_config import TrainConfig
from onesided.methods.holisticpu import OBSERVE, HolisticPU, HolisticPUConfig
from onesided.priors.natural_break import trend_break
from onesided.run.presets import recipe_settings
from tests.methods.toy_runs import build_for, outcome, toy_split, train_in, training


class SlowAverage:
    """The moving average after every step, and what it says after every observed epoch."""

    def __init__(self, ours: HolisticPU, images: Tensor, momentum: float) -> None:
        self.ours, self.images, self.momentum = ours, images, momentum
        self.copy = nn.Sequential(deepcopy(ours.backbone), deepcopy(ours.classifier))
        self.said: list[Tensor] = []

    def step(self, clock: Clock) -> None:
        if clock.stage != OBSERVE:
            return
        online = nn.Sequential(self.ours.backbone, self.ours.classifier)
        with torch.no_grad():
            for mine, theirs in zip(self.copy.parameters(), online.parameters(), strict=True):
                mine.copy_(self.momentum * mine + (1 - self.momentum) * theirs)
            for buffer, current in zip(self.copy.buffers(), online.buffers(), strict=True):
                buffer.copy_(current)
            if clock.step == clock.steps - 1:
                logits = self.copy.eval()(self.images)
                self.said.append(logits.softmax(dim=1)[:, POSITIVE])


def small_problem() -> tuple[PUSplit, Tensor]:
    split = toy_split(0, positives=20, unlabelled=60)
    return split, torch.from_numpy(split.train.values.take(slice(None)))


def small_run(split: PUSplit, **settings: object) -> HolisticPU:
    config = HolisticPUConfig.from_settings({"average_momentum": 0.7, **settings})
    ours = build_for(split, config, seed=0, batch_size=20)
    assert isinstance(ours, HolisticPU)
    return ours


def quietly_fit(ours: HolisticPU, split: PUSplit, watcher: Watcher | None = None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few steps show no trend, and the method says so
        fit(ours, split, training(epochs=6, batch_size=20, learning_rate=0.05), watcher=watcher)


def test_recordings_are_those_of_an_average_that_followed_every_step_once() -> None:
    split, images = small_problem()
    ours = small_run(split, trend_epochs=4)
    slow = SlowAverage(ours, images, 0.7)
    quietly_fit(ours, split, Watcher(step=slow.step))
    assert int(ours.trends.recorded) == 4
    assert torch.allclose(ours.trends.history, torch.stack(slow.said, dim=1), atol=1e-6)


def test_pseudo_labels_are_the_trends_of_u_above_their_break() -> None:
    split, _ = small_problem()
    ours = small_run(split, trend_epochs=4)
    quietly_fit(ours, split)
    unlabelled = torch.from_numpy(~split.train.labelled)
    scores = ours.trends.scores("consecutive")
    cut = trend_break(scores[unlabelled].numpy()).value
    assert torch.equal(ours.pseudo_labels.positive.bool(), scores > cut)
    assert 0 < int(ours.pseudo_labels.positive[unlabelled].sum()) < 60


def test_an_epoch_has_the_steps_that_were_asked_for() -> None:
    split, _ = small_problem()
    ours = small_run(split, steps_per_epoch=8)
    seen: list[int] = []
    quietly_fit(ours, split, Watcher(step=lambda clock: seen.append(clock.step)))
    assert seen == list(range(8)) * 6


@pytest.mark.parametrize("steps", [14, 21], ids=["while observing", "while teaching"])
def test_a_stopped_run_resumes_to_the_bit(steps: int, tmp_path: Path) -> None:
    split, _ = small_problem()
    train = training(epochs=6, batch_size=20, learning_rate=0.05)
    runs = [small_run(split, trend_epochs=3) for _ in range(3)]
    for folder in ("whole", "broken"):
        (tmp_path / folder).mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train_in(tmp_path / "whole", runs[0], split, train)
        with pytest.raises(Interrupted):
            train_in(tmp_path / "broken", runs[1], split, train, stop_after=steps)
        train_in(tmp_path / "broken", runs[2], split, train)
    resumed = runs[2].state_dict()
    for name, value in runs[0].state_dict().items():
        assert torch.equal(value, resumed[name]), name


def toy_run(seed: int, *, momentum: float, learning_rate: float) -> tuple[float, float]:
    """Return the test accuracy and the share of U with a right pseudo label."""
    split = toy_split(seed)
    config = HolisticPUConfig(average_momentum=momentum, trend_epochs=10)
    ours = build_for(split, config, seed=seed, batch_size=128)
    train = training(epochs=26, batch_size=128, learning_rate=learning_rate, weight_decay=5e-4)
    found = outcome(fit(ours, split, train, seed=seed), split)
    assert isinstance(ours, HolisticPU)
    unlabelled = ~split.train.labelled
    called = ours.pseudo_labels.positive.numpy()[unlabelled] > 0.5
    right = called == (split.train.truth[unlabelled] == POSITIVE)
    return found.accuracy, float(np.mean(right))


@pytest.mark.parametrize("seed", [0, 2])
def test_trends_recorded_in_slow_training_separate_two_clouds(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        accuracy, right = toy_run(seed, momentum=0.95, learning_rate=0.002)
    assert right >= 0.9
    assert accuracy >= 0.95


def test_a_network_that_learned_before_it_was_watched_gives_wrong_labels() -> None:
    # Expected to fail: the trend of what is settled already is noise.
    with pytest.warns(UserWarning, match="At HolisticPU's first recording"):
        accuracy, right = toy_run(1, momentum=0.8, learning_rate=0.1)
    assert right <= 0.7
    assert accuracy <= 0.8


@pytest.mark.parametrize(
    ("data_name", "learning_rate", "passes"),
    [("cifar10", 0.0015, 0.819), ("cifar100", 0.0015, 0.819), ("stl10", 0.001, 0.364)],
)
def test_recipes_are_the_runs_of_the_ncpu_paper(
    data_name: str, learning_rate: float, passes: float
) -> None:
    recipe = recipe_settings(data_name, "holisticpu")
    config = HolisticPUConfig.from_settings(recipe["method"])
    train = TrainConfig.from_settings(recipe["train"])
    ours = small_run(small_problem()[0], **recipe["method"])
    assert [stage.epochs for stage in ours.plan(train.epochs)] == [15, 25]
    assert (config.smoothing, config.average_momentum, config.confidence) == (0.01, 0.999, 0.9)
    assert (train.optimizer, train.learning_rate) == ("sgd", learning_rate)
    unlabelled = train.batch_size // 2
    assert unlabelled == 64
    found = config.steps_per_epoch * unlabelled / SOURCES[data_name].unlabelled
    assert found == pytest.approx(passes, abs=5e-4)
