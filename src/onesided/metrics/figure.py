"""What a figure is called, what it assumes, and how both are said to people."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from onesided.core.errors import ConfigError

Scenario = Literal["case-control", "single-set"]
"""Was P collected apart from U, or labelled inside one set of which U is the rest?"""

LABELS: Mapping[str, str] = {
    "recall": "Recall: share of the held-out positives that were found",
    "share_positive": "Share of the unlabelled items called positive",
    "precision": "Precision: share of true positives among the unlabelled items called positive",
    "f1": "F1 on the unlabelled items",
    "proxy_accuracy": "Accuracy, estimated without negatives",
    "proxy_auc": "Proxy AUC: how often a positive outscores an unlabelled item",
    "auc": "AUC: how often a positive outscores a negative",
    "lee_liu": "Lee-Liu criterion: recall squared over the share called positive",
}
"""Name to words for people, in the order in which they are shown."""

SHARES = ("precision", "f1", "proxy_accuracy", "auc")
"""Estimates of shares: a value outside [0, 1] contradicts an assumption."""

RANDOM_PART = "The held-out items are a random part of the data and were not trained on."
SCAR = "The labelled positives are typical of all positives (SCAR)."
NOT_GIVEN = "which was not given."
INDEPENDENT = ", an estimate independent of these scores."


@dataclass(frozen=True)
class Setting:
    """What was said about the data, rather than counted on it; see `evaluate_pu`."""

    scenario: Scenario
    prior: float | None
    prior_interval: tuple[float, float] | None
    labelled_share: float | None
    coverage: float

    def __post_init__(self) -> None:
        known = get_args(Scenario)
        if self.scenario not in known:
            raise ConfigError(f"scenario must be {' or '.join(known)}; got {self.scenario!r}.")
        shares = {
            "prior": self.prior,
            "labelled_share": self.labelled_share,
            "coverage": self.coverage,
        }
        for name, value in shares.items():
            if value is not None and not 0 < value < 1:
                raise ConfigError(f"{name} must lie between 0 and 1, both excluded; got {value}.")
        if self.labelled_share is not None and self.scenario == "case-control":
            raise ConfigError("labelled_share has no meaning in a case-control study; omit it.")
        if self.prior_interval is not None:
            low, high = self.prior_interval
            if self.prior is None or not 0 <= low <= self.prior <= high <= 1:
                raise ConfigError(
                    f"prior_interval must lie in [0, 1] and hold the prior; got [{low}, {high}] "
                    f"and prior {self.prior}."
                )


@dataclass(frozen=True)
class Estimate:
    """A value and its interval, not yet cut to [0, 1]; NaN or infinite where undefined."""

    value: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Figure:
    """A number, how far to trust it, and what must be true for it to mean anything.

    Attributes:
        name: Key in `result.json`, which stays.
        label: The same in words for people.
        value: None where it is undefined or something is missing; `assumes` tells what.
        low: Lower end of the interval.
        high: Upper end of the interval.
        assumes: The assumption in plain words.
    """

    name: str
    label: str
    value: float | None
    low: float | None
    high: float | None
    assumes: str

    def to_json(self) -> dict[str, str | float | None]:
        """Return the figure as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class PUEvaluation:
    """All figures, the degenerate alarm, and every assumption that looks broken."""

    figures: Mapping[str, Figure]
    degenerate: str | None
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return what stands under "pu" in `result.json`; warnings have their own key."""
        figures = {name: figure.to_json() for name, figure in self.figures.items()}
        return {"figures": figures, "degenerate": self.degenerate}


def present(name: str, estimate: Estimate, assumes: str) -> Figure:
    """Return an estimate as people see it: shares cut to [0, 1], None where undefined."""
    value, (low, high) = estimate.value, estimate.interval
    if not math.isfinite(value):
        return Figure(name, LABELS[name], None, None, None, assumes)
    if name in SHARES:
        # An interval wholly outside would shrink to a point and look certain.
        low, high = (0.0, 1.0) if low > 1 or high < 0 else (max(low, 0.0), min(high, 1.0))
        value = min(max(value, 0.0), 1.0)
    return Figure(name, LABELS[name], value, low, high, assumes)


def assumptions(setting: Setting, *, called: int) -> dict[str, str]:
    """Return for each figure, in plain words, what it rests on or why it is missing.

    Args:
        setting: What was said about the data.
        called: How many unlabelled items were called positive.
    """
    undefined = "" if called else " Undefined: no unlabelled item was called positive."
    scar = f"{SCAR} {RANDOM_PART}"
    with_prior = f"{scar} {_about_prior(setting)}"
    return {
        "recall": scar,
        "share_positive": RANDOM_PART,
        "precision": with_prior + undefined,
        "f1": with_prior,
        "proxy_accuracy": f"{with_prior} {_about_population(setting)}",
        "proxy_auc": f"{RANDOM_PART} It compares with unlabelled items, not with negatives, so "
        "even a perfect score stays below 1.",
        "auc": with_prior,
        "lee_liu": f"{scar} It compares models on the same data; it is no share and may exceed "
        f"1.{undefined}",
    }


def _about_prior(setting: Setting) -> str:
    if setting.prior is None:
        return (
            "Not computed: it needs the share of positives among the unlabelled items (the "
            f"prior), {NOT_GIVEN}"
        )
    if setting.prior_interval is None:
        return (
            f"Exactly {setting.prior:.3g} of the unlabelled items are positive; an error of "
            "this prior is not part of the interval."
        )
    low, high = setting.prior_interval
    return (
        f"Between {low:.3g} and {high:.3g} of the unlabelled items are positive, most likely "
        f"{setting.prior:.3g}{INDEPENDENT}"
    )


def _about_population(setting: Setting) -> str:
    if setting.scenario == "case-control":
        return "It is the accuracy on items like the unlabelled ones."
    whole = "It is the accuracy on items like labelled and unlabelled ones together"
    if setting.labelled_share is not None:
        return f"{whole}, of which {setting.labelled_share:.3g} are labelled."
    return f"{whole}; both kinds were held out at the same rate."
