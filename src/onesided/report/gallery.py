"""Thumbnails with their scores and names, as the report and the page of a ranking show them."""

from collections.abc import Iterable

import numpy as np
from markupsafe import Markup

from onesided.pages.render import render
from onesided.report.figures import thumbnail
from onesided.report.runfiles import RunFiles

# Together with the size of a thumbnail, this keeps the page under 5 MB for any run.
MOST_THUMBNAILS = 16

SMALL_IMAGE = 64
"""Pixels; up to this size an enlarged image keeps its pixels sharp, as people expect."""

GROUP_WORDS = {
    "top": ("Most likely positive", "The highest scores among the unlabelled items."),
    "threshold": ("Undecided", "Nearest to the threshold: a second look helps most here."),
    "bottom": ("Least likely positive", "The lowest scores among the unlabelled items."),
    "doubted": (
        "Labelled positives with low scores",
        "The model doubts these known positives: a rare kind, or a wrong label.",
    ),
}
"""Group of thumbnails to its title and note."""

NEXT = ("top", "threshold")
"""Groups that a person should look at next; the others are folded away below them."""

Item = tuple[str, float, np.ndarray | str | None]
"""Name, score from 0 to 1, and (H, W, C) of uint8 or a text; None for mere numbers."""


def gallery(items: Iterable[Item], *, ranked: bool = False) -> Markup:
    """Return the items as a list of pictures; `ranked` numbers them."""
    shown = [
        {
            "name": name,
            "last_part": name.rstrip("/").rpartition("/")[2] or name,
            "score": f"{score:.3f}",
            "picture": thumbnail(seen) if isinstance(seen, np.ndarray) else None,
            "text": seen if isinstance(seen, str) else None,
        }
        for name, score, seen in items
    ]
    return render("report/web/gallery.html", items=shown, ranked=ranked, small=SMALL_IMAGE)


def galleries(run: RunFiles) -> Markup:
    """Return the groups of items that a run chose to show; those to look at next come first."""
    groups: dict[str, list[tuple[str, str, str, Markup]]] = {"open": [], "folded": []}
    for group, some in run.thumbnails.items():
        seen = some.images[:MOST_THUMBNAILS]
        items = list[Item](zip(some.names, some.scores.tolist(), seen, strict=False))
        groups["open" if group in NEXT else "folded"].append(
            (group, *GROUP_WORDS[group], gallery(items))
        )
    return render("report/web/galleries.html", **groups) if run.thumbnails else Markup()
