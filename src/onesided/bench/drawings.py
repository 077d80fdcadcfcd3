"""Figures of a suite as SVG: curves, sweeps, maps of features, formulas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from onesided.core.labels import POSITIVE
from onesided.losses.alignment import class_alignment_loss, robust_alignment_loss
from onesided.report.figures import ACCENT, INK, KNOWN, STRONG, as_text, canvas

LOOKS = (
    (ACCENT, "-"),
    (KNOWN, "--"),
    (STRONG, ":"),
    (INK, "-."),
    (ACCENT, ":"),
    (KNOWN, "-"),
)
"""Colour and dash of each line: nothing is told by colour alone."""
THRESHOLDS = (0.2, 0.5, 0.8)


@dataclass(frozen=True)
class Line:
    """One line of a plot."""

    title: str
    x: Sequence[float]
    y: Sequence[float]


def lines(
    drawn: Sequence[Line],
    *,
    name: str,
    description: str,
    across: str,
    up: str,
    marked: bool = False,
    even: bool = False,
) -> Markup:
    """Draw lines with a legend.

    Args:
        name: Prefix of all ids in the SVG; unique within the page.
        description: The plot in words, for a person who cannot see it.
        across: Label of the horizontal axis.
        up: Label of the vertical axis.
        marked: Whether the points themselves are shown.
        even: Whether values of x are placed at even distances, as in a sweep.
    """
    with canvas(4.2, 2.5) as (figure, axes):
        for number, line in enumerate(drawn):
            colour, dash = LOOKS[number % len(LOOKS)]
            x = list(range(len(line.x))) if even else line.x
            marker = "o" if marked or len(line.x) < 3 else ""
            axes.plot(
                x, line.y, color=colour, linestyle=dash, label=line.title, marker=marker, ms=3
            )
        if even and drawn:
            axes.set_xticks(range(len(drawn[0].x)), [f"{value:g}" for value in drawn[0].x])
        else:
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=across == "epoch"))
        _finish(axes, across, up)
        if len(drawn) > 1:
            axes.legend(frameon=False, labelcolor=INK)
        return as_text(figure, name, description)


def feature_map(
    points: Sequence[tuple[float, float, int]], *, name: str, description: str
) -> Markup:
    """Draw a map of features by true class: positives as triangles, negatives as dots."""
    found = np.array(points, dtype=float).reshape(-1, 3)
    positive = found[:, 2] == POSITIVE
    with canvas(2.4, 2.1) as (figure, axes):
        for rows, size, marker, colour in ((~positive, 2.5, "o", INK), (positive, 5, "^", ACCENT)):
            x, y = found[rows, 0], found[rows, 1]
            axes.scatter(x, y, s=size, marker=marker, c=colour, lw=0, alpha=0.7)
        axes.set_axis_off()
        return as_text(figure, name, description)


def chosen_pairs(*, name: str) -> Markup:
    """Draw which pairs are aligned: f f' + (1 - f)(1 - f') at least the threshold."""
    side = np.linspace(0, 1, 101)
    left, right = np.meshgrid(side, side)
    similarity = pair_similarity(left, right)
    with canvas(4.2, 3.0) as (figure, axes):
        axes.contourf(left, right, similarity, levels=[0, *THRESHOLDS, 1.01], alpha=0)
        for threshold, (colour, dash) in zip(THRESHOLDS, LOOKS, strict=False):
            axes.contour(
                left, right, similarity, levels=[threshold], colors=[colour], linestyles=dash
            )
            axes.plot([], [], color=colour, linestyle=dash, label=f"threshold {threshold:g}")
        axes.legend(frameon=False, labelcolor=INK, loc="upper center", ncols=3)
        _finish(axes, "p(negative) of one sample", "of the other")
        axes.set_ylim(0, 1.15)
        words = (
            "Borders of the pairs that a threshold admits. At one half, both samples have the "
            "same predicted class; a lower threshold admits more pairs."
        )
        return as_text(figure, name, words)


def pair_similarity(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the inner product of two softmax outputs of two classes."""
    similarity: np.ndarray = one * other + (1 - one) * (1 - other)
    return similarity


def gradient_lines() -> list[Line]:
    """Return the squared gradient of L_r and of NoiSNCL against similarity, for unit vectors."""
    cosines = np.linspace(0.01, 0.99, 50)
    plain, robust = [], []
    for cosine in cosines:
        plain.append(_squared_gradient(float(cosine), robust=False))
        robust.append(_squared_gradient(float(cosine), robust=True))
    return [Line("L_r", cosines.tolist(), plain), Line("L~_r", cosines.tolist(), robust)]


def _squared_gradient(cosine: float, *, robust: bool) -> float:
    query = torch.tensor([[1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    key = torch.tensor([[cosine, (1 - cosine**2) ** 0.5]], dtype=torch.float64)
    pair = torch.ones(1, 1, dtype=torch.bool)
    loss = robust_alignment_loss if robust else class_alignment_loss
    (gradient,) = torch.autograd.grad(loss(query, key, pair), query)
    return float(gradient.square().sum())


def _finish(axes: Axes, across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.margins(y=0.1)


def averaged(
    curves: Sequence[Mapping[str, Sequence[float]]], which: str
) -> tuple[list[float], list[float]]:
    """Return epochs and the mean of several seeds' curves, at the epochs that all have."""
    common = sorted(set.intersection(*(set(curve["epoch"]) for curve in curves)))
    heights = []
    for epoch in common:
        at = [curve[which][list(curve["epoch"]).index(epoch)] for curve in curves]
        heights.append(100 * float(np.mean(at)))
    return [float(epoch) for epoch in common], heights
