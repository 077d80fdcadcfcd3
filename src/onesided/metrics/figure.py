"""What a figure is: a number, its interval, what it assumes, and how it may be wrong."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from onesided.core.errors import ConfigError
from onesided.metrics.registry import FROM_OWN_SCORES, Bias, assumption, entry

Scenario = Literal["case-control", "single-set"]
"""Was P collected apart from U, or labelled inside one set of which U is the rest?"""

NO_PRIOR = "the share of positives among the unlabelled items (the prior) was not given"
NOTHING_CALLED = "no unlabelled item was called positive"
TOO_WIDE = "cannot be told: all values in the interval fit what was measured"
VAGUE = 0.5
"""A share whose interval is wider than this is not told: half of all answers fit the data."""


@dataclass(frozen=True)
class Setting:
    """What is known about the data besides the scores; see `evaluate_pu`."""

    scenario: Scenario
    prior: float | None
    prior_interval: tuple[float, float] | None
    labelled_share: float | None
    coverage: float

    def __post_init__(self) -> None:
        known = get_args(Scenario)
        if self.scenario not in known:
            raise ConfigError(f"scenario must be {' or '.join(known)}; got {self.scenario!r}.")
        for name in ("prior", "labelled_share", "coverage"):
            value = getattr(self, name)
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
class Figure:
    """A number, its interval, and what must be true for it to mean anything.

    `metrics/registry.py` puts it into words, by its name.

    Attributes:
        name: Key in `result.json`; it never changes.
        value: None where it is undefined or something is missing.
        assumes: Ids of assumptions.
        bias: "high" where the truth may lie below the interval, because the figure rests on
            something that may be too high; "low" the other way round; None for neither.
        missing: Why there is no value.
        part: Which items it is about, where a figure is given for several parts.
    """

    name: str
    value: int | float | None
    low: float | None = None
    high: float | None = None
    assumes: tuple[str, ...] = ()
    bias: Bias | None = None
    missing: str | None = None
    part: str = ""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends of the interval, None where one of them is not known."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def is_vague(self) -> bool:
        """Whether the interval is so wide that the value says nothing and is not shown."""
        ends = self.interval
        return ends is not None and not self.is_free and ends[1] - ends[0] > VAGUE

    @property
    def is_known(self) -> bool:
        """Whether there is something to show: a value, or an interval that is too wide for one."""
        return self.value is not None or self.is_vague

    @property
    def told(self) -> int | float | None:
        """The value that files hold: None where people read that it cannot be told."""
        return None if self.is_vague else self.value

    @property
    def reason(self) -> str | None:
        """Why files hold no value."""
        return TOO_WIDE if self.is_vague else self.missing

    @property
    def is_free(self) -> bool:
        """Whether it is no share, so that the width of its interval has no scale."""
        return "no_share" in self.assumes or entry(self.name).unit == "count"

    def to_json(self) -> dict[str, Any]:
        """Return the figure as plain values, with its label for people who open the file."""
        plain = {**vars(self), "label": entry(self.name).label, "assumes": list(self.assumes)}
        plain.update(value=self.told, missing=self.reason)
        if not self.part:
            plain.pop("part")
        return plain


@dataclass(frozen=True)
class PUEvaluation:
    """All figures, the degenerate alarm, and a warning for every assumption that looks broken."""

    figures: Mapping[str, Figure]
    degenerate: str | None
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return what stands under "pu" in `result.json`; warnings have their own key."""
        keys = dict.fromkeys(key for each in self.figures.values() for key in each.assumes)
        return {
            "figures": {name: figure.to_json() for name, figure in self.figures.items()},
            "assumptions": {key: assumption(key).text for key in keys},
            "degenerate": self.degenerate,
        }


@dataclass(frozen=True)
class Raw:
    """What a formula gives, not yet clipped to [0, 1]; NaN or infinite where undefined.

    Attributes:
        value: The estimate.
        interval: Its interval.
        rises: Which way a prior that is too high moves it.
    """

    value: float
    interval: tuple[float, float]
    rises: Bias = "high"


def present(
    name: str,
    raw: Raw,
    *,
    is_share: bool,
    assumes: tuple[str, ...] = (),
    bias: Bias | None = None,
    missing: str | None = None,
) -> Figure:
    """Return a raw value as a figure: shares clipped to [0, 1], None where undefined.

    Args:
        raw: What the formula gives.
        is_share: Whether a value outside [0, 1] contradicts an assumption.
        missing: The reason, where the value is undefined.
    """
    value, (low, high) = raw.value, raw.interval
    if not math.isfinite(value):
        return Figure(name, None, assumes=assumes, missing=missing)
    if is_share:
        # An interval wholly outside would shrink to a point and look certain.
        low, high = (0.0, 1.0) if low > 1 or high < 0 else (max(low, 0.0), min(high, 1.0))
        value = min(max(value, 0.0), 1.0)
    return Figure(name, value, low, high, assumes, bias)


def prior_figure(
    value: float | None,
    interval: tuple[float, float] | None,
    *,
    origin: str | None = None,
    missing: str = NO_PRIOR,
) -> Figure:
    """Return the prior as a figure.

    Without an interval it counts as exactly known. `origin` is the id of the assumption that
    says where it comes from, such as `own_scores`; `missing` says why there is no value.
    """
    if value is None:
        return Figure("prior", None, missing=missing)
    key = origin or ("given" if interval is None else "estimated")
    low, high = interval or (None, None)
    # The highest scores give the prior only as far as P scores like all positives.
    scar = ("scar", "held_out") if key in FROM_OWN_SCORES else ()
    return Figure("prior", value, low, high, (*scar, key), assumption(key).prior_bias)
