"""Linear: regularised logistic regression, P against U.

    x    standardised features                  w, b  weights and bias
    y    1 for P, 0 for U and known negatives   c_i   weights by which P and U count the same
    l    penalty

    minimise  mean_i c_i log(1 + exp(-(2 y_i - 1)(w x_i + b)))  +  l / 2 |w|^2

On features of a pretrained network this is hard to beat. What matters is the penalty, which must
be far stronger than libraries have it by default: with 1280 features and a hundred positives the
best one is near 1, and scikit-learn's C = 1 means 1 / n.
"""

import warnings
from collections.abc import Mapping
from math import prod
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float64
from pydantic import BeforeValidator, Field
from torch import Tensor

from onesided.core.batch import DataFacts
from onesided.core.errors import CheckpointError, OnesidedError
from onesided.methods.against_pool import (
    Features,
    Mask,
    TrainingRows,
    Weights,
    checked_features,
    checked_state,
    logistic,
    out_of_fold,
    with_likely_positive,
)
from onesided.methods.base import Card, MethodConfig
from onesided.methods.graph import Graph, Value
from onesided.metrics.pu import proxy_auc
from onesided.nets.standardise import Backbone, Standardise

PENALTIES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.001)
"""Penalties to choose from, the strongest first: on a tie it wins."""
TYPES: Mapping[str, torch.dtype] = dict.fromkeys(
    ("centre", "scale", "weight", "bias"), torch.float64
)
MOST_ITERATIONS = 200


def _auto_or_positive(penalty: object) -> object:
    is_number = isinstance(penalty, int | float) and not isinstance(penalty, bool)
    if penalty == "auto" or (is_number and 0 < penalty < np.inf):  # type: ignore[operator]
        return penalty
    raise ValueError("a penalty is auto or a number above 0")


Penalty = Annotated[Literal["auto"] | float, BeforeValidator(_auto_or_positive)]
"""How strongly weights are drawn towards 0; auto leaves the choice to the data."""


