"""What every method promises, checked for every entry of the table."""

import json
import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
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
from onesided.engine.predict import Predictor
from onesided.methods import METHODS
from onesided.methods.base import GradientMethod, Method
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


Generators = tuple[list[int], list[int], tuple[object, ...]]


def generators() -> Generators:
    """Return the state of the global generators of torch, numpy and Python."""
    numpy = np.random.get_state()[1].tolist()  # type: ignore[index]
    return torch.get_rng_state().tolist(), numpy, random.getstate()


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


@dataclass(frozen=True)
class Trained:
    """A method after its training, and what was seen meanwhile; no test changes it."""

    method: Method
    predictor: Predictor
    folder: Path
    logged: frozenset[str]
    generators: tuple[Generators, Generators]
    """The global generators before and after."""


Reference = Callable[[Case], Trained]


def trained(case: Case, folder: Path, *, global_seed: int) -> Trained:
    split, rows = toy_split(), list[Row]()
    torch.manual_seed(global_seed)
    before = generators()
    method = build(case, split)
    predictor = train(method, split, folder=folder, watcher=Watcher(epoch=rows.append))
    logged = {name for row in rows for group in ("loss", "watched") for name in row[group]}
    return Trained(method, predictor, folder, frozenset(logged), (before, generators()))


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """Train a case once: most laws compare something with the same undisturbed training."""
    kept: dict[str, Trained] = {}

    def of(case: Case) -> Trained:
        if str(case) not in kept:
            kept[str(case)] = trained(case, tmp_path_factory.mktemp("whole"), global_seed=1)
        return kept[str(case)]

    return of


@every_case
def test_scores_are_probabilities_for_every_sample(case: Case, reference: Reference) -> None:
    test = toy_split().test
    assert test is not None
    scores = reference(case).predictor.scores(test.values)
    assert scores.shape == (len(test),)
    assert np.isfinite(scores).all()
    assert ((scores >= 0) & (scores <= 1)).all()


@every_case
def test_the_same_seed_gives_the_same_bits_whatever_the_global_generators_hold(
    case: Case, reference: Reference, tmp_path: Path
) -> None:
    assert equal_states(reference(case).method, trained(case, tmp_path, global_seed=2).method)


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
def test_a_resumed_run_is_the_same_run_to_the_bit(
    case: Case, steps: int, reference: Reference, tmp_path: Path
) -> None:
    split, whole = toy_split(), reference(case)
    if not isinstance(whole.method, GradientMethod):
        pytest.skip("fitted in one go: there is nothing to resume")
    stop = Watcher(step=_StopAfter(steps).step)
    with pytest.raises(Interrupted) as stopped:
        train(build(case, split), split, folder=tmp_path, watcher=stop)
    assert stopped.value.exit_code == 143
    resumed = build(case, split)
    train(resumed, split, folder=tmp_path)

    assert equal_states(whole.method, resumed)
    folders = (whole.folder, tmp_path)
    states = [torch.load(folder / "last.pt", weights_only=True) for folder in folders]
    assert states[0]["position"] == states[1]["position"]
    moments = [state["optimizer"]["state"] for state in states]
    assert moments[0].keys() == moments[1].keys()
    for key in moments[0]:
        for name, value in moments[0][key].items():
            same = torch.equal(value, moments[1][key][name]) if torch.is_tensor(value) else True
            assert same, (key, name)
    assert log_without_times(whole.folder) == log_without_times(tmp_path)


def log_without_times(folder: Path) -> list[dict[str, object]]:
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


@every_case
def test_truth_reaches_only_a_method_that_declares_it(case: Case, reference: Reference) -> None:
    split = toy_split()
    second = build(case, split)
    train(second, with_other_truth(split))
    assert equal_states(reference(case).method, second) != METHODS[case.name].needs.truth


@every_case
def test_global_random_generators_are_left_alone(case: Case, reference: Reference) -> None:
    before, after = reference(case).generators
    assert before == after


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
def test_a_saved_model_scores_as_the_trained_one(
    case: Case, reference: Reference, tmp_path: Path
) -> None:
    split, whole = toy_split(), reference(case)
    channels = split.sample_shape[0]
    save_model(
        tmp_path,
        whole.method,
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
    images = split.test.values
    assert np.array_equal(loaded.scores(images), whole.predictor.scores(images))


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


@pytest.mark.parametrize("name", METHODS)
def test_the_card_describes_every_number_that_is_logged_and_no_other(
    name: str, reference: Reference
) -> None:
    cases = [case for case in (*CASES, *MORE_THAT_LOG) if case.name == name]
    assert set(METHODS[name].card.logs) == set().union(*(reference(case).logged for case in cases))


@pytest.mark.parametrize("name", METHODS)
def test_what_is_logged_is_described_in_words(name: str) -> None:
    for logged in METHODS[name].card.logs.values():
        assert logged.title[0].isupper()
        assert not logged.title.endswith(".")
        assert logged.note.endswith(".")
