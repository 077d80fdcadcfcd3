"""A page of thumbnails: the first items of a ranking, for eyes instead of a spreadsheet."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from onesided.data.read.picture import shown_channels
from onesided.pages.document import document
from onesided.report.gallery import gallery, gallery_item
from onesided.report.wording import visible
from onesided.storage.atomic import write_text

Item = tuple[str, float, np.ndarray | None]
"""Name, score, and (C, H, W) of uint8 or None."""


def write_ranking_page(
    path: Path, *, title: str, headline: str, lede: str, items: Sequence[Item]
) -> None:
    """Write one self-contained page, complete or not at all; every text is escaped."""
    page = document(
        "report/web/ranking.html",
        title=visible(title),
        style="report/web/style.css",
        headline=visible(headline),
        lede=visible(lede, 1000),
        gallery=gallery(
            gallery_item(name, score, _pixels(picture), place=place)
            for place, (name, score, picture) in enumerate(items, start=1)
        ),
    )
    write_text(path, page)


def _pixels(picture: np.ndarray | None) -> np.ndarray | None:
    """Return (H, W, 1 or 3) of the channels that can be shown."""
    if picture is None:
        return None
    return np.ascontiguousarray(picture[shown_channels(len(picture))].transpose(1, 2, 0))
