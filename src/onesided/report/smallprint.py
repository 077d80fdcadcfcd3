"""What a page ends with: files that were left out, how to repeat the run, and its facts.

Every function returns "" when the run has nothing for it.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from onesided.report.runfiles import Json, RunFiles, number, table
from onesided.report.wording import duration, shown, visible

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


def skipped(run: RunFiles) -> str:
    """Return the files that could not be read and the reason for each, as a table."""
    entries = listed(run.result, "skipped")
    if not entries:
        return ""
    rows = "".join(_skipped_row(entry) for entry in entries[:MOST_ROWS])
    more = len(entries) - MOST_ROWS
    rest = f'<p class="note">And {more:,} more, in result.json.</p>' if more > 0 else ""
    files = "1 file" if len(entries) == 1 else f"{len(entries):,} files"
    return (
        f'<p class="note">{files} could not be read and took no part in anything on this page.</p>'
        '<table class="facts" aria-labelledby="skipped"><thead><tr><th scope="col">File</th>'
        f'<th scope="col">Why</th></tr></thead><tbody>{rows}</tbody></table>{rest}'
    )


def _skipped_row(entry: object) -> str:
    pair = entry if isinstance(entry, list) and len(entry) == 2 else [entry, "was skipped"]
    name, reason = pair
    return (
        f'<tr><th scope="row"><bdi>{shown(name)}</bdi></th><td>It {shown(reason, 200)}.</td></tr>'
    )


def about(run: RunFiles) -> str:
    """Return how to repeat the run, and below it, folded away, everything known about it."""
    return _repeat(run) + _facts(run)


def _repeat(run: RunFiles) -> str:
    command = run.manifest.get("command")
    typed = _typed(command) if isinstance(command, list) and command else command
    if not isinstance(typed, str) or not typed:
        return ""
    made = (
        '<h3>Repeat it</h3><p class="note">This command made the run. The same '
        "command with the same data, seed and versions gives the same numbers on the same kind "
        f"of machine.</p>{_block(typed)}"
    )
    # Buildings that onesided map cut out of images are no data that fit could read.
    by_file = (
        ""
        if run.result.get("data") == "chips"
        else (
            '<p class="note">The settings it came to, defaults included, are in config.toml; from '
            "the folder in which the command was given:</p>"
            f"{_block('onesided fit --config RUN/config.toml -o AGAIN')}"
        )
    )
    return f'<div class="part">{made}{by_file}</div>'


def _block(command: str) -> str:
    # It scrolls rather than wraps, because browsers would break --an-option at its hyphens.
    opening = '<pre tabindex="0" role="region" aria-label="Command">'
    return f"{opening}<code>{shown(command, 2000)}</code></pre>"


def _typed(words: Sequence[object]) -> str:
    """Return the words as a person would type them; the path of the program is nobody's wish."""
    first, *rest = [visible(word, 500) for word in words]
    program = first.replace("\\", "/").rpartition("/")[2]
    name = "onesided" if program in {"onesided", "__main__.py", "onesided.exe"} else first
    return shlex.join([name, *rest])


def _facts(run: RunFiles) -> str:
    rows = [
        (label, _fact(key, run.result[key]))
        for key, label in FACTS.items()
        if run.result.get(key) is not None
    ]
    told = (set(FACTS) & set(run.result)) | {"command"}
    rows += [
        (shown(_capital(key.replace("_", " ")), 60), f"<code>{shown(value, 500)}</code>")
        for key, value in _flat(run.manifest)
        if key not in told
    ][:MOST_FACTS]
    if not rows:
        return ""
    body = "".join(f'<tr><th scope="row">{key}</th><td>{value}</td></tr>' for key, value in rows)
    return (
        "<details><summary>Method, settings, versions and hashes</summary>"
        f'<table class="facts" aria-labelledby="run"><tbody>{body}</tbody></table></details>'
    )


def _fact(key: str, value: object) -> str:
    as_number = number(value)
    if key == "seconds" and as_number is not None:
        return duration(as_number)
    if key.startswith("n_") and as_number is not None:
        return f"{as_number:,.0f}"
    if key == "threshold_rule":
        return shown(table(value).get("explained") or value, 500)
    return shown(SCENARIOS.get(str(value), value) if key == "scenario" else value)


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
