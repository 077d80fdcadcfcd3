"""One forest for all tests: its estimate of the class prior takes seconds."""

import numpy as np
import pytest

from onesided import PUClassifier
from tests.estimator.clouds import two_clouds


@pytest.fixture(scope="session")
def forest() -> PUClassifier:
    """Return trees on six features of which the last three are noise; no test changes them."""
    problem = two_clouds()
    problem.X[:, 3:] = np.random.default_rng(0).normal(size=(120, 3))
    forest = PUClassifier("puet", prior=0.33, settings={"method": {"trees": 20}})
    return forest.fit(problem.X, problem.y)
