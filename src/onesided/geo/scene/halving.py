"""Parts of a place with equal numbers of buildings."""

import numpy as np
from jaxtyping import Float64, Int64

from onesided.geo.input.coordinates import Geometries
from onesided.storage.optional import library


def halved(
    places: Float64[np.ndarray, "n 2"], *, parts: int, fewest: int
) -> Int64[np.ndarray, "n"]:
    """Return the number of the part of each place; neighbouring numbers lie side by side.

    The places are halved at the median across the longer side, again and again, until there
    are so many parts or the next ones would hold fewer than `fewest`: a dense town and its
    scattered outskirts give parts with the same number of buildings.
    """
    group = np.zeros(len(places), np.int64)
    found = [np.arange(len(places))]
    while len(found) < parts and min(map(len, found)) >= 2 * fewest:
        halves = []
        for part in found:
            axis = int(np.ptp(places[part], axis=0).argmax())
            order = part[np.argsort(places[part, axis], kind="stable")]
            halves += [order[: len(order) // 2], order[len(order) // 2 :]]
        found = halves
    for number, part in enumerate(found):
        group[part] = number
    return group


def middles(geometries: Geometries) -> Float64[np.ndarray, "n 2"]:
    """Return the middle of every geometry, NaN where there is none."""
    boxes = np.asarray(library("shapely", "A footprint").bounds(geometries), np.float64)
    middle: Float64[np.ndarray, "n 2"] = (boxes[:, :2] + boxes[:, 2:]) / 2
    middle[~np.isfinite(middle).all(axis=1)] = np.nan
    return middle


def with_middle_for_none(places: Float64[np.ndarray, "n 2"]) -> Float64[np.ndarray, "n 2"]:
    """Return the places with the mean of all where one is unknown."""
    known = np.isfinite(places).all(axis=1)
    mean = places[known].mean(axis=0) if known.any() else np.zeros(2)
    return np.where(known[:, None], places, mean)
