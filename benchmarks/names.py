"""Result files with the names of today: every page and every grid reads them through this.

Files of earlier versions call a method of ours a variant of NcPU (`onesided.core.former`). Their
numbers stay; labels, settings and sentences get the true name.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onesided.core.former import FIRST_RULES, NCPU, SWITCHES, TEACHER, TITLE, method_today
from onesided.methods import METHODS
from onesided.storage.atomic import read_json

Content = Mapping[str, Any]
Record = dict[str, Any]

OLD_TITLE, OLD_BASE = "NcPU", "budget"
"""How earlier files label the row of Teacher; the study of switches by its variant's name."""
NAMES = 3
"""Records of this version and later hold names and defaults of today; those of 2
lack what `FIRST_RULES` names."""
SENTENCES = {f"{OLD_TITLE}'s variant `{OLD_BASE}`": TITLE, OLD_TITLE: TITLE}


def read_content(path: Path) -> Content:
    """Return a collected file under the names of today."""
    return with_true_names(read_json(path))


def with_true_names(content: Content) -> Content:
    """Return the content of a collected file under the names of today."""
    if not any({"settings", "method"} <= record.keys() for record in content.get("runs", ())):
        return content  # of times, of memory, or of rows with names of their own
    runs = [record_today(record) for record in content["runs"]]
    moved = {old["label"]: new["label"] for old, new in zip(content["runs"], runs, strict=True)}
    words = content["budget"]["words"]
    if any(old != new for old, new in moved.items()) and NCPU not in {r["method"] for r in runs}:
        for old, new in SENTENCES.items():
            words = words.replace(old, new)
    return {
        **content,
        "budget": {**content["budget"], "words": words},
        "pairs": [[moved.get(label, label) for label in pair] for pair in content["pairs"]],
        "runs": runs,
    }


def record_today(record: Mapping[str, Any]) -> Record:
    """Return one run under the names of today."""
    version = record.get("names", 1)
    if record["method"] != NCPU or version >= NAMES:
        return dict(record)
    if version == 2:
        return {**record, "settings": {**FIRST_RULES, **record["settings"]}}
    # A record holds what differed from the defaults of its time, with NcPU's switches.
    first = METHODS[NCPU]().model_dump(mode="json", exclude={"pairs", *FIRST_RULES})
    all_settings = {**first, **SWITCHES, **record["settings"]}
    name, settings = method_today(NCPU, all_settings)
    defaults = METHODS[name]().model_dump(mode="json")
    label = record["label"]
    if name == TEACHER:
        label = TITLE if label in (OLD_TITLE, OLD_BASE) else label
    return {
        **record,
        "label": label,
        "method": name,
        "settings": {key: value for key, value in settings.items() if value != defaults[key]},
    }
