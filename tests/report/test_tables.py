import re
from typing import Any

from onesided.metrics.figure import Figure
from onesided.metrics.registry import ASSUMPTIONS, FIGURES, OWN_SCORES
from onesided.metrics.stored import read_figures
from onesided.metrics.words import bias_text, interval_text
from onesided.report.runfiles import RunFiles
from onesided.report.tables import cards, comparison, truth
from tests.report.fake_run import fake_comparison, fake_manifest, fake_result

RESULT = fake_result(0.093)


def run_with(**changes: Any) -> RunFiles:  # noqa: ANN401
    return RunFiles("quake", RESULT | changes, fake_manifest(), comparison=())


def cards_of(run: RunFiles) -> list[str]:
    return re.findall(r'<li class="card">.*?</li>', cards(read_figures(run.result)), re.DOTALL)


def compared(rows: list[dict[str, Any]]) -> str:
    return comparison(RunFiles("quake", RESULT, comparison=tuple(rows)))


def test_three_figures_come_first_and_the_others_are_folded() -> None:
    assert len(cards_of(run_with())) == 9
    first, _, folded = cards(read_figures(RESULT)).partition("<summary>More figures</summary>")
    titles = [FIGURES[name].label for name in ("recall", "precision", "prior")]
    assert re.findall(r"<h3>(.*?)</h3>", first) == titles
    assert folded.count('<li class="card">') == 6


def test_few_figures_are_not_folded() -> None:
    page = cards({"auc": Figure("auc", 0.9), "f1": Figure("f1", 0.8)})
    assert page.count('<li class="card">') == 2
    assert "More figures" not in page


def test_every_assumption_is_listed_once_below_the_cards() -> None:
    pair = {"value": 0.5, "low": 0.4, "high": 0.6, "assumes": ["scar", "held_out"]}
    page = cards(read_figures({"pu": {"figures": {"recall": pair, "f1": pair}}}))
    for key in ("scar", "held_out"):
        assert page.count(ASSUMPTIONS[key].text) == 1
        assert page.count(ASSUMPTIONS[key].label) == 1
    assert page.count("(all figures)") == 2


def test_an_assumption_names_the_figures_that_rest_on_it() -> None:
    figures = {
        "recall": Figure("recall", 0.5, assumes=("scar",)),
        "precision": Figure("precision", 0.5, assumes=("scar", "given")),
    }
    page = cards(figures)
    given = ASSUMPTIONS["given"].text
    assert f'{given} <span class="of">(Precision)</span>' in page


def test_a_card_shows_value_interval_and_meaning() -> None:
    (recall,) = [card for card in cards_of(run_with()) if "<h3>Recall</h3>" in card]
    assert "91.7%" in recall
    assert "interval 87.6% to 95.8%" in recall
    assert "The model finds 91.7% of the known positives" in recall


def test_the_origin_of_the_prior_is_among_the_assumptions() -> None:
    assert "<li>km2 <" in cards(read_figures(RESULT))


def test_a_figure_without_a_value_has_no_card() -> None:
    figures = RESULT["pu"]["figures"] | {"f1": {"value": None, "label": "F1"}}
    found = cards_of(run_with(pu={"figures": figures}, prior=None))
    assert len(found) == 7


def test_a_figure_we_do_not_know_is_shown_with_its_name() -> None:
    figure = {"value": 0.25, "assumes": ["Little."]}
    (card,) = cards_of(run_with(pu={"figures": {"novelty": figure}}, prior=None))
    assert "<h3>Novelty</h3>" in card
    assert "Little." not in card
    assert "25.0%" in card


def test_the_gauge_stays_on_its_track() -> None:
    for figure, drawn in (
        ({"value": 0.99, "low": 0.9, "high": 1.3}, "--low:0.9000;--high:1.0000;--at:0.9900"),
        ({"value": 0.01, "low": -0.2, "high": 0.2}, "--low:0.0000;--high:0.2000;--at:0.0100"),
    ):
        (card,) = cards_of(run_with(pu={"figures": {"recall": figure}}, prior=None))
        assert drawn in card


def test_nothing_estimated_means_no_cards() -> None:
    assert cards({}) == ""


def test_the_comparison_marks_this_run_and_degenerate_ones() -> None:
    page = compared(fake_comparison())
    assert re.findall(r'<tr class="own"><th scope="row">(\w+)</th>', page) == ["ncpu"]
    assert re.findall(r'(\w+) <span class="bad">degenerate</span>', page) == ["upu"]


def test_every_row_of_the_comparison_has_a_cell_for_every_column() -> None:
    rows = fake_comparison()
    del rows[1]["test"]["f1"]
    rows[2]["test"] = None
    rows[3]["pu"] = None
    page = compared(rows)
    body = page.partition("<tbody>")[2]
    columns = len(re.findall(r'<th scope="col">', page))
    widths = [int(span) for span in re.findall(r'colspan="(\d+)"', page)]
    assert sum(widths) == columns
    assert [row.count("<td>") for row in body.split("</tr>")[:-1]] == [columns] * len(rows)


def test_seeds_have_a_column_only_where_they_differ() -> None:
    rows = fake_comparison()
    assert "Seed" not in compared(rows)
    assert "Seed" in compared([rows[0], {**rows[1], "seed": 1}])


