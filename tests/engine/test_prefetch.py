"""Prefetching: the same batches, at most one in advance, and no thread left running."""

import threading
from collections.abc import Iterator

import pytest
import torch

from onesided.engine import prefetch
from onesided.engine.prefetch import has_room, prefetched


def test_the_same_items_come_in_the_same_order() -> None:
    assert list(prefetched(iter(range(20)))) == list(range(20))
    assert list(prefetched(iter([]))) == []


def test_none_is_an_item_like_any_other() -> None:
    assert list(prefetched(iter([1, None, 2]))) == [1, None, 2]


def test_at_most_one_item_is_made_in_advance() -> None:
    made: list[int] = []

    def making() -> Iterator[int]:
        for number in range(10):
            made.append(number)
            yield number

    for used in prefetched(making()):
        assert len(made) <= used + 2


def test_items_are_made_in_another_thread_while_the_one_before_is_in_use() -> None:
    second_is_made = threading.Event()

    def making() -> Iterator[int]:
        yield threading.get_ident()
        second_is_made.set()
        yield threading.get_ident()

    items = prefetched(making())
    assert next(items) != threading.get_ident()
    assert second_is_made.wait(timeout=60), "the second item was not requested yet"
    assert len(list(items)) == 1


def test_an_error_is_raised_where_the_item_would_have_come() -> None:
    def making() -> Iterator[int]:
        yield 1
        raise ValueError("no second")

    items = prefetched(making())
    assert next(items) == 1
    with pytest.raises(ValueError, match="no second"):
        next(items)


def test_stopping_early_leaves_no_thread_behind() -> None:
    items = prefetched(iter(range(100)))
    next(items)
    items.close()  # type: ignore[attr-defined]
    assert not any(thread.name.startswith("next-batch") for thread in threading.enumerate())


def test_there_is_room_on_a_free_core_or_beside_another_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefetch, "available_cores", lambda: torch.get_num_threads())
    assert not has_room(torch.device("cpu"))
    assert has_room(torch.device("meta"))
    monkeypatch.setattr(prefetch, "available_cores", lambda: torch.get_num_threads() + 1)
    assert has_room(torch.device("cpu"))


def test_processes_that_train_together_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setattr(prefetch, "available_cores", lambda: 2 * torch.get_num_threads())
    assert not has_room(torch.device("cpu"))
    monkeypatch.setattr(prefetch, "available_cores", lambda: 2 * torch.get_num_threads() + 1)
    assert has_room(torch.device("cpu"))
