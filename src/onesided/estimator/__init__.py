"""The library as a scikit-learn classifier: fit, predict, score, clone, pipelines."""

from onesided.estimator.classifier import PUClassifier
from onesided.estimator.monitor import (
    DegenerateModelWarning,
    DoubtfulFiguresWarning,
    UnfamiliarDataWarning,
)

__all__ = [
    "DegenerateModelWarning",
    "DoubtfulFiguresWarning",
    "PUClassifier",
    "UnfamiliarDataWarning",
]
