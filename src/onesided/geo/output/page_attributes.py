"""Attributes of footprints as the page carries them: numbers, or texts that are written once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onesided.pages.render import visible

MOST_COLUMNS = 40
MOST_CHARACTERS = 40_000_000
"""Of all attributes together: more would make the page slow to open. The others are in the
GeoPackage."""
LONGEST = 300
"""Characters of a text; of a longer one both ends are kept."""
LARGEST = 1e300


def encoded_attributes(columns: Mapping[str, Sequence[object]]) -> list[dict[str, Any]]:
    """Return the columns in their order, until there is no more room.

    A column of numbers has `numbers`; any other has its different `texts`, and for each building
    the place of its text, or -1 for none.
    """
    found, room = [], MOST_CHARACTERS
    for name, values in list(columns.items())[:MOST_COLUMNS]:
        column = _encoded(name, values)
        room -= _characters(column)
        if room < 0:
            break
        found.append(column)
    return found


def _encoded(name: str, values: Sequence[object]) -> dict[str, Any]:
    if all(value is None or _is_number(value) for value in values):
        return {"name": visible(name), "numbers": [_number(value) for value in values]}
    places: dict[str, int] = {}
    place = [
        -1 if text is None else places.setdefault(text, len(places)) for text in map(_text, values)
    ]
    return {"name": visible(name), "texts": list(places), "place": place}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _number(value: Any) -> float | int | None:  # noqa: ANN401 - a number, as checked before
    # Above it an integer may be too long for a float, and a browser would round it.
    if value is None or not abs(value) < LARGEST:
        return None
    return int(value) if isinstance(value, int | np.integer) else float(value)


def _text(value: object) -> str | None:
    missing = value is None or isinstance(value, bytes) or value == ""
    if missing or (isinstance(value, float | np.floating) and np.isnan(value)):
        return None
    if isinstance(value, np.datetime64) and np.isnat(value):
        return None
    return visible(value, LONGEST)


def _characters(column: Mapping[str, Any]) -> int:
    if "numbers" in column:
        return sum(len(repr(number)) + 1 for number in column["numbers"])
    return sum(len(text) + 3 for text in column["texts"]) + 5 * len(column["place"])
