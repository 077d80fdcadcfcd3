"""The key queue: first in, first out, in a circle, and in the checkpoint."""

from collections import deque

import pytest
import torch

from onesided.core.labels import UNKNOWN
from onesided.state.queue import KeyQueue, TrustedKeyQueue


def queue(length: int, seed: int = 0) -> KeyQueue:
    return KeyQueue(length, 3, torch.Generator().manual_seed(seed))


def batch(size: int, first: int) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.arange(first, first + size)
    return labels[:, None].repeat(1, 3).float(), labels


def test_it_starts_with_random_directions_that_match_no_class() -> None:
    keys, labels = queue(16).read()
    assert torch.allclose(keys.norm(dim=1), torch.ones(16))
    assert (labels == UNKNOWN).all()
    assert len(set(keys[:, 0].tolist())) == 16


def test_its_start_depends_on_the_generator_alone() -> None:
    torch.manual_seed(1)
    first = queue(8).read()[0]
    torch.manual_seed(2)
    assert torch.equal(first, queue(8).read()[0])
    assert not torch.equal(first, queue(8, seed=1).read()[0])


@pytest.mark.parametrize("sizes", [[4, 4, 4], [3, 3, 3, 3], [8], [5, 1, 7], [11]])
def test_it_holds_what_a_list_of_limited_length_holds(sizes: list[int]) -> None:
    state = queue(8)
    slow: deque[int] = deque([UNKNOWN] * 8, maxlen=8)
    first = 0
    for size in sizes:
        keys, labels = batch(size, first)
        state.push(keys, labels)
        slow.extend(labels.tolist())
        first += size
    keys, labels = state.read()
    assert sorted(labels.tolist()) == sorted(slow)
    known = labels != UNKNOWN
    assert torch.equal(keys[known, 0], labels[known].float()), "a key keeps its label"


def test_a_later_push_does_not_change_what_was_read() -> None:
    state = queue(4)
    keys, labels = state.read()
    before = keys.clone(), labels.clone()
    state.push(*batch(4, 0))
    assert torch.equal(keys, before[0])
    assert torch.equal(labels, before[1])


def test_a_restored_queue_goes_on_where_it_was() -> None:
    first, second = queue(5), queue(5, seed=7)
    first.push(*batch(3, 0))
    second.load_state_dict(first.state_dict())
    for state in (first, second):
        state.push(*batch(4, 3))
    assert torch.equal(first.read()[1], second.read()[1])


@pytest.mark.parametrize("sizes", [[3, 3, 3], [8], [5, 1, 7], [11]])
def test_trust_goes_round_with_the_keys(sizes: list[int]) -> None:
    state = TrustedKeyQueue(8, 3, torch.Generator().manual_seed(0))
    assert not state.read_trust().any()
    first = 0
    for size in sizes:
        keys, labels = batch(size, first)
        state.push(keys, labels, labels % 3 == 0)
        first += size
    labels = state.read()[1]
    assert torch.equal(state.read_trust(), (labels % 3 == 0) & (labels != UNKNOWN))


def test_what_is_pushed_without_trust_is_not_trusted() -> None:
    state = TrustedKeyQueue(4, 3, torch.Generator().manual_seed(0))
    keys, labels = batch(4, 0)
    state.push(keys, labels, torch.ones(4, dtype=torch.bool))
    state.push(keys[:2], labels[:2])
    assert state.read_trust().tolist() == [False, False, True, True]
