"""One self-contained web page that shows buildings on a map, coloured by their score.

Our own scripts draw the page on a canvas. It must open without a network, so a map library
would have to be embedded, and would be larger than the buildings.
"""

import base64
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from onesided.core.errors import DataError
from onesided.geo.output.packed import Rings, pack
from onesided.pages.document import document
from onesided.storage.atomic import replacing

WEB = "geo/output/web"
"""Folder of the parts of the page, in the package."""
SCRIPTS = (
    "elements.js",
    "items.js",
    "camera.js",
    "colours.js",
    "graticule.js",
    "draw.js",
    "gestures.js",
    "decision.js",
    "review.js",
    "list.js",
    "card.js",
    "main.js",
)
"""In this order they are one script: the later ones use what the earlier ones define."""

# JPEG, PNG, WebP; the browser script knows them by the same first bytes, in base64.
_PICTURE_STARTS = (b"\xff\xd8\xff", b"\x89PNG", b"RIFF")

Bounds = tuple[float, float, float, float]
"""West, south, east, north in degrees; east < west crosses the antimeridian."""


@dataclass(frozen=True)
class MapItem:
    """One building as the page shows it."""

    name: str
    rings: Rings
    """Without any, the building is listed but not drawn."""
    score: float | None
    """None where the building was skipped."""
    rank: int | None
    role: str
    """"positive", "unlabelled", or either after "held-out"."""
    reason: str | None = None
    """Why the building has no score."""
    before: bytes | None = None
    """Small JPEG, PNG or WebP of the building before the event; `after` likewise."""
    after: bytes | None = None


@dataclass(frozen=True)
class MapPage:
    """Everything the page shows."""

    title: str
    items: Sequence[MapItem]
    threshold: float
    """A building is called damaged where its score is greater."""
    base: tuple[bytes, Bounds] | None = None
    """JPEG, PNG or WebP under the buildings, north up, rows evenly spaced in Web Mercator; and
    what it covers, to the outer edges of its pixels."""
    facts: Sequence[tuple[str, str]] = ()
    """Label and text of each figure, shown as they are."""
    warnings: Sequence[str] = ()


def write_map(page: MapPage, path: Path) -> None:
    """Write the page to `path`; if that fails, a page that was there before stays."""
    content = render(page)
    with replacing(path) as file:
        file.write(content)


def render(page: MapPage) -> bytes:
    """Return the page as UTF-8, the same bytes for the same content."""
    _check(page)
    text = document(
        f"{WEB}/page.html",
        title=page.title,
        style=f"{WEB}/style.css",
        scripts=[f"{WEB}/{name}" for name in SCRIPTS],
        data=_inert_json(_data(page)),
        pictures="".join(_base64(picture) for picture in _pictures(page.items)),
        base=_base64(page.base[0] if page.base else None),
    )
    # Names that are not Unicode carry lone surrogates; JSON reads these escapes back.
    return text.encode("utf-8", "backslashreplace")


def _check(page: MapPage) -> None:
    if not math.isfinite(page.threshold):
        raise DataError(f"The threshold of the map must be a number; got {page.threshold}.")
    base, bounds = page.base or (None, None)
    if bounds is not None:
        west, south, east, north = bounds
        if not (-90 <= south < north <= 90 and -180 <= west <= 360 and -180 <= east <= 360):
            raise DataError(
                "The bounds of the image under the map must be west, south, east, north in "
                f"degrees; got {bounds}. Reproject them to EPSG:4326."
            )
    for item in page.items:
        if item.score is not None and not math.isfinite(item.score):
            raise DataError(
                f"The score of {item.name!r} must be a number, or None if it was skipped; "
                f"got {item.score}."
            )
    for picture in (base, *_pictures(page.items)):
        if picture is not None and not picture.startswith(_PICTURE_STARTS):
            raise DataError(
                f"Pictures of the map must be JPEG, PNG or WebP; one starts with {picture[:8]!r}."
            )


def _pictures(items: Iterable[MapItem]) -> Iterable[bytes | None]:
    for item in items:
        yield item.before
        yield item.after


def _data(page: MapPage) -> dict[str, object]:
    roles = _numbered(item.role for item in page.items)
    reasons = _numbered(item.reason for item in page.items if item.reason)
    shapes = pack([(item.name, item.rings) for item in page.items])
    return {
        "title": page.title,
        "threshold": page.threshold,
        "facts": list(page.facts),
        "warnings": list(page.warnings),
        "bounds": _bounds_near(shapes.middle, page.base[1]) if page.base else None,
        "names": [item.name for item in page.items],
        "scores": [None if item.score is None else float(item.score) for item in page.items],
        "ranks": [None if item.rank is None else int(item.rank) for item in page.items],
        "roles": list(roles),
        "role": [roles[item.role] for item in page.items],
        "reasons": list(reasons),
        "reason": [reasons[item.reason] if item.reason else -1 for item in page.items],
        "rings": shapes.rings,
        "steps": shapes.steps,
        "pictures": [(len(picture or b"") + 2) // 3 * 4 for picture in _pictures(page.items)],
    }


def _numbered(texts: Iterable[str]) -> dict[str, int]:
    """Return each different text with its number, in the order of first use."""
    return {text: number for number, text in enumerate(dict.fromkeys(texts))}


def _inert_json(value: object) -> Markup:
    """Return JSON that cannot end the script element or a line of it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _base64(content: bytes | None) -> str:
    return "" if content is None else base64.b64encode(content).decode("ascii")


def _bounds_near(middle: float, bounds: Bounds) -> Bounds:
    """Return the bounds of the image, shifted by whole turns to where the buildings are."""
    west, south, east, north = bounds
    east += 360 * (east < west)
    turns = round((middle - (west + east) / 2) / 360)
    return west + 360 * turns, south, east + 360 * turns, north
