"""Requests that come at about the same time are scored together.

One thread computes: a model on a CPU gains from larger batches, not from several at once. Whoever
comes while it computes waits in a queue of limited length, and is then in the next batch.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64


class Busy(Exception):
    """More samples are waiting than the limit allows."""


@dataclass
class _Waiting:
    samples: np.ndarray
    scores: "asyncio.Future[np.ndarray]"


class Batcher:
    """Scores samples of several requests at once.

    Args:
        scores: From samples to scores.
        most: Samples in a batch.
        waiting: Samples that may wait.
        observe: Called with the size of every batch.
    """

    def __init__(
        self,
        scores: Callable[[np.ndarray], np.ndarray],
        *,
        most: int,
        waiting: int,
        observe: Callable[[int], object] = lambda size: None,
    ) -> None:
        self.scores, self.most, self.limit, self.observe = scores, most, waiting, observe
        self.waiting = 0
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue()
        self._thread: ThreadPoolExecutor | None = None
        self._work: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to take requests; must be called in the loop that serves them."""
        self._queue = asyncio.Queue()
        self._thread = ThreadPoolExecutor(1, "scores")
        self._work = asyncio.create_task(self._serve())

    async def stop(self) -> None:
        """End; whoever still waits is cancelled."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)

    async def score(self, samples: np.ndarray) -> Float64[np.ndarray, "n"]:
        """Return the scores of some samples; raise `Busy` where too many wait."""
        if self.waiting + len(samples) > self.limit:
            raise Busy
        one = _Waiting(samples, asyncio.get_running_loop().create_future())
        self.waiting += len(samples)
        try:
            self._queue.put_nowait(one)
            return await one.scores
        finally:
            self.waiting -= len(samples)

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self._queue.get()]
            while not self._queue.empty() and sum(len(one.samples) for one in batch) < self.most:
                batch.append(self._queue.get_nowait())
            batch = [one for one in batch if not one.scores.done()]  # others gave up
            if batch:
                await self._answer(loop, batch)

    async def _answer(self, loop: asyncio.AbstractEventLoop, batch: list[_Waiting]) -> None:
        samples = np.concatenate([one.samples for one in batch])
        self.observe(len(samples))
        try:
            found = await loop.run_in_executor(self._thread, self.scores, samples)
        except Exception as error:  # whoever asked gets it, and the next batch is served
            for one in batch:
                if not one.scores.done():
                    one.scores.set_exception(error)
            return
        start = 0
        for one in batch:
            if not one.scores.done():
                one.scores.set_result(found[start : start + len(one.samples)])
            start += len(one.samples)
