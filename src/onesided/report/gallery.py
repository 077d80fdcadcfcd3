"""Thumbnails with their scores and names, as the report and the page of a ranking show them."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from onesided.pages.render import render
from onesided.report.figures import Thumbnail, thumbnail
from onesided.report.runfiles import RunFiles
from onesided.report.wording import THUMBNAIL_WORDS, visible

# Together with the size of a thumbnail, this keeps the page under 5 MB for any run.
MOST_THUMBNAILS = 16

SMALL_IMAGE = 64
"""Pixels; up to this size enlarging keeps the pixels sharp, as people who know them expect."""


@dataclass(frozen=True)
class GalleryItem:
    """One item as a gallery shows it."""

    name: str
    last_part: str
    score: str
    caption: str
    picture: Thumbnail | None

    @property
    def tiny(self) -> bool:
        """Whether the picture is so small that its pixels stay sharp."""
        return self.picture is not None and self.picture.longer_side <= SMALL_IMAGE


def gallery_item(
    name: str, score: float, pixels: np.ndarray | None, *, place: int | None = None
) -> GalleryItem:
    """Return an item to be shown.

    Args:
        name: Path or name; the last part of it stands below the picture.
        score: Between 0 and 1.
        pixels: Height, width, channels of uint8; None for items that are no pictures.
        place: Rank to be shown before the score.
    """
    last_part = name.rstrip("/").rpartition("/")[2] or name
    return GalleryItem(
        name=visible(name),
        last_part=visible(last_part, 80),
        score=f"{score:.3f}",
        caption=f"{score:.3f}" if place is None else f"{place} · {score:.3f}",
        picture=None if pixels is None else thumbnail(pixels),
    )


def gallery(items: Iterable[GalleryItem]) -> Markup:
    """Return the items as a list of pictures."""
    return render("report/web/gallery.html", items=items)


def galleries(run: RunFiles) -> Markup:
    """Return the groups of items that a run chose as telling."""
    groups = []
    for group, some in run.thumbnails.items():
        title, note = THUMBNAIL_WORDS[group]
        shown = zip(some.names, some.scores.tolist(), some.images[:MOST_THUMBNAILS], strict=False)
        items = [gallery_item(*item) for item in shown]
        groups.append({"title": title, "note": note, "gallery": gallery(items)})
    return render("report/web/galleries.html", groups=groups)
