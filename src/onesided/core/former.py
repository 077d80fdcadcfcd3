"""Names that earlier versions gave to methods, which their files still hold.

NcPU had two variants that were not the paper's mathematics. They are the method `teacher` now, with
all their settings. Here is the only place that knows this: model files, configurations, reports,
tables and the identity of a run ask it.
"""

from collections.abc import Mapping
from typing import Any

Settings = dict[str, Any]

NCPU, TEACHER, TITLE = "ncpu", "teacher", "Teacher"
MOVED = {"budget": "plain", "features": "features"}
"""Variants of NcPU that are now variants of Teacher, under this name."""
SWITCHES = {"views": "three", "weighing": "sources", "judge": "online", "voter": "prototype"}
"""Switches that NcPU had, with the paper's values; today they are Teacher's."""

FIRST_PAIRS = {NCPU: "labelled", TEACHER: "labelled"}
"""The rule of aligned pairs before it was a setting; in all other methods by probabilities."""
FIRST_RULES = {"prototype_class": "labelled"}
"""What became a setting later, with the value that all runs before had."""


def method_today(name: str, settings: Mapping[str, Any]) -> tuple[str, Settings]:
    """Return a method of an earlier file, and all its settings, under the names of today."""
    if name != NCPU or not SWITCHES.keys() & settings.keys():
        moved = name == NCPU and str(settings.get("variant")) in MOVED
        return (TEACHER, _renamed(settings)) if moved else (name, dict(settings))
    if any(settings.get(key, value) != value for key, value in SWITCHES.items()):
        return TEACHER, _renamed(settings)
    kept = {key: value for key, value in settings.items() if key not in SWITCHES}
    return name, {"pairs": FIRST_PAIRS[NCPU], **FIRST_RULES, **kept}


def rules_then(name: str, settings: Mapping[str, Any]) -> Settings:
    """Return what a run trained by and its settings do not say, since it was no setting then."""
    if name != NCPU or settings.get("variant") == "released":
        return {}
    return {key: value for key, value in FIRST_RULES.items() if key not in settings}


def result_today(result: Mapping[str, Any]) -> Settings:
    """Return a `result.json`, or a row of a comparison, with the method and variant of today."""
    if result.get("method") != NCPU or str(result.get("variant")) not in MOVED:
        return dict(result)
    return {**result, "method": TEACHER, "title": TITLE, "variant": MOVED[result["variant"]]}


def first_names(name: str, settings: Mapping[str, Any]) -> Settings:
    """Return a method's settings as the first version wrote them: a run keeps its identity."""
    if settings.get("pairs") == FIRST_PAIRS.get(name, "probabilities"):
        settings = {key: value for key, value in settings.items() if key != "pairs"}
    settings = {
        key: value for key, value in settings.items() if (key, value) not in FIRST_RULES.items()
    }
    if name == TEACHER:
        first = {today: before for before, today in MOVED.items()}
        return {**settings, "name": NCPU, "variant": first[settings["variant"]]}
    return {**(SWITCHES if name == NCPU else {}), **settings, "name": name}


def _renamed(settings: Mapping[str, Any]) -> Settings:
    variant = settings.get("variant")
    return {**settings, "variant": MOVED.get(str(variant), "plain")}
