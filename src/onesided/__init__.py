"""Learning from one-sided labels: a few positives and a large unlabelled pool."""

__version__ = "0.1.0"
