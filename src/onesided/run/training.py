"""One training: a problem in, a predictor out."""

import time
from dataclasses import dataclass, replace

from onesided.engine.fit import Memory, Watcher, fit
from onesided.engine.predict import Predictor
from onesided.run.build import build_method
from onesided.run.encode import encode
from onesided.run.prior import PriorUsed, find_prior
from onesided.run.problem import Problem


@dataclass(frozen=True)
class Trained:
    """What training gives: the predictor, the prior that the method used, the seconds it took."""

    predictor: Predictor
    prior: PriorUsed | None
    seconds: float


def train(
    problem: Problem,
    *,
    memory: Memory | None = None,
    watcher: Watcher | None = None,
    prior: PriorUsed | None = None,
) -> Trained:
    """Encode, find the prior, build the method and fit it; only `memory` writes anything.

    `prior` is one that is known already; None finds it where the method needs one.
    """
    problem = encode(problem)
    config = problem.config
    if prior is None and config.method.needs.prior:
        prior = find_prior(config.prior, problem.split, config.seed)
    method = build_method(
        config.method,
        config.backbone.learner(),
        problem.data,
        problem.training,
        batch_size=config.train.batch_size,
        seed=config.seed,
        prior=prior.value if prior else None,
    )
    memory = memory or Memory()
    started = time.monotonic()
    predictor = fit(
        method, problem.training, config.train, seed=config.seed, memory=memory, watcher=watcher
    )
    data = problem.data
    predictor = replace(predictor, embedder=data.embedder, encoder=data.encoder)
    return Trained(predictor, prior, memory.log.seconds() or time.monotonic() - started)
