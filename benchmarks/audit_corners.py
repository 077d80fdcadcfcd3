"""Does an audit keep its promise where pools, scores and answers are odd?

    python -m benchmarks.audit_corners            some eight CPU-minutes
    python -m benchmarks.audit_corners --docs     write the page from the result file, run nothing

`benchmarks.audit` has pools of one size and models that rank. Here pools have 300 or 20,000 items,
of which 0.5 % or 70 % are positive; all scores are equal, or have five values, or rank worse than
chance; some or all answers are unsure. And P is typical: how often does the audit say that it is
not, if the pool has few positives and every item is answered?
"""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.audit import true_figures
from benchmarks.command import REPOSITORY
from benchmarks.origin import filled, origin
from benchmarks.tables import commit_words, markdown
from onesided.core.labels import UNKNOWN
from onesided.core.rng import numpy_generator
from onesided.metrics.audit import FIGURES, UNANSWERED, audit_estimate
from onesided.metrics.audit_design import audit_sample
from onesided.metrics.typical import compare_with_audit
from onesided.storage.atomic import read_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "audit_corners.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "audit_corners.md"
POOLS = 100
SIZES = {300: 120, 20_000: 200}
"""Items of a pool to how many are answered."""
PRIORS = (0.005, 0.7)
SCORES = ("good", "worse", "tied", "equal")
UNSURE = (0.0, 0.2, 1.0)
TYPICAL = ((300, 0.05, 100), (300, 0.3, 300), (1000, 0.03, 300), (1000, 0.2, 50))
"""Items of a pool, all answered; share of positives; size of P."""


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate what is missing, and print or write the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.audit_corners")
    options.add_argument("--pools", type=int, default=POOLS)
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    given = options.parse_args(argv)
    if not given.docs:
        head = {"name": "audit_corners", "origin": origin(), "pools": given.pools}
        asked = [*corners(), *(f"typical {number}" for number in range(len(TYPICAL)))]
        filled(RESULT, head, key="row", asked=asked, measure=partial(measured, given.pools))
    text = page(read_json(RESULT))
    print(text)
    if given.docs:
        write_text(PAGE, text)
    return 0


def corners() -> list[str]:
    """Return the names of the settings: items, prior, scores, share of unsure answers."""
    return [
        f"{items} {prior:g} {scores} {unsure:g}"
        for items in SIZES
        for prior in PRIORS
        for scores in SCORES
        for unsure in UNSURE
        if not unsure or scores == "good"
    ]


def measured(pools: int, row: str) -> dict[str, Any]:
    """Return how often intervals held, or how often a typical P was rejected."""
    if row.startswith("typical"):
        return {"row": row, **_typical(pools, *TYPICAL[int(row.split()[1])])}
    items, prior, scores, unsure = row.split()
    held: dict[str, list[bool]] = {name: [] for name in FIGURES}
    for number in range(pools):
        found = _one(number, int(items), float(prior), scores, float(unsure))
        for name, holds in found.items():
            held[name].append(holds)
    return {"row": row, "held": {name: [sum(each), len(each)] for name, each in held.items()}}


def _one(number: int, items: int, prior: float, kind: str, unsure: float) -> dict[str, bool]:
    """Return for each figure that is defined whether its interval held the truth."""
    random = numpy_generator(number, "audit corners", items, kind)
    truth = random.permutation(items) < max(1, round(prior * items))
    scores = _scores(kind, truth, random)
    threshold = 0.5 if kind == "equal" else float(np.quantile(scores, 1 - prior))
    draw = audit_sample(scores, size=SIZES[items], threshold=threshold, seed=number)
    answers = np.full(items, UNANSWERED)
    answers[draw.order] = truth[draw.order]
    answers[draw.order[random.random(len(draw.order)) < unsure]] = UNKNOWN
    (found,) = audit_estimate(scores, draw, answers, thresholds=[threshold])
    true = true_figures(truth, scores > threshold)
    held = {}
    for name, each in found.figures.items():
        value = true[name]
        if value is not None and each.low is not None and each.high is not None:
            held[name] = each.low - 1e-9 <= value <= each.high + 1e-9
    return held


def _scores(kind: str, truth: np.ndarray, random: np.random.Generator) -> np.ndarray:
    noise = random.standard_normal(len(truth))
    match kind:
        case "good":
            return np.asarray(expit(2 * (noise + 3 * truth - 2.5)))
        case "worse":
            return np.asarray(expit(noise - 2 * truth))
        case "tied":
            return np.asarray(np.round(4 * expit(noise + 2 * truth - 1)) / 4)
        case _:
            return np.full(len(truth), 0.4)


def _typical(pools: int, items: int, prior: float, labelled: int) -> dict[str, Any]:
    """Return how often a typical P is rejected after every item was answered."""
    rejected = made = 0
    for number in range(pools):
        random = numpy_generator(number, "typical by audit", items, labelled)
        truth = random.random(items) < prior
        scores = expit(random.standard_normal(items) + 1.5 * truth - 1)
        of_p = expit(random.standard_normal(labelled) + 0.5)
        threshold = float(np.quantile(scores, 1 - prior))
        draw = audit_sample(scores, size=items, threshold=threshold, seed=number)
        found = compare_with_audit(of_p, scores, draw, truth.astype(np.int64))
        made += found is not None
        rejected += found is not None and found.rejected
    return {"items": items, "prior": prior, "labelled": labelled, "made": made, "wrong": rejected}


def page(content: Mapping[str, Any]) -> str:
    """Return the page as Markdown."""
    rows = [row for row in content["rows"] if "held" in row]
    typical = [row for row in content["rows"] if "wrong" in row]
    return "\n".join(
        [
            "# Audits of odd pools",
            "",
            "<!-- python -m benchmarks.audit_corners --docs wrote this from the result file -->",
            "",
            f"{content['pools']} pools for each row. An interval counts as held if it held the "
            "truth at every look, and should in 95 %.",
            "Scores are good, worse than chance, tied (five values) or all equal; -: the figure is "
            "not defined.",
            "",
            markdown(
                ("items", "positive", "scores", "unsure", *FIGURES), [_row(row) for row in rows]
            ),
            "",
            "## Is P typical?",
            "",
            "P is typical, every item of the pool is answered. How often the audit says that P is "
            "not typical, which it should in at most 5 %:",
            "",
            markdown(
                ("items", "positive", "P", "rejected"),
                [
                    [
                        f"{row['items']:,}",
                        f"{row['prior']:.1%}",
                        str(row["labelled"]),
                        f"{row['wrong']} of {row['made']}",
                    ]
                    for row in typical
                ],
            ),
            "",
            f"Measured at {commit_words(content['origin'])}.",
            "",
        ]
    )


def _row(row: Mapping[str, Any]) -> list[str]:
    items, prior, scores, unsure = row["row"].split()
    held = [row["held"][name] for name in FIGURES]
    shares = [f"{some / of:.0%}" if of else "-" for some, of in held]
    return [f"{int(items):,}", f"{float(prior):.1%}", scores, f"{float(unsure):.0%}", *shares]


if __name__ == "__main__":
    raise SystemExit(main())
