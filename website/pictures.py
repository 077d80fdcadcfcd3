"""Pictures of PU learning for docs/concepts.md, drawn from numbers that are computed here."""

import io

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from onesided.priors import bbe

POSITIVE, UNLABELLED, NEGATIVE = "#0b6e63", "#8a8f94", "#c4572e"
PRIOR, LABELLED, POOL = 0.3, 60, 600


def draw_all() -> dict[str, bytes]:
    """Return each picture as SVG by its name, the same bytes every time."""
    return {"pool": _pool(), "scores": _scores(), "scar": _scar()}


def _clouds(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labelled positives, the pool, and who of the pool is positive, as points."""
    rng = np.random.default_rng(seed)
    truth = rng.random(POOL) < PRIOR
    pool = rng.normal(0, 1, (POOL, 2)) + np.where(truth[:, None], [1.4, 1.0], [-0.7, -0.5])
    labelled = rng.normal(0, 1, (LABELLED, 2)) + np.array([1.4, 1.0])
    return labelled, pool, truth


def _pool() -> bytes:
    labelled, pool, truth = _clouds()
    figure = Figure((8, 3.4), layout="constrained")
    seen, hidden = figure.subplots(1, 2, sharex=True, sharey=True)
    seen.scatter(*pool.T, s=10, color=UNLABELLED, label=f"unlabelled ({POOL})")
    seen.scatter(*labelled.T, s=18, color=POSITIVE, label=f"labelled positive ({LABELLED})")
    seen.set_title("What you have")
    hidden.scatter(*pool[~truth].T, s=10, color=NEGATIVE, label="negative")
    hidden.scatter(*pool[truth].T, s=10, color=POSITIVE, label=f"positive ({truth.sum()})")
    hidden.set_title("What the pool really is")
    for axes in (seen, hidden):
        axes.set(xticks=[], yticks=[])
        _legend_below(axes)
    return _svg(figure)


def _scores() -> bytes:
    labelled, pool, truth = _clouds()
    scores, known = (1 / (1 + np.exp(-(x @ [1.2, 0.9]))) for x in (pool, labelled))
    estimate = bbe(known, scores)
    figure = Figure((8, 3.2), layout="constrained")
    axes = figure.subplots()
    bins = np.linspace(0, 1, 31).tolist()
    axes.hist(
        scores[~truth], bins, color=NEGATIVE, alpha=0.75, label="negatives of the pool (hidden)"
    )
    axes.hist(
        scores[truth], bins, color=POSITIVE, alpha=0.75, label="positives of the pool (hidden)"
    )
    weights = np.full(LABELLED, PRIOR * POOL / LABELLED)
    axes.hist(
        known, bins, weights=weights, histtype="step", color="#111", lw=1.5,
        label="labelled positives, scaled to the prior",
    )  # fmt: skip
    axes.set(xlabel="score of a model", yticks=[])
    axes.set_title(
        f"The best scores of the pool tell its share of positives: BBE says "
        f"{estimate.value:.2f}, drawn with {PRIOR:.2f}",
        fontsize=10,
    )
    axes.legend(frameon=False)
    return _svg(figure)


def _scar() -> bytes:
    rng = np.random.default_rng(1)
    positives = rng.normal(0, 1, (400, 2))
    typical = rng.random(400) < 0.15
    chosen = rng.random(400) < 0.4 / (1 + np.exp(-6 * (positives[:, 0] - 0.5)))
    figure = Figure((8, 3.2), layout="constrained")
    for axes, drawn, title in zip(
        figure.subplots(1, 2, sharex=True, sharey=True),
        (typical, chosen),
        ("SCAR holds: any positive may be labelled", "SCAR fails: obvious ones are labelled first"),
        strict=True,
    ):
        axes.scatter(*positives[~drawn].T, s=10, color=UNLABELLED, label="positive, not labelled")
        axes.scatter(*positives[drawn].T, s=18, color=POSITIVE, label="positive, labelled")
        axes.set_title(title, fontsize=10)
        axes.set(xticks=[], yticks=[], xlabel="how obvious it is")
        _legend_below(axes, low=-0.12)
    return _svg(figure)


def _legend_below(axes: Axes, low: float = -0.02) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, low), ncols=2, frameon=False)


def _svg(figure: Figure) -> bytes:
    drawn = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "onesided"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()
