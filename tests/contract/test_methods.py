"""What every method promises, checked for every entry of the table."""

import json
import os
import random
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from onesided.core.batch import Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.errors import Interrupted
from onesided.data.loader import Loader
from onesided.engine.fit import Watcher
from onesided.engine.log import Row
from onesided.engine.model_file import ModelDescription, load_model, save_model
from onesided.methods import METHODS
from onesided.methods.base import GradientMethod
from onesided.nets.build import BackboneConfig
from tests.contract.cases import (
    CASES,
    EPOCHS,
    SEED,
    Case,
    build,
    equal_states,
    toy_split,
    train,
    with_other_truth,
)

every_case = pytest.mark.parametrize("case", CASES, ids=str)


def gradient_method(case: Case) -> GradientMethod:
    method = build(case, toy_split())
    if not isinstance(method, GradientMethod):
        pytest.skip("this law is about methods that descend a loss; this one is fitted directly")
    return method


def one_step(method: GradientMethod, epoch: int = 2) -> tuple[Outputs, PUBatch, Clock]:
    split = toy_split()
    loader = Loader(
        split.train,
        split.kind,
        24,
        torch.device("cpu"),
        truth=method.needs.truth,
        clean=split.clean if method.needs.clean else None,
    )
    clock = Clock(SEED, "train", epoch, EPOCHS, 0, 4)
    now, batch = next(iter(loader.epoch(clock, method.views, method.batching)))
    return method(batch, now), batch, now


@every_case
def test_scores_are_probabilities_for_every_sample(case: Case) -> None:
    split = toy_split()
    predictor = train(build(case, split), split)
    assert split.test is not None
    scores = predictor.scores(split.test.values)
    assert scores.shape == (len(split.test),)
    assert np.isfinite(scores).all()
    assert ((scores >= 0) & (scores <= 1)).all()


@every_case
def test_the_same_seed_gives_the_same_bits(case: Case) -> None:
    split = toy_split()
    first, second = build(case, split), build(case, split)
    train(first, split)
    train(second, split)
    assert equal_states(first, second)


