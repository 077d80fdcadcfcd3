"""Several processes that train as one.

Networks run on a shard of the batch. Outputs are gathered, and every process computes the
loss of the whole batch. Only so do risks and states that are not averages (nnPU's switch,
prototypes, thresholds, tables of pseudo targets) equal those of one process.
"""

import os
from dataclasses import replace
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from onesided.core.batch import Outputs, PUBatch
from onesided.core.errors import ConfigError

PATIENCE = timedelta(days=2)
"""How long a process waits for the others. Only rank 0 computes features of a frozen backbone, the
last scores and the data of the report. With many images that takes hours, and torch's own limits
are 10 minutes (NCCL) and 30 (gloo). If a process dies, torchrun ends the others at once."""


def rank() -> int:
    """Return this process's number; 0 if there is only one."""
    return dist.get_rank() if dist.is_initialized() else 0


def world() -> int:
    """Return how many processes train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def join_if_launched() -> None:
    """Join the process group when started by torchrun; otherwise do nothing."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(backend, timeout=PATIENCE)


def wait_for_all() -> None:
    """Wait until all processes have come here."""
    if world() > 1:
        dist.barrier()


def shard(length: int) -> slice:
    """Return this process's contiguous part of `length` rows."""
    size, rest = divmod(length, world())
    if rest:
        raise ConfigError(
            f"A batch of {length} rows cannot be shared equally by {world()} processes. Make "
            f"train.batch_size a multiple of {world()}."
        )
    return slice(rank() * size, (rank() + 1) * size)


class _Gather(torch.autograd.Function):
    """All shards, in rank order; the gradient goes back to each shard.

    Every rank computes the same loss of the gathered tensor, so its gradient is equal on all
    ranks. Each rank takes the slice of its own shard times the number of ranks, because
    DistributedDataParallel then averages over ranks: the two factors cancel, and the gradient
    is exactly that of one process.
    """

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, shard_of: Tensor) -> Tensor:
        parts = [torch.empty_like(shard_of) for _ in range(world())]
        dist.all_gather(parts, shard_of.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *gradients: Tensor) -> Tensor:
        (gradient,) = gradients
        return gradient[shard(len(gradient))] * world()


def gather(tensor: Tensor) -> Tensor:
    """Return the rows of all processes, differentiable; with one process the tensor itself."""
    if world() == 1:
        return tensor
    gathered: Tensor = _Gather.apply(tensor)  # type: ignore[no-untyped-call]
    return gathered


def gather_outputs(outputs: Outputs) -> Outputs:
    """Return the outputs of the whole batch."""
    return Outputs({name: gather(value) for name, value in outputs.tensors.items()})


def gather_batch(batch: PUBatch) -> PUBatch:
    """Return the whole batch's rows and labels, without the images."""
    truth = None if batch.truth is None else gather(batch.truth)
    labelled = gather(batch.labelled.to(torch.uint8)).bool()
    negative = None if batch.negative is None else gather(batch.negative.to(torch.uint8)).bool()
    return replace(
        batch, row=gather(batch.row), labelled=labelled, truth=truth, negative=negative, views={}
    )
