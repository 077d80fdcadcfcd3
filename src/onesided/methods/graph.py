"""The words in which a direct method says how it scores, for files that other programs run.

A method with `express` can be exported: it names the steps from features to scores, and whoever
writes the file knows how they are called there. All values but the features are one number per
sample, in double precision.
"""

from typing import NewType, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from onesided.methods.base import DirectMethod
from onesided.trees.leaves import Leaves

Value = NewType("Value", str)
"""Name of an intermediate result."""


class Graph(Protocol):
    """A computation that is being written down, step by step."""

    def weighted_sum(self, features: Value, weight: Float64[np.ndarray, "d"], bias: float) -> Value:
        """Add the sum of all features by weight, and the bias."""

    def sum_of_leaves(self, features: Value, leaves: Leaves) -> Value:
        """Add the sum of the leaves that a sample falls into."""

    def line(self, value: Value, slope: float, intercept: float) -> Value:
        """Add slope * value + intercept."""

    def quotient(self, value: Value, divisor: float) -> Value:
        """Add the value divided by a number, rounded once; `line` would round its inverse too."""

    def clip(self, value: Value, low: float, high: float) -> Value:
        """Add the value, at least `low` and at most `high`."""

    def logistic(self, value: Value) -> Value:
        """Add 1 / (1 + exp(-value))."""

    def log(self, value: Value) -> Value:
        """Add the natural logarithm."""

    def total(self, *values: Value) -> Value:
        """Add the sum of several values."""

    def note(self, sentence: str) -> None:
        """Take a sentence about what the graph does otherwise than the method."""


@runtime_checkable
class ExpressibleMethod(DirectMethod, Protocol):
    """A direct method whose scores can be written down as a graph."""

    def express(self, graph: Graph, features: Value) -> Value:
        """Add the steps from flattened samples to scores; return the scores."""
        ...
