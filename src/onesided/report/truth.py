"""What was estimated without negatives, beside what items of known class say.

The estimates are why a person without negatives can act at all; this is where they are
held to account.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from onesided.metrics.figure import Figure
from onesided.metrics.registry import FIGURES, entry
from onesided.metrics.stored import Json, number, table
from onesided.metrics.words import interval_text, number_text, value_text
from onesided.report.runfiles import RunFiles


@dataclass(frozen=True)
class Checked:
    """Figures on items of known class, and which items these are."""

    title: str
    values: Mapping[str, float]


def truth(run: RunFiles, found: Mapping[str, Figure]) -> str:
    """Return a table of estimates beside true figures; "" where no class is known."""
    checks = [check for check in _checks(run) if check.values]
    if not checks:
        return ""
    names = [
        name
        for name, each in FIGURES.items()
        if any(each.truth in check.values for check in checks)
    ]
    heads = "".join(f'<th scope="col">{check.title}</th>' for check in checks)
    body = "".join(_row(name, found.get(name), checks) for name in names)
    return (
        '<p class="note">True classes were used for this table only; they chose nothing. Recall '
        "and AUC can be compared as they stand. Precision, F1 and accuracy also depend on how "
        "many items are positive, so they should agree only where the items of known class are "
        "mixed like the pool.</p>"
        '<div class="scroll" role="region" aria-labelledby="truth" tabindex="0">'
        '<table aria-labelledby="truth"><thead><tr><th scope="col">Figure</th>'
        f'<th scope="col">Estimated without negatives</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _checks(run: RunFiles) -> list[Checked]:
    labelled = run.labelled
    matched = number(labelled.get("matched"))
    items = "True, labelled items" if matched is None else f"True, {matched:,.0f} labelled items"
    return [
        Checked("True, test set", _known(table(run.result.get("test")))),
        Checked(items, _known(table(labelled.get("test")))),
    ]


def _known(figures: Json) -> dict[str, float]:
    values = {each.truth: number(figures.get(each.truth)) for each in FIGURES.values()}
    return {name: value for name, value in values.items() if value is not None}


def _row(name: str, estimate: Figure | None, checks: list[Checked]) -> str:
    cells = "".join(_cell(name, check.values.get(entry(name).truth), estimate) for check in checks)
    return f'<tr><th scope="row">{entry(name).label}</th><td>{_guess(estimate)}</td>{cells}</tr>'


def _guess(estimate: Figure | None) -> str:
    if estimate is None or estimate.value is None:
        return "-"
    between = interval_text(estimate)
    small = f"<small>{between}</small>" if between else ""
    return f"{value_text(estimate)}{small}"


def _cell(name: str, value: float | None, estimate: Figure | None) -> str:
    if value is None:
        return "<td>-</td>"
    return f"<td>{number_text(name, value)}{_verdict(value, estimate)}</td>"


def _verdict(value: float, estimate: Figure | None) -> str:
    """Return whether the interval of the estimate holds the value, in words, not in colours."""
    if estimate is None or estimate.interval is None:
        return ""
    low, high = estimate.interval
    if value < low:
        return "<small>below the interval</small>"
    return f"<small>{'above' if value > high else 'inside'} the interval</small>"