def test_a_column_that_no_row_fills_is_left_out() -> None:
    rows = [row | {"test": None} for row in fake_comparison()]
    assert "Against the truth" not in compared(rows)
    assert "Without negatives" in compared(rows)


def test_without_rows_there_is_no_comparison() -> None:
    assert compared([]) == ""
    assert compared([{"method": "ncpu"}]) == ""


def test_all_tables_say_what_their_heads_are_for() -> None:
    page = compared(fake_comparison())
    heads = re.findall(r"<th\b[^>]*>", page)
    assert heads
    assert all("scope=" in head for head in heads)


def test_a_figure_without_a_value_is_named_with_the_reason() -> None:
    why = "it needs the share of positives <here>"
    missing = {name: Figure(name, None, missing=why) for name in ("precision", "proxy_accuracy")}
    page = cards(missing)
    assert "Not estimated: Precision, Accuracy. Reason: it needs the share" in page
    assert "positives &lt;here&gt;.</p>" in page
    assert "Not estimated" not in cards(read_figures(RESULT))


def test_known_negatives_get_a_card() -> None:
    known = Figure("false_alarms", 0.025, 0.017, 0.035, assumes=("typical_negatives",))
    run = run_with(known_negatives={"count": 1200, **known.to_json()})
    (card,) = [card for card in cards_of(run) if "Known negatives" in card]
    assert "2.5%" in card
    assert "1.7% to 3.5%" in card
    assert ASSUMPTIONS["typical_negatives"].text in cards(read_figures(run.result))


def test_a_biased_figure_says_so_on_cards_and_in_the_comparison() -> None:
    figures = RESULT["pu"]["figures"]
    biased = {
        name: figures[name] | {"bias": "high", "assumes": [OWN_SCORES]}
        for name in ("precision", "f1")
    }
    run = run_with(pu={"figures": figures | biased})
    for card in cards_of(run):
        is_biased = "<h3>Precision<" in card or "<h3>F1<" in card
        assert ('<p class="value">at most ' in card) == is_biased
    bias = bias_text(Figure("f1", 0.5, bias="high"))
    assert cards(read_figures(run.result)).count(f"At most: {bias}.") == 1
    (precision,) = [card for card in cards_of(run) if "<h3>Precision<" in card]
    ends = interval_text(read_figures(run.result)["precision"])
    assert f"Of the items called positive, {ends} are positive." in precision
    rows = [row | {"pu": run.result["pu"]} for row in fake_comparison()]
    f1 = interval_text(read_figures(run.result)["f1"])
    assert compared(rows).count(f"<td>{f1}</td>") == len(rows)
    assert f"<td>{f1}</td>" not in compared(fake_comparison())


def truth_of(labelled: dict[str, Any] | None = None, **changes: Any) -> str:  # noqa: ANN401
    result = RESULT | changes
    return truth(RunFiles("quake", result, labelled=labelled or {}), read_figures(result))


def rows_of(page: str) -> dict[str, list[str]]:
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', page)
    return {title: re.findall(r"<td>(.*?)</td>", cells) for title, cells in rows}


def test_the_estimate_stands_beside_what_is_true() -> None:
    rows = rows_of(truth_of())
    assert list(rows) == ["Recall", "Precision", "F1", "AUC", "Accuracy"]
    assert rows["Recall"][0] == "91.7%<small>87.6% to 95.8%</small>"
    assert rows["Accuracy"] == ["97.4%", "97.1%"]
    assert rows["AUC"] == ["98.5%", "98.8%"]


def test_an_estimate_that_is_a_bound_is_shown_as_one() -> None:
    figures = RESULT["pu"]["figures"]
    biased = figures["precision"] | {"bias": "high", "assumes": [OWN_SCORES]}
    rows = rows_of(truth_of(pu={"figures": figures | {"precision": biased}}))
    assert [title for title, cells in rows.items() if "at most" in cells[0]] == ["Precision"]
    assert "at most" not in rows["Precision"][1]


def test_words_say_whether_the_interval_held() -> None:
    figures = {"oa": None, "precision": 0.5, "recall": 0.912, "f1": 0.99}
    rows = rows_of(truth_of(test=figures))
    assert rows["Recall"][1] == "91.2%<small>inside the interval</small>"
    assert rows["Precision"][1] == "50.0%<small>below the interval</small>"
    assert rows["F1"][1] == "99.0%<small>above the interval</small>"


def test_a_figure_that_was_not_estimated_leaves_a_dash_beside_the_truth() -> None:
    rows = rows_of(truth_of(pu={"figures": {}}))
    assert rows["Precision"] == ["-", "86.1%"]


def test_items_labelled_later_get_a_column_of_their_own() -> None:
    labelled = {"listed": 2000, "matched": 1999, "test": {"recall": 0.5, "auc": None}}
    assert 'scope="col">True, 1,999 labelled items</th>' in truth_of(labelled)
    assert rows_of(truth_of(labelled))["Recall"][1:] == [
        "91.2%<small>inside the interval</small>",
        "50.0%<small>below the interval</small>",
    ]
    assert rows_of(truth_of(labelled, test=None))["Recall"][1:] == [
        "50.0%<small>below the interval</small>"
    ]


def test_without_known_classes_there_is_nothing_to_compare() -> None:
    assert truth_of(test=None) == ""
    assert truth_of({"test": {"recall": None}}, test={}) == ""