class _StopAfter:
    """Asks for a stop by a real signal after so many steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def step(self, clock: Clock) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGTERM)


@every_case
@pytest.mark.parametrize("steps", [1, 4, 7], ids="stopped after {} steps".format)
def test_a_resumed_run_is_the_same_run_to_the_bit(case: Case, steps: int, tmp_path: Path) -> None:
    split = toy_split()
    whole, broken = build(case, split), build(case, split)
    if not isinstance(whole, GradientMethod):
        pytest.skip("fitted in one go: there is nothing to resume")
    (tmp_path / "whole").mkdir()
    (tmp_path / "broken").mkdir()
    train(whole, split, folder=tmp_path / "whole")
    with pytest.raises(Interrupted) as stopped:
        train(
            broken,
            split,
            folder=tmp_path / "broken",
            watcher=Watcher(step=_StopAfter(steps).step),
        )
    assert stopped.value.exit_code == 143
    resumed = build(case, split)
    train(resumed, split, folder=tmp_path / "broken")

    assert equal_states(whole, resumed)
    states = [
        torch.load(tmp_path / name / "last.pt", weights_only=True) for name in ("whole", "broken")
    ]
    assert states[0]["position"] == states[1]["position"]
    moments = [state["optimizer"]["state"] for state in states]
    assert moments[0].keys() == moments[1].keys()
    for key in moments[0]:
        for name, value in moments[0][key].items():
            same = torch.equal(value, moments[1][key][name]) if torch.is_tensor(value) else True
            assert same, (key, name)
    assert log_without_times(tmp_path / "whole") == log_without_times(tmp_path / "broken")


def log_without_times(folder: Path) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


@every_case
def test_truth_reaches_only_a_method_that_declares_it(case: Case) -> None:
    split = toy_split()
    first, second = build(case, split), build(case, split)
    train(first, split)
    train(second, with_other_truth(split))
    assert equal_states(first, second) != METHODS[case.name].needs.truth


@every_case
def test_global_random_generators_are_left_alone(case: Case) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # type: ignore[index]
    split = toy_split()
    train(build(case, split), split)
    after = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # type: ignore[index]
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]


@every_case
def test_results_do_not_depend_on_the_global_generators(case: Case) -> None:
    split = toy_split()
    torch.manual_seed(1)
    first = build(case, split)
    train(first, split)
    torch.manual_seed(2)
    second = build(case, split)
    train(second, split)
    assert equal_states(first, second)


@every_case
def test_all_state_is_in_the_checkpoint(case: Case) -> None:
    method = gradient_method(case)
    for name, module in method.named_modules():
        assert not module._non_persistent_buffers_set, name
        loose = [key for key, value in vars(module).items() if torch.is_tensor(value)]
        assert not loose, f"{name} keeps {loose} outside the state_dict"


@every_case
def test_the_loss_touches_no_parameter(case: Case) -> None:
    method = gradient_method(case)
    outputs, batch, clock = one_step(method)
    values = {name: value.detach() for name, value in outputs.tensors.items()}
    with torch.no_grad():
        for parameter in method.parameters():
            parameter.fill_(float("nan"))
    losses = method.loss(Outputs(values), batch, clock)
    assert torch.isfinite(losses.total)


@every_case
def test_the_loss_reaches_every_parameter_that_learns(case: Case) -> None:
    method = gradient_method(case)
    outputs, batch, clock = one_step(method)
    method.loss(outputs, batch, clock).total.backward()  # type: ignore[no-untyped-call]
    silent = [n for n, p in method.named_parameters() if p.requires_grad and p.grad is None]
    assert not silent


@every_case
def test_a_batch_without_positives_gives_a_number(case: Case) -> None:
    method = gradient_method(case)
    outputs, batch, clock = one_step(method)
    none = replace(batch, labelled=torch.zeros(24, dtype=torch.bool))
    assert torch.isfinite(method.loss(outputs, none, clock).total)


@every_case
def test_a_saved_model_scores_as_the_trained_one(case: Case, tmp_path: Path) -> None:
    split = toy_split()
    method = build(case, split)
    predictor = train(method, split)
    channels = split.sample_shape[0]
    save_model(
        tmp_path,
        method,
        ModelDescription(
            method=case.name,
            settings=case.config().model_dump(mode="json"),
            backbone=BackboneConfig(width=0.125),
            sample_shape=split.sample_shape,
            mean=(0.5,) * channels,
            std=(0.25,) * channels,
            kind=split.kind,
            prior=0.4,
        ),
    )
    loaded, _ = load_model(tmp_path)
    assert split.test is not None
    assert np.array_equal(loaded.scores(split.test.values), predictor.scores(split.test.values))


@every_case
def test_no_text_of_the_card_is_empty(case: Case) -> None:
    card = METHODS[case.name].card
    for text in (card.title, card.summary, card.citation, card.fidelity, card.good_at, card.bad_at):
        assert text.strip()


MORE_THAT_LOG = [
    Case(name, {"entropy_weight": 0.1})
    for name in METHODS
    if "entropy_weight" in METHODS[name].model_fields
]
"""Settings under which a method logs a term that none of the other cases has."""


def names_logged(case: Case) -> set[str]:
    split, rows = toy_split(), list[Row]()
    train(build(case, split), split, watcher=Watcher(epoch=rows.append))
    return {name for row in rows for group in ("loss", "watched") for name in row[group]}


@pytest.mark.parametrize("name", METHODS)
def test_the_card_describes_every_number_that_is_logged_and_no_other(name: str) -> None:
    cases = [case for case in (*CASES, *MORE_THAT_LOG) if case.name == name]
    assert set(METHODS[name].card.logs) == set().union(*map(names_logged, cases))


@pytest.mark.parametrize("name", METHODS)
def test_what_is_logged_is_described_in_words(name: str) -> None:
    for logged in METHODS[name].card.logs.values():
        assert logged.title[0].isupper()
        assert not logged.title.endswith(".")
        assert logged.note.endswith(".")
