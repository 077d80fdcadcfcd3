"""Learning from one-sided labels: a few positives and a large unlabelled pool."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onesided.estimator import PUClassifier as PUClassifier

__version__ = "0.1.0"

__all__ = ["PUClassifier", "__version__"]


def __getattr__(name: str) -> object:
    # scikit-learn and torch take seconds to import, and most of the library needs one or none.
    if name == "PUClassifier":
        from onesided.estimator import PUClassifier

        return PUClassifier
    raise AttributeError(f"module 'onesided' has no attribute '{name}'")
