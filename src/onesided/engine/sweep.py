"""A network over a whole data set, without gradients, in row order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor, nn

from onesided.core.batch import Augment
from onesided.core.clock import Clock
from onesided.core.errors import ContractError
from onesided.core.rng import generator
from onesided.data.problem.dataset import PUDataset, Selection
from onesided.data.problem.samples import ImageKind, chunk_length
from onesided.data.views.bank import view_of
from onesided.nets.standardise import Backbone

SWEEP_BATCH = 128
"""Rows that go through a network at once; fewer of large images, see `chunk_length`.

As many as a preset's batch of a large set, so that a sweep reuses the memory of training. Four
times as many took as long and, in chunks of other sizes, a third more memory.
"""


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put a network into evaluation mode without gradients, and back."""
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(training)


def chunks(values: Selection) -> Iterator[np.ndarray]:
    """Yield all rows in order, as many at a time as fit into memory."""
    length = min(SWEEP_BATCH, chunk_length(values.sample_shape))
    for start in range(0, len(values), length):
        yield np.arange(start, min(start + length, len(values)))


def run_over(
    function: Callable[[Tensor], Tensor], values: Selection, device: torch.device
) -> Tensor:
    """Return the function's outputs on plain views, in row order, on the CPU."""
    return _in_row_order(lambda rows: function(_plain(values, rows, device)).cpu(), values)


def features_of(
    backbone: Backbone, values: Selection, device: torch.device
) -> Iterator[Float32[np.ndarray, "chunk width"]]:
    """Yield the features of plain images by a frozen backbone, in row order.

    Every batch has the same number of images, the last one some empty ones. Then the kernels are
    the same for all, and an image has the same features to the bit whatever images are beside it.
    """
    backbone.to(device)
    with evaluating(backbone):
        way = backbone.inference()
    batch = way.batch

    def features(start: int) -> np.ndarray:
        images = _plain(values, slice(start, start + batch), device)
        # Threads that take batches of their own must not change the network's mode.
        with torch.no_grad() if way.in_threads else evaluating(backbone):
            whole = torch.zeros(batch, *images.shape[1:], device=device)
            whole[: len(images)] = images
            return way.features(whole)[: len(images)].float().cpu().numpy()

    starts = range(0, len(values), batch)
    in_threads = way.in_threads and torch.get_num_threads() > 1
    yield from _in_threads(features, starts) if in_threads else map(features, starts)


def _in_threads(
    function: Callable[[int], np.ndarray], arguments: Iterable[int]
) -> Iterator[np.ndarray]:
    """Yield the results in order; as many threads as torch has each compute one at a time.

    A network of many small layers gains little where torch divides each layer between its threads.
    """
    threads = torch.get_num_threads()
    waiting: deque[Future[np.ndarray]] = deque()
    try:
        with ThreadPoolExecutor(
            threads, "features", initializer=torch.set_num_threads, initargs=(1,)
        ) as pool:
            for argument in arguments:
                waiting.append(pool.submit(function, argument))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    finally:
        torch.set_num_threads(threads)  # the workers' number is that of the whole process for MKL


def _plain(values: Selection, rows: np.ndarray | slice, device: torch.device) -> Tensor:
    chunk = torch.from_numpy(values.take(rows)).to(device)
    return chunk.float().div_(255) if chunk.dtype == torch.uint8 else chunk.float()


def _in_row_order(outputs: Callable[[np.ndarray], Tensor], values: Selection) -> Tensor:
    """Return the outputs of all rows, written chunk by chunk into one tensor.

    A list of outputs would fragment the memory: small blocks would lie between the large ones of
    every chunk. A run grew by a quarter during a sweep.
    """
    every: Tensor | None = None
    for rows in chunks(values):
        some = outputs(rows)
        if every is None:
            every = some.new_empty(len(values), *some.shape[1:])
        if (some.shape, some.dtype) != ((len(rows), *every.shape[1:]), every.dtype):
            raise ContractError(
                f"A sweep needs one output per row, all of one shape and type; got {some.dtype} of "
                f"shape {tuple(some.shape)} for {len(rows)} rows."
            )
        every[rows[0] : rows[-1] + 1] = some
    if every is None:
        raise ContractError("There are no rows to sweep.")
    return every


@dataclass(frozen=True)
class MethodSweep:
    """The `Sweep` that the engine gives to methods: their only way to data outside a batch.

    Every process sweeps all rows. Sharding would save time, but needs an exchange that could
    differ between processes.
    """

    module: nn.Module
    parts: Mapping[str, PUDataset]
    kind: ImageKind
    device: torch.device
    clock: Clock

    def __call__(
        self,
        function: Callable[[Tensor], Tensor],
        *,
        view: Augment = Augment.PLAIN,
        of: str = "train",
    ) -> tuple[Tensor, Tensor]:
        """Return outputs in row order and the labelled mask of the part `of`."""
        if of not in self.parts:
            raise ContractError(f"There is no part '{of}' to sweep; there are {list(self.parts)}.")
        data = self.parts[of]

        def outputs(rows: np.ndarray) -> Tensor:
            place = (self.clock.stage, self.clock.epoch, of, int(rows[0]))
            random = generator(self.clock.seed, "sweep", *place)
            chunk = torch.from_numpy(data.values.take(rows))
            seen = view_of(data.values, rows, self.kind, view, random, values=chunk)
            return function(seen.to(self.device))

        with evaluating(self.module):
            return (
                _in_row_order(outputs, data.values),
                torch.from_numpy(data.labelled).to(self.device),
            )
