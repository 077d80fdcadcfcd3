"""Whether `torch.compile` pays: the backbone forward and back, as it is and compiled.

Compilers see no loops of numba's, so what is compiled has torch's convolutions; the backbone with
these, not compiled, is timed too, or both effects would be mixed.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.step_sides import DIRECT, Problem, in_turns


def compiled_backbone(problem: Problem, *, repeats: int) -> dict[str, Any]:
    """Return median seconds as it is and compiled, and the seconds until it is compiled.

    Where there is no compiler, the reason instead. The problem is arranged by `Sides` already.
    """
    backbone = problem.method.backbone
    pictures = torch.from_numpy(problem.data.values.take(slice(None))).float().div_(255)
    compiled = torch.compile(backbone)

    def forward_and_back(network: Callable[[Tensor], Tensor]) -> None:
        backbone.zero_grad()
        network(pictures).sum().backward()  # type: ignore[no-untyped-call]

    def directly() -> None:
        with DIRECT:
            forward_and_back(backbone)

    forward_and_back(backbone)
    began = time.perf_counter()
    try:
        forward_and_back(compiled)
    except RuntimeError as error:  # what torch raises where no compiler is found
        return {"failed": str(error).splitlines()[0]}
    warm_up = time.perf_counter() - began
    parts = {
        "eager": lambda: forward_and_back(backbone),
        "direct": directly,
        "compiled": lambda: forward_and_back(compiled),
    }
    return {**in_turns(parts, repeats), "warm_up": warm_up}
