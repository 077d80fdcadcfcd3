"""A page of thumbnails: the first items of a ranking, to be looked at."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from onesided.data.read.picture import shown_channels
from onesided.pages.document import document
from onesided.report.gallery import Item, gallery
from onesided.storage.atomic import write_text


def write_ranking_page(
    path: Path, *, title: str, headline: str, lede: str, items: Iterable[Item]
) -> None:
    """Write one self-contained page, complete or not at all; pictures are texts or (C, H, W)."""
    shown = ((name, score, _pixels(picture)) for name, score, picture in items)
    page = document(
        "report/web/ranking.html",
        title=title,
        style="report/web/style.css",
        headline=headline,
        lede=lede,
        gallery=gallery(shown, ranked=True),
    )
    write_text(path, page)


def _pixels(picture: np.ndarray | str | None) -> np.ndarray | str | None:
    """Return (H, W, 1 or 3) of the channels that can be shown; a text stays what it is."""
    if picture is None or isinstance(picture, str):
        return picture
    return np.ascontiguousarray(picture[shown_channels(len(picture))].transpose(1, 2, 0))
