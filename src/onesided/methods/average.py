"""Average: several direct methods, each on the same scale, weighed equally."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float64
from pydantic import Field, field_validator, model_validator
from torch import Tensor

from onesided.core.batch import DataFacts
from onesided.core.config import Settings
from onesided.core.errors import CheckpointError, OnesidedError
from onesided.methods.against_pool import Features, Mask, Weights, logistic
from onesided.methods.base import Card, MethodConfig
from onesided.methods.forest import Boosting, BoostingConfig, Forest, ForestConfig
from onesided.methods.graph import Graph, Value
from onesided.methods.linear import Linear, LinearConfig
from onesided.nets.standardise import Backbone, Standardise

PARTS: Mapping[str, type[LinearConfig | ForestConfig | BoostingConfig]] = {
    "linear": LinearConfig,
    "linear_twice": LinearConfig,
    "forest": ForestConfig,
    "forest_twice": ForestConfig,
    "boosting": BoostingConfig,
}
Part = Linear | Forest | Boosting
SCALE = "scale"
CLOSEST = 1e-12
CLOSEST_SCORE = 1e-6
"""Scores nearer to 0 or 1 count as this near: their log odds would have no bound."""


class AverageConfig(MethodConfig):
    """Settings of Average."""

    linear: dict[str, Any] | None = Field(default_factory=dict)
    """Settings of Linear; false leaves it out."""
    linear_twice: dict[str, Any] | None = None
    """Settings of a second Linear, such as one of two passes; without any it is left out."""
    forest: dict[str, Any] | None = Field(default_factory=dict)
    """Settings of Forest; false leaves it out."""
    forest_twice: dict[str, Any] | None = None
    """Settings of a second Forest; without any it is left out."""
    boosting: dict[str, Any] | None = None
    """Settings of Boosting; without any it is left out."""
    spreads: dict[str, float] = Field(default_factory=dict)
    """Spread of each part's log odds on samples that it was not trained on, by which they are
    divided. A search knows it. Without, it is measured on the training samples, on which trees
    are far too sure."""

    uses_negatives: ClassVar[bool] = True
    uses_weights: ClassVar[bool] = True
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

    @field_validator(*PARTS, mode="before")
    @classmethod
    def _false_leaves_out(cls, settings: object) -> object:
        return None if settings is False else settings

    def stored(self) -> Settings:
        """Return the settings with false for a part that is left out: TOML knows no None."""
        settings = super().stored()
        left_out = {name for name in ("linear", "forest") if settings[name] is None}
        return settings | dict.fromkeys(left_out, False)

    @model_validator(mode="after")
    def _has_two_sound_parts(self) -> "AverageConfig":
        if len(self.parts()) < 2:
            raise ValueError("an average takes two methods at least")
        if self.spreads and self.spreads.keys() != self.parts().keys():
            raise ValueError("spreads are of all parts or of none")
        if not all(0 < spread < np.inf for spread in self.spreads.values()):
            raise ValueError("a spread is a number above 0")
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
    """The mean of its parts' log odds, each divided by its spread.

    A strongly penalised model is timid: its scores are all near one half. Without a common scale
    it would have no say.
    """

    def __init__(
        self, config: AverageConfig, width: int, standardise: Standardise | None = None
    ) -> None:
        self.parts = {
            name: _part(settings, width, standardise) for name, settings in config.parts().items()
        }
        self.given = [config.spreads[name] for name in self.parts] if config.spreads else None
        self.scale: np.ndarray | None = None

    def fit(
        self,
        features: Features,
        labelled: Mask,
        rng: np.random.Generator,
        *,
        negative: Mask | None = None,
        weights: Weights | None = None,
    ) -> None:
        """Fit every part, and measure the spread of its scores where it is not known."""
        for part in self.parts.values():
            part.fit(features, labelled, rng, negative=negative, weights=weights)
        spreads = self.given or [spread(part.scores(features)) for part in self.parts.values()]
        self.scale = np.array(spreads)

    def scores(self, features: Features) -> Float64[np.ndarray, "m"]:
        """Return the logistic function of the mean."""
        return averaged([part.scores(features) for part in self.parts.values()], self._fitted())

    def express(self, graph: Graph, features: Value) -> Value:
        """Add the steps from samples to scores, by `averaged`."""
        each = []
        for part, spread in zip(self.parts.values(), self._fitted(), strict=True):
            inside = graph.clip(part.express(graph, features), CLOSEST_SCORE, 1 - CLOSEST_SCORE)
            against = graph.line(graph.log(graph.line(inside, -1, 1)), -1, 0)
            odds = graph.total(graph.log(inside), against)
            each.append(graph.line(odds, 1 / (len(self.parts) * float(spread)), 0))
        return graph.logistic(graph.total(*each))

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


def spread(scores: Float64[np.ndarray, "n"]) -> float:
    """Return the standard deviation of the log odds; never 0, because one divides by it."""
    return max(float(_log_odds(scores).std()), CLOSEST)


def averaged(
    scores: Sequence[Float64[np.ndarray, "n"]], spreads: Sequence[float] | np.ndarray
) -> Float64[np.ndarray, "n"]:
    """Return the logistic function of the mean of several models' log odds over their spreads."""
    each = [_log_odds(one) / by for one, by in zip(scores, spreads, strict=True)]
    mean: np.ndarray = np.mean(each, axis=0)
    return logistic(mean)


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
    inside = np.clip(scores, CLOSEST_SCORE, 1 - CLOSEST_SCORE)
    odds: np.ndarray = np.log(inside) - np.log1p(-inside)
    return odds
