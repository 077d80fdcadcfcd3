"""What a run tells people who find its folder: a model card, and notes on its data.

The card is a `README.md` in the form of Hugging Face: YAML for machines on top, Markdown below.
Both files are made from `result.json`, and change with it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onesided.data.problem.samples import ImageKind
from onesided.metrics.registry import entry
from onesided.metrics.stored import degenerate_reason, listed, number, numbers, read_figures, table
from onesided.metrics.words import (
    assumptions_of,
    interval_text,
    missing_texts,
    number_text,
    value_text,
)
from onesided.pages.render import render
from onesided.run.folder import CARDS, MANIFEST, WRITTEN, own_cards
from onesided.storage.atomic import read_json, write_text

TEMPLATES = dict(zip(CARDS, ("run/templates/model.md", "run/templates/data.md"), strict=True))
HUB_METRICS = {"oa": "accuracy", "f1": "f1", "precision": "precision", "recall": "recall"}
"""Our metric against true labels to its name on the hub."""
MOST_SKIPPED = 20
LACKING: dict[str, object] = {
    **{"data": "unknown", "seed": "unknown", "title": "", "summary": "", "citation": ""},
    **{"known_negatives": None, "warnings": [], "notices": []},
}
"""What early versions did not write into `result.json`."""


def write_cards(new: Path, run: Path, result: Mapping[str, Any], *, kind: ImageKind) -> None:
    """Write the cards of a finished run into the folder of a change; leave a person's own alone."""
    manifest = read_json(run / MANIFEST) if (run / MANIFEST).exists() else {}
    for name in own_cards(run):
        text = card_text(TEMPLATES[name], run.resolve().name, result, manifest, kind=kind)
        write_text(new / name, text)


def card_text(
    template: str,
    name: str,
    result: Mapping[str, Any],
    manifest: Mapping[str, Any],
    *,
    kind: ImageKind,
) -> str:
    """Return a card, the same text for the same result."""
    figures = list(read_figures(result).values())
    known = [figure for figure in figures if figure.is_known]
    test = numbers(result.get("test"))
    filled = render(
        template,
        written=WRITTEN,
        name=name,
        task="tabular-classification" if kind == "vector" else "image-classification",
        result={**LACKING, **result},
        positives=_count(result.get("n_positive")),
        unlabelled=_count(result.get("n_unlabelled")),
        words=result.get("words") or result.get("title") or result["method"],
        version=table(manifest.get("versions")).get("onesided", "of unknown version"),
        hashes={key: manifest.get(f"{key}_hash") for key in ("data", "split", "held_out")},
        degenerate=degenerate_reason(result),
        figures=[(entry(one.name).label, value_text(one), interval_text(one)) for one in known],
        missing=missing_texts(figures),
        assumptions=[each.text for each in assumptions_of(known)],
        true_figures=[(entry(key).label, number_text(key, value)) for key, value in test.items()],
        hub_metrics=[(HUB_METRICS[key], test[key]) for key in HUB_METRICS if key in test],
        skipped=listed(result.get("skipped")),
        most_skipped=MOST_SKIPPED,
    )
    return str(filled).strip() + "\n"


def _count(value: object) -> str:
    counted = number(value)
    return "an unknown number of" if counted is None else f"{counted:,.0f}"
