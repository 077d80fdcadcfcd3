"""Views that a frozen backbone embeds once, and of which a step takes one."""

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from onesided.core.batch import Augment, Mixed, PUBatch
from onesided.core.clock import Clock
from onesided.core.errors import ConfigError, Interrupted
from onesided.core.rng import generator
from onesided.data.loader import Loader
from onesided.data.views.augment import augment
from onesided.data.views.bank import BankOfViews
from onesided.engine.fit import Watcher
from onesided.engine.sweep import MethodSweep
from onesided.nets.build import BackboneConfig
from onesided.run.config import RunConfig
from onesided.run.embed import build_embedder, embed
from onesided.run.folder import SCORES
from onesided.run.load import LoadedData, load_data
from onesided.run.problem import Problem, build_problem
from onesided.storage.features import RowsWithViews, key_of
from tests.run.running import run_in

CPU = torch.device("cpu")
ROLES = {"classify": Augment.WEAK, "query": Augment.STRONG, "key": Augment.STRONG}
CLOCK = Clock(3, "train", 1, 2, 0, 3)
COUNT = 3


def config(count: int, *, method: str = "ncpu", views: str = "published") -> RunConfig:
    data = {"name": "toy-images", "positives": 12, "unlabelled": 24}
    held_out = {"held_out_positives": 4, "held_out_unlabelled": 8}
    backbone = {"name": "efficientnet_lite0", "resize": 32, "freeze": True, "views": count}
    train = {"epochs": 2, "batch_size": 12, "device": "cpu", "views": views}
    named = {"data": data | held_out, "method": {"name": method}}
    return RunConfig.from_settings({**named, "backbone": backbone, "train": train})


@pytest.fixture(scope="module")
def loaded() -> LoadedData:
    return load_data(config(0).data)


def batches(problem: Problem, batch_size: int = 12) -> Iterator[PUBatch]:
    loader = Loader(problem.training.train, "vector", batch_size, CPU)
    for _, batch in loader.epoch(CLOCK, ROLES, Mixed()):
        yield batch


def expected_bank(loaded: LoadedData, *, gentle: bool) -> dict[Augment, torch.Tensor]:
    """Return the views of every training image by the network itself, one image at a time."""
    embedder = build_embedder(config(COUNT).backbone, loaded)
    train, found = loaded.split.train, {}
    for strength in (Augment.WEAK, Augment.STRONG):
        drawn = {Augment.WEAK: Augment.GENTLE, Augment.STRONG: Augment.PATCHED}[strength]
        rows = []
        for row in range(len(train)):
            image = train.values.take(np.array([row]))
            for number in range(COUNT):
                chosen = drawn if gentle else strength
                random = generator(0, "bank", key_of(image[0]).hex(), chosen, number)
                view = augment(torch.from_numpy(image), loaded.split.kind, chosen, random)
                with torch.no_grad():
                    rows.append(embedder(view)[0])
        found[strength] = torch.stack(rows).reshape(len(train), COUNT, -1)
    return found


@pytest.mark.parametrize("views", ["published", "gentle"])
def test_a_step_takes_views_of_the_bank_and_no_others(views: str, loaded: LoadedData) -> None:
    problem = embed(build_problem(config(COUNT, views=views), loaded))
    bank = expected_bank(loaded, gentle=views == "gentle")
    taken = set()
    for batch in batches(problem):
        for role, strength in ROLES.items():
            of_rows = bank[strength][batch.row]
            apart = (of_rows - batch.views[role][:, None]).abs().amax(dim=2)
            assert (apart.min(dim=1).values < 1e-3).all()
            taken |= set(apart.argmin(dim=1).tolist())
    assert taken == set(range(COUNT))


def test_views_are_drawn_by_role_epoch_step_and_seed(loaded: LoadedData) -> None:
    problem = embed(build_problem(config(COUNT), loaded))
    one, other = next(batches(problem)), next(batches(problem))
    for role in ROLES:
        assert torch.equal(one.views[role], other.views[role])
    assert not torch.equal(one.views["query"], one.views["key"])


def test_gentle_views_are_those_of_the_bank_too(loaded: LoadedData) -> None:
    problem = embed(build_problem(config(COUNT), loaded))
    loader = Loader(problem.training.train, "vector", 12, CPU)
    gentle = {"classify": Augment.GENTLE, "query": Augment.PATCHED, "key": Augment.PATCHED}
    _, batch = next(loader.epoch(CLOCK, gentle, Mixed()))
    for role in ROLES:
        assert torch.equal(batch.views[role], next(batches(problem)).views[role])


