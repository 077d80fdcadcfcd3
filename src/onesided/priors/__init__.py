"""Class priors from positives and unlabelled samples alone: arrays in, estimate out."""

from onesided.priors.bbe import BestBin, bbe, best_bin
from onesided.priors.binormal import binormal
from onesided.priors.elkan_noto import elkan_noto
from onesided.priors.estimate import PriorEstimate, agreement
from onesided.priors.km2 import km1, km2

__all__ = [
    "BestBin",
    "PriorEstimate",
    "agreement",
    "bbe",
    "best_bin",
    "binormal",
    "elkan_noto",
    "km1",
    "km2",
]
