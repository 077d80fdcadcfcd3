"""The loop: what stops it, what it reports, what it saves."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from onesided.core.batch import Losses, Outputs, PUBatch
from onesided.core.clock import Clock, Pace, Stage
from onesided.core.errors import CheckpointError, ConfigError, Interrupted, TrainingFailed
from onesided.engine import fit as loop
from onesided.engine.checkpoint import Checkpoints
from onesided.engine.fit import Memory, Watcher, fit
from onesided.engine.log import EpochLog
from onesided.engine.optimise import learn_only
from onesided.engine.train_config import TrainConfig
from onesided.methods.base import GradientMethod, Method
from tests.contract.cases import CASES, Case, build, equal_states, toy_split, train

CE = Case("ce")


class Broken(GradientMethod):
    """A method whose second term becomes NaN at a given step."""

    def __init__(self, bad_step: int) -> None:
        super().__init__()
        self.weight = torch.nn.Linear(1, 2)
        self.bad_step = bad_step

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        mean = batch.views["classify"].flatten(1).mean(dim=1, keepdim=True)
        return Outputs({"logits": self.weight(mean)})

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        good = outputs["logits"].square().mean()
        bad = good * (float("nan") if clock.step == self.bad_step else 1.0)
        return Losses(good + bad, {"good": good, "bad": bad})

    def classify(self, images: Tensor) -> Tensor:
        logits: Tensor = self.weight(images.flatten(1).mean(dim=1, keepdim=True))
        return logits


def test_a_term_that_is_not_a_number_stops_training_by_name() -> None:
    with pytest.raises(TrainingFailed, match="'bad' became nan"):
        train(Broken(bad_step=1), toy_split())


def test_a_failed_step_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(TrainingFailed):
        train(Broken(bad_step=1), toy_split(), folder=tmp_path)
    assert not (tmp_path / "last.pt").exists(), "no epoch was complete"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_finishes_the_step_saves_and_sets_the_exit_code(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    def ask(clock: Clock) -> None:
        if (clock.epoch, clock.step) == (1, 0):
            os.kill(os.getpid(), number)

    with pytest.raises(Interrupted, match="same command resumes") as stopped:
        train(build(CE, toy_split()), toy_split(), folder=tmp_path, watcher=Watcher(step=ask))
    assert stopped.value.exit_code == code
    state = Checkpoints(tmp_path / "last.pt", "case").load()
    assert state is not None
    assert (state.position.epoch, state.position.step) == (1, 1)


def test_batches_made_in_advance_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    def trained(*, in_advance: bool) -> Method:
        monkeypatch.setattr(loop, "has_room", lambda device: in_advance)
        method = build(Case("ncpu"), toy_split())
        train(method, toy_split())
        return method

    assert equal_states(trained(in_advance=True), trained(in_advance=False))


def test_handlers_of_signals_are_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    train(build(CE, toy_split()), toy_split())
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_batch_larger_than_the_data_says_so() -> None:
    with pytest.raises(ConfigError, match=r"The data is too small for one batch of 500 \(96 rows"):
        fit(build(CE, toy_split()), toy_split(), TrainConfig(epochs=1, batch_size=500))


def test_every_epoch_tells_what_held_out_data_say() -> None:
    rows: list[dict[str, object]] = []
    train(build(CE, toy_split()), toy_split(), watcher=Watcher(epoch=rows.append))
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    for row in rows:
        for name in ("share_positive", "recall", "proxy_auc"):
            assert 0 <= float(str(row[name])) <= 1


@pytest.mark.parametrize("batching", ["mixed", "stratified"])
def test_both_ways_of_batching_train(batching: str) -> None:
    config = TrainConfig.from_settings(
        {"epochs": 1, "batch_size": 24, "batching": batching, "positives_per_batch": 5}
    )
    rows: list[dict[str, object]] = []
    fit(build(CE, toy_split()), toy_split(), config, watcher=Watcher(epoch=rows.append))
    assert len(rows) == 1


class TwoStages(Broken):
    """Learns one part, then the other; stores when stages began."""

    begun: Tensor

    def __init__(self) -> None:
        super().__init__(bad_step=-1)
        self.other = torch.nn.Linear(1, 2)
        self.register_buffer("begun", torch.zeros(2))

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        mean = batch.views["classify"].flatten(1).mean(dim=1, keepdim=True)
        return Outputs({"logits": self.weight(mean) + self.other(mean)})

    def plan(self, epochs: int) -> list[Stage]:
        return [Stage("first", 1, learns=("weight",)), Stage("second", 2, learns=("other",))]

    def begin_stage(self, stage: Stage, sweep: object) -> None:
        self.begun[0 if stage.name == "first" else 1] += 1


def two_stages() -> TwoStages:
    torch.manual_seed(0)
    return TwoStages()


def test_only_what_a_stage_names_learns_in_it() -> None:
    frozen = two_stages()
    learn_only(frozen, ("other",), {name for name, _ in frozen.named_parameters()})
    assert not any(p.requires_grad for p in frozen.weight.parameters())
    method, start = two_stages(), two_stages()
    train(method, toy_split())
    assert not torch.equal(method.other.weight, start.other.weight)
    assert method.begun.tolist() == [1, 1]


@pytest.mark.parametrize("steps", [1, 3, 4, 6, 9])
def test_a_run_resumes_across_a_stage_boundary_to_the_bit(steps: int, tmp_path: Path) -> None:
    whole, broken, resumed = two_stages(), two_stages(), two_stages()
    train(whole, toy_split())
    left = [steps]

    def ask(clock: Clock) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        train(broken, toy_split(), folder=tmp_path, watcher=Watcher(step=ask))
    train(resumed, toy_split(), folder=tmp_path)
    assert equal_states(whole, resumed)


class Paced(Broken):
    """Two stages of which the second has its own learning rate, optimizer and length."""

    def __init__(self) -> None:
        super().__init__(bad_step=-1)

    def plan(self, epochs: int) -> list[Stage]:
        pace = Pace(learning_rate=0.5, optimizer="adam", floor=1.0)
        return [Stage("slow", 1), Stage("fast", 2, pace=pace, steps=7)]


def test_a_stage_may_have_its_own_pace_and_length() -> None:
    rows: list[dict[str, object]] = []
    clocks: list[Clock] = []
    train(Paced(), toy_split(), watcher=Watcher(step=clocks.append, epoch=rows.append))
    assert [row["lr"] for row in rows] == [0.02, 0.01, 0.01]
    assert [sum(c.stage == "fast" and c.epoch == e for c in clocks) for e in (0, 1)] == [7, 7]


def test_long_epochs_are_saved_inside(tmp_path: Path) -> None:
    seen: list[int] = []

    def look(clock: Clock) -> None:
        state = Checkpoints(tmp_path / "last.pt", "x").load()
        seen.append(-1 if state is None else state.position.step)

    memory = Memory(Checkpoints(tmp_path / "last.pt", "x"))
    config = TrainConfig(epochs=1, batch_size=24, save_minutes=0)
    fit(build(CE, toy_split()), toy_split(), config, memory=memory, watcher=Watcher(step=look))
    assert seen == [-1, 1, 2, 3]


def test_half_precision_trains_and_the_loss_stays_in_full(tmp_path: Path) -> None:
    dtypes: set[torch.dtype] = set()

    class Spy(Broken):
        def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
            dtypes.add(outputs["logits"].dtype)
            return super().loss(outputs, batch, clock)

    fit(Spy(-1), toy_split(), TrainConfig(epochs=1, batch_size=24, precision="bf16"))
    assert dtypes == {torch.float32}


def test_the_suite_knows_every_method() -> None:
    from onesided.methods import METHODS

    assert {case.name for case in CASES} == set(METHODS)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("method", lambda state: {"strange": torch.zeros(1)}),
        ("optimizer", lambda state: {"state": {}, "param_groups": []}),
        ("position", lambda state: {"stage": 0, "epoch": 99, "step": 0}),
    ],
    ids=["other weights", "other optimizer", "more epochs than the run has"],
)
def test_a_checkpoint_that_does_not_fit_is_refused(
    part: str, change: Callable[[object], object], tmp_path: Path
) -> None:
    train(build(CE, toy_split()), toy_split(), folder=tmp_path)
    content = torch.load(tmp_path / "last.pt", weights_only=True)
    torch.save({**content, part: change(content[part])}, tmp_path / "last.pt")
    with pytest.raises(CheckpointError, match="damaged"):
        train(build(CE, toy_split()), toy_split(), folder=tmp_path)


def test_a_row_whose_checkpoint_was_never_written_is_not_written_twice(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"stage": "train", "epoch": 0, "seconds": 1.0}\n{"stage": "tr')
    memory = Memory(log=EpochLog(path))
    split = toy_split()
    fit(build(CE, split), split, TrainConfig(epochs=2, batch_size=24), memory=memory)
    assert [json.loads(line)["epoch"] for line in path.read_text().splitlines()] == [0, 1]


@pytest.mark.parametrize(("threads", "expected"), [("auto", 2), (1, 1), (3, 3)])
def test_training_has_the_threads_of_its_settings_and_else_those_of_torch(
    threads: object, expected: int
) -> None:
    seen: list[int] = []
    watcher = Watcher(step=lambda clock: seen.append(torch.get_num_threads()))
    split = toy_split()
    settings = {"epochs": 1, "batch_size": 16, "device": "cpu", "threads": threads}
    torch.set_num_threads(2)
    fit(build(CE, split), split, TrainConfig.from_settings(settings), watcher=watcher)
    assert set(seen) == {expected}
    assert torch.get_num_threads() == 2