def test_two_processes_take_the_views_of_one(
    loaded: LoadedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = embed(build_problem(config(COUNT), loaded))
    whole = next(batches(problem))
    parts = []
    for half in (slice(0, 6), slice(6, 12)):
        monkeypatch.setattr("onesided.data.loader.shard", lambda count, half=half: half)
        parts.append(next(batches(problem)))
    for role in ROLES:
        assert torch.equal(torch.cat([part.views[role] for part in parts]), whole.views[role])


def test_without_a_bank_views_are_made_of_the_features(loaded: LoadedData) -> None:
    problem = embed(build_problem(config(0), loaded))
    assert not isinstance(problem.training.train.values.pool, RowsWithViews)
    batch = next(batches(problem))
    values = torch.from_numpy(problem.training.train.values.take(batch.row.numpy()))
    for role, strength in ROLES.items():
        random = generator(CLOCK.seed, "view", CLOCK.stage, CLOCK.epoch, CLOCK.step, role)
        assert torch.equal(batch.views[role], augment(values, "vector", strength, random))


def test_features_of_plain_images_do_not_depend_on_the_bank(loaded: LoadedData) -> None:
    plain, banked = (embed(build_problem(config(count), loaded)) for count in (0, COUNT))
    for one, other in ((plain.split.train, banked.split.train),):
        assert np.array_equal(one.values.take(slice(None)), other.values.take(slice(None)))


def test_views_are_embedded_once_and_more_of_them_keep_the_first(
    loaded: LoadedData, tmp_path: Path
) -> None:
    counts: list[list[int]] = []
    for count in (2, 2, COUNT):
        seen: list[int] = []
        embed(
            build_problem(config(count), loaded),
            cache=tmp_path,
            progress=partial(_note_total, seen),
        )
        counts.append(seen)
    rows = len(loaded.split.train)
    assert counts[0][-1] == 2 * 2 * rows
    assert counts[1] == []
    assert counts[2] == [2 * rows] * len(counts[2])


def _note_total(seen: list[int], done: int, total: int) -> None:
    seen.append(total)


def test_equal_images_have_equal_views_and_their_numbers_differ() -> None:
    bank = BankOfViews("photograph", 2, gentle=False)
    image = np.random.default_rng(0).integers(0, 256, (3, 9, 9), dtype=np.uint8)
    key = key_of(image)
    views = [bank.draw(image, key, *which) for which in bank.coordinates()]
    again = [bank.draw(image.copy(), key, *which) for which in bank.coordinates()]
    assert all(np.array_equal(one, other) for one, other in zip(views, again, strict=True))
    keys = {bank.key(key, *which) for which in bank.coordinates()}
    assert len({view.tobytes() for view in views}) == len(keys) == 4
    assert keys.isdisjoint(
        BankOfViews("photograph", 2, gentle=True).key(key, *which) for which in bank.coordinates()
    )


def test_a_run_on_embedded_views_resumes_to_the_bit(loaded: LoadedData, tmp_path: Path) -> None:
    left = [4]

    def stop(clock: Clock) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGTERM)

    run_in(tmp_path / "whole", config(2), loaded)
    with pytest.raises(Interrupted):
        run_in(tmp_path / "broken", config(2), loaded, watcher=Watcher(step=stop))
    run_in(tmp_path / "broken", config(2), loaded)
    for name in ("model.safetensors", SCORES):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes()


def test_a_sweep_takes_views_of_the_bank_where_it_has_some(loaded: LoadedData) -> None:
    problem = embed(build_problem(config(COUNT), loaded))
    train, held_out = problem.split.train, problem.split.held_out
    assert held_out is not None
    sweep = MethodSweep(
        torch.nn.Identity(), {"train": train, "held_out": held_out}, "vector", CPU, CLOCK
    )
    swept, _ = sweep(torch.nn.Identity(), view=Augment.STRONG)
    pool = train.values.pool
    assert isinstance(pool, RowsWithViews)
    assert not pool.has(held_out.values.index)
    numbers = [np.full(len(train), COUNT + number) for number in range(COUNT)]
    strong = [pool.views(train.values.index, each) for each in numbers]
    equal = [(one == swept.numpy()).all(axis=1) for one in strong]
    assert np.logical_or.reduce(equal).all()
    others, _ = sweep(torch.nn.Identity(), view=Augment.STRONG, of="held_out")
    assert len(others) == len(held_out)


def test_only_a_frozen_backbone_embeds_views() -> None:
    with pytest.raises(ConfigError, match="add --freeze"):
        BackboneConfig.from_settings({"name": "efficientnet_lite0", "views": 2})
    frozen = BackboneConfig(name="efficientnet_lite0", freeze=True)
    assert "views" not in frozen.identity()
    assert frozen.model_copy(update={"views": 2}).identity()["views"] == 2
