"""Do the intervals of an audit hold, whatever the model, and what does the stratified draw save?

    python -m benchmarks.audit            200 simulated pools, some two CPU-minutes
    python -m benchmarks.audit --docs     write the page from the result file, run nothing

A pool has 5,000 items, few or many positives, and scores of a good or a bad model. In half of the
pools P was biased: half of the positives are of a kind that P never showed, and score like
negatives. 200 items are answered. The money of the gamblers is followed over all answers, so an
interval that holds the truth at the end held it at every look.
"""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.command import REPOSITORY
from benchmarks.origin import filled, origin
from benchmarks.tables import commit_words, markdown
from onesided.core.rng import numpy_generator
from onesided.metrics.audit import FIGURES, UNANSWERED, Estimate, audit_estimate
from onesided.metrics.audit_design import AuditDesign, audit_sample
from onesided.metrics.intervals import clopper_pearson
from onesided.storage.atomic import read_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "audit.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "audit.md"
POOLS, ITEMS, SIZE, LABELLED = 200, 5000, 200, 100
Ends = tuple[float, float] | None


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate what is missing, and print or write the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.audit")
    options.add_argument("--pools", type=int, default=POOLS)
    options.add_argument("--docs", action="store_true", help="write the page; run nothing")
    given = options.parse_args(argv)
    if not given.docs:
        head = {"name": "audit", "origin": origin(), "items": ITEMS, "size": SIZE}
        filled(RESULT, head, key="number", asked=range(given.pools), measure=simulated)
    text = page(read_json(RESULT))
    print(text)
    if given.docs:
        write_text(PAGE, text)
    return 0


def simulated(number: int) -> dict[str, Any]:
    """Return intervals and truth of one pool."""
    random = numpy_generator(number, "audit benchmark")
    many, good, biased = (bool(number >> bit & 1) for bit in range(3))
    prior = random.uniform(0.1, 0.4) if many else random.uniform(0.01, 0.05)
    gap = random.uniform(2.5, 3.5) if good else random.uniform(0.3, 1.2)
    truth = random.random(ITEMS) < prior
    hidden = truth & (random.random(ITEMS) < 0.5) if biased else np.zeros(ITEMS, bool)
    seen = random.standard_normal(ITEMS) + gap * (truth & ~hidden)
    # Networks are too sure: the slope is half to three times the right one.
    odds = gap * seen - gap**2 / 2 + math.log(prior / (1 - prior))
    scores = expit(random.uniform(0.5, 3) * odds + random.uniform(-2, 2))
    threshold = float(np.quantile(scores, 1 - prior))
    called = scores > threshold
    labelled = random.standard_normal(LABELLED) + gap  # scores of P, on the scale of `seen`
    found = int((labelled > np.sort(seen)[::-1][int(called.sum()) - 1]).sum())
    stratified = {}
    for target in FIGURES:
        draw = audit_sample(scores, size=SIZE, threshold=threshold, target=target, seed=number)
        stratified[target] = _intervals(scores, draw, truth, threshold)
    rows = random.permutation(ITEMS)[:SIZE]
    plain = AuditDesign(np.zeros(ITEMS, np.int64), np.ones(1), rows, 0)
    return {
        "number": number,
        **{"many": many, "good": good, "biased": biased},
        "true": true_figures(truth, called),
        "stratified": {name: stratified[name][name] for name in FIGURES},
        "for_f1": stratified["f1"],
        "plain": _intervals(scores, plain, truth, threshold),
        "one_look": _one_look(truth[rows], called[rows]),
        "recall_by_p": list(clopper_pearson(found, LABELLED)),
    }


def true_figures(truth: np.ndarray, called: np.ndarray) -> dict[str, float | None]:
    """Return the figures of a pool whose classes are known; None where one is not defined."""
    above, both = int((truth & called).sum()), int(truth.sum())
    return {
        "precision": above / int(called.sum()) if called.any() else None,
        "recall": above / both if both else None,
        "f1": 2 * above / (int(called.sum()) + both),
        "positives": both,
        "left": both - above,
    }


def _intervals(
    scores: np.ndarray, design: AuditDesign, truth: np.ndarray, threshold: float
) -> dict[str, Any]:
    answers = np.full(ITEMS, UNANSWERED)
    answers[design.order] = truth[design.order]
    (found,) = audit_estimate(scores, design, answers, thresholds=[threshold])
    return {name: _ends(each) for name, each in found.figures.items()}


def _ends(figure: Estimate) -> Ends:
    return None if figure.low is None or figure.high is None else (figure.low, figure.high)


