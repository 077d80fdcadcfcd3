"""The figures of a run as HTML: cards with their assumptions, and a table of methods.

Every function returns "" when the run has nothing for it.
"""

import re
from collections.abc import Mapping

from onesided.report.runfiles import Estimate, Json, RunFiles, estimates, number, table
from onesided.report.wording import (
    LABELS,
    TEST_LABELS,
    interval,
    meaning,
    measured,
    shown,
    valued,
)

# What keeps the page small when a file is absurdly long.
MOST_ROWS = 200
MOST_UNKNOWN = 20

REASON = re.compile(r"(?:Not computed|Undefined): ([^.]*\.)")
"""Where the assumption of a figure without a value tells why it has none."""

NO_ASSUMPTION = frozenset({"prior", "false_alarms"})
"""Figures whose last line tells where they come from."""

COLUMNS = {
    "Against the truth": {("test", name): label for name, label in TEST_LABELS.items()},
    "Without negatives": {
        ("pu", "recall"): "Recall",
        ("pu", "share_positive"): "Called positive",
        ("pu", "proxy_auc"): "Proxy AUC",
        ("pu", "lee_liu"): "Lee-Liu",
        ("pu", "f1"): "F1",
    },
}


def cards(run: RunFiles, found: Mapping[str, Estimate]) -> str:
    """Return the figures estimated without negatives, the prior among them, as cards."""
    everything = {**found, **_prior(run), **_known_negatives(run)}
    unknown = sorted(set(found) - set(LABELS))[:MOST_UNKNOWN]
    names = [*(name for name in LABELS if name in everything), *unknown]
    if not names:
        return ""
    return (
        '<p class="note">Estimated without any negative labels, unless a card says otherwise. '
        "Each figure holds only as far as the assumption beneath it.</p>"
        f'<ul class="cards">{"".join(_card(everything[name]) for name in names)}</ul>'
        f"{_not_estimated(run)}"
    )


def _prior(run: RunFiles) -> dict[str, Estimate]:
    prior = table(run.result.get("prior"))
    value = number(prior.get("value"))
    if value is None:
        return {}
    low, high = number(prior.get("low")), number(prior.get("high"))
    origin = f"Class prior, origin: {prior.get('origin', 'unknown')}"
    return {"prior": Estimate("prior", LABELS["prior"], value, low, high, origin)}


def _known_negatives(run: RunFiles) -> dict[str, Estimate]:
    known = table(run.result.get("known_negatives"))
    value, count = number(known.get("called_positive")), number(known.get("count"))
    if value is None or count is None:
        return {}
    low, high = number(known.get("low")), number(known.get("high"))
    basis = f"Measured on {count:,.0f} known negatives, which should be like those of the pool."
    name = "false_alarms"
    return {name: Estimate(name, LABELS[name], value, low, high, basis)}


def _not_estimated(run: RunFiles) -> str:
    """Return why figures are missing: silence would read as if nobody had thought of them."""
    reasons: dict[str, list[str]] = {}
    for name, entry in table(table(run.result.get("pu")).get("figures")).items():
        figure = table(entry)
        if name in LABELS and number(figure.get("value")) is None:
            found = REASON.search(str(figure.get("assumes") or ""))
            title = LABELS[name].partition(",")[0]
            reasons.setdefault(found[1] if found else "not recorded.", []).append(title)
    return "".join(
        f'<p class="note missing">Not estimated: {", ".join(titles)}. '
        f"Reason: {shown(reason, 500)}</p>"
        for reason, titles in reasons.items()
    )


def _card(figure: Estimate) -> str:
    # A label may explain itself after a colon; the title of a card has no room for that.
    title, _, explained = (LABELS.get(figure.name) or figure.label or figure.name).partition(": ")
    said = meaning(figure) or _capital(explained)
    between = interval(figure)
    lead = "" if figure.name in NO_ASSUMPTION else "Assumes: "
    pieces = (
        f"<h3>{shown(_capital(title), 120)}</h3>",
        f'<p class="value">{valued(figure)}</p>',
        f'<p class="interval">95% interval {between}</p>' if between else "",
        _gauge(figure) if figure.name != "lee_liu" else "",
        f'<p class="meaning">{shown(said)}</p>' if said else "",
        f'<p class="assumes">{lead}{shown(figure.assumes, 1000)}</p>' if figure.assumes else "",
    )
    return f'<li class="card">{"".join(pieces)}</li>'


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _gauge(figure: Estimate) -> str:
    """Return a track from 0 to 1 with the interval and the value on it."""
    ends = [figure.value if end is None else end for end in (figure.low, figure.high)]
    low, high, at = (min(1.0, max(0.0, number)) for number in (*ends, figure.value))
    position = f"--low:{low:.4f};--high:{high:.4f};--at:{at:.4f}"
    return f'<div class="gauge" style="{position}" aria-hidden="true"><i></i><b></b></div>'


def comparison(run: RunFiles) -> str:
    """Return one row per run that was compared; columns that no row fills are left out."""
    rows = [(row, _measurements(row)) for row in run.comparison[:MOST_ROWS]]
    filled = {key for _, values in rows for key in values}
    groups = {
        title: {key: label for key, label in columns.items() if key in filled}
        for title, columns in COLUMNS.items()
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
    pu = {("pu", name): valued(figure) for name, figure in estimates(row.get("pu")).items()}
    known = {name: value for name, value in test.items() if value is not None}
    return {("test", name): measured(name, value) for name, value in known.items()} | pu


def _name(row: Json) -> str:
    degenerate = table(row.get("pu")).get("degenerate")
    mark = ' <span class="bad">degenerate</span>' if degenerate else ""
    seed = shown(row.get("seed", ""), 30)
    return f'<th scope="row">{shown(row.get("method", ""), 60)}{mark}</th><td>{seed}</td>'
