"""How much work the operations of a run are, and so how many threads it should have."""

import math

from onesided.core.dist import world
from onesided.core.threads import choose_threads
from onesided.nets.build import build_backbone
from onesided.nets.work import multiplications
from onesided.run.embed import build_embedder
from onesided.run.problem import Problem


def threads_for(problem: Problem) -> int:
    """Return how many threads a new run on this problem should have, on this machine now."""
    return choose_threads(work_of(problem))


def work_of(problem: Problem) -> float:
    """Return the multiplications of a batch in the backbone.

    A frozen backbone is most of its run's work. Where none is used, trees grow side by side, and
    as many as there are threads.
    """
    config, data, shape = problem.config, problem.data, problem.split.sample_shape
    if data.columns:
        return 0.0  # rows of a table are short, and not encoded yet
    if not config.method.trains_backbone and not config.backbone.freeze:
        return math.inf
    if config.backbone.freeze:
        embedder = build_embedder(config.backbone, data)
        return multiplications(embedder, shape) * embedder.inference().batch
    backbone = build_backbone(config.backbone, shape, data.mean, data.std)
    return multiplications(backbone, shape) * config.train.batch_size / world()
