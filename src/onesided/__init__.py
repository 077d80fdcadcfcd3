"""Learning from one-sided labels: a few positives and a large unlabelled pool."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onesided.estimator import PUClassifier as PUClassifier
    from onesided.jobs.audit import audit_draw as audit_draw
    from onesided.jobs.audit import audit_estimate as audit_estimate
    from onesided.jobs.embed import embed as embed
    from onesided.jobs.evaluate import evaluate as evaluate
    from onesided.jobs.export import export as export
    from onesided.jobs.fit import fit as fit
    from onesided.jobs.map import map_buildings as map_buildings
    from onesided.jobs.prior import estimate_prior as estimate_prior
    from onesided.jobs.rank import rank as rank
    from onesided.jobs.review import ReviewSession as ReviewSession
    from onesided.jobs.serve import serve as serve

__version__ = "0.1.0"

__all__ = [
    "PUClassifier",
    "ReviewSession",
    "__version__",
    "audit_draw",
    "audit_estimate",
    "embed",
    "estimate_prior",
    "evaluate",
    "export",
    "fit",
    "map_buildings",
    "rank",
    "serve",
]

# scikit-learn and torch take seconds to import, and most of the library needs one or none.
_HOMES = {
    "PUClassifier": "onesided.estimator",
    "ReviewSession": "onesided.jobs.review",
    "audit_draw": "onesided.jobs.audit",
    "audit_estimate": "onesided.jobs.audit",
    "embed": "onesided.jobs.embed",
    "estimate_prior": "onesided.jobs.prior",
    "evaluate": "onesided.jobs.evaluate",
    "export": "onesided.jobs.export",
    "fit": "onesided.jobs.fit",
    "map_buildings": "onesided.jobs.map",
    "rank": "onesided.jobs.rank",
    "serve": "onesided.jobs.serve",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'onesided' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
