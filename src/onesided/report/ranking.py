"""A page of thumbnails: the first items of a ranking, for eyes instead of a spreadsheet."""

from collections.abc import Sequence
from importlib.resources import files as package_files
from pathlib import Path

import numpy as np

from onesided.data.read.picture import shown_channels
from onesided.report import figures
from onesided.report.wording import shown
from onesided.storage.atomic import write_text

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="onesided">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<header>
<p class="kicker"><b>onesided</b> ranking · <bdi>{title}</bdi></p>
<h1>{headline}</h1>
<p class="lede">{lede}</p>
</header>
<main>
<ul class="thumbs">{items}</ul>
</main>
<footer><p>Made by onesided. This page is one file and loads nothing from the network.</p></footer>
</body>
</html>
"""
# Up to this size enlarging keeps the pixels sharp, as people who know them expect.
SMALL_IMAGE = 64

Item = tuple[str, float, np.ndarray | None]
"""Name, score, and (C, H, W) of uint8 or None."""


def write_ranking_page(
    path: Path, *, title: str, headline: str, lede: str, items: Sequence[Item]
) -> None:
    """Write one self-contained page, complete or not at all; every text is escaped."""
    page = PAGE.format(
        title=shown(title),
        headline=shown(headline),
        lede=shown(lede, 1000),
        style=package_files("onesided.report").joinpath("style.css").read_text("utf-8"),
        items="".join(_item(place, *item) for place, item in enumerate(items, start=1)),
    )
    write_text(path, page)


def _item(place: int, name: str, score: float, picture: np.ndarray | None) -> str:
    last_part = name.rstrip("/").rpartition("/")[2] or name
    told = (
        f'<span class="score">{place} · {score:.3f}</span>'
        f'<bdi title="{shown(name)}">{shown(last_part, 80)}</bdi>'
    )
    if picture is None:
        return f"<li>{told}</li>"
    pixels = picture[shown_channels(len(picture))].transpose(1, 2, 0)
    image = figures.thumbnail(np.ascontiguousarray(pixels))
    small = ' class="tiny"' if max(image.width, image.height) <= SMALL_IMAGE else ""
    return (
        f'<li><img{small} src="{image.address}" width="{image.width}" height="{image.height}"'
        f' alt="{shown(name)}, score {score:.3f}">{told}</li>'
    )
