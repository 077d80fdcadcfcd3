"""What a model was trained on, in a few numbers, and how far other items are from that.

    F_k, G_k   share of training items, and of new items, at or below an edge, along direction k
    D_k        Kolmogorov-Smirnov distance: the largest |F_k - G_k| over the edges of direction k
    p_k        chance of a distance as large where both have one distribution

Directions are the columns themselves, or of wide samples the principal components, and how far an
item lies outside of these. Edges are quantiles of training items that the components were not
fitted to: those that they were fitted to lie nearer to them than any new item. Taken at some
edges only, D is never too large, so p is never too small. The p are adjusted by Holm's steps,
since there are several directions; and a distance must be large too, since with a million items
every difference has a small p.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int64
from scipy.special import kolmogorov
from sklearn.decomposition import PCA

from onesided.core.rng import numpy_generator

EDGES = 31
MOST_COLUMNS = 32
"""Samples of no more numbers are compared column by column, which people understand."""
COMPONENTS = 8
MOST_FITTED, MOST_COUNTED = 2000, 5000
"""Training items that components are fitted to, and others that edges are taken from."""
FEWEST = 40
"""Items on either side below which nothing is compared."""
SMALLEST_DISTANCE = 0.2
"""As two normal distributions have that are half a standard deviation apart."""
LARGEST_P = 0.01

Counts = Int64[np.ndarray, "k bins"]


@dataclass(frozen=True)
class Edges:
    """Values along some directions, and which share of the training items lies at or below each."""

    values: Float[np.ndarray, "k edges"]
    shares: Float[np.ndarray, "k edges"]
    items: int

    @classmethod
    def of(cls, positions: Float[np.ndarray, "n k"]) -> "Edges":
        """Return quantiles of the items; each is the value of an item, so ties stay whole."""
        levels = np.linspace(0, 1, EDGES + 2)[1:-1]
        values = np.quantile(positions, levels, axis=0, method="inverted_cdf").T
        shares = np.stack(
            [(positions[:, k, None] <= values[k]).mean(axis=0) for k in range(len(values))]
        )
        return cls(values, shares, len(positions))

    def counts(self, positions: Float[np.ndarray, "n k"]) -> Counts:
        """Return how many items lie between edges, along each direction; they may be added up."""
        places = [
            np.searchsorted(edges, positions[:, k], side="left")
            for k, edges in enumerate(self.values)
        ]
        bins = self.values.shape[1] + 1
        return np.stack([np.bincount(each, minlength=bins) for each in places]).astype(np.int64)

    def distances(self, counts: Counts) -> tuple[Float[np.ndarray, "k"], Float[np.ndarray, "k"]]:
        """Return D and p along each direction."""
        items = counts.sum(axis=1)
        shares = np.cumsum(counts, axis=1)[:, :-1] / items[:, None]
        distance = np.abs(shares - self.shares).max(axis=1)
        effective = items * self.items / (items + self.items)
        return distance, np.asarray(kolmogorov(np.sqrt(effective) * distance))


@dataclass(frozen=True)
class Reference:
    """The training items of a model, small enough to be kept beside it.

    Attributes:
        mean: Of each number of a sample; subtracted first.
        scale: Of each; divided by second.
        directions: Principal components; None where columns are compared themselves.
        names: Of the directions, for people.
        edges: Along the directions.
        scores: Edges of scores by models that were not trained on the item; None where unknown.
    """

    mean: Float[np.ndarray, "d"]
    scale: Float[np.ndarray, "d"]
    directions: Float[np.ndarray, "k d"] | None
    names: tuple[str, ...]
    edges: Edges
    scores: Edges | None

    def positions(self, samples: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n positions"]:
        """Return where samples lie along each direction."""
        return _positions((samples - self.mean) / self.scale, self.directions)

    def counts(self, samples: Float[np.ndarray, "n d"]) -> Counts:
        """Return how many samples lie between edges, along each direction."""
        return self.edges.counts(self.positions(samples))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return what a file holds of it."""
        arrays = {
            "mean": self.mean,
            "scale": self.scale,
            "names": np.array(self.names, dtype=np.str_),
            "values": self.edges.values,
            "shares": self.edges.shares,
            "items": np.array([self.edges.items, self.scores.items if self.scores else 0]),
        }
        if self.directions is not None:
            arrays["directions"] = self.directions
        if self.scores is not None:
            arrays |= {"score_values": self.scores.values, "score_shares": self.scores.shares}
        return arrays

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Reference | None":
        """Return what `to_arrays` gave; None where the arrays are not that."""
        try:
            items, scored = (int(each) for each in arrays["items"])
            found = cls(
                arrays["mean"],
                arrays["scale"],
                arrays.get("directions"),
                tuple(map(str, arrays["names"])),
                Edges(arrays["values"], arrays["shares"], items),
                Edges(arrays["score_values"], arrays["score_shares"], scored) if scored else None,
            )
        except (KeyError, ValueError, TypeError):
            return None
        return found if found._is_sound() else None

    def _is_sound(self) -> bool:
        width, count = self.mean.shape, len(self.names)
        parts = [self.mean, self.scale, self.edges.values, self.edges.shares]
        parts += [] if self.directions is None else [self.directions]
        parts += [] if self.scores is None else [self.scores.values, self.scores.shares]
        along = self.mean.size if self.directions is None else len(self.directions) + 1
        return (
            all(part.dtype == np.float64 and np.isfinite(part).all() for part in parts)
            and len(width) == 1
            and self.scale.shape == width
            and bool((self.scale > 0).all())
            and (self.directions is None or self.directions.shape[1:] == width)
            and along == count
            and self.edges.values.shape == self.edges.shares.shape == (count, EDGES)
            and (
                self.scores is None
                or self.scores.values.shape == self.scores.shares.shape == (1, EDGES)
            )
        )


