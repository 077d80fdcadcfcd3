"""PUET: extremely randomised trees that reduce the PU risk (Wilton, Koay, Ko, Xu, Ye 2022).

Symbols:

| paper            | here                           | paper          | here                      |
|------------------|--------------------------------|----------------|---------------------------|
| pi               | `prior`                        | n_p, n_u       | counts of the root        |
| W_p, W_n, v*     | masses and majority of a node  | R(node)        | `impurity`                |
| T                | `trees`                        | F              | `max_features`            |

Every node predicts a constant, and a split is good if the two predictions of its children
have less risk than the one of the node. The risk is estimated from P, U and the prior as in
nnPU and uPU. Trees need no gradients: they are grown directly on the raw numbers of a sample.
"""

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float64, Shaped
from pydantic import Field
from torch import Tensor

from onesided.core.batch import DataFacts
from onesided.core.errors import CheckpointError, DataError, OnesidedError
from onesided.methods.base import Card, MethodConfig, Needs
from onesided.methods.graph import Graph, Value
from onesided.nets.standardise import Backbone
from onesided.trees.forest import (
    LEAF,
    Estimator,
    Forest,
    Loss,
    TreeSettings,
    grow_forest,
    importances,
    positive_votes,
    restored,
)
from onesided.trees.leaves import Leaves

TYPES: Mapping[str, torch.dtype] = {
    "roots": torch.int64,
    "feature": torch.int32,
    "cut": torch.float64,
    "right": torch.int64,
    "positive": torch.bool,
    "labelled": torch.int32,
    "unlabelled": torch.int32,
}


class PUETConfig(MethodConfig):
    """Settings of PUET; the defaults are the published ones, and those of the NcPU paper."""

    trees: int = Field(default=100, ge=1, le=100_000)
    """Number of trees that vote."""
    estimator: Estimator = "nnpu"
    """Risk that is reduced: non-negative (nnpu) or unbiased (upu)."""
    loss: Loss = "quadratic"
    """Loss behind the risk: quadratic (as Gini's index) or logistic (as entropy)."""
    max_features: int = Field(default=0, ge=0)
    """Features tried per node, of those that vary there; 0: square root of all, rounded up."""
    max_candidates: int = Field(default=1, ge=1)
    """Random thresholds tried per feature."""
    max_depth: int = Field(default=0, ge=0)
    """Depth of the deepest node; 0: trees grow until nothing is left to split."""
    min_samples_leaf: int = Field(default=1, ge=1)
    """A node of at most this many samples is not split; its children may be smaller."""

    needs: ClassVar[Needs] = Needs(prior=True)
    trains_backbone: ClassVar[bool] = False
    card: ClassVar[Card] = Card(
        title="PUET",
        summary="Extremely randomised trees that reduce the PU risk, on raw numbers or pixels.",
        citation="Wilton, Koay, Ko, Xu, Ye, Positive-Unlabeled Learning using Random Forests via "
        "Recursive Greedy Risk Minimization, NeurIPS 2022.",
        fidelity="As published. The score is the share of trees that vote positive, which the "
        "paper does not use. No network: the settings of backbone and training have no effect.",
        licence="Authors' code: MIT; nothing of it is here.",
        good_at="Tables of numbers; a first result in seconds without a GPU; finding the features "
        "that matter.",
        bad_at="Natural images, because it uses single pixels and no shapes; a wrong prior.",
        variants={
            "nnpu": "stops where P outweighs U (default)",
            "upu": "continues below zero; with quadratic loss it memorises the labels",
        },
        logs={},  # fitted in one call: there are no epochs
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "PUET":
        """Return a PUET without trees; it does not use the backbone."""
        return PUET(self, facts)


class PUET:
    """A forest on flattened samples, grown in one call."""

    def __init__(self, config: PUETConfig, facts: DataFacts) -> None:
        self.config = config
        self.prior = facts.prior
        self.width = math.prod(facts.sample_shape)
        self.forest: Forest | None = None

    def fit(
        self,
        features: Shaped[np.ndarray, "n d"],
        labelled: Bool[np.ndarray, "n"],
        rng: np.random.Generator,
    ) -> None:
        """Grow the trees, as many at a time as torch has threads; pixels may stay uint8."""
        self.forest = grow_forest(
            self._of_known_width(features),
            labelled,
            self._settings(),
            rng,
            trees=self.config.trees,
            threads=torch.get_num_threads(),
        )

    def scores(self, features: Shaped[np.ndarray, "m d"]) -> Float64[np.ndarray, "m"]:
        """Return the share of trees that vote positive; 0.5 is a tie and means negative."""
        return positive_votes(self._grown(), self._of_known_width(features))

    def express(self, graph: Graph, features: Value) -> Value:
        """Add the steps from samples to the share of votes."""
        forest = self._grown()
        votes = np.where(forest.feature == LEAF, forest.positive, 0).astype(np.float64)
        leaves = Leaves(forest.roots, forest.feature, forest.cut, forest.right, votes)
        # Whole votes are added without rounding, also in single precision: a tie stays one.
        return graph.quotient(graph.sum_of_leaves(features, leaves), len(forest.roots))

    def importances(self) -> Float64[np.ndarray, "d"]:
        """Return by how much the splits on each feature reduce the risk, per tree."""
        return importances(self._grown(), self._settings(), self.width)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the nodes of all trees."""
        forest = self._grown()
        return {name: torch.from_numpy(getattr(forest, name)) for name in TYPES}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore the trees and check every node: each path must end at a leaf."""
        if different := sorted(TYPES.keys() ^ state.keys()):
            raise CheckpointError(f"These are not the trees of PUET: see '{different[0]}'.")
        for name, value in state.items():
            if value.dtype != TYPES[name] or value.ndim != 1:
                raise CheckpointError(
                    f"The trees are damaged: '{name}' should be a list of {TYPES[name]}, and is "
                    f"{value.dtype} of shape {tuple(value.shape)}."
                )
        parts = {name: value.cpu().numpy() for name, value in state.items()}
        self.forest = restored(parts, self.width)

    def _settings(self) -> TreeSettings:
        assert self.prior is not None, "declared in `needs`, so the run provides it"
        return TreeSettings(prior=self.prior, **self.config.model_dump(exclude={"trees"}))

    def _grown(self) -> Forest:
        if self.forest is None:
            raise OnesidedError("PUET has no trees yet: call fit, or load a saved model, first.")
        return self.forest

    def _of_known_width(self, features: np.ndarray) -> np.ndarray:
        if features.ndim != 2 or features.shape[1] != self.width:
            raise DataError(
                f"PUET was built for samples of {self.width} numbers each; got an array of shape "
                f"{features.shape}."
            )
        return features
