"""Figures as `result.json` of this version and of older ones holds them; no value is trusted.

Older files have sentences where there are ids now: a label such as "Precision, optimistically:
share of ..." and an assumption such as "... Not computed: it needs the prior." Only this
module parses them.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from onesided.metrics.figure import Figure, prior_figure
from onesided.metrics.registry import FIGURES, OWN_SCORES, Bias

Json = Mapping[str, Any]

OLD_OWN_SCORES = "BBE on this model's held-out scores, too high where negatives are among the best"
OLD_BIAS: Mapping[str, Bias] = {", optimistically": "high", ", pessimistically": "low"}
OLD_ASSUMPTIONS = {
    "The labelled positives are typical of all positives (SCAR).": "scar",
    "The held-out items are a random part of the data and were not trained on.": "held_out",
    "It compares with unlabelled items, not with negatives, so even a perfect score stays below "
    "1.": "not_negatives",
    "It compares models on the same data; it is no share and may exceed 1.": "no_share",
}
OLD_REASON = re.compile(r"(?:Not computed|Undefined): ([^.]*)\.")


def number(value: object) -> float | None:
    """Return a finite number as a float, and None for everything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return None
    try:
        as_float = float(value)
    except OverflowError:
        return None
    return as_float if math.isfinite(as_float) else None


def table(value: object) -> Json:
    """Return a JSON object as it is, and an empty one for everything else."""
    return value if isinstance(value, Mapping) else {}


def listed(value: object) -> list[Any]:
    """Return a JSON list as it is, and an empty one for everything else."""
    return value if isinstance(value, list) else []


def numbers(value: object) -> dict[str, float]:
    """Return the entries of a JSON object that are finite numbers."""
    entries = {str(name): number(entry) for name, entry in table(value).items()}
    return {name: entry for name, entry in entries.items() if entry is not None}


def degenerate_reason(result: Json) -> str | None:
    """Return why the model of a run is degenerate, None where nothing says so."""
    return table(result.get("pu")).get("degenerate") or None


def read_figures(result: Json) -> dict[str, Figure]:
    """Return all figures of a `result.json` in order, those without a value among them."""
    stored = table(table(result.get("pu")).get("figures"))
    found = {name: read_figure(name, table(entry)) for name, entry in stored.items() if entry}
    prior, known = table(result.get("prior")), table(result.get("known_negatives"))
    if "prior" not in found and number(prior.get("value")) is not None:
        found["prior"] = _old_prior(prior)
    if "called_positive" in known:  # as older files name it
        known = {**known, "value": known["called_positive"], "assumes": ["typical_negatives"]}
    if known:
        found["false_alarms"] = read_figure("false_alarms", known)
    known_first = [*(name for name in FIGURES if name in found), *sorted(found.keys() - FIGURES)]
    return {name: found[name] for name in known_first}


def read_figure(name: str, stored: Json) -> Figure:
    """Return one figure, whichever version wrote it."""
    value, low, high = (number(stored.get(key)) for key in ("value", "low", "high"))
    assumes, bias, missing = stored.get("assumes"), stored.get("bias"), stored.get("missing")
    if isinstance(assumes, list):
        bias = bias if bias in ("high", "low") else None
        missing = None if missing is None else str(missing)
        return Figure(name, value, low, high, tuple(map(str, assumes)), bias, missing)
    old_assumes = str(assumes or "")
    title = str(stored.get("label") or "").partition(": ")[0]
    bias = next((bias for end, bias in OLD_BIAS.items() if title.endswith(end)), None)
    reason = OLD_REASON.search(old_assumes) if value is None else None
    assumed = _old_assumptions(old_assumes)
    return Figure(name, value, low, high, assumed, bias, reason[1] if reason else None)


def prior_origin(stored: Json) -> str:
    """Return the id of where a prior comes from."""
    origin = str(stored.get("origin", "given"))
    return OWN_SCORES if origin == OLD_OWN_SCORES else origin


def _old_assumptions(text: str) -> tuple[str, ...]:
    """Return ids of the sentences that are known, and the rest as it is."""
    known = [sentence for sentence in OLD_ASSUMPTIONS if sentence in text]
    for sentence in known:
        text = text.replace(sentence, "")
    rest = " ".join(text.split())
    return (*(OLD_ASSUMPTIONS[sentence] for sentence in known), *([rest] if rest else []))


def _old_prior(stored: Json) -> Figure:
    low, high = number(stored.get("low")), number(stored.get("high"))
    interval = None if low is None or high is None else (low, high)
    return prior_figure(number(stored.get("value")), interval, origin=prior_origin(stored))


def method_asked_for(result: Json) -> str:
    """Return the name that a person gave as method: auto, where a search chose the method."""
    return str(result.get("chosen_by") or result.get("method"))


def method_words(result: Json) -> str:
    """Return the method of a run for a table, such as ce, or auto: forest."""
    asked, method = method_asked_for(result), str(result.get("method"))
    return method if asked == method else f"{asked}: {method}"


SIMPLE = ("linear", "forest", "boosting", "puet", "average")
"""Methods without a network."""


def search_sentence(result: Json) -> str:
    """Return why a search kept its model, in plain words; nothing where there was no search."""
    rows = [table(row) for row in listed(result.get("leaderboard"))]
    tried = [row for row in rows if number(row.get("proxy_auc")) is not None]
    won = next((row for row in tried if row.get("won")), None)
    if won is None:
        return ""
    count = sum(int(number(row.get("tried")) or 1) for row in tried)
    words = str(won.get("words"))
    every = max(number(row.get("folds")) or 0.0 for row in tried)
    whole = [row for row in tried if number(row.get("folds")) == every] or tried
    best = max(whole, key=lambda row: number(row.get("proxy_auc")) or 0.0)
    larger = [row for row in whole if row.get("method") not in SIMPLE]
    if len(tried) == 1:
        kept = "was kept."
    elif won.get("method") == "average":
        kept = (
            "was kept: these did equally well as far as can be told, and their average is more "
            "reliable than the one that happened to be highest."
        )
    elif best is won:
        kept = "was kept: none of the others ranks better."
    else:
        kept = f"was kept, because {best.get('words')} is not better by more than chance explains."
    kept = f"{words[:1].upper()}{words[1:]} {kept}"
    if larger and won.get("method") in SIMPLE:
        kept = f"A simple model did as well as a larger one. {kept}"
    optimism = number(result.get("optimism")) or 0.0
    lowered = (
        " Because the best of several is partly lucky, its proxy AUC is lowered by "
        f"{100 * optimism:.1f} percentage points in the figures, and recall for the same reason."
    )
    return (
        f"{count} models were tried, each on items that it was not trained on. {kept} No negative "
        "was needed for that: if the labelled positives are typical, the model that ranks them "
        "highest among unlabelled items also ranks positives highest among negatives."
        f"{lowered if optimism else ''}"
    )
