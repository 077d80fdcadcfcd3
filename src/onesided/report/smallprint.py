"""The end of a page: files that were left out, how to repeat the run, and its facts.

Every function returns "" when the run has nothing for it.
"""

import shlex
from collections.abc import Iterator, Mapping

from markupsafe import Markup

from onesided.core.duration import duration
from onesided.metrics.stored import listed, number, table
from onesided.pages.render import render, visible
from onesided.report.runfiles import RunFiles

# Limits that keep the page small when a file is absurdly long.
MOST_ROWS = 200
MOST_FACTS = 100

SCENARIOS = {
    "case-control": "case-control: the positives were collected apart from the pool",
    "single-set": "single set: the positives were labelled inside one set, the pool is the rest",
}

FACTS = {
    "title": "Method",
    "method": "Its name in commands",
    "variant": "Variant",
    "data": "Data",
    "scenario": "How the data was collected",
    "n_positive": "Labelled positives in training",
    "n_unlabelled": "Unlabelled items in training",
    "threshold": "Threshold",
    "threshold_rule": "Rule of the threshold",
    "seed": "Seed",
    "epochs": "Epochs",
    "seconds": "Time of training",
    "search_seconds": "Of it, for comparing models",
    "device": "Device",
    "precision": "Precision of numbers",
}


def skipped(run: RunFiles) -> Markup:
    """Return the files that could not be read and the reason for each, as a table."""
    pairs = [
        entry if isinstance(entry, list) and len(entry) == 2 else [entry, "was skipped"]
        for entry in listed(run.result.get("skipped"))
    ]
    return render("report/web/skipped.html", pairs=pairs, most=MOST_ROWS) if pairs else Markup()


def about(run: RunFiles) -> Markup:
    """Return how to repeat the run, and below it, folded away, everything known about it."""
    facts = {
        label: _fact(key, run.result[key])
        for key, label in FACTS.items()
        if run.result.get(key) is not None
    }
    shown = (set(FACTS) & set(run.result)) | {"command"}
    rest = [(key, value) for key, value in _flat(run.manifest) if key not in shown]
    command = _command(run.manifest.get("command"))
    if not (command or facts or rest):
        return Markup()
    return render(
        "report/web/about.html",
        command=command,
        # fit cannot read the buildings that onesided map cut out of images.
        by_settings=run.result.get("data") != "chips",
        facts=facts,
        manifest=rest[:MOST_FACTS],
    )


def _command(command: object) -> str:
    """Return the words as a person would type them, without the path of the program."""
    if not isinstance(command, list) or not command:
        return command if isinstance(command, str) else ""
    first, *rest = [visible(word, 500) for word in command]
    program = first.replace("\\", "/").rpartition("/")[2]
    name = "onesided" if program in {"onesided", "__main__.py", "onesided.exe"} else first
    return shlex.join([name, *rest])


def _fact(key: str, value: object) -> str:
    as_number = number(value)
    if key.endswith("seconds") and as_number is not None:
        return duration(as_number)
    if key.startswith("n_") and as_number is not None:
        return f"{as_number:,.0f}"
    if key == "threshold_rule":
        return str(table(value).get("explained") or value)
    return SCENARIOS.get(str(value), str(value)) if key == "scenario" else str(value)


def _flat(entries: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in entries.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key} ")
        elif isinstance(value, list):
            yield f"{prefix}{key}", " ".join(str(part) for part in value)
        elif value is not None:
            yield f"{prefix}{key}", value
