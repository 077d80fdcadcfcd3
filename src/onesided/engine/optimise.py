"""One optimizer step: which parameters learn, and on how many processes."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from onesided.core.batch import Losses
from onesided.core.dist import world
from onesided.core.errors import TrainingFailed
from onesided.engine.train_config import TrainConfig
from onesided.methods.base import GradientMethod


def descend(losses: Losses, optimizer: torch.optim.Optimizer, clip: float) -> None:
    """Take one optimizer step, or stop with the name of the term that is not finite."""
    for name, term in {**losses.terms, "total": losses.total}.items():
        if not torch.isfinite(term.detach()).all():
            raise TrainingFailed(
                f"The loss term '{name}' became {float(term.detach())}. Lower "
                "train.learning_rate, or look for broken samples. "
                "The last checkpoint is intact."
            )
    optimizer.zero_grad(set_to_none=True)
    losses.total.backward()  # type: ignore[no-untyped-call]
    learning: list[Tensor] = [p for group in optimizer.param_groups for p in group["params"]]
    norm = nn.utils.clip_grad_norm_(learning, clip)
    if not torch.isfinite(norm):
        raise TrainingFailed(
            f"The norm of the gradient became {float(norm)} although the loss is finite. Lower "
            "train.learning_rate. The last checkpoint is intact."
        )
    optimizer.step()


def learn_only(method: nn.Module, learns: Sequence[str] | None, trainable: set[str]) -> None:
    """Let only the named submodules learn; what the method froze stays frozen."""
    for name, parameter in method.named_parameters():
        chosen = learns is None or any(name.startswith(f"{part}.") for part in learns)
        parameter.requires_grad_(name in trainable and chosen)


def build_optimizer(method: nn.Module, train: TrainConfig) -> torch.optim.Optimizer:
    """Return a new optimizer of the parameters that learn in this stage."""
    learning = _groups([p for p in method.parameters() if p.requires_grad], train)
    if train.optimizer == "adam":
        return torch.optim.Adam(
            learning,
            lr=train.learning_rate,
            betas=(train.momentum, 0.999),
            weight_decay=train.weight_decay,
        )
    return torch.optim.SGD(
        learning,
        lr=train.learning_rate,
        momentum=train.momentum,
        weight_decay=train.weight_decay,
        nesterov=train.nesterov and train.momentum > 0,
    )


def _groups(learning: list[nn.Parameter], train: TrainConfig) -> list[dict[str, Any]]:
    """Return the parameters with weight decay and, in a second group, those without."""
    if train.decay == "all":
        return [{"params": learning}]
    return [
        {"params": [p for p in learning if p.ndim > 1]},
        {"params": [p for p in learning if p.ndim <= 1], "weight_decay": 0.0},
    ]


def distribute(method: GradientMethod) -> nn.Module:
    """Return the method itself, or its distributed form when several processes train.

    Buffers are not synchronised: every process computes the same updates from the whole
    batch, and a broadcast from rank 0 would only hide a broken law. On GPUs BatchNorm takes the
    statistics of the whole batch. On CPUs torch has no such layer, and it takes those of its shard.
    """
    if world() == 1:
        return method
    network: nn.Module = method
    if next(method.parameters()).is_cuda:
        network = nn.SyncBatchNorm.convert_sync_batchnorm(method)  # type: ignore[no-untyped-call]
    return DistributedDataParallel(network, forward_sync_buffers=False)
