import pytest

from onesided.metrics.figure import Figure
from onesided.metrics.pu import FORMULAS
from onesided.metrics.registry import ASSUMPTIONS, FIGURES, entry, shown
from onesided.metrics.words import (
    assumptions_of,
    full_value_text,
    interval_text,
    missing_texts,
    number_text,
    percent,
    sentence,
    value_text,
)


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, "0.0%"),
        (1.0, "100.0%"),
        (0.0853, "8.5%"),
        (0.0004, "0.04%"),
        (0.00002, "0.002%"),
        (0.9997, "99.97%"),
        (-0.006, "-0.6%"),
    ],
)
def test_a_share_never_rounds_to_nothing_or_to_all(share: float, expected: str) -> None:
    assert percent(share) == expected


def test_areas_and_ratios_are_no_percentages() -> None:
    assert number_text("auc", 0.98765) == "0.988"
    assert number_text("lee_liu", 9.71) == "9.710"
    assert number_text("recall", 0.917) == "91.7%"


def test_an_interval_needs_both_ends() -> None:
    assert interval_text(Figure("recall", 0.9, 0.87, 0.94)) == "87.0% to 94.0%"
    assert interval_text(Figure("recall", 0.9, 0.87)) == ""


def test_counts_are_counts_and_what_is_missing_is_a_dash() -> None:
    assert number_text("buildings", 1234) == "1,234"
    assert number_text("recall", None) == "-"


def test_a_biased_figure_is_written_as_a_bound() -> None:
    assert value_text(Figure("precision", 0.815, bias="high")) == "at most about 81.5%"
    assert value_text(Figure("precision", 0.815, bias="low")) == "at least about 81.5%"
    assert full_value_text(Figure("precision", 0.815, 0.7, 0.9, bias="high")) == (
        "at most about 81.5% (95% interval 70.0% to 90.0%, biased high: the truth may also lie "
        "below the interval)"
    )


def test_a_sentence_can_be_said_with_and_without_the_interval() -> None:
    figure = Figure("precision", 0.815, 0.7, 0.9)
    assert sentence(figure) == "Of the items called positive, 81.5% are positive."
    assert "81.5% are positive (95% interval 70.0% to 90.0%)." in sentence(figure, interval=True)


def test_figures_that_are_missing_for_one_reason_share_a_sentence() -> None:
    figures = [
        Figure("precision", None, missing="of this"),
        Figure("f1", None, missing="of this"),
        Figure("auc", None, missing="of that"),
        Figure("recall", 0.5),
    ]
    assert missing_texts(figures) == [
        "Not estimated: Precision, F1. Reason: of this.",
        "Not estimated: AUC. Reason: of that.",
    ]
    assert full_value_text(figures[0]) == "not estimated: of this"


def test_every_assumption_is_listed_once() -> None:
    figures = [
        Figure("recall", 0.5, assumes=("scar", "held_out")),
        Figure("f1", 0.5, assumes=("scar", "given", "A sentence of an old file.")),
    ]
    told = [each.text for each in assumptions_of(figures)]
    assert told == [
        *(ASSUMPTIONS[key].text for key in ("scar", "held_out", "given")),
        "A sentence of an old file.",
    ]


def test_every_formula_is_registered() -> None:
    assert set(FORMULAS) <= set(FIGURES)
    named = {key for formula in FORMULAS.values() for key in formula.assumes}
    assert named <= set(ASSUMPTIONS)


@pytest.mark.parametrize("name", [*shown("run"), *shown("comparison"), *shown("truth")])
def test_every_figure_of_a_run_is_explained(name: str) -> None:
    assert FIGURES[name].sentence.count("{value}") == 1


def test_a_figure_that_is_not_registered_goes_by_its_name() -> None:
    assert entry("newly_made").label == "Newly made"
    assert sentence(Figure("newly_made", 0.5)) == ""
