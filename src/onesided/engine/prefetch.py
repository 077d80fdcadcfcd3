"""Prefetch: make the next batch during a step, where a core or another device is free.

A batch depends on its clock alone, so prefetching does not change it.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from onesided.core.dist import world
from onesided.core.threads import available_cores

Item = TypeVar("Item")


def prefetched(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the same items, each made in another thread while the one before it is in use.

    An error in making an item is raised where the item would have been yielded.
    """
    end = object()
    with ThreadPoolExecutor(1, thread_name_prefix="next-batch") as maker:
        coming = maker.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = maker.submit(next, items, end)
            yield item  # type: ignore[misc]  # not the end


def has_room(device: torch.device) -> bool:
    """Return whether a core is free for one more thread than the step has.

    Without a free core the step would be slower: its threads would wait for the one that
    shares its core with the prefetching.
    """
    # torchrun gives each process one thread; all of them share this machine's cores.
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", world()))
    return device.type != "cpu" or processes * torch.get_num_threads() < available_cores()
