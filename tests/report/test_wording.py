import html
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onesided.metrics.registry import OWN_SCORES
from onesided.metrics.stored import read_figures
from onesided.report.runfiles import RankedPool, RunFiles
from onesided.report.wording import duration, headline, lede, shown, visible

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


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain.png", "plain.png"),
        ("two\nlines\t.png", r"two\nlines\t.png"),
        ("byte\udcff.png", r"byte\xff.png"),
        ("lone\ud800.png", r"lone\ud800.png"),
        ("back\u202ewards", r"back\u202ewards"),
        ("nul\x00", r"nul\x00"),
        ("naïve 写真 👩‍🚒", "naïve 写真 👩‍🚒"),
    ],
)
def test_every_character_of_a_name_can_be_seen(text: str, seen: str) -> None:
    assert visible(text) == seen


def test_a_name_that_python_took_from_a_strange_disk_can_be_written(tmp_path: Path) -> None:
    name = b"b\xfcro \x80.png".decode("utf-8", "surrogateescape")
    (tmp_path / "page.html").write_text(shown(name), encoding="utf-8")
    assert (tmp_path / "page.html").read_text("utf-8") == r"b\xfcro \x80.png"


@pytest.mark.parametrize("text", ["<b>", '" onload="x', "' onload='x", "&lt;", "a & b"])
def test_shown_text_means_itself_as_html(text: str) -> None:
    safe = shown(text)
    assert not set("<>\"'") & set(safe)
    assert html.unescape(safe) == text


def test_long_text_keeps_both_ends() -> None:
    text = visible("start" + "x" * 5000 + ".png", limit=40)
    assert text.startswith("start")
    assert text.endswith(".png")
    assert len(text) <= 41


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(3.21, "3.2 s"), (59.99, "1 min 0 s"), (1432.7, "23 min 53 s"), (7999.0, "2 h 13 min")],
)
def test_time_is_told_as_people_do(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


def test_the_headline_counts_what_was_called_positive() -> None:
    run = run_with(RankedPool(np.zeros(40_000), 3412))
    assert said_by(headline, run) == "3,412 of 40,000 unlabelled items called positive"


def test_without_scores_the_headline_tells_the_share() -> None:
    expected = "About 8.5% of 40,000 unlabelled items called positive"
    assert said_by(headline, run_with()) == expected


def test_without_figures_the_headline_tells_what_was_learned_from() -> None:
    expected = "A model trained on 1,000 positives and 40,000 unlabelled items"
    assert said_by(headline, run_with(pu=None)) == expected
    bare = run_with(pu=None, n_positive=None, n_unlabelled=None)
    assert said_by(headline, bare) == "A model trained on positives and unlabelled items"


def test_the_opening_says_how_sure_one_can_be() -> None:
    assert said_by(lede, run_with()) == (
        "The model finds 91.0% (95% interval 87.0% to 94.0%) of the known positives that were kept "
        "out of training. Of the items called positive, 80.0% are positive. "
        "Checked against the truth, it is right on 95.0%."
    )


def test_the_opening_calls_a_bound_a_bound() -> None:
    figures = RESULT["pu"]["figures"]
    biased = figures["precision"] | {"bias": "high", "assumes": [OWN_SCORES]}
    opening = said_by(lede, run_with(pu={"figures": figures | {"precision": biased}}))
    assert "Of the items called positive, at most about 80.0% (biased high: " in opening


def test_a_run_that_measured_nothing_says_so() -> None:
    opening = said_by(lede, run_with(pu=None, test=None))
    assert opening == "This run holds no figure that says how good it is."


def test_a_degenerate_run_opens_with_the_warning_and_praises_nothing() -> None:
    run = run_with(pu=RESULT["pu"] | {"degenerate": "Everything is called positive."})
    assert said_by(headline, run).startswith("Do not rely on this run: about 8.5% of")
    assert "91.0%" not in said_by(lede, run)
