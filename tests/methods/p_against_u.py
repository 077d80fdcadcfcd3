"""A small PU problem of vectors for the direct methods, and what all of them promise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from onesided.core.batch import DataFacts
from onesided.methods.base import DirectMethod
from tests.methods.linear_clouds import Untouched

WIDTH = 5


class Settings(Protocol):
    """The settings of a direct method."""

    def build(self, facts: DataFacts, backbone: Untouched) -> Any:  # noqa: ANN401
        """Return the untrained method."""


@dataclass(frozen=True)
class Clouds:
    """Samples with labels, the truth, and new samples."""

    features: np.ndarray
    labelled: np.ndarray
    truth: np.ndarray
    new: np.ndarray


def clouds(rows: int = 160, seed: int = 0, shift: float = 1.0) -> Clouds:
    """Return two clouds; a third of all is positive, and half of these are labelled."""
    random = np.random.default_rng(seed)
    truth = np.arange(rows) % 3 == 0
    points = random.normal(size=(rows, WIDTH)) + shift * truth[:, None]
    new = random.normal(size=(40, WIDTH))
    return Clouds(
        points.astype(np.float32), truth & (np.arange(rows) % 2 == 0), truth, new.astype(np.float32)
    )


def untrained(settings: Settings, width: int = WIDTH) -> Any:  # noqa: ANN401 - of any class
    """Return the method, with features that are not scaled."""
    method = settings.build(DataFacts(160, 27, (width,)), Untouched(width))
    assert isinstance(method, DirectMethod)
    return method


def trained(settings: Settings, data: Clouds, seed: int = 0) -> Any:  # noqa: ANN401
    """Return the method, fitted."""
    method = untrained(settings)
    method.fit(data.features, data.labelled, np.random.default_rng(seed))
    return method


def with_entry(state: Mapping[str, Tensor], name: str, value: Tensor) -> dict[str, Tensor]:
    """Return a copy of a state with one entry changed."""
    return {**{key: part.clone() for key, part in state.items()}, name: value}