class LinearConfig(MethodConfig):
    """Settings of Linear."""

    penalty: Penalty = "auto"
    """Penalty on the squared length of the weights, beside the mean loss. auto chooses among
    eight by the proxy AUC of out-of-fold scores."""
    scaling: Literal["each", "common"] = "each"
    """Whether every feature is divided by its own spread, or all by the same number. Features
    that have a common scale, such as weights of words, lose it by the first."""
    first: int = Field(default=0, ge=0)
    """How many of the first numbers of a sample are used; 0: all. A search tries the last layer of
    a pretrained network alone, which comes first among the features of several."""
    passes: Literal[1, 2] = 1
    """2 fits a second time, with the likely positives of U taken as positives: as many as the
    estimated prior says, by out-of-fold scores of the first pass."""

    uses_negatives: ClassVar[bool] = True
    uses_weights: ClassVar[bool] = True
    trains_backbone: ClassVar[bool] = False
    card: ClassVar[Card] = Card(
        title="Linear",
        summary="Regularised logistic regression of P against U, with a penalty chosen by the "
        "data.",
        citation="A textbook method. Why P against U ranks as positive against negative does: "
        "Elkan and Noto, Learning classifiers from only positive and unlabeled data, KDD 2008.",
        fidelity="There is no publication to be faithful to. The optimum is found by "
        "scikit-learn. The settings of backbone and training have no effect.",
        licence="Ours, under Apache-2.0, on scikit-learn (BSD-3-Clause).",
        good_at="Features of a pretrained network, texts as vectors, few positives, seconds.",
        bad_at="Raw pixels, and tables in which classes differ by combinations of columns.",
        variants={},
        logs={},  # fitted in one call: there are no epochs
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "Linear":
        """Return a Linear without weights; of the backbone it takes the scale of vectors."""
        given = backbone.standardise if len(facts.sample_shape) == 1 else None
        return Linear(self, prod(facts.sample_shape), given)


class Linear:
    """A weight for every feature."""

    def __init__(
        self, config: LinearConfig, width: int, standardise: Standardise | None = None
    ) -> None:
        self.config = config
        self.width = width
        # The data's own scale, where it has one: the directions of a text share one, so that
        # those that hardly vary do not count as much as the first. Pixels are each scaled alone.
        self.given = None if standardise is None else _scales_of(standardise)
        self.numbers: dict[str, np.ndarray] | None = None
        self.penalty: float | None = None  # what fit took or chose; scores do not need it

    def fit(
        self,
        features: Features,
        labelled: Mask,
        rng: np.random.Generator,
        *,
        negative: Mask | None = None,
        weights: Weights | None = None,
    ) -> None:
        """Choose the penalty, if none is given, and find the weights."""
        rows = checked_features(features, self.width, "Linear")
        data = TrainingRows(rows, labelled, negative, weights)
        penalty = self.config.penalty
        if penalty == "auto":
            penalty = self._best_penalty(data, rng)
        self.penalty = penalty
        if self.config.passes == 2:
            data = with_likely_positive(
                data, lambda some, new: _margins(self._fitted(some, penalty), new), rng
            )
        self.numbers = self._fitted(data, penalty)

    def scores(self, features: Features) -> Float64[np.ndarray, "m"]:
        """Return how likely each sample is to be of P, were P and U equally frequent."""
        return logistic(self.margins(features))

    def margins(self, features: Features) -> Float64[np.ndarray, "m"]:
        """Return the log odds of the scores, w x + b."""
        return _margins(self._known(), checked_features(features, self.width, "Linear"))

    def express(self, graph: Graph, features: Value) -> Value:
        """Add the steps from samples to scores."""
        return graph.logistic(self.express_margins(graph, features))

    def express_margins(self, graph: Graph, features: Value) -> Value:
        """Add the steps from samples to log odds, the standardisation within the weights."""
        numbers = self._known()
        slopes = numbers["weight"] / numbers["scale"]
        return graph.weighted_sum(
            features, slopes, float(numbers["bias"][0] - numbers["centre"] @ slopes)
        )

    def state_dict(self) -> dict[str, Tensor]:
        """Return standardisation, weights and bias."""
        numbers = self._known()
        return {name: torch.from_numpy(numbers[name]) for name in TYPES}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore the weights, or refuse them."""
        numbers = checked_state(state, TYPES, "Linear")
        lengths = {name: len(values) for name, values in numbers.items()}
        if lengths != dict.fromkeys(TYPES, self.width) | {"bias": 1}:
            raise CheckpointError(f"The model is damaged: it should hold {self.width} weights.")
        if not all(np.isfinite(values).all() for values in numbers.values()):
            raise CheckpointError("The model is damaged: its weights are not finite numbers.")
        if not (numbers["scale"] > 0).all():
            raise CheckpointError("The model is damaged: it divides features by zero or less.")
        self.numbers = numbers

    def _known(self) -> dict[str, np.ndarray]:
        if self.numbers is None:
            raise OnesidedError("Linear has no weights yet: call fit, or load a saved model.")
        return self.numbers

    def _fitted(self, data: TrainingRows, penalty: float) -> dict[str, np.ndarray]:
        # A second to import.
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        used = slice(self.config.first or None)
        rows, weights = data.features[:, used], data.balanced()
        # Known negatives count beside P and U, whose mean loss the penalty is weighed against.
        size = len(rows) if data.negative is None else int((~data.negative).sum())
        given = None if self.given is None else tuple(each[used] for each in self.given)
        centre, scale = _scales(rows) if given is None else given
        if self.config.scaling == "common":
            scale = np.full_like(scale, _common(rows, centre))
        model = LogisticRegression(C=1 / (penalty * size), max_iter=MOST_ITERATIONS)
        standard = ((rows - centre) / scale).astype(np.float32)
        with warnings.catch_warnings():
            # Weak penalties end before the optimum; their order of samples has long settled, and
            # a search compares them by it.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(standard, data.labelled, sample_weight=weights)
        # What is not used weighs nothing, so that scores, files and exports need not know of it.
        unused = (0, self.width - rows.shape[1])
        return {
            "centre": np.pad(centre, unused),
            "scale": np.pad(scale, unused, constant_values=1.0),
            "weight": np.pad(model.coef_[0].astype(np.float64), unused),
            "bias": model.intercept_.astype(np.float64),
        }

    def _best_penalty(self, data: TrainingRows, rng: np.random.Generator) -> float:
        """Return the penalty with the highest proxy AUC out of fold, all on the same folds.

        Every item of P and U counts once in it, whatever its weight in training.
        """
        seed = int(rng.integers(2**63))

        def proxy(penalty: float) -> float:
            scores = out_of_fold(
                data,
                lambda some, new: _margins(self._fitted(some, penalty), new),
                np.random.default_rng(seed),
            )
            return proxy_auc(scores[data.labelled], scores[data.unlabelled])

        return max(PENALTIES, key=proxy)


def _scales(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and spread of each feature; a constant one is only shifted."""
    centre, spread = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
    return centre, np.where(spread > 1e-6 * (1e-6 + np.abs(centre)), spread, 1.0)


def _common(rows: np.ndarray, centre: np.ndarray) -> float:
    """Return the root of the features' mean variance, 1 where nothing varies."""
    return float(np.sqrt(np.mean((rows - centre) ** 2))) or 1.0


def _scales_of(standardise: Standardise) -> tuple[np.ndarray, np.ndarray]:
    return standardise.mean.double().cpu().numpy(), standardise.std.double().cpu().numpy()


def _margins(numbers: Mapping[str, np.ndarray], rows: np.ndarray) -> Float64[np.ndarray, "m"]:
    standard = (rows - numbers["centre"]) / numbers["scale"]
    margins: np.ndarray = standard @ numbers["weight"] + numbers["bias"][0]
    return margins
