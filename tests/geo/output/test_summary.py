import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import DataError
from onesided.geo.input.footprints import Buildings
from onesided.geo.output.summary import (
    COLUMNS,
    LISTED_HELD_OUT,
    Summary,
    summarise,
    write_summary,
)
from onesided.geo.output.table import MapTable
from onesided.metrics.figure import Figure
from onesided.metrics.registry import ASSUMPTIONS, OWN_SCORES
from onesided.metrics.selection import Optimism
from onesided.run.prior import PriorUsed
from tests.geo.maps import houses, table

COUNT, MARKED = 2000, 200


def separated(share: float) -> tuple[MapTable, dict[str, int]]:
    """Return a map whose model is nearly right, and the truth; `share` of the rest is damaged."""
    random = np.random.default_rng(0)
    marked = np.arange(COUNT) < MARKED
    damaged = marked | (random.uniform(0, 1, COUNT) < share)
    scores = np.clip(np.where(damaged, 0.85, 0.15) + random.normal(0, 0.12, COUNT), 0, 1)
    buildings = Buildings(
        tuple(map(str, range(COUNT))), np.full(COUNT, None, object), houses(1).system, {}
    )
    held_out = random.uniform(0, 1, COUNT) < 0.3
    truth = {name: int(value) for name, value in zip(buildings.names, damaged, strict=True)}
    return MapTable(buildings, scores, marked, held_out, {}, 0.5), truth


def names_of(summary: Summary) -> list[str]:
    return [figure.name for figure in summary.figures]


def test_counts_add_up() -> None:
    drawn = table(houses(40))
    summary = summarise(drawn)
    names = ("marked", "called_positive", "called_negative", "skipped")
    counted = [summary.figure(name).value for name in names]
    assert sum(number or 0 for number in counted) == summary.figure("buildings").value == 40
    assert summary.figure("skipped", "far away").value == 1


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_the_damaged_share_is_estimated_with_an_interval_that_holds_the_truth(
    share: float,
) -> None:
    drawn, truth = separated(share)
    summary = summarise(drawn)
    rest = [truth[str(row)] for row in range(MARKED, COUNT)]
    estimate = summary.figure("prior")
    assert estimate.value == pytest.approx(np.mean(rest), abs=0.06)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low - 0.02 <= float(np.mean(rest)) <= estimate.high + 0.02
    whole = summary.figure("positive_all")
    assert whole.value == pytest.approx(np.mean(list(truth.values())), abs=0.06)


def test_figures_name_what_they_assume_and_claim_no_independence() -> None:
    summary = summarise(separated(0.3)[0])
    assert "scar" in summary.figure("recall").assumes
    precision = summary.figure("precision")
    assert OWN_SCORES in precision.assumes
    assert "estimated" not in precision.assumes
    biased = {each.name for each in summary.figures if each.bias == "high"}
    assert biased == {"prior", "positive_all", "precision", "f1", "auc"}
    assert precision.value is not None
    assert precision.low is not None
    assert precision.low <= precision.value


GIVEN = PriorUsed(0.25, None, None, "given")


def test_a_share_that_was_estimated_before_training_says_by_what() -> None:
    estimated = PriorUsed(0.25, 0.2, 0.35, "KM2")
    share = summarise(separated(0.3)[0], prior=estimated).figure("prior")
    assert share == Figure("prior", 0.25, 0.2, 0.35, assumes=("KM2",))


def test_a_share_that_was_given_is_used() -> None:
    summary = summarise(separated(0.3)[0], prior=GIVEN)
    assert summary.figure("prior").value == 0.25
    assert summary.figure("positive_all").value == pytest.approx(0.1 + 0.9 * 0.25)
    assert not any(figure.bias for figure in summary.figures)


@pytest.mark.parametrize("few", [True, False])
def test_a_prior_that_cannot_be_estimated_leaves_its_figures_missing_with_a_reason(
    few: bool,
) -> None:
    drawn, _ = separated(0.3)
    if few:
        first = np.flatnonzero(drawn.marked & drawn.held_out)[:9]
        drawn = replace(drawn, held_out=drawn.held_out & ~drawn.marked)
        drawn.held_out[first] = True
        reason = "they are of 9 positives and "
    else:
        noise = np.random.default_rng(1).uniform(0, 1, COUNT)
        drawn = replace(drawn, scores=noise)
        reason = "they separate so little"
    summary = summarise(drawn)
    assert "positive_all" not in names_of(summary)
    for name in ("prior", "precision", "f1", "auc"):
        figure = summary.figure(name)
        assert (figure.value, figure.low, figure.high) == (None, None, None)
        assert f"from this model's held-out scores: {reason}" in (figure.missing or "")
    assert summary.figure("recall").value is not None


