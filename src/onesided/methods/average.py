"""Average: several direct methods, each on the same scale, weighed equally."""

from collections.abc import Mapping
from math import prod
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float64
from pydantic import Field, model_validator
from torch import Tensor

from onesided.core.batch import DataFacts
from onesided.core.errors import CheckpointError, OnesidedError
from onesided.methods.against_pool import Features, Mask, logistic
from onesided.methods.base import Card, MethodConfig
from onesided.methods.forest import Boosting, BoostingConfig, Forest, ForestConfig
from onesided.methods.linear import Linear, LinearConfig
from onesided.nets.standardise import Backbone, Standardise

PARTS: Mapping[str, type[LinearConfig | ForestConfig | BoostingConfig]] = {
    "linear": LinearConfig,
    "forest": ForestConfig,
    "boosting": BoostingConfig,
}
Part = Linear | Forest | Boosting
SCALE = "scale"
CLOSEST = 1e-12


class AverageConfig(MethodConfig):
    """Settings of Average."""

    linear: dict[str, Any] | None = Field(default_factory=dict)
    """Settings of Linear; None leaves it out."""
    forest: dict[str, Any] | None = Field(default_factory=dict)
    """Settings of Forest; None leaves it out."""
    boosting: dict[str, Any] | None = None
    """Settings of Boosting; None leaves it out."""

    trains_backbone: ClassVar[bool] = False
    card: ClassVar[Card] = Card(
        title="Average",
        summary="The mean of several direct methods, each on the same scale.",
        citation="A textbook idea, without a publication of its own.",
        fidelity="There is no publication to be faithful to.",
        licence="Ours, under Apache-2.0, on scikit-learn (BSD-3-Clause).",
        good_at="Data on which methods of different kinds are about equally good.",
        bad_at="Data on which one of its parts is much worse than the others.",
        variants={},
        logs={},
    )

    @model_validator(mode="after")
    def _has_two_sound_parts(self) -> "AverageConfig":
        if len(self.parts()) < 2:
            raise ValueError("an average takes two methods at least")
        return self

    def parts(self) -> dict[str, LinearConfig | ForestConfig | BoostingConfig]:
        """Return the settings of each part."""
        given = {name: getattr(self, name) for name in PARTS}
        return {
            name: PARTS[name].model_validate(settings)
            for name, settings in given.items()
            if settings is not None
        }

    def build(self, facts: DataFacts, backbone: Backbone) -> "Average":
        """Return an Average whose parts are not fitted; it does not use the backbone."""
        given = backbone.standardise if len(facts.sample_shape) == 1 else None
        return Average(self, prod(facts.sample_shape), given)


class Average:
    """The mean of its parts' log odds, each divided by its spread over the training samples.

    A strongly penalised model is timid: its scores are all near one half. Without a common scale
    it would have no say.
    """

    def __init__(
        self, config: AverageConfig, width: int, standardise: Standardise | None = None
    ) -> None:
        self.parts = {
            name: _part(settings, width, standardise) for name, settings in config.parts().items()
        }
        self.scale: np.ndarray | None = None

    def fit(self, features: Features, labelled: Mask, rng: np.random.Generator) -> None:
        """Fit every part, and measure the spread of its scores."""
        for part in self.parts.values():
            part.fit(features, labelled, rng)
        spreads = [_log_odds(part.scores(features)).std() for part in self.parts.values()]
        self.scale = np.maximum(spreads, CLOSEST)

    def scores(self, features: Features) -> Float64[np.ndarray, "m"]:
        """Return the logistic function of the mean."""
        each = [_log_odds(part.scores(features)) for part in self.parts.values()]
        mean: np.ndarray = np.mean(np.stack(each) / self._fitted()[:, None], axis=0)
        return logistic(mean)

    def state_dict(self) -> dict[str, Tensor]:
        """Return what the parts need, each under its name, and their scales."""
        scale = {SCALE: torch.from_numpy(self._fitted())}
        return scale | {
            f"{name}.{key}": value
            for name, part in self.parts.items()
            for key, value in part.state_dict().items()
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore every part, or refuse what does not fit."""
        for name in {key.partition(".")[0] for key in state} - {SCALE, *self.parts}:
            raise CheckpointError(f"These are not the numbers of this average: see '{name}'.")
        for name, part in self.parts.items():
            own = {
                key.removeprefix(f"{name}."): value
                for key, value in state.items()
                if key.startswith(f"{name}.")
            }
            part.load_state_dict(own)
        scale = state.get(SCALE)
        if scale is None or not _is_scale(scale, len(self.parts)):
            raise CheckpointError("The average is damaged: it has no scale for each of its parts.")
        self.scale = scale.cpu().numpy()

    def _fitted(self) -> np.ndarray:
        if self.scale is None:
            raise OnesidedError("The average is not fitted yet: call fit, or load a saved model.")
        return self.scale


def _part(
    settings: LinearConfig | ForestConfig | BoostingConfig,
    width: int,
    standardise: Standardise | None,
) -> Part:
    match settings:
        case LinearConfig():
            return Linear(settings, width, standardise)
        case ForestConfig():
            return Forest(settings, width)
        case BoostingConfig():
            return Boosting(settings, width)


def _is_scale(scale: Tensor, parts: int) -> bool:
    """Whether there is a finite number above 0 for each part."""
    if scale.dtype != torch.float64 or scale.shape != (parts,):
        return False
    return bool((scale > 0).all() and scale.isfinite().all())


def _log_odds(scores: np.ndarray) -> np.ndarray:
    inside = np.clip(scores, 1e-6, 1 - 1e-6)
    odds: np.ndarray = np.log(inside) - np.log1p(-inside)
    return odds
