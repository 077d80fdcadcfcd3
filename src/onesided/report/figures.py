"""Plots as SVG and thumbnails as PNG, both as text for a page.

Colours are CSS variables of the page, so that one plot serves light and dark screens. No
text that comes from a file is drawn: names stand in the page around the plot, where they
are escaped, selectable and wrapped.
"""

import base64
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib.style
import numpy as np
from jaxtyping import Float, UInt8
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from PIL import Image

from onesided.metrics.reliability import Reliability
from onesided.report.runfiles import Embedding

# Matplotlib knows no CSS variables: these colours are replaced once the SVG is text.
INK, FAINT, ACCENT, KNOWN, STRONG = "#010201", "#010202", "#010203", "#010204", "#010205"
VARIABLES = {
    INK: "var(--muted)",
    FAINT: "var(--rule)",
    ACCENT: "var(--accent)",
    KNOWN: "var(--known)",
    STRONG: "var(--ink)",
}

STYLE = {
    "svg.fonttype": "none",  # text stays text: it can be read aloud, selected and searched
    "svg.hashsalt": "onesided",  # otherwise ids are random, and no two pages are equal
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 7.5,
    "text.parse_math": False,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.6,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "xtick.major.size": 2.5,
    "ytick.labelcolor": INK,
    "ytick.color": FAINT,
    "ytick.major.size": 0.0,
    "lines.linewidth": 1.3,
}

THUMBNAIL_SIDE = 104
"""Pixels; 64 thumbnails of this size stay below 2.8 MB even if they are pure noise."""

MOST_POINTS = 2000
"""Points drawn in a scatter plot (90 bytes each) and, halved, along a curve."""


@dataclass(frozen=True)
class Thumbnail:
    """An image as a `data:` address, with the size in pixels it really has."""

    address: str
    width: int
    height: int


