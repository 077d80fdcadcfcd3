"""Did it work? Figures with truth, and figures without a single negative."""

from onesided.metrics.alarm import degenerate, prior_consistency
from onesided.metrics.figure import Figure, PUEvaluation
from onesided.metrics.intervals import clopper_pearson
from onesided.metrics.pu import (
    evaluate_pu,
    population_prior,
    proxy_accuracy_case_control,
    proxy_accuracy_single_set,
    proxy_auc,
)
from onesided.metrics.truth import TruthMetrics, truth_metrics

__all__ = [
    "Figure",
    "PUEvaluation",
    "TruthMetrics",
    "clopper_pearson",
    "degenerate",
    "evaluate_pu",
    "population_prior",
    "prior_consistency",
    "proxy_accuracy_case_control",
    "proxy_accuracy_single_set",
    "proxy_auc",
    "truth_metrics",
]
