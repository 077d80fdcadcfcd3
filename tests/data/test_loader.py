"""Which rows, in which order, seen how: functions of the clock and of nothing else."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onesided.core.batch import Augment, Batching, CleanBatch, Mixed, PUBatch, Stratified
from onesided.core.clock import Clock
from onesided.core.errors import ConfigError, ContractError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.loader import Loader
from onesided.data.problem.dataset import LabelledDataset, PUDataset, Selection

CPU = torch.device("cpu")
EVERY_VIEW = {"classify": Augment.WEAK, "query": Augment.STRONG, "plain": Augment.PLAIN}
each_batching = pytest.mark.parametrize("batching", [Mixed(), Stratified(3)], ids=str)

Batches = list[tuple[Clock, PUBatch]]


def pu_data(count: int = 103, labelled: int = 17, shape: tuple[int, ...] = (3, 6, 6)) -> PUDataset:
    random = np.random.default_rng(2)
    is_labelled = random.permutation(np.arange(count) < labelled)
    truth = np.where(is_labelled | (random.random(count) < 0.3), POSITIVE, NEGATIVE)
    # The rows of a split are scattered over a larger set.
    index = random.permutation(2 * count)[:count]
    values = random.integers(0, 256, (2 * count, *shape), dtype=np.uint8)
    names = tuple(str(row) for row in range(count))
    return PUDataset(Selection(values, index), is_labelled, truth.astype(np.int64), names)


def clean_data(count: int = 10) -> LabelledDataset:
    values = np.random.default_rng(3).integers(0, 256, (count, 3, 6, 6), dtype=np.uint8)
    truth = np.arange(count, dtype=np.int64) % 2
    return LabelledDataset(Selection(values, np.arange(count)), truth, ("clean",) * count)


def loader_of(data: PUDataset | None = None, batch_size: int = 16) -> Loader:
    return Loader(data or pu_data(), "photograph", batch_size, CPU)


def epoch_of(
    loader: Loader,
    batching: Batching | None = None,
    views: Mapping[str, Augment] | None = None,
    *,
    rows: np.ndarray | None = None,
    seed: int = 0,
    stage: str = "train",
    epoch: int = 0,
    step: int = 0,
    steps: int = 0,
) -> Batches:
    batching = batching or Mixed()
    clock = Clock(seed, stage, epoch, 5, step, steps or loader.steps(batching, rows))
    return list(loader.epoch(clock, views or {}, batching, rows))


def order(batches: Batches) -> list[int]:
    return [row for _, batch in batches for row in batch.row.tolist()]


def assert_equal_bits(one: PUBatch, other: PUBatch) -> None:
    assert torch.equal(one.row, other.row)
    assert torch.equal(one.labelled, other.labelled)
    assert list(one.views) == list(other.views)
    assert all(torch.equal(one.views[role], other.views[role]) for role in one.views)


@pytest.mark.parametrize("batch_size", [1, 16, 50, 103])
def test_a_mixed_epoch_holds_every_row_once_but_for_the_incomplete_batch(batch_size: int) -> None:
    batches = epoch_of(loader_of(batch_size=batch_size))
    seen = order(batches)
    assert len(batches) == 103 // batch_size
    assert all(len(batch.row) == batch_size for _, batch in batches)
    assert len(set(seen)) == len(seen) == 103 - 103 % batch_size
    assert set(seen) <= set(range(103))


def test_rows_that_one_epoch_drops_come_in_another() -> None:
    epochs = [epoch_of(loader_of(), epoch=epoch) for epoch in range(12)]
    assert {row for batches in epochs for row in order(batches)} == set(range(103))


def test_data_smaller_than_a_batch_makes_no_step() -> None:
    loader = loader_of(batch_size=104)
    assert loader.steps(Mixed()) == loader.steps(Stratified(1)) == 0


@each_batching
def test_a_stage_that_asks_for_steps_of_too_little_data_is_refused(batching: Batching) -> None:
    with pytest.raises(ConfigError, match=r"batch of 104 is larger than the rows .*\(103\)"):
        epoch_of(loader_of(batch_size=104), batching, steps=3)


def test_a_long_epoch_goes_through_the_data_again_in_another_order() -> None:
    seen = order(epoch_of(loader_of(pu_data(96)), steps=15))
    passes = [seen[:96], seen[96:192], seen[192:]]
    assert set(passes[0]) == set(passes[1]) == set(range(96))
    assert len(set(passes[2])) == len(passes[2]) == 15 * 16 - 192
    assert passes[0] != passes[1]
    assert passes[0][:48] != passes[2]


@each_batching
def test_a_long_epoch_starts_as_a_short_one(batching: Batching) -> None:
    long, short = (epoch_of(loader_of(), batching, EVERY_VIEW, steps=steps) for steps in (14, 4))
    assert len(short) == 4
    for (_, one), (_, other) in zip(long[:4], short, strict=True):
        assert_equal_bits(one, other)


def test_clocks_count_the_steps() -> None:
    clocks = [clock for clock, _ in epoch_of(loader_of(), epoch=2)]
    assert clocks == [Clock(0, "train", 2, 5, step, 6) for step in range(6)]


@each_batching
def test_labels_and_images_are_those_of_the_row(batching: Batching) -> None:
    data = pu_data()
    for _, batch in epoch_of(loader_of(data), batching, {"plain": Augment.PLAIN}):
        rows = batch.row.numpy()
        assert batch.labelled.tolist() == data.labelled[rows].tolist()
        images = torch.from_numpy(data.values.take(rows)).float() / 255
        torch.testing.assert_close(batch.views["plain"], images)


@each_batching
def test_the_order_depends_on_seed_stage_and_epoch(batching: Batching) -> None:
    loader = loader_of()
    orders = [
        order(epoch_of(loader, batching)),
        order(epoch_of(loader, batching, seed=1)),
        order(epoch_of(loader, batching, stage="warmup")),
        order(epoch_of(loader, batching, epoch=1)),
    ]
    assert len({tuple(each) for each in orders}) == 4


@each_batching
def test_the_order_depends_on_nothing_else(batching: Batching) -> None:
    plain = order(epoch_of(loader_of(), batching))
    torch.rand(3), np.random.random(3)
    other = replace(loader_of(pu_data(shape=(1, 2, 2))), truth=True)
    assert order(epoch_of(other, batching, EVERY_VIEW)) == plain


def test_the_mixed_order_does_not_depend_on_the_size_of_batches() -> None:
    small, large = (order(epoch_of(loader_of(batch_size=size))) for size in (10, 50))
    assert small == large


@each_batching
@pytest.mark.parametrize("step", [1, 5, 6, 8])
def test_an_epoch_resumed_at_a_step_is_equal_to_the_bit(batching: Batching, step: int) -> None:
    loader = replace(loader_of(), truth=True, clean=clean_data())
    whole = epoch_of(loader, batching, EVERY_VIEW, epoch=1, steps=10)
    resumed = epoch_of(loader, batching, EVERY_VIEW, epoch=1, steps=10, step=step)
    assert [clock for clock, _ in resumed] == [clock for clock, _ in whole[step:]]
    for (_, one), (_, other) in zip(resumed, whole[step:], strict=True):
        assert_equal_bits(one, other)
        assert one.clean is not None
        assert other.clean is not None
        assert torch.equal(one.clean.truth, other.clean.truth)
        assert torch.equal(one.clean.views["query"], other.clean.views["query"])


def test_a_method_that_changes_its_batch_does_not_change_the_data() -> None:
    loader = loader_of()
    before = epoch_of(loader, views=EVERY_VIEW)
    for _, batch in epoch_of(loader, views=EVERY_VIEW):
        for view in batch.views.values():
            view.zero_()
        batch.labelled.fill_(True)
    for (_, one), (_, other) in zip(before, epoch_of(loader, views=EVERY_VIEW), strict=True):
        assert_equal_bits(one, other)


def test_two_roles_are_two_draws_and_plain_views_are_none() -> None:
    roles = {"query": Augment.STRONG, "key": Augment.STRONG}
    plain = {"classify": Augment.PLAIN, "embed": Augment.PLAIN}
    _, batch = epoch_of(loader_of(), views=roles | plain)[0]
    assert not torch.equal(batch.views["query"], batch.views["key"])
    assert torch.equal(batch.views["classify"], batch.views["embed"])


@pytest.mark.parametrize("strength", [Augment.WEAK, Augment.STRONG])
def test_every_step_draws_its_own_views(strength: Augment) -> None:
    same = pu_data()
    same = replace(same, values=Selection(same.values.pool, np.full(103, 5)))
    first, second, *_ = epoch_of(loader_of(same), views={"classify": strength})
    assert not torch.equal(first[1].views["classify"], second[1].views["classify"])


def test_a_row_looks_different_in_every_epoch() -> None:
    loader = loader_of(batch_size=103)
    first, second = (
        epoch_of(loader, views={"classify": Augment.WEAK}, epoch=epoch)[0][1] for epoch in (0, 1)
    )
    changed = (
        first.views["classify"][first.row.argsort()]
        != second.views["classify"][second.row.argsort()]
    )
    assert changed.flatten(1).any(dim=1).float().mean() > 0.95


def test_a_view_does_not_depend_on_which_other_views_are_made() -> None:
    loader = loader_of()
    alone = epoch_of(loader, views={"query": Augment.STRONG})
    together = epoch_of(loader, views=EVERY_VIEW)
    for (_, one), (_, other) in zip(alone, together, strict=True):
        assert torch.equal(one.views["query"], other.views["query"])


def test_truth_is_given_only_to_those_who_asked() -> None:
    data = pu_data()
    asked = epoch_of(replace(loader_of(data), truth=True))
    not_asked = epoch_of(loader_of(data))
    assert all(batch.truth is None for _, batch in not_asked)
    for _, batch in asked:
        assert batch.truth is not None
        assert batch.truth.tolist() == data.truth[batch.row.numpy()].tolist()


@each_batching
def test_a_stage_may_train_on_some_rows_only(batching: Batching) -> None:
    data = pu_data()
    allowed = np.arange(103) % 3 > 0
    batches = epoch_of(loader_of(data, 8), batching, rows=allowed)
    seen = order(batches)
    assert len(batches) == loader_of(data, 8).steps(batching, allowed) > 0
    assert set(seen) <= set(np.flatnonzero(allowed).tolist())
    unlabelled = [row for row in seen if not data.labelled[row]]
    assert len(set(unlabelled)) == len(unlabelled)


@given(
    unlabelled=st.integers(1, 120),
    labelled=st.integers(1, 40),
    batch_size=st.integers(2, 40),
    positives=st.integers(0, 45),
    epoch=st.integers(0, 3),
)
def test_stratified_batches_hold_equally_many_positives_and_u_comes_once(
    unlabelled: int, labelled: int, batch_size: int, positives: int, epoch: int
) -> None:
    data = pu_data(unlabelled + labelled, labelled, shape=(1, 1, 1))
    batching, loader = Stratified(positives), loader_of(data, batch_size)
    natural = max(1, round(batch_size * labelled / (unlabelled + labelled)))
    share = min(positives or natural, batch_size - 1)
    steps = unlabelled // (batch_size - share)
    assert loader.steps(batching) == steps
    if steps == 0:
        return
    batches = epoch_of(loader, batching, epoch=epoch)
    assert [int(batch.labelled.sum()) for _, batch in batches] == [share] * steps
    assert [len(batch.row) for _, batch in batches] == [batch_size] * steps
    seen = Counter(order(batches))
    of_u = {row: times for row, times in seen.items() if not data.labelled[row]}
    assert set(of_u.values()) == {1}
    assert len(of_u) == steps * (batch_size - share)
    assert_evenly_cycled([seen[int(row)] for row in np.flatnonzero(data.labelled)])


def assert_evenly_cycled(times: list[int]) -> None:
    assert max(times) - min(times) <= 1


def test_positives_are_shuffled_again_at_each_repeat() -> None:
    """Six positives dealt in fours without shuffling would make three hands, again and again."""
    batches = epoch_of(loader_of(pu_data(606, 6, shape=(1, 1, 1)), 20), Stratified(4))
    hands = {frozenset(batch.row[batch.labelled].tolist()) for _, batch in batches}
    assert len(hands) > 6


def test_positives_stand_anywhere_in_a_stratified_batch() -> None:
    """Or one process of two would get all of them."""
    batches = epoch_of(loader_of(pu_data(2000, 40, shape=(1, 1, 1)), 20), Stratified(4))
    in_first_half = [int(batch.labelled[:10].sum()) for _, batch in batches]
    assert np.mean(in_first_half) == pytest.approx(2, abs=0.4)


@pytest.mark.parametrize("rows", [np.zeros(103, bool), ~pu_data().labelled], ids=["none", "U"])
def test_stratified_batches_without_positives_are_refused(rows: np.ndarray) -> None:
    with pytest.raises(ContractError, match=r"need labelled positives, and the rows.*hold none"):
        epoch_of(loader_of(), Stratified(), rows=rows)


@pytest.mark.parametrize(
    ("labelled", "unlabelled", "batch_size", "expected", "none"),
    [(300, 4000, 32, 2.23, 0.098), (500, 20000, 128, 3.12, 0.042)],
    ids=["ABCD", "xBD"],
)
def test_mixed_batches_sometimes_hold_no_positive_and_stratified_ones_never_do(
    labelled: int, unlabelled: int, batch_size: int, expected: float, none: float
) -> None:
    loader = loader_of(pu_data(labelled + unlabelled, labelled, shape=(1, 1, 1)), batch_size)

    def positives(batching: Batching) -> np.ndarray:
        epochs = [epoch_of(loader, batching, epoch=epoch) for epoch in range(12)]
        return np.array([int(batch.labelled.sum()) for each in epochs for _, batch in each])

    mixed = positives(Mixed())
    assert mixed.mean() == pytest.approx(expected, rel=0.05)
    deviation = np.sqrt(none * (1 - none) / len(mixed))
    assert (mixed == 0).mean() == pytest.approx(none, abs=4 * deviation)
    assert set(positives(Stratified())) == {round(expected)}


def clean_batches(loader: Loader, epoch: int = 0, seed: int = 0) -> list[CleanBatch]:
    batches = epoch_of(loader, views=EVERY_VIEW, epoch=epoch, seed=seed)
    found = [batch.clean for _, batch in batches]
    return [clean for clean in found if clean is not None]


def test_clean_samples_are_given_only_to_those_who_asked() -> None:
    assert clean_batches(loader_of()) == []
    assert len(clean_batches(replace(loader_of(), clean=clean_data()))) == 6


@pytest.mark.parametrize(("available", "given"), [(10, 10), (16, 16), (40, 16)])
def test_a_clean_batch_holds_each_sample_at_most_once_with_its_class(
    available: int, given: int
) -> None:
    data = clean_data(available)
    known = torch.from_numpy(data.values.take(slice(None))).float() / 255
    for batch in clean_batches(replace(loader_of(), clean=data)):
        assert list(batch.views) == list(EVERY_VIEW)
        same = torch.isclose(batch.views["plain"][:, None], known).flatten(2).all(dim=2)
        rows = same.int().argmax(dim=1)
        assert same.any(dim=1).all()
        assert len(set(rows.tolist())) == len(rows) == given
        assert batch.truth.tolist() == data.truth[rows.numpy()].tolist()


def test_clean_batches_are_a_function_of_the_clock() -> None:
    loader = replace(loader_of(), clean=clean_data(40))
    first, again = clean_batches(loader), clean_batches(loader)
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one.views["query"], other.views["query"])
        assert torch.equal(one.truth, other.truth)
    others = [first[1], clean_batches(loader, epoch=1)[0], clean_batches(loader, seed=1)[0]]
    assert not any(torch.equal(first[0].views["plain"], each.views["plain"]) for each in others)


def test_clean_samples_leave_the_batch_as_it_was() -> None:
    without = epoch_of(loader_of(), views=EVERY_VIEW)
    with_clean = epoch_of(replace(loader_of(), clean=clean_data()), views=EVERY_VIEW)
    for (_, one), (_, other) in zip(without, with_clean, strict=True):
        assert_equal_bits(one, other)


def everything_seen() -> dict[str, Tensor]:
    """All that two epochs give this process, by name; step after step."""
    loader = replace(loader_of(), truth=True, clean=clean_data())
    seen: dict[str, Tensor] = {}
    for batching in (Mixed(), Stratified(3)):
        for clock, batch in epoch_of(loader, batching, EVERY_VIEW):
            assert batch.truth is not None
            assert batch.clean is not None
            place = f"{type(batching).__name__} {clock.step}"
            seen |= {f"{place} {role}": view for role, view in batch.views.items()}
            seen[f"{place} row"] = batch.row
            seen[f"{place} labelled"] = batch.labelled
            seen[f"{place} truth"] = batch.truth
            seen[f"{place} clean"] = batch.clean.views["query"]
    return seen


@pytest.mark.ddp
def test_two_processes_together_see_the_batches_of_one(
    in_two_processes: Callable[
        [Callable[[], Mapping[str, Tensor]]], tuple[Mapping[str, Tensor], Mapping[str, Tensor]]
    ],
) -> None:
    first, second = in_two_processes(everything_seen)
    alone = everything_seen()
    assert alone.keys() == first.keys() == second.keys()
    for name, value in alone.items():
        if name.endswith("clean"):
            assert torch.equal(first[name], value)
            assert torch.equal(second[name], value)
        else:
            assert len(first[name]) == len(second[name]) == 8
            assert torch.equal(torch.cat([first[name], second[name]]), value)
