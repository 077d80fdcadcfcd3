from typing import Any

import numpy as np

from onesided.metrics.registry import OWN_SCORES
from onesided.metrics.stored import read_figures
from onesided.report.runfiles import RankedPool, RunFiles
from onesided.report.wording import headline, lede

RESULT: dict[str, Any] = {
    "n_positive": 1000,
    "n_unlabelled": 40000,
    "test": {"oa": 0.95},
    "pu": {
        "figures": {
            "recall": {"value": 0.91, "low": 0.87, "high": 0.94},
            "precision": {"value": 0.8},
            "share_positive": {"value": 0.0853},
        },
    },
}


def run_with(ranking: RankedPool | None = None, **changes: object) -> RunFiles:
    return RunFiles("quake", RESULT | changes, ranking=ranking)


def said_by(function: Any, run: RunFiles) -> str:  # noqa: ANN401
    return str(function(run, read_figures(run.result)))


def test_the_headline_counts_what_was_called_positive() -> None:
    run = run_with(RankedPool(np.zeros(40_000), 3412))
    assert said_by(headline, run) == "3,412 of 40,000 unlabelled items called positive"


def test_without_scores_the_headline_gives_the_share() -> None:
    expected = "About 8.5% of 40,000 unlabelled items called positive"
    assert said_by(headline, run_with()) == expected


def test_without_figures_the_headline_names_the_training_data() -> None:
    expected = "A model trained on 1,000 positives and 40,000 unlabelled items"
    assert said_by(headline, run_with(pu=None)) == expected
    bare = run_with(pu=None, n_positive=None, n_unlabelled=None)
    assert said_by(headline, bare) == "A model trained on positives and unlabelled items"


def test_the_opening_says_how_sure_one_can_be() -> None:
    assert said_by(lede, run_with()) == (
        "The model finds 91.0% of the known positives that it was not trained on (95% interval "
        "87.0% to 94.0%). Of the items called positive, 80.0% are positive. "
        "On a test set of known classes, it is right on 95.0%."
    )


def test_the_opening_calls_a_bound_a_bound() -> None:
    figures = RESULT["pu"]["figures"]
    biased = figures["precision"] | {"bias": "high", "assumes": [OWN_SCORES]}
    opening = said_by(lede, run_with(pu={"figures": figures | {"precision": biased}}))
    assert (
        "Of the items called positive, at most about 80.0% are positive (biased high: " in opening
    )


def test_a_run_that_measured_nothing_says_so() -> None:
    opening = said_by(lede, run_with(pu=None, test=None))
    assert opening == "This run holds no figure that says how good it is."


def test_a_degenerate_run_opens_with_the_warning_and_praises_nothing() -> None:
    run = run_with(pu=RESULT["pu"] | {"degenerate": "Everything is called positive."})
    assert said_by(headline, run).startswith("Do not rely on this run: about 8.5% of")
    assert "91.0%" not in said_by(lede, run)
