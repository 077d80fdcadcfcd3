"""What a trained classifier costs: time for 256 samples, operations for one."""

import statistics
import time

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from onesided.data.problem.dataset import Selection
from onesided.engine.predict import Predictor
from onesided.engine.sweep import evaluating
from onesided.engine.train_config import choose_device
from onesided.methods.base import GradientMethod
from onesided.run.build import build_method
from onesided.run.problem import Problem

ROWS = 256
REPEATS = 5


def measure_inference(problem: Problem) -> dict[str, float | None]:
    """Return milliseconds for 256 samples and GFLOPs for one; weights do not matter for either.

    GFLOPs count multiplications and additions of the classifier that decides, not of the heads
    that only training needs. A method without a network has none.
    """
    config = problem.config
    method = build_method(
        config.method,
        config.backbone.for_samples(problem.training.sample_shape),
        problem.data,
        problem.training,
        batch_size=config.train.batch_size,
        seed=config.seed,
        prior=0.5,
    )
    if not isinstance(method, GradientMethod):
        return {"inference_ms": None, "gflops": None}
    device = choose_device(config.train.device)
    predictor = Predictor(method.to(device), device)
    train = problem.training.train.values
    rows = Selection(train.pool, np.resize(train.index, ROWS))
    predictor.scores(rows)  # the first call prepares memory
    times = [_seconds(predictor, rows) for _ in range(REPEATS)]
    one = torch.zeros(1, *problem.training.sample_shape, device=device)
    with evaluating(method), torch.no_grad(), FlopCounterMode(display=False) as counter:
        method.classify(one)
    return {
        "inference_ms": round(1000 * statistics.median(times), 3),
        "gflops": round(counter.get_total_flops() / 1e9, 4),
    }


def _seconds(predictor: Predictor, rows: Selection) -> float:
    began = time.perf_counter()
    predictor.scores(rows)
    return time.perf_counter() - began
