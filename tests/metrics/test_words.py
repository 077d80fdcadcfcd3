import pytest

from onesided.metrics.figure import Figure
from onesided.metrics.pu import FORMULAS
from onesided.metrics.registry import ASSUMPTIONS, FIGURES, entry, shown
from onesided.metrics.words import (
    assumptions_of,
    bounds_explained,
    cell_text,
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
        (0.000002, "0.0002%"),
        (1e-12, "<0.0001%"),
        (1 - 1e-12, ">99.9999%"),
    ],
)
def test_a_share_never_rounds_to_nothing_or_to_all(share: float, expected: str) -> None:
    assert percent(share) == expected


def test_a_bound_is_explained_only_where_one_is_shown() -> None:
    told = Figure("precision", 0.8, 0.7, 0.9, bias="high")
    vague = Figure("prior", 0.4, 0.01, 0.9, bias="high")
    assert list(bounds_explained([told, vague])) == ["at most"]
    assert bounds_explained([vague]) == {}
    assert value_text(told).startswith("at most")
    assert value_text(vague) == "cannot be told"


def test_shares_and_areas_are_percentages_and_ratios_are_not() -> None:
    assert number_text("auc", 0.98765) == "98.8%"
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
        "at most 90.0% (95% interval 70.0% to 90.0%, biased high: the truth may also lie "
        "below the interval)"
    )
    assert value_text(Figure("precision", 0.815, 0.7, 0.9, bias="low")) == "at least 70.0%"


def test_a_bound_that_bounds_nothing_is_not_written() -> None:
    assert value_text(Figure("precision", 0.9, 0.7, 1.0, bias="high")) == "70.0% to 100.0%"
    assert value_text(Figure("precision", 0.1, 0.0, 0.3, bias="low")) == "0.0% to 30.0%"


def test_a_biased_figure_is_a_range_in_a_sentence_the_low_end_first() -> None:
    said = sentence(Figure("precision", 0.815, 0.7, 0.9, bias="high"), interval=True)
    assert said == (
        "Of the items called positive, 70.0% to 90.0% are positive (biased high: the truth may "
        "also lie below the interval)."
    )


def test_an_interval_that_says_nothing_hides_the_value_everywhere() -> None:
    figure = Figure("precision", 0.815, 0.338, 1.0, bias="high")
    texts = [show(figure) for show in (value_text, full_value_text, sentence, cell_text)]
    assert all("cannot be told" in text for text in texts)
    assert not any("81.5%" in text for text in texts)
    assert "33.8% to 100.0%" in sentence(figure)
    assert value_text(Figure("precision", 0.815, 0.6, 1.0)) == "81.5%"


def test_a_number_that_is_no_share_is_told_whatever_the_width() -> None:
    criterion = Figure("lee_liu", 2.4, 1.0, 4.0, assumes=("no_share",))
    assert value_text(criterion) == "2.400"
    assert value_text(Figure("buildings", 1234, 3.0, 2000.0)) == "1,234"


def test_a_cell_has_value_and_interval_and_a_biased_one_the_interval_alone() -> None:
    assert cell_text(Figure("f1", 0.79, 0.7, 0.85)) == "79.0% (70.0% to 85.0%)"
    assert cell_text(Figure("f1", 0.79, 0.7, 0.85, bias="high")) == "70.0% to 85.0%"
    assert cell_text(Figure("f1", 0.79)) == "79.0%"
    assert cell_text(Figure("f1", None)) == "-"


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
