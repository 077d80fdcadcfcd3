"""What changed between a run and the run that learned from its answers: `review.json`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from onesided.metrics.stored import read_figures
from onesided.review.session import Session

FILE = "review.json"
MOST_MOVED = 10
"""Items that are named because they rose most."""


def changes(
    session: Session, before: Mapping[str, Any], after: Mapping[str, Any], pool: Mapping[str, float]
) -> dict[str, Any]:
    """Return what a round of review changed.

    Args:
        session: The review of the run before.
        before: `result.json` of the run before.
        after: `result.json` of the run that learned from the answers.
        pool: Item to score of that run.
    """
    return {
        "answers": _answers(session),
        "agreement": [
            {**asdict(pair), "reviewers": list(pair.reviewers), "share": pair.share}
            for pair in session.agreement()
        ],
        "figures": _figures(before, after),
        "ranking": ranking(session.items, session.scores, pool, session.threshold),
    }


def _answers(session: Session) -> dict[str, Any]:
    done, settled = session.progress(), session.merged().settled()
    by_strategy: dict[str, dict[str, int]] = {}
    for each in settled.values():
        counts = by_strategy.setdefault(each.strategy or "unknown", {"answers": 0, "positive": 0})
        counts["answers"] += 1
        counts["positive"] += each.answer == "positive"
    return {
        **done.counts,
        "contested": done.contested,
        "reviewers": sorted({each.reviewer for each in session.answers()}),
        "seconds": round(done.seconds),
        "found_per_hour": done.found_per_hour,
        "by_strategy": by_strategy,
    }


def _figures(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return each figure of both runs, by its name."""
    old, new = read_figures(before), read_figures(after)
    return {
        name: {
            "before": old[name].to_json() if name in old else None,
            "after": new[name].to_json() if name in new else None,
        }
        for name in dict.fromkeys((*old, *new))
    }


def ranking(
    items: Sequence[str],
    scores: np.ndarray,
    pool: Mapping[str, float],
    threshold: float,
) -> dict[str, Any]:
    """Return how the items that are in both pools moved.

    `correlation` is Spearman's, of all of them; `kept` is how many of the `top`, which were called
    positive before, are among as many of the highest now.
    """
    common = [row for row, item in enumerate(items) if item in pool]
    old = scores[common]
    new = np.array([pool[items[row]] for row in common])
    if len(common) < 2 or np.ptp(old) == 0 or np.ptp(new) == 0:
        return {"common": len(common), "correlation": None, "top": 0, "kept": 0, "rose": []}
    place_before, place_after = _places(old), _places(new)
    top = int((old > threshold).sum())
    kept = int(((place_before < top) & (place_after < top)).sum())
    most = np.argsort(place_after - place_before, kind="stable")[:MOST_MOVED]
    rose = [
        {
            "item": items[common[place]],
            "before": int(place_before[place]) + 1,
            "after": int(place_after[place]) + 1,
        }
        for place in most.tolist()
        if place_after[place] < place_before[place]
    ]
    correlation = float(spearmanr(old, new).statistic)
    return {
        "common": len(common),
        "correlation": correlation,
        "top": top,
        "kept": kept,
        "rose": rose,
    }


def _places(scores: np.ndarray) -> np.ndarray:
    """Return the place of each item among all, from 0 on, the highest score first."""
    places = np.empty(len(scores), np.int64)
    places[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return places
