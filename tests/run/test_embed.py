"""Runs that start from given weights: fine-tuned, or frozen under a head."""

import csv
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from onesided.core.clock import Clock
from onesided.core.errors import (
    ConfigError,
    ContractError,
    Interrupted,
    OnesidedError,
)
from onesided.core.rng import generator
from onesided.engine.fit import Watcher
from onesided.engine.model_file import ModelDescription, load_model, save_model
from onesided.nets.build import BackboneConfig, build_backbone
from onesided.run.build import build_method
from onesided.run.config import RunConfig
from onesided.run.embed import embed
from onesided.run.folder import CACHE, SCORES, STORE
from onesided.run.load import LoadedData, load_data
from onesided.run.problem import Problem, build_problem
from onesided.run.training import train
from onesided.storage import features
from tests.run.running import run_in

CPU = torch.device("cpu")
SMALL = BackboneConfig(name="small", width=0.125)


@pytest.fixture(scope="module")
def loaded() -> LoadedData:
    """Tiny images: P, U, a held-out part and a test part."""
    return load_data(config("none", freeze=False).data)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory, loaded: LoadedData) -> Path:
    """A file of weights that stands for pretrained weights."""
    path = tmp_path_factory.mktemp("weights") / "mine.safetensors"
    shape = loaded.split.sample_shape
    elsewhere = build_backbone(SMALL, shape, [0.4] * 3, [0.2] * 3, generator(7))
    save_file(elsewhere.state_dict(), path)
    return path


def config(
    weights: Path | str, *, freeze: bool, method: str = "ce", settings: object = None
) -> RunConfig:
    return RunConfig.from_settings(
        {
            "data": {
                "name": "toy-images",
                # Below the fifty rows from which the report draws a map, which takes seconds.
                "positives": 18,
                "unlabelled": 30,
                "held_out_positives": 12,
                "held_out_unlabelled": 30,
            },
            "method": {"name": method, **(settings if isinstance(settings, dict) else {})},
            "backbone": {**SMALL.model_dump(), "weights": str(weights), "freeze": freeze},
            "train": {"epochs": 2, "batch_size": 16, "learning_rate": 0.01, "device": "cpu"},
        }
    )


def scores_in(folder: Path) -> dict[str, float]:
    with (folder / SCORES).open() as file:
        return {row["item"]: float(row["score"]) for row in csv.DictReader(file)}


def scores_again(folder: Path, loaded: LoadedData) -> dict[str, float]:
    """The unlabelled images through the model file alone."""
    predictor, _ = load_model(folder)
    validation = loaded.split.held_out
    assert validation is not None
    found: dict[str, float] = {}
    for part in (loaded.split.train, validation):
        scores = predictor.scores(part.values)
        found |= {
            name: score
            for name, score, labelled in zip(part.names, scores, part.labelled, strict=True)
            if not labelled
        }
    return found


@pytest.mark.parametrize("freeze", [False, True])
def test_a_saved_model_scores_images_without_the_file_it_started_from(
    freeze: bool, weights: Path, loaded: LoadedData, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.safetensors"
    mine.write_bytes(weights.read_bytes())
    run_in(tmp_path / "run", config(mine, freeze=freeze), loaded)
    mine.unlink()
    expected, found = scores_in(tmp_path / "run"), scores_again(tmp_path / "run", loaded)
    assert expected.keys() == found.keys()
    assert np.allclose([found[name] for name in expected], list(expected.values()), atol=1e-5)


@pytest.mark.parametrize("freeze", [False, True])
@pytest.mark.parametrize("steps", [1, 4])
def test_a_run_from_given_weights_resumes_to_the_bit(
    freeze: bool, steps: int, weights: Path, loaded: LoadedData, tmp_path: Path
) -> None:
    settings = config(weights, freeze=freeze)
    left = [steps]

    def stop(clock: Clock) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGTERM)

    run_in(tmp_path / "whole", settings, loaded)
    with pytest.raises(Interrupted):
        run_in(tmp_path / "broken", settings, loaded, watcher=Watcher(step=stop))
    run_in(tmp_path / "broken", settings, loaded)
    for name in ("model.safetensors", SCORES):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes()


def test_a_frozen_backbone_does_not_change(
    weights: Path, loaded: LoadedData, tmp_path: Path
) -> None:
    run_in(tmp_path / "run", config(weights, freeze=True), loaded)
    predictor, _ = load_model(tmp_path / "run")
    assert predictor.embedder is not None
    expected = build_backbone(SMALL, loaded.split.sample_shape, [0.4] * 3, [0.2] * 3, generator(7))
    for name, value in expected.state_dict().items():
        assert torch.equal(predictor.embedder.state_dict()[name], value), name


