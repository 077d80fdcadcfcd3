import re
from typing import Any

from onesided.report.runfiles import RunFiles, estimates
from onesided.report.tables import cards, comparison, facts, truth
from tests.report.fake_run import fake_comparison, fake_manifest, fake_result

RESULT = fake_result(0.093)


def run_with(**changes: Any) -> RunFiles:  # noqa: ANN401
    return RunFiles("quake", RESULT | changes, fake_manifest(), comparison=())


def cards_of(run: RunFiles) -> list[str]:
    return re.findall(r'<li class="card">.*?</li>', cards(run, estimates(run.result["pu"])))


def compared(rows: list[dict[str, Any]]) -> str:
    return comparison(RunFiles("quake", RESULT, comparison=tuple(rows)))


def test_every_figure_has_a_card_with_its_assumption() -> None:
    found = cards_of(run_with())
    assert len(found) == 9
    assert sum("Assumes: " in card for card in found) == 8


def test_a_card_shows_value_interval_and_meaning() -> None:
    (recall,) = [card for card in cards_of(run_with()) if "<h3>Recall</h3>" in card]
    assert "91.7%" in recall
    assert "interval 87.6% to 95.8%" in recall
    assert "the model finds this share" in recall


def test_the_prior_stands_beside_the_share_called_positive() -> None:
    titles = re.findall(r"<h3>(.*?)</h3>", "".join(cards_of(run_with())))
    place = titles.index("Share of items called positive")
    assert titles[place + 1] == "Share that is positive"
    assert "origin: km2" in "".join(cards_of(run_with()))


def test_a_figure_without_a_value_has_no_card() -> None:
    figures = RESULT["pu"]["figures"] | {"f1": {"value": None, "label": "F1"}}
    found = cards_of(run_with(pu={"figures": figures}, prior=None))
    assert len(found) == 7


def test_a_figure_we_do_not_know_is_shown_with_its_own_words() -> None:
    figure = {"label": "novelty: how new it is", "value": 0.25, "assumes": "Little."}
    (card,) = cards_of(run_with(pu={"figures": {"novelty": figure}}, prior=None))
    assert "<h3>Novelty</h3>" in card
    assert "How new it is" in card
    assert "25.0%" in card


def test_the_gauge_stays_on_its_track() -> None:
    figure = {"value": 0.99, "low": -0.2, "high": 1.3}
    (card,) = cards_of(run_with(pu={"figures": {"recall": figure}}, prior=None))
    assert "--low:0.0000;--high:1.0000;--at:0.9900" in card


def test_nothing_estimated_means_no_cards() -> None:
    assert cards(run_with(prior=None), {}) == ""


def test_figures_against_the_truth_appear_only_with_truth() -> None:
    page = truth(run_with())
    assert all(text in page for text in ("97.1%", "88.6%", "86.1%", "91.2%", "0.988"))
    assert truth(run_with(test=None)) == ""
    assert "AUC" not in truth(run_with(test=RESULT["test"] | {"auc": None}))


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
    assert [row.count("<td>") for row in body.split("</tr>")[:-1]] == [columns + 1] * len(rows)


def test_a_column_that_no_row_fills_is_left_out() -> None:
    rows = [row | {"test": None} for row in fake_comparison()]
    assert "Against the truth" not in compared(rows)
    assert "Without negatives" in compared(rows)


def test_without_rows_there_is_no_comparison() -> None:
    assert compared([]) == ""
    assert compared([{"method": "ncpu"}]) == ""


def test_the_facts_hold_what_repeats_the_run() -> None:
    page = facts(run_with())
    for text in ("ncpu", "23 min 53 s", "6,000", "onesided fit -p damaged/", "9c1185a5", "2.13.0"):
        assert text in page
    assert page.count(">Seed<") == 1


def test_without_facts_there_is_nothing_to_unfold() -> None:
    assert facts(RunFiles("quake", {"method": None}, {"versions": {"torch": None}})) == ""


def test_all_tables_say_what_their_heads_are_for() -> None:
    page = compared(fake_comparison()) + facts(run_with())
    heads = re.findall(r"<th\b[^>]*>", page)
    assert heads
    assert all("scope=" in head for head in heads)
