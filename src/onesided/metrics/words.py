"""Figures in words, the same ones wherever they are shown."""

from collections.abc import Iterable

from onesided.metrics.figure import Figure
from onesided.metrics.registry import Assumption, assumption, entry

BOUND = {"high": "at most ", "low": "at least "}
BIASED = {
    "high": "biased high: the truth may also lie below the interval",
    "low": "biased low: the truth may also lie above the interval",
}
NOT_ESTIMATED = "not estimated"
CANNOT_BE_TOLD = "cannot be told"
MOST_DECIMALS = 4
"""Of a percentage: one in a million. Nobody reads more."""


def percent(share: float) -> str:
    """Return a share as a percentage that never rounds something to nothing or to all."""
    decimals = 1
    while decimals < MOST_DECIMALS and _is_rounded_off(share, decimals):
        decimals += 1
    if _is_rounded_off(share, decimals):
        smallest = 10.0**-MOST_DECIMALS
        nearly = f"<{smallest:.{decimals}f}%" if share < 0.5 else f">{100 - smallest:.{decimals}f}%"
        return nearly
    return f"{100 * share:.{decimals}f}%"


def _is_rounded_off(share: float, decimals: int) -> bool:
    """Return whether something looks like nothing, or like all, at so many decimals."""
    return share not in (0, 1) and round(share, decimals + 2) in (0, 1)


def number_text(name: str, number: int | float | None) -> str:
    """Return a number in the unit of the figure of this name, a dash where there is none."""
    if number is None:
        return "-"
    unit = entry(name).unit
    if unit == "count":
        return f"{number:,.0f}"
    return percent(number) if unit == "percent" else f"{number:.3f}"


def value_text(figure: Figure) -> str:
    """Return the value; the end of the interval as a bound where the figure is biased.

    A value that may be wrong by more than its interval says is never shown as a number, and "at
    most 100%" is no bound: there the interval stands alone.
    """
    if figure.is_vague:
        return CANNOT_BE_TOLD
    if figure.value is None:
        return NOT_ESTIMATED
    end = {"high": figure.high, "low": figure.low}.get(figure.bias or "")
    if end in (0, 1) and not figure.is_free:
        return interval_text(figure)
    shown = number_text(figure.name, figure.value if end is None else end)
    about = "about " if figure.bias and end is None else ""
    return BOUND.get(figure.bias or "", "") + about + shown


def interval_text(figure: Figure) -> str:
    """Return the interval as `81.2% to 90.4%`, or nothing."""
    if figure.interval is None:
        return ""
    return " to ".join(number_text(figure.name, end) for end in figure.interval)


def cell_text(figure: Figure) -> str:
    """Return value and interval for a cell of a table: `79.0% (70.1% to 85.0%)`, or a dash."""
    if figure.value is None:
        return "-"
    between = interval_text(figure)
    if not between:
        return value_text(figure)
    return between if figure.bias and not figure.is_vague else f"{value_text(figure)} ({between})"


def bias_text(figure: Figure) -> str:
    """Return on which side the truth may lie, or nothing."""
    return BIASED.get(figure.bias or "", "")


def bounds_explained(figures: Iterable[Figure]) -> dict[str, str]:
    """Return what "at most" and "at least" mean, of those that are shown before a value."""
    shown = [figure for figure in figures if figure.bias and not figure.is_vague]
    return {BOUND[figure.bias or ""].strip(): bias_text(figure) for figure in shown}


def full_value_text(figure: Figure) -> str:
    """Return the value with interval and bias: `at most 90.0% (70.0% to 90.0%, ...)`."""
    if figure.value is None:
        return f"{NOT_ESTIMATED}: {figure.missing}" if figure.missing else NOT_ESTIMATED
    return value_text(figure) + _in_brackets(figure)


def _in_brackets(figure: Figure) -> str:
    between = interval_text(figure)
    details = [f"95% interval {between}" if between else "", bias_text(figure)]
    said = ", ".join(filter(None, details))
    return f" ({said})" if said else ""


def sentence(figure: Figure, *, interval: bool = False) -> str:
    """Return what a figure means, as a sentence; "" for one that is not registered.

    A biased figure is a range in it, from the low end on: the first number is what one can
    count on.
    """
    between = interval_text(figure)
    if figure.is_vague:
        return f"{entry(figure.name).label} {CANNOT_BE_TOLD}: {between} all fit what was measured."
    biased = figure.bias is not None and bool(between)
    said = entry(figure.name).sentence.format(value=between if biased else value_text(figure))
    if not said or not interval:
        return said
    brackets = f" ({bias_text(figure)})" if biased else _in_brackets(figure)
    return f"{said.removesuffix('.')}{brackets}."


def missing_texts(figures: Iterable[Figure]) -> list[str]:
    """Return a sentence for each reason why figures are missing."""
    reasons: dict[str, list[str]] = {}
    for figure in figures:
        if not figure.is_known:
            reason = figure.missing or "the reason was not recorded"
            reasons.setdefault(reason, []).append(entry(figure.name).label)
    return [
        f"Not estimated: {', '.join(labels)}. Reason: {why}." for why, labels in reasons.items()
    ]


def assumptions_with_figures(figures: Iterable[Figure]) -> list[tuple[Assumption, list[str]]]:
    """Return every assumption of these figures once, with the names of those that rest on it."""
    names: dict[str, list[str]] = {}
    for figure in figures:
        for key in figure.assumes:
            names.setdefault(key, []).append(figure.name)
    return [(assumption(key), of) for key, of in names.items()]


def assumptions_of(figures: Iterable[Figure]) -> list[Assumption]:
    """Return every assumption of these figures once."""
    keys = dict.fromkeys(key for figure in figures for key in figure.assumes)
    return [assumption(key) for key in keys]
