import re
from typing import Any

from onesided.metrics.registry import OWN_SCORES
from onesided.metrics.stored import read_figures
from onesided.report.runfiles import RunFiles
from onesided.report.truth import truth
from tests.report.fake_run import fake_result

RESULT = fake_result(0.093)


def page_of(labelled: dict[str, Any] | None = None, **changes: Any) -> str:  # noqa: ANN401
    result = RESULT | changes
    return truth(RunFiles("quake", result, labelled=labelled or {}), read_figures(result))


def rows_of(page: str) -> dict[str, list[str]]:
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', page)
    return {title: re.findall(r"<td>(.*?)</td>", cells) for title, cells in rows}


def test_the_estimate_stands_beside_what_is_true() -> None:
    rows = rows_of(page_of())
    assert list(rows) == ["Recall", "Precision", "F1", "AUC", "Accuracy"]
    assert rows["Recall"][0] == "91.7%<small>87.6% to 95.8%</small>"
    assert rows["Accuracy"] == ["97.4%", "97.1%"]
    assert rows["AUC"] == ["0.985", "0.988"]


def test_an_estimate_that_is_a_bound_is_shown_as_one() -> None:
    figures = RESULT["pu"]["figures"]
    biased = figures["precision"] | {"bias": "high", "assumes": [OWN_SCORES]}
    rows = rows_of(page_of(pu={"figures": figures | {"precision": biased}}))
    assert [title for title, cells in rows.items() if "at most" in cells[0]] == ["Precision"]
    assert "at most" not in rows["Precision"][1]


def test_words_say_whether_the_interval_held() -> None:
    figures = {"oa": None, "precision": 0.5, "recall": 0.912, "f1": 0.99}
    rows = rows_of(page_of(test=figures))
    assert rows["Recall"][1] == "91.2%<small>inside the interval</small>"
    assert rows["Precision"][1] == "50.0%<small>below the interval</small>"
    assert rows["F1"][1] == "99.0%<small>above the interval</small>"


def test_a_figure_that_was_not_estimated_leaves_a_dash_beside_the_truth() -> None:
    rows = rows_of(page_of(pu={"figures": {}}))
    assert rows["Precision"] == ["-", "86.1%"]


def test_items_labelled_later_get_a_column_of_their_own() -> None:
    labelled = {"listed": 2000, "matched": 1999, "test": {"recall": 0.5, "auc": None}}
    assert 'scope="col">True, 1,999 labelled items</th>' in page_of(labelled)
    assert rows_of(page_of(labelled))["Recall"][1:] == [
        "91.2%<small>inside the interval</small>",
        "50.0%<small>below the interval</small>",
    ]
    assert rows_of(page_of(labelled, test=None))["Recall"][1:] == [
        "50.0%<small>below the interval</small>"
    ]


def test_without_known_classes_there_is_nothing_to_compare() -> None:
    assert page_of(test=None) == ""
    assert page_of({"test": {"recall": None}}, test={}) == ""
