"""What a method that learns from known negatives promises."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from onesided.core.clock import Clock
from onesided.core.dist import gather_batch
from onesided.core.errors import Interrupted
from onesided.core.labels import NEGATIVE
from onesided.data.loader import Loader
from onesided.data.problem.dataset import LabelledDataset, PUSplit
from onesided.data.problem.negatives import add_negatives
from onesided.engine.fit import Watcher
from onesided.methods import METHODS
from onesided.methods.base import GradientMethod
from onesided.methods.lagam import LaGAM
from onesided.methods.ncpu import NcPU
from onesided.methods.teacher import Teacher
from tests.contract.cases import SEED, Case, build, equal_states, toy_split, train

USING = [Case(name) for name in METHODS if METHODS[name].uses_negatives]
every_case = pytest.mark.parametrize("case", USING, ids=str)
trained_in_steps = pytest.mark.parametrize(
    "case", [case for case in USING if METHODS[case.name].trains_backbone], ids=str
)


def with_negatives(split: PUSplit) -> PUSplit:
    """Return the toy problem with ten of the test part's negatives as further rows."""
    assert split.test is not None
    rows = np.flatnonzero(split.test.truth == NEGATIVE)[:10]
    names = tuple(f"negative-{row}" for row in rows)
    # One pool for all rows, as in data of users.
    pool = np.concatenate([split.train.values.take(slice(None)), split.test.values.take(rows)])
    count = len(split.train)
    values = replace(split.train.values, pool=pool, index=np.arange(count))
    negatives = replace(values, index=np.arange(count, len(pool)))
    same = replace(split, train=replace(split.train, values=values))
    return add_negatives(same, LabelledDataset(negatives, split.test.truth[rows], names))


def test_teacher_ncpu_ce_and_lagam_learn_from_known_negatives() -> None:
    assert {case.name for case in USING} >= {"teacher", "ncpu", "ce", "lagam"}
    for name in ("upu", "nnpu", "imbpu", "puet", "tedn", "vpu"):
        assert not METHODS[name].uses_negatives, f"{name} takes the rest for the population"


@every_case
def test_known_negatives_change_the_weights(case: Case) -> None:
    plain, with_known = toy_split(), with_negatives(toy_split())
    first, second = build(case, plain), build(case, with_known)
    train(first, plain)
    predictor = train(second, with_known)
    assert np.isfinite(predictor.scores(with_known.train.values)).all()
    assert not equal_states(first, second)


@every_case
def test_an_empty_mask_of_negatives_changes_no_bit(case: Case) -> None:
    without = toy_split()
    none = np.zeros(len(without.train), dtype=bool)
    marked = replace(without, train=replace(without.train, negative=none))
    first, second = build(case, without), build(case, marked)
    train(first, without)
    train(second, marked)
    assert equal_states(first, second)


@trained_in_steps
def test_a_resumed_run_with_negatives_is_the_same_to_the_bit(case: Case, tmp_path: Path) -> None:
    split = with_negatives(toy_split())
    whole, broken, resumed = (build(case, split) for _ in range(3))
    train(whole, split)

    def stop(clock: Clock) -> None:
        if (clock.epoch, clock.step) == (1, 1):
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        train(broken, split, folder=tmp_path, watcher=Watcher(step=stop))
    train(resumed, split, folder=tmp_path)
    assert equal_states(whole, resumed)


@trained_in_steps
def test_a_batch_says_which_rows_are_negative_and_gathering_keeps_it(case: Case) -> None:
    split = with_negatives(toy_split())
    method = build(case, split)
    assert isinstance(method, GradientMethod)
    loader = Loader(split.train, split.kind, 24, torch.device("cpu"), clean=split.clean)
    clock = Clock(SEED, "train", 0, 1, 0, loader.steps(method.batching))
    seen: set[int] = set()
    for _, batch in loader.epoch(clock, {}, method.batching):
        whole = gather_batch(batch)
        assert torch.equal(whole.surely_negative, batch.row >= 96)
        assert not (whole.surely_negative & whole.labelled).any()
        assert torch.equal(whole.unlabelled, ~(whole.labelled | whole.surely_negative))
        seen |= set(batch.row[whole.surely_negative].tolist())
    assert len(seen) >= 5


@pytest.mark.parametrize("name", ["ncpu", "teacher", "lagam"])
def test_a_known_negative_keeps_the_target_negative_whatever_the_votes(name: str) -> None:
    split = with_negatives(toy_split())
    method = build(Case(name), split)
    train(method, split)
    assert isinstance(method, NcPU | Teacher | LaGAM)
    memory = method.labels if isinstance(method, LaGAM) else method.targets
    negative = torch.from_numpy(split.train.negative)
    others = memory.phantom[~negative & ~torch.from_numpy(split.train.labelled)]
    assert (others[:, NEGATIVE] < 0.999).any(), "votes did move other rows"
    assert torch.allclose(memory.phantom[negative, NEGATIVE], torch.ones(10), atol=1e-6)
