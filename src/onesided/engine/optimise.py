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
from onesided.nets.standardise import Backbone

PACE = "pace"
"""Key of a group of parameters: the factor of its learning rate, 1 where it has none."""


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
    learning = _at_pace(method, _groups(method, train))
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


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Let the next step have this learning rate; slower groups a part of it."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group[PACE] if PACE in group else rate


def _groups(method: nn.Module, train: TrainConfig) -> list[dict[str, Any]]:
    """Return the parameters with weight decay and, in a second group, those without."""
    learning = [p for p in method.parameters() if p.requires_grad]
    if train.decay == "all":
        return [{"params": learning}]
    return [
        {"params": [p for p in learning if p.ndim > 1]},
        {"params": [p for p in learning if p.ndim <= 1], "weight_decay": 0.0},
    ]


def _at_pace(method: nn.Module, groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the groups, each followed by those of its parameters that learn more slowly.

    Without such parameters they are as they were, so that checkpoints fit.
    """
    backbones = [m for m in method.modules() if isinstance(m, Backbone) and m.pace != 1]
    paces = {id(p): m.pace for m in backbones for p in m.parameters()}
    if not paces:
        return groups
    divided = []
    for group in groups:
        for pace in sorted({paces.get(id(p), 1.0) for p in group["params"]}, reverse=True):
            members = [p for p in group["params"] if paces.get(id(p), 1.0) == pace]
            divided.append(group | {"params": members} | ({} if pace == 1 else {PACE: pace}))
    return divided


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
