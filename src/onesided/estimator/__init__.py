"""The library as scikit-learn knows classifiers: fit, predict, score, clone, pipelines."""

from onesided.estimator.classifier import PUClassifier
from onesided.estimator.telling import DegenerateModelWarning

__all__ = ["DegenerateModelWarning", "PUClassifier"]
