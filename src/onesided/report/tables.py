"""The figures of a run as HTML: cards with their assumptions, tables, and the small print.

Every function returns "" when the run has nothing for it.
"""

from collections.abc import Iterator, Mapping

from onesided.report.runfiles import Estimate, Json, RunFiles, estimates, number, table
from onesided.report.wording import (
    LABELS,
    MEANINGS,
    TEST_LABELS,
    duration,
    interval,
    measured,
    shown,
)

# What keeps the page small when a file is absurdly long.
MOST_ROWS = 200
MOST_FACTS = 100
MOST_UNKNOWN = 20

COLUMNS = {
    "Against the truth": {("test", name): label for name, label in TEST_LABELS.items()},
    "Without negatives": {
        ("pu", "recall"): "Recall",
        ("pu", "share_positive"): "Called positive",
        ("pu", "proxy_auc"): "Proxy AUC",
        ("pu", "f1"): "F1, estimated",
    },
}

FACTS = {
    "method": "Method",
    "variant": "Variant",
    "data": "Data",
    "n_positive": "Labelled positives",
    "n_unlabelled": "Unlabelled items",
    "threshold": "Decision threshold",
    "seed": "Seed",
    "epochs": "Epochs",
    "seconds": "Time",
    "device": "Device",
    "precision": "Precision of numbers",
}


def cards(run: RunFiles, found: Mapping[str, Estimate]) -> str:
    """Return the figures estimated without negatives, the prior among them, as cards."""
    everything = dict(found)
    prior = table(run.result.get("prior"))
    value = number(prior.get("value"))
    if value is not None:
        low, high = number(prior.get("low")), number(prior.get("high"))
        origin = f"Class prior, origin: {prior.get('origin', 'unknown')}"
        everything["prior"] = Estimate("prior", LABELS["prior"], value, low, high, origin)
    unknown = sorted(set(found) - set(LABELS))[:MOST_UNKNOWN]
    names = [*(name for name in LABELS if name in everything), *unknown]
    if not names:
        return ""
    return (
        '<p class="note">Estimated without any negative labels. '
        "Each figure holds only as far as the assumption beneath it.</p>"
        f'<ul class="cards">{"".join(_card(everything[name]) for name in names)}</ul>'
    )


def _card(figure: Estimate) -> str:
    # A label may explain itself after a colon; the title of a card has no room for that.
    title, _, explained = (figure.label or LABELS.get(figure.name, figure.name)).partition(": ")
    meaning = MEANINGS.get(figure.name, _capital(explained))
    between = interval(figure)
    lead = "" if figure.name == "prior" else "Assumes: "
    pieces = (
        f"<h3>{shown(_capital(title), 120)}</h3>",
        f'<p class="value">{measured(figure.name, figure.value)}</p>',
        f'<p class="interval">interval {between}</p>' if between else "",
        _gauge(figure) if figure.name != "lee_liu" else "",
        f'<p class="meaning">{shown(meaning)}</p>' if meaning else "",
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


def truth(run: RunFiles) -> str:
    """Return the figures measured on items of known class, as cards."""
    test = table(run.result.get("test"))
    values = {name: number(test.get(name)) for name in TEST_LABELS}
    found = "".join(
        f'<li class="card"><h3>{TEST_LABELS[name]}</h3>'
        f'<p class="value">{measured(name, value)}</p></li>'
        for name, value in values.items()
        if value is not None
    )
    if not found:
        return ""
    return (
        '<p class="note">On a test set whose true classes are known. '
        "They were used for this report only and chose nothing.</p>"
        f'<ul class="cards small">{found}</ul>'
    )


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
        cells = "".join(_cell(name, values.get((part, name))) for part, name in keys)
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


def _measurements(row: Json) -> dict[tuple[str, str], float]:
    test = {("test", name): number(value) for name, value in table(row.get("test")).items()}
    pu = {("pu", name): figure.value for name, figure in estimates(row.get("pu")).items()}
    return {key: value for key, value in (test | pu).items() if value is not None}


def _name(row: Json) -> str:
    degenerate = table(row.get("pu")).get("degenerate")
    mark = ' <span class="bad">degenerate</span>' if degenerate else ""
    seed = shown(row.get("seed", ""), 30)
    return f'<th scope="row">{shown(row.get("method", ""), 60)}{mark}</th><td>{seed}</td>'


def _cell(name: str, value: float | None) -> str:
    return "<td>-</td>" if value is None else f"<td>{measured(name, value)}</td>"


def facts(run: RunFiles) -> str:
    """Return what is needed to repeat the run, folded away."""
    rows = [
        (label, _fact(key, run.result[key]))
        for key, label in FACTS.items()
        if run.result.get(key) is not None
    ]
    repeated = set(FACTS) & set(run.result)
    rows += [
        (shown(_capital(key.replace("_", " ")), 60), f"<code>{shown(value, 500)}</code>")
        for key, value in _flat(run.manifest)
        if key not in repeated
    ][:MOST_FACTS]
    if not rows:
        return ""
    body = "".join(f'<tr><th scope="row">{key}</th><td>{value}</td></tr>' for key, value in rows)
    return (
        "<details><summary>Method, settings, versions and hashes</summary>"
        f'<table class="facts"><tbody>{body}</tbody></table></details>'
    )


def _fact(key: str, value: object) -> str:
    as_number = number(value)
    if key == "seconds" and as_number is not None:
        return duration(as_number)
    if key.startswith("n_") and as_number is not None:
        return f"{as_number:,.0f}"
    return shown(value)


def _flat(entries: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in entries.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key} ")
        elif isinstance(value, list):
            yield f"{prefix}{key}", " ".join(str(part) for part in value)
        elif value is not None:
            yield f"{prefix}{key}", value
