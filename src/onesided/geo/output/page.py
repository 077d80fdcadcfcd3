"""One web page that shows buildings on a map, coloured by their score.

Our own scripts draw the page on a canvas. It must open without a network, so a map library
would have to be embedded, and would be larger than the buildings. The page alone is a whole map;
sharp images lie in a folder beside it (`page_files`).
"""

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from onesided.core.errors import DataError
from onesided.geo.output.basemap import Basemap
from onesided.geo.output.colours import SCORE_COLOURS
from onesided.geo.output.packed import Rings, pack
from onesided.geo.output.page_attributes import encoded_attributes
from onesided.geo.output.page_files import PageFiles, remove_other_files, write_page_files
from onesided.geo.output.pyramid import Bounds, Pyramid
from onesided.pages.document import document
from onesided.storage.atomic import replacing

WEB = "geo/output/web"
"""Folder of the parts of the page, in the package."""
SCRIPTS = (
    "elements.js",
    "items.js",
    "tree.js",
    "camera.js",
    "colours.js",
    "graticule.js",
    "files.js",
    "images.js",
    "splat.js",
    "draw.js",
    "gestures.js",
    "compare.js",
    "orders.js",
    "decision.js",
    "table.js",
    "storage.js",
    "review.js",
    "additions.js",
    "saving.js",
    "filter.js",
    "list.js",
    "chips.js",
    "card.js",
    "main.js",
)
"""In this order they are one script: the later ones use what the earlier ones define."""

# JPEG, PNG, WebP; the browser script knows them by the same first bytes, in base64.
_PICTURE_STARTS = (b"\xff\xd8\xff", b"\x89PNG", b"RIFF")


@dataclass(frozen=True, slots=True)
class MapItem:
    """One building as the page shows it; a region has a hundred thousand."""

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
    base_before: tuple[bytes, Bounds] | None = None
    """The same before the event."""
    files: PageFiles = field(default_factory=PageFiles)
    """What lies beside the page: sharp images, or chips of all buildings."""
    attributes: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """Columns of the footprints, a value for each building."""
    basemap: Basemap | None = None
    """A map from the network that a person may switch on."""
    facts: Sequence[tuple[str, str]] = ()
    """Label and text of each figure, shown as they are."""
    warnings: Sequence[str] = ()


def write_map(page: MapPage, path: Path) -> str | None:
    """Write the page to `path`; if that fails, a page that was there before stays.

    The files beside the page go into a folder named by their content. So the old page keeps its
    own until the new one stands, and only then are they removed. Returns that folder, relative
    to the page; None where the page needs none.
    """
    _check(page)
    written = write_page_files(page.files, path)
    content = _rendered(page, written.name)
    with replacing(path) as file:
        file.write(content)
    remove_other_files(path, written.name)
    return written.name


def render(page: MapPage, *, folder: str | None = None) -> bytes:
    """Return the page as UTF-8, the same bytes for the same content.

    `folder` is where the files beside the page are, relative to it.
    """
    _check(page)
    return _rendered(page, folder)


def _rendered(page: MapPage, folder: str | None) -> bytes:
    data = _data(page, folder)
    text = document(
        f"{WEB}/page.html",
        title=page.title,
        style=f"{WEB}/style.css",
        scripts=[f"{WEB}/{name}" for name in SCRIPTS],
        loads_scripts=folder is not None,
        image_hosts=[page.basemap.host] if page.basemap else [],
        data=_inert_json(data),
        pictures="".join(_base64(picture) for picture in _pictures(page.items)),
        base=_base64(page.base[0] if page.base else None),
        base_before=_base64(page.base_before[0] if page.base_before else None),
    )
    # Names that are not Unicode carry lone surrogates; JSON reads these escapes back.
    return text.encode("utf-8", "backslashreplace")


def _check(page: MapPage) -> None:
    if not math.isfinite(page.threshold):
        raise DataError(f"The threshold of the map must be a number; got {page.threshold}.")
    bases = [base for base in (page.base, page.base_before) if base]
    for _, bounds in bases:
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
    for picture in (*(picture for picture, _ in bases), *_pictures(page.items)):
        if picture is not None and not picture.startswith(_PICTURE_STARTS):
            raise DataError(
                f"Pictures of the map must be JPEG, PNG or WebP; one starts with {picture[:8]!r}."
            )


def _pictures(items: Iterable[MapItem]) -> Iterable[bytes | None]:
    for item in items:
        yield item.before
        yield item.after


def _data(page: MapPage, folder: str | None) -> dict[str, object]:
    roles = _numbered(item.role for item in page.items)
    reasons = _numbered(item.reason for item in page.items if item.reason)
    shapes = pack([(item.name, item.rings) for item in page.items])
    return {
        "title": page.title,
        "threshold": page.threshold,
        "facts": list(page.facts),
        "warnings": list(page.warnings),
        "bounds": _bounds_near(shapes.middle, page.base[1]) if page.base else None,
        "bounds_before": (
            _bounds_near(shapes.middle, page.base_before[1]) if page.base_before else None
        ),
        "files": _files(page.files, folder, shapes.middle),
        "key": _key(page),
        "colours": SCORE_COLOURS,
        "attributes": encoded_attributes(page.attributes),
        "basemap": page.basemap.to_json() if page.basemap else None,
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


def _key(page: MapPage) -> str:
    """Return what tells this place from others, so that a browser keeps its answers apart.

    A map of the same buildings that is made again finds the answers that were given before.
    """
    digest = hashlib.sha256()
    for item in page.items:
        digest.update(f"{item.name}\x1e".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def _files(files: PageFiles, folder: str | None, middle: float) -> dict[str, object] | None:
    if folder is None:
        return None
    return {
        "folder": folder,
        "layers": {name: _layer(middle, each) for name, each in files.layers.items()},
        "chips": None if files.chips is None else files.chips.to_json(),
    }


def _layer(middle: float, pyramid: Pyramid) -> dict[str, object]:
    tiles: list[list[str]] = [[] for _ in range(pyramid.levels)]
    for tile in pyramid.tiles:
        tiles[tile.level].append(f"{tile.column}-{tile.row}")
    return {
        "bounds": _bounds_near(middle, pyramid.bounds),
        "width": pyramid.width / 2 ** (pyramid.all_levels - pyramid.levels),
        "height": pyramid.height / 2 ** (pyramid.all_levels - pyramid.levels),
        "tiles": tiles,
        "sharp": pyramid.is_sharp,
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
