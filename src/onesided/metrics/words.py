"""Figures in words, the same ones wherever they are shown."""

from collections.abc import Iterable

from onesided.metrics.figure import Figure
from onesided.metrics.registry import Assumption, assumption, entry

BOUND = {"high": "at most about ", "low": "at least about "}
BIASED = {
    "high": "biased high: the truth may also lie below the interval",
    "low": "biased low: the truth may also lie above the interval",
}
NOT_ESTIMATED = "not estimated"


def percent(share: float) -> str:
    """Return a share as a percentage that never rounds something to nothing or to all."""
    decimals = 1
    while decimals < 6 and share not in (0, 1) and round(share, decimals + 2) in (0, 1):
        decimals += 1
    return f"{100 * share:.{decimals}f}%"


def number_text(name: str, number: int | float | None) -> str:
    """Return a number in the unit of the figure of this name, a dash where there is none."""
    if number is None:
        return "-"
    unit = entry(name).unit
    if unit == "count":
        return f"{number:,.0f}"
    return percent(number) if unit == "percent" else f"{number:.3f}"


def value_text(figure: Figure) -> str:
    """Return the value; where the figure is biased, as a bound."""
    if figure.value is None:
        return NOT_ESTIMATED
    return BOUND.get(figure.bias or "", "") + number_text(figure.name, figure.value)


def interval_text(figure: Figure) -> str:
    """Return the interval as `81.2% to 90.4%`, or nothing."""
    if figure.interval is None:
        return ""
    return " to ".join(number_text(figure.name, end) for end in figure.interval)


def bias_text(figure: Figure) -> str:
    """Return on which side the truth may lie, or nothing."""
    return BIASED.get(figure.bias or "", "")


def full_value_text(figure: Figure) -> str:
    """Return the value with interval and bias: `at most about 80.0% (70.0% to 90.0%, ...)`."""
    if figure.value is None:
        return f"{NOT_ESTIMATED}: {figure.missing}" if figure.missing else NOT_ESTIMATED
    return value_text(figure) + _in_brackets(figure)


def _in_brackets(figure: Figure) -> str:
    between = interval_text(figure)
    details = [f"95% interval {between}" if between else "", bias_text(figure)]
    said = ", ".join(filter(None, details))
    return f" ({said})" if said else ""


def sentence(figure: Figure, *, interval: bool = False) -> str:
    """Return what a figure means, as a sentence; "" for one that is not registered."""
    said = entry(figure.name).sentence.format(value=value_text(figure))
    return f"{said.removesuffix('.')}{_in_brackets(figure)}." if said and interval else said


def missing_texts(figures: Iterable[Figure]) -> list[str]:
    """Return a sentence for each reason why figures are missing."""
    reasons: dict[str, list[str]] = {}
    for figure in figures:
        if figure.value is None:
            reason = figure.missing or "the reason was not recorded"
            reasons.setdefault(reason, []).append(entry(figure.name).label)
    return [
        f"Not estimated: {', '.join(labels)}. Reason: {why}." for why, labels in reasons.items()
    ]


def assumptions_of(figures: Iterable[Figure]) -> list[Assumption]:
    """Return every assumption of these figures once."""
    keys = dict.fromkeys(key for figure in figures for key in figure.assumes)
    return [assumption(key) for key in keys]