def test_truth_is_reported_for_places_not_trained_on_and_the_others_are_counted() -> None:
    drawn, truth = separated(0.3)
    summary = summarise(drawn, truth=truth)
    rows = np.flatnonzero(drawn.held_out & ~drawn.marked)
    assert summary.figure("known_class", LISTED_HELD_OUT).value == len(rows)
    right = (drawn.scores[rows] > 0.5) == [truth[str(row)] == 1 for row in rows]
    assert summary.figure("oa", LISTED_HELD_OUT).value == pytest.approx(right.mean())
    trained = COUNT - MARKED - len(rows)
    assert f"{trained} of {COUNT - MARKED} unmarked buildings" in summary.warnings[-1]


def test_buildings_that_look_the_same_count_once() -> None:
    drawn, truth = separated(0.3)
    rows = np.flatnonzero(drawn.held_out & ~drawn.marked)
    copies = np.isin(np.arange(COUNT), rows[::2])
    summary = summarise(replace(drawn, copies=copies), truth=truth)
    assert summary.figure("known_class", LISTED_HELD_OUT).value == len(rows) - copies.sum()


def test_truth_about_other_buildings_is_refused() -> None:
    with pytest.raises(DataError, match="None of the 1 ids"):
        summarise(table(houses(9)), truth={"elsewhere": 1})


def test_for_a_model_from_elsewhere_all_buildings_are_held_out() -> None:
    drawn, _ = separated(0.3)
    none_held_out = MapTable(
        drawn.buildings, drawn.scores, drawn.marked, np.zeros(COUNT, bool), {}, 0.5
    )
    assert "recall" not in names_of(summarise(none_held_out))
    recall = summarise(none_held_out, unseen=True).figure("recall").value
    assert recall == pytest.approx((drawn.scores[:MARKED] > 0.5).mean())


def test_the_file_is_a_table_for_spreadsheets(tmp_path: Path) -> None:
    summary = summarise(separated(0.3)[0])
    write_summary(summary, tmp_path / "summary.csv")
    with (tmp_path / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(COLUMNS)
    assert [row["figure"] for row in rows] == names_of(summary)
    precision = next(row for row in rows if row["figure"] == "precision")
    assert float(precision["value"]) == pytest.approx(summary.figure("precision").value, rel=1e-5)
    assert precision["bias"] == "high"
    assert ASSUMPTIONS["scar"].text in precision["assumes"]


@pytest.mark.parametrize("unseen", [False, True])
def test_a_map_that_calls_everything_damaged_gives_an_alarm_though_none_is_held_out(
    unseen: bool,
) -> None:
    drawn = table(houses(40), marked=0 if unseen else 4)
    drawn = replace(drawn, held_out=np.zeros(40, bool), threshold=-0.1)
    assert "everything" in (summarise(drawn, unseen=unseen).degenerate or "")


def test_a_handful_of_buildings_may_all_be_damaged() -> None:
    drawn = replace(table(houses(6), marked=0), threshold=-0.1)
    summary = summarise(drawn, unseen=True)
    assert summary.degenerate is None
    assert "buildings are called damaged. Check them" in summary.warnings[0]


def test_a_place_where_a_model_from_elsewhere_finds_nothing_may_be_sound() -> None:
    drawn = replace(table(houses(40), marked=0), threshold=2.0)
    summary = summarise(drawn, unseen=True)
    assert summary.degenerate is None
    assert "None of 39 buildings is called damaged" in summary.warnings[0]


def test_a_training_that_finds_nothing_rings() -> None:
    drawn = replace(table(houses(40)), held_out=np.zeros(40, bool), threshold=2.0)
    assert "nothing" in (summarise(drawn).degenerate or "")


def test_a_map_after_a_search_lowers_the_auc_by_its_optimism() -> None:
    drawn = separated(0.3)[0]
    some, more = (
        summarise(drawn, prior=GIVEN, optimism=Optimism(optimism)).figure("auc").value
        for optimism in (0.1, 0.15)
    )
    assert some is not None
    assert more == pytest.approx(some - 0.05 / (1 - GIVEN.value))


def test_marks_of_a_few_neighbourhoods_that_are_alike_are_worth_fewer() -> None:
    """Where damage looks alike within a street, 200 marks of one street say less than 200."""
    random = np.random.default_rng(1)
    drawn = table(houses(400), marked=100)
    east = np.arange(400) % 2 == 0
    scattered = np.clip(random.normal(0.6, 0.2, 400), 0, 1)
    by_street = np.where(np.arange(400) // 20 % 2 == 0, 0.8, 0.4) + random.normal(0, 0.05, 400)
    widths = []
    for scores in (np.where(east, scattered, scattered), by_street):
        figure = summarise(
            replace(drawn, scores=scores, held_out=np.ones(400, bool), reasons={}), prior=GIVEN
        ).figure("recall")
        assert figure.low is not None
        assert figure.high is not None
        widths.append(figure.high - figure.low)
    assert widths[1] > 1.5 * widths[0]