@contextmanager
def canvas(width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """Give a figure of this size in inches, in the style of all pages."""
    # "default" first: a user's own matplotlibrc must not change the page.
    with matplotlib.style.context(["default", STYLE]):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.add_subplot()


def curve(
    values: Sequence[float | None],
    *,
    name: str,
    description: str,
    reference: float | None = None,
    stage_starts: Sequence[int] = (),
    percent: bool = False,
) -> Markup:
    """Draw one value per epoch as an SVG; epochs without a value are left out.

    Args:
        name: Prefix of all ids in the SVG; unique within the page.
        description: The plot in words, for a person who cannot see it.
        reference: Where to draw a dashed horizontal line.
        stage_starts: Epochs, from 1, at which a new stage of training began.
        percent: Whether the values are shares of 1.
    """
    with canvas(3.1, 1.75) as (figure, axes):
        known = [(epoch, value) for epoch, value in enumerate(values, 1) if value is not None]
        step = -(-len(known) // (MOST_POINTS // 2)) or 1
        epochs, heights = np.array(known, dtype=float).reshape(-1, 2)[::step].T
        axes.plot(epochs, heights, color=ACCENT, marker="o" if len(known) < 3 else "", ms=3.5)
        if reference is not None:
            axes.axhline(reference, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
        for start in stage_starts:
            axes.axvline(start - 0.5, color=INK, linewidth=0.7, linestyle=(0, (1, 2)))
        axes.set_xlabel("epoch")
        axes.set_xlim(1 if len(values) > 1 else 0, max(2, len(values)))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.margins(y=0.12)
        if percent:
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
            axes.set_ylim(bottom=0.0)
        return as_text(figure, name, description)


def histogram(
    positive: Float[np.ndarray, "p"] | None,
    unlabelled: Float[np.ndarray, "u"],
    *,
    name: str,
    description: str,
    threshold: float | None,
) -> Markup:
    """Draw how the scores of P and U are spread, each group adding up to 100 %.

    The height is the square root of the share: most scores of a trained network lie at
    both ends, and on a linear scale nothing else could be seen.
    """
    groups = [(unlabelled, INK, 0.22)]
    if positive is not None:
        groups.append((positive, KNOWN, 0.25))
    with canvas(3.8, 2.2) as (figure, axes):
        edges = _edges(np.concatenate([scores for scores, _, _ in groups]))
        for scores, colour, strength in groups:
            counts, _ = np.histogram(scores[np.isfinite(scores)], edges)
            shares = counts / max(1, counts.sum())
            axes.stairs(shares, edges, fill=True, color=colour, alpha=strength, linewidth=0)
            axes.stairs(shares, edges, color=colour, linewidth=1.1)
        axes.set_ylim(bottom=0.0)  # before the scale, which has no room below zero
        axes.set_yscale("function", functions=(np.sqrt, np.square))
        axes.set_yticks(_share_ticks(axes.get_ylim()[1]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
        axes.set_xlim(edges[0], edges[-1])
        axes.set_xlabel("score")
        if threshold is not None:
            axes.axvline(threshold, color=STRONG, linewidth=1.1, linestyle=(0, (4, 3)))
        return as_text(figure, name, description)


def reliability_plot(found: Reliability, *, name: str, description: str) -> Markup:
    """Draw the share of positives over the probability of each bin, beside the diagonal."""
    with canvas(3.8, 2.6) as (figure, axes):
        axes.plot([0, 1], [0, 1], color=STRONG, linewidth=1.0, linestyle=(0, (4, 3)))
        for each in found.bins:
            axes.plot([each.probability] * 2, [each.low, each.high], color=INK, linewidth=1.0)
            axes.plot(each.probability, each.share, marker="o", ms=4.0, color=ACCENT)
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        for axis, label in ((axes.xaxis, "probability"), (axes.yaxis, "share that is positive")):
            axis.set_major_formatter(PercentFormatter(1.0))
            axis.set_label_text(label)
        return as_text(figure, name, description)


def scatter(embedding: Embedding, *, name: str, description: str) -> Markup:
    """Draw the embedding; the roles differ in shape as well as in colour."""
    step = -(-len(embedding.points) // MOST_POINTS)
    points, roles = embedding.points[::step], embedding.roles[::step]
    looks = {0: ("o", 2.5, INK, 0.45), 2: ("o", 7.0, ACCENT, 0.8), 1: ("^", 9.0, KNOWN, 1.0)}
    with canvas(3.8, 2.6) as (figure, axes):
        for role, (marker, size, colour, opacity) in looks.items():
            x, y = points[roles == role].T
            hollow = "none" if role == 2 else colour
            axes.scatter(
                x, y, s=size, marker=marker, c=hollow, edgecolors=colour, lw=0.6, alpha=opacity
            )
        axes.set_axis_off()
        return as_text(figure, name, description)


def thumbnail(image: UInt8[np.ndarray, "height width channels"]) -> Thumbnail:
    """Encode an image as PNG, no larger than a page shows it."""
    picture = Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)
    picture.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE), Image.Resampling.LANCZOS)
    encoded = io.BytesIO()
    picture.save(encoded, format="PNG", optimize=True)
    text = base64.b64encode(encoded.getvalue()).decode("ascii")
    return Thumbnail(f"data:image/png;base64,{text}", *picture.size)


def _edges(scores: Float[np.ndarray, "n"]) -> Float[np.ndarray, "bins"]:
    finite = scores[np.isfinite(scores)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    return np.linspace(low, high if high > low else low + 1, 41)


def _share_ticks(highest: float) -> list[float]:
    ladder = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0]
    return [0.0, *[share for share in ladder if 0.015 * highest <= share <= highest]]


def as_text(figure: Figure, name: str, description: str) -> Markup:
    """Return the SVG element: no prologue, own ids, colours of the page, short numbers."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    head, _, body = buffer.getvalue().partition("<svg")[2].partition(">")
    view_box = re.findall(r'viewBox="([^"]*)"', head)[0]
    body = body.rpartition("</svg>")[0]
    # This rule would reach beyond the SVG and style the whole page.
    body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = body.replace("url(#", f"url(#{name}-").replace('xlink:href="#', f'href="#{name}-')
    body = re.sub(r' (?:d|x|y|transform)="[^"]*"', _rounded, body)
    for colour, variable in VARIABLES.items():
        body = body.replace(colour, variable)
    element = '<svg class="plot" viewBox="{}" role="img" aria-label="{}">{}</svg>'
    return Markup(element).format(view_box, description, Markup(body))


def _rounded(attribute: re.Match[str]) -> str:
    return re.sub(r"\d+\.\d+", lambda match: f"{float(match[0]):.2f}", attribute[0])