def test_fine_tuning_starts_from_the_file_and_leaves_it(weights: Path, loaded: LoadedData) -> None:
    settings = config(weights, freeze=False)
    start = torch.cat([p.flatten() for p in expected_start(loaded).parameters()])
    problem = build_problem(settings, loaded)
    untrained = build_method(
        settings.method, settings.backbone, loaded, problem.training, batch_size=16, seed=0
    )
    assert isinstance(untrained, torch.nn.Module)
    assert torch.equal(flat(untrained), start)
    trained = train(problem).predictor.method
    assert isinstance(trained, torch.nn.Module)
    assert not torch.equal(flat(trained), start)


def expected_start(loaded: LoadedData) -> torch.nn.Module:
    return build_backbone(SMALL, loaded.split.sample_shape, [0.4] * 3, [0.2] * 3, generator(7))


def flat(method: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in method.get_submodule("backbone").parameters()])


def test_features_are_those_of_each_image_alone(weights: Path, loaded: LoadedData) -> None:
    frozen = config(weights, freeze=True)
    seen = embed(build_problem(frozen, loaded))
    assert seen.split.kind == "vector"
    assert seen.split.test is not None
    assert loaded.split.test is not None
    embedder = expected_start(loaded).eval()
    for before, after in (
        (loaded.split.train.values, seen.split.train.values),
        (loaded.split.test.values, seen.split.test.values),
    ):
        assert len(before) == len(after)
        for row in (0, len(before) // 2, len(before) - 1):
            image = torch.from_numpy(before.take(np.array([row]))).float() / 255
            with torch.no_grad():
                expected = embedder(image)[0].numpy()
            assert np.allclose(after.take(np.array([row]))[0], expected, atol=1e-5)


def test_features_of_every_image_are_computed_once(
    weights: Path, loaded: LoadedData, tmp_path: Path
) -> None:
    frozen = config(weights, freeze=True)
    progress: list[tuple[int, int]] = []

    def report(done: int, total: int) -> None:
        progress.append((done, total))

    def embedded() -> Problem:
        return embed(build_problem(frozen, loaded), cache=tmp_path / STORE, progress=report)

    first = embedded()
    split = loaded.split
    assert split.held_out is not None
    assert split.test is not None
    count = len(split.train) + len(split.held_out) + len(split.test)
    assert progress[-1] == (count, count)
    progress.clear()
    again = embedded()
    assert progress == []
    rows = np.arange(5)
    assert np.array_equal(first.split.train.values.take(rows), again.split.train.values.take(rows))


def test_features_in_memory_are_those_in_the_file(
    weights: Path, loaded: LoadedData, tmp_path: Path
) -> None:
    frozen = config(weights, freeze=True)
    in_memory = embed(build_problem(frozen, loaded))
    in_file = embed(build_problem(frozen, loaded), cache=tmp_path / STORE)
    everything = slice(None)
    first, second = (part.split.train.values.take(everything) for part in (in_memory, in_file))
    assert np.array_equal(first, second)
    one, two = in_memory.data, in_file.data
    assert (one.mean, one.std) == (two.mean, two.std)


def test_the_images_behind_the_features_stay_at_hand(weights: Path, loaded: LoadedData) -> None:
    seen = embed(build_problem(config(weights, freeze=True), loaded))
    assert seen.data.source is loaded
    problem = build_problem(config(weights, freeze=False), loaded)
    assert embed(problem) is problem


def chunks_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.chunk"))


def flipped(content: bytes, width: int) -> bytes:
    return content[:-7] + bytes([content[-7] ^ 1]) + content[-6:]


def reversed_rows(content: bytes, width: int) -> bytes:
    count = len(content) // (32 + 4 * width)
    vectors = np.frombuffer(content[32 * count :], "<f4").reshape(count, width)
    return content[: 32 * count] + np.ascontiguousarray(vectors[::-1]).tobytes()


@pytest.mark.parametrize(
    "damage",
    [
        flipped,
        reversed_rows,
        lambda content, width: content[: len(content) // 2],
        lambda content, width: b"",
        lambda content, width: b"garbage",
    ],
)
def test_damaged_features_are_found_and_computed_again(
    damage: Callable[[bytes, int], bytes], weights: Path, loaded: LoadedData, tmp_path: Path
) -> None:
    problem = build_problem(config(weights, freeze=True), loaded)
    first = embed(problem, cache=tmp_path).split.train.values
    expected = first.take(slice(None))
    before = chunks_in(tmp_path)
    for path in before:
        path.write_bytes(damage(path.read_bytes(), first.sample_shape[0]))
    again = embed(problem, cache=tmp_path).split.train.values.take(slice(None))
    assert np.array_equal(again, expected)
    assert chunks_in(tmp_path) == before


def test_a_killed_embedding_resumes_with_the_chunks_it_had(
    weights: Path, loaded: LoadedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "ROWS", 10)
    problem = build_problem(config(weights, freeze=True), loaded)
    whole = embed(problem).split.train.values.take(slice(None))
    seen: list[int] = []

    def kill(done: int, total: int) -> None:
        seen.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed(problem, cache=tmp_path, progress=kill)
    kept = len(chunks_in(tmp_path)) * 10
    assert 0 < kept <= seen[0]
    counted: list[tuple[int, int]] = []
    resumed = embed(problem, cache=tmp_path, progress=lambda *now: counted.append(now))
    assert counted[0][0] > kept
    assert np.array_equal(resumed.split.train.values.take(slice(None)), whole)


def test_runs_with_other_rows_share_features_and_other_weights_do_not(
    weights: Path, loaded: LoadedData, tmp_path: Path
) -> None:
    counted: list[tuple[int, int]] = []

    def embedded(settings: RunConfig) -> int:
        counted.clear()
        problem = build_problem(settings, load_data(settings.data))
        embed(problem, cache=tmp_path, progress=lambda *now: counted.append(now))
        return len(counted)

    settings = config(weights, freeze=True)
    other = replace(settings, data=settings.data.model_copy(update={"seed": 5}))
    assert embedded(settings) > 0
    assert embedded(settings) == 0
    alone = embed(build_problem(other, load_data(other.data))).split.train.values
    shared = embed(build_problem(other, load_data(other.data)), cache=tmp_path).split.train.values
    assert np.array_equal(alone.take(slice(None)), shared.take(slice(None)))
    mine = tmp_path / "other.safetensors"
    drawn = build_backbone(SMALL, loaded.split.sample_shape, [0.4] * 3, [0.2] * 3, generator(8))
    save_file(drawn.state_dict(), mine)
    assert embedded(config(mine, freeze=True)) > 0
    assert len(list(tmp_path.glob("*/"))) == 2


def test_a_frozen_backbone_for_vectors_is_refused(weights: Path) -> None:
    frozen = config(weights, freeze=True)
    vectors = load_data(RunConfig.from_settings({"data": {"name": "toy-vectors"}}).data)
    problem = build_problem(frozen, vectors)
    with pytest.raises(ConfigError, match="takes images, and this data are vectors of 2 numbers"):
        embed(problem)


def test_another_file_of_weights_is_another_run(
    weights: Path, loaded: LoadedData, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.safetensors"
    mine.write_bytes(weights.read_bytes())
    run_in(tmp_path / "run", config(mine, freeze=True), loaded)
    run_in(tmp_path / "run", config(weights, freeze=True), loaded)  # the same, elsewhere
    other = build_backbone(SMALL, loaded.split.sample_shape, [0.4] * 3, [0.2] * 3, generator(8))
    save_file(other.state_dict(), mine)
    with pytest.raises(OnesidedError, match="holds another run"):
        run_in(tmp_path / "run", config(mine, freeze=True), loaded)


@pytest.mark.parametrize(
    ("method", "settings"),
    [("ncpu", {"warmup_epochs": 1, "projector_width": 16}), ("tedn", {})],
)
def test_methods_learn_on_frozen_features_and_score_images(
    method: str, settings: object, weights: Path, loaded: LoadedData
) -> None:
    frozen = config(weights, freeze=True, method=method, settings=settings)
    trained = train(embed(build_problem(frozen, loaded)))
    assert loaded.split.test is not None
    scores = trained.predictor.scores(loaded.split.test.values)
    assert np.isfinite(scores).all()
    assert np.ptp(scores) > 0


def test_a_model_on_features_is_not_saved_without_its_eyes(
    weights: Path, loaded: LoadedData, tmp_path: Path
) -> None:
    description = ModelDescription(
        method="ce",
        settings={},
        backbone=config(weights, freeze=True).backbone,
        sample_shape=loaded.split.sample_shape,
        mean=loaded.mean,
        std=loaded.std,
        kind="photograph",
    )
    with pytest.raises(ContractError, match="with its embedder"):
        save_model(tmp_path, description.build(), description)


def names_in(folder: Path) -> Sequence[str]:
    return sorted(path.name for path in folder.iterdir())


def test_features_are_in_the_cache_of_the_run_folder(
    weights: Path, loaded: LoadedData, tmp_path: Path
) -> None:
    run_in(tmp_path / "run", config(weights, freeze=True), loaded)
    store = tmp_path / "run" / CACHE / STORE
    assert chunks_in(store)
    assert "may be deleted" in (store / "README.txt").read_text()


def test_overwriting_a_run_of_an_earlier_version_removes_its_features(
    weights: Path, loaded: LoadedData, tmp_path: Path
) -> None:
    run_in(tmp_path / "run", config(weights, freeze=True), loaded)
    (tmp_path / "run" / "features.npy").write_bytes(b"of an earlier version")
    run_in(tmp_path / "run", config(weights, freeze=False), loaded, overwrite=True)
    assert "features.npy" not in names_in(tmp_path / "run")