def _positions(
    standard: Float[np.ndarray, "n d"], directions: Float[np.ndarray, "k d"] | None
) -> Float[np.ndarray, "n positions"]:
    if directions is None:
        return standard
    inside = standard @ directions.T
    outside = np.square(standard).sum(axis=1) - np.square(inside).sum(axis=1)
    return np.column_stack([inside, np.sqrt(np.maximum(outside, 0))])


def fit_reference(
    samples: Float[np.ndarray, "n d"],
    scores: Float[np.ndarray, "m"] | None = None,
    *,
    names: Sequence[str] = (),
    seed: int = 0,
) -> Reference | None:
    """Return what to compare new items with; None where there are too few.

    Args:
        samples: Of the unlabelled pool, which new items resemble; not of P.
        scores: Of items of the pool, by models that were not trained on them.
        names: Of the numbers of a sample, where they have some.
        seed: Decides which items components are fitted to.
    """
    order = numpy_generator(seed, "reference").permutation(len(samples))
    fitted = order[: min(len(order) // 2, MOST_FITTED)]
    counted = order[len(fitted) : len(fitted) + MOST_COUNTED]
    if min(len(fitted), len(counted)) < FEWEST:
        return None
    values = samples.astype(np.float64)
    mean, scale = values[fitted].mean(axis=0), values[fitted].std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    width, directions = samples.shape[1], None
    words = tuple(names) or tuple(f"number {place + 1}" for place in range(width))
    if width > MOST_COLUMNS:
        solver = PCA(min(COMPONENTS, len(fitted)), svd_solver="randomized", random_state=0)
        directions = solver.fit((values[fitted] - mean) / scale).components_
        directions = np.asarray(directions, dtype=np.float64)
        words = (*(f"direction {k + 1}" for k in range(len(directions))), "outside of these")
    edges = Edges.of(_positions((values[counted] - mean) / scale, directions))
    enough = scores is not None and len(scores) >= FEWEST
    return Reference(
        mean,
        scale,
        directions,
        words,
        edges,
        Edges.of(scores[:, None]) if enough and scores is not None else None,
    )


def holm(chances: Float[np.ndarray, "k"]) -> Float[np.ndarray, "k"]:
    """Return p adjusted for their number (Holm, 1979): below a level all together."""
    order = np.argsort(chances, kind="stable")
    steps = np.maximum.accumulate(chances[order] * np.arange(len(chances), 0, -1))
    adjusted = np.empty(len(chances))
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


@dataclass(frozen=True)
class Difference:
    """How new items differ from training items along one direction, or by their scores."""

    name: str
    distance: float
    p: float  # adjusted for the number of directions

    @property
    def is_large(self) -> bool:
        """Whether it is no chance, and large enough to matter."""
        return self.p < LARGEST_P and self.distance >= SMALLEST_DISTANCE


@dataclass(frozen=True)
class Comparison:
    """New items against those of training: each direction, and the scores if they are known."""

    items: int
    features: tuple[Difference, ...]
    scores: Difference | None
    by_column: bool

    @property
    def warning(self) -> str | None:
        """Where the model is outside of what it was trained on, in words; None where it is not."""
        large = sorted((each for each in self.features if each.is_large), key=_farthest)
        scores = self.scores is not None and self.scores.is_large
        if large:
            return (
                f"These {self.items:,} items are unlike those that the model was trained on: "
                f"{self._words(large)}. Its decisions, probabilities and figures may not hold for "
                "them. Look at some of them, or train again with some of them in the pool."
            )
        if scores and self.scores is not None:
            return (
                f"These {self.items:,} items look like those that the model was trained on, but "
                f"their scores do not (distance {self.scores.distance:.2f} of 1): positives may be "
                "more or less frequent among them. Probabilities rest on their share in the pool."
            )
        return None

    def _words(self, large: Sequence[Difference]) -> str:
        if not self.by_column:
            farthest = large[0].distance
            return (
                f"they differ along {len(large)} of {len(self.features)} directions of their "
                f"features (largest distance {farthest:.2f} of 1)"
            )
        first = ", ".join(
            f"'{each.name}' (distance {each.distance:.2f} of 1)" for each in large[:3]
        )
        rest = f" and {len(large) - 3} more" if len(large) > 3 else ""
        return f"they differ in {first}{rest}"

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        scores = self.scores
        return {
            "items": self.items,
            "features": [vars(each) for each in self.features],
            "scores": vars(scores) if scores else None,
            "warning": self.warning,
        }


def _farthest(difference: Difference) -> float:
    return -difference.distance


def compare(
    reference: Reference, features: Counts, scores: Int64[np.ndarray, "1 bins"] | None
) -> Comparison | None:
    """Return how new items differ from training items; None where there are too few of them."""
    items = int(features[0].sum())
    if items < FEWEST:
        return None
    distances, chances = reference.edges.distances(features)
    names = list(reference.names)
    if reference.scores is not None and scores is not None:
        distance, chance = reference.scores.distances(scores)
        distances, chances = np.append(distances, distance), np.append(chances, chance)
        names.append("score")
    adjusted = holm(chances)
    found = [
        Difference(name, float(distance), float(p))
        for name, distance, p in zip(names, distances, adjusted, strict=True)
    ]
    count = len(reference.names)
    by_column = reference.directions is None
    return Comparison(
        items, tuple(found[:count]), found[count] if len(found) > count else None, by_column
    )