def _one_look(truth: np.ndarray, called: np.ndarray) -> dict[str, Any]:
    """Return textbook intervals of a plain random sample: exact, but for one look only."""
    above, below = int((truth & called).sum()), int((truth & ~called).sum())
    either = int((truth | called).sum())

    def share(part: int, whole: int) -> Sequence[float]:
        return clopper_pearson(part, whole) if whole else (0.0, 1.0)

    return {
        "precision": share(above, int(called.sum())),
        "recall": share(above, above + below),
        "f1": [2 * end / (1 + end) for end in share(above, either)],
        "positives": [end * ITEMS for end in share(above + below, SIZE)],
        "left": [end * ITEMS for end in share(below, SIZE)],
    }


def page(content: Mapping[str, Any]) -> str:
    """Return the page as Markdown."""
    runs = content["rows"]
    needed = 0.95 - 2 * math.sqrt(0.95 * 0.05 / len(runs))
    held = [[name, *(f"{_coverage(runs, kind, name):.1%}" for kind in KINDS)] for name in FIGURES]
    lengths = [
        [words, *(f"{_shorter(part, name, than, kind):.2f}" for name in FIGURES)]
        for words, than, kind, keep in PARTS
        for part in ([run for run in runs if keep(run)],)
    ]
    by_p = [
        [words, f"{np.mean([_in(run['recall_by_p'], run['true']['recall']) for run in part]):.1%}"]
        for words, biased in (("typical", False), ("biased", True))
        for part in ([run for run in runs if run["biased"] is biased],)
    ]
    columns = (
        *("figure", "drawn for this figure", "drawn for F1"),
        *("plain random sample", "plain, one look only"),
    )
    return "\n".join(
        [
            "# Intervals of an audit",
            "",
            "<!-- python -m benchmarks.audit --docs wrote this from results/audit.json -->",
            "",
            f"{len(runs)} simulated pools of {content['items']} items: few (1 to 5 %) or many "
            "(10 to 40 %) positives, a good",
            "or a bad model, P typical or biased (half of the positives are of a kind that P never "
            f"showed). {content['size']}",
            "items are answered. An interval counts as held if it held the truth at every look, "
            f"and should in 95 %; with {len(runs)}",
            f"pools, {needed:.1%} is two standard errors below that. The last column are "
            "Clopper-Pearson intervals of a plain",
            "random sample, which may be looked at once.",
            "",
            markdown(columns, held),
            "",
            "Length of the stratified audit's interval over that of a plain random sample of the "
            "same size (median",
            "over pools; below 1 is shorter). Each figure has its own draw, but in the last row.",
            "",
            markdown(("pools, compared with", *FIGURES), lengths),
            "",
            "What held-out positives alone say of recall (Clopper-Pearson on "
            f"{LABELLED} of them) held the truth:",
            "",
            markdown(("P is", "held"), by_p),
            "",
            f"Measured at {commit_words(content['origin'])}.",
            "",
        ]
    )


KINDS = ("stratified", "for_f1", "plain", "one_look")
Keep = Callable[[Mapping[str, Any]], bool]
PARTS: tuple[tuple[str, str, str, Keep], ...] = (
    ("all, same guarantee", "plain", "stratified", lambda run: True),
    ("all, one look", "one_look", "stratified", lambda run: True),
    (
        "few positives, good model, same guarantee",
        "plain",
        "stratified",
        lambda r: r["good"] and not r["many"],
    ),
    (
        "many positives, good model, same guarantee",
        "plain",
        "stratified",
        lambda r: r["good"] and r["many"],
    ),
    (
        "few positives, bad model, same guarantee",
        "plain",
        "stratified",
        lambda r: not (r["good"] or r["many"]),
    ),
    (
        "many positives, bad model, same guarantee",
        "plain",
        "stratified",
        lambda r: r["many"] and not r["good"],
    ),
    ("all, drawn for F1, same guarantee", "plain", "for_f1", lambda run: True),
)


def _in(ends: Sequence[float], true: float) -> bool:
    return ends[0] - 1e-9 <= true <= ends[1] + 1e-9


def _coverage(runs: Sequence[Mapping[str, Any]], kind: str, name: str) -> float:
    return float(np.mean([_in(run[kind][name], run["true"][name]) for run in runs]))


def _shorter(runs: Sequence[Mapping[str, Any]], name: str, than: str, kind: str) -> float:
    ratios = [np.diff(run[kind][name])[0] / max(np.diff(run[than][name])[0], 1e-9) for run in runs]
    return float(np.median(ratios)) if ratios else math.nan


if __name__ == "__main__":
    raise SystemExit(main())
