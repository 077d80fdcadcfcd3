"""The figures of a run as HTML: cards with their assumptions, and a table of methods.

Every function returns "" when the run has nothing for it.
"""

from collections.abc import Mapping

from onesided.metrics.figure import Figure
from onesided.metrics.registry import FIGURES, assumption, entry
from onesided.metrics.registry import shown as shown_in
from onesided.metrics.stored import Json, number, read_figures, table
from onesided.metrics.words import (
    assumptions_of,
    bias_text,
    interval_text,
    missing_texts,
    number_text,
    sentence,
    value_text,
)
from onesided.report.runfiles import RunFiles
from onesided.report.wording import shown

# What keeps the page small when a file is absurdly long.
MOST_ROWS = 200
MOST_UNKNOWN = 20


def cards(found: Mapping[str, Figure]) -> str:
    """Return the figures estimated without negatives as cards, and below them what they assume."""
    unknown = [name for name in found if name not in FIGURES][:MOST_UNKNOWN]
    names = [*(name for name in found if name in FIGURES), *unknown]
    told = [found[name] for name in names if found[name].value is not None]
    missing = "".join(
        f'<p class="note missing">{shown(text, 1000)}</p>'
        for text in missing_texts(found[name] for name in names)
    )
    if not told:
        return missing
    return (
        '<p class="note">Estimated without any negative labels, unless a card says otherwise. '
        "Each figure holds only as far as its assumptions, which are listed below.</p>"
        f'<ul class="cards">{"".join(_card(figure) for figure in told)}</ul>'
        f"{missing}{_assumptions(told)}"
    )


def _assumptions(figures: list[Figure]) -> str:
    items = "".join(f"<li>{shown(each.text, 1000)}</li>" for each in assumptions_of(figures))
    return f'<div class="part"><h3>Assumptions</h3><ul>{items}</ul></div>'


def _card(figure: Figure) -> str:
    said, between = sentence(figure), interval_text(figure)
    assumes = "; ".join(assumption(key).label for key in figure.assumes)
    pieces = (
        f"<h3>{shown(entry(figure.name).label, 120)}</h3>",
        f'<p class="value">{value_text(figure)}</p>',
        f'<p class="interval">95% interval {between}</p>' if between else "",
        _gauge(figure) if entry(figure.name).unit == "percent" else "",
        f'<p class="meaning">{shown(said)}</p>' if said else "",
        f'<p class="meaning">{bias_text(figure).capitalize()}.</p>' if figure.bias else "",
        f'<p class="assumes">Assumes: {shown(assumes, 1000)}</p>' if assumes else "",
    )
    return f'<li class="card">{"".join(pieces)}</li>'


def _gauge(figure: Figure) -> str:
    """Return a track from 0 to 1 with the interval and the value on it."""
    value = figure.value or 0.0
    ends = [value if end is None else end for end in (figure.low, figure.high)]
    low, high, at = (min(1.0, max(0.0, number)) for number in (*ends, value))
    position = f"--low:{low:.4f};--high:{high:.4f};--at:{at:.4f}"
    return f'<div class="gauge" style="{position}" aria-hidden="true"><i></i><b></b></div>'


def comparison(run: RunFiles) -> str:
    """Return one row per run that was compared; columns that no row fills are left out."""
    rows = [(row, _measurements(row)) for row in run.comparison[:MOST_ROWS]]
    filled = {key for _, values in rows for key in values}
    titles = {
        "Against the truth": [("test", name) for name in shown_in("truth")],
        "Without negatives": [("pu", name) for name in shown_in("comparison")],
    }
    groups = {
        title: {key: entry(key[1]).label for key in keys if key in filled}
        for title, keys in titles.items()
    }
    keys = [key for columns in groups.values() for key in columns]
    own = (run.result.get("method"), run.result.get("seed"))
    body = []
    for row, values in rows:
        opening = '<tr class="own">' if (row.get("method"), row.get("seed")) == own else "<tr>"
        cells = "".join(f"<td>{values.get(key, '-')}</td>" for key in keys)
        body.append(f"{opening}{_name(row)}{cells}</tr>")
    if not keys:
        return ""
    return (
        '<p class="note">The same data for every row; this run is set in bold.</p>'
        '<div class="scroll" role="region" aria-labelledby="comparison" tabindex="0">'
        '<table aria-labelledby="comparison">'
        f"<thead>{_heads(groups)}</thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _heads(groups: Mapping[str, Mapping[tuple[str, str], str]]) -> str:
    tops = "".join(
        f'<th scope="colgroup" colspan="{len(columns)}">{title}</th>'
        for title, columns in groups.items()
        if columns
    )
    labels = [label for columns in groups.values() for label in columns.values()]
    heads = "".join(f'<th scope="col">{label}</th>' for label in labels)
    first = "".join(f'<th scope="col" rowspan="2">{label}</th>' for label in ("Method", "Seed"))
    return f"<tr>{first}{tops}</tr><tr>{heads}</tr>"


def _measurements(row: Json) -> dict[tuple[str, str], str]:
    test = {name: number(value) for name, value in table(row.get("test")).items()}
    return {
        **{("test", key): number_text(key, each) for key, each in test.items() if each is not None},
        **{
            ("pu", name): value_text(figure)
            for name, figure in read_figures(row).items()
            if figure.value is not None
        },
    }


def _name(row: Json) -> str:
    degenerate = table(row.get("pu")).get("degenerate")
    mark = ' <span class="bad">degenerate</span>' if degenerate else ""
    seed = shown(row.get("seed", ""), 30)
    return f'<th scope="row">{shown(row.get("method", ""), 60)}{mark}</th><td>{seed}</td>'
