"""What a page ends with: files that were left out, how to repeat the run, and its facts.

Every function returns "" when the run has nothing for it.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from onesided.pages.render import render
from onesided.report.runfiles import Json, RunFiles, number, table
from onesided.report.wording import duration, visible

# What keeps the page small when a file is absurdly long.
MOST_ROWS = 200
MOST_FACTS = 100

SCENARIOS = {
    "case-control": "case-control: the positives were collected apart from the pool",
    "single-set": "single set: the positives were labelled inside one set, the pool is the rest",
}

FACTS = {
    "method": "Method",
    "variant": "Variant",
    "data": "Data",
    "scenario": "How the data came about",
    "n_positive": "Labelled positives in training",
    "n_unlabelled": "Unlabelled items in training",
    "threshold": "Decision threshold",
    "threshold_rule": "Rule of the threshold",
    "seed": "Seed",
    "epochs": "Epochs",
    "seconds": "Time",
    "device": "Device",
    "precision": "Precision of numbers",
}


def skipped(run: RunFiles) -> Markup:
    """Return the files that could not be read and the reason for each, as a table."""
    entries = listed(run.result, "skipped")
    if not entries:
        return Markup()
    more = len(entries) - MOST_ROWS
    return render(
        "report/web/skipped.html",
        count="1 file" if len(entries) == 1 else f"{len(entries):,} files",
        rows=[_name_and_reason(entry) for entry in entries[:MOST_ROWS]],
        more=f"{more:,}" if more > 0 else "",
    )


def _name_and_reason(entry: object) -> tuple[str, str]:
    pair = entry if isinstance(entry, list) and len(entry) == 2 else [entry, "was skipped"]
    return visible(pair[0]), visible(pair[1], 200)


def about(run: RunFiles) -> Markup:
    """Return how to repeat the run, and below it, folded away, everything known about it."""
    command, facts, manifest = _command(run), _facts(run), _rest(run)
    if not (command or facts or manifest):
        return Markup()
    return render(
        "report/web/about.html",
        command=visible(command, 2000),
        # Buildings that onesided map cut out of images are no data that fit could read.
        by_settings=run.result.get("data") != "chips",
        facts=facts,
        manifest=manifest,
    )


def _command(run: RunFiles) -> str:
    command = run.manifest.get("command")
    typed = _typed(command) if isinstance(command, list) and command else command
    return typed if isinstance(typed, str) else ""


def _typed(words: Sequence[object]) -> str:
    """Return the words as a person would type them; the path of the program is nobody's wish."""
    first, *rest = [visible(word, 500) for word in words]
    program = first.replace("\\", "/").rpartition("/")[2]
    name = "onesided" if program in {"onesided", "__main__.py", "onesided.exe"} else first
    return shlex.join([name, *rest])


def _facts(run: RunFiles) -> list[tuple[str, str]]:
    return [
        (label, _fact(key, run.result[key]))
        for key, label in FACTS.items()
        if run.result.get(key) is not None
    ]


def _rest(run: RunFiles) -> list[tuple[str, str]]:
    """Return what the manifest says beyond the facts."""
    told = (set(FACTS) & set(run.result)) | {"command"}
    return [
        (visible(_capital(key.replace("_", " ")), 60), visible(value, 500))
        for key, value in _flat(run.manifest)
        if key not in told
    ][:MOST_FACTS]


def _fact(key: str, value: object) -> str:
    as_number = number(value)
    if key == "seconds" and as_number is not None:
        return duration(as_number)
    if key.startswith("n_") and as_number is not None:
        return f"{as_number:,.0f}"
    if key == "threshold_rule":
        return visible(table(value).get("explained") or value, 500)
    return visible(SCENARIOS.get(str(value), value) if key == "scenario" else value)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _flat(entries: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in entries.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key} ")
        elif isinstance(value, list):
            yield f"{prefix}{key}", " ".join(str(part) for part in value)
        elif value is not None:
            yield f"{prefix}{key}", value


def listed(result: Json, key: str) -> list[object]:
    """Return a list of the result as it is, and an empty one for everything else."""
    value = result.get(key)
    return value if isinstance(value, list) else []
