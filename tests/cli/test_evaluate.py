import csv
import json
from pathlib import Path

import pytest

from onesided.cli.evaluate import TOLD
from onesided.metrics.stored import read_figures
from tests.cli.command import assert_refused, call


def items_of(run: Path) -> list[dict[str, str]]:
    with (run / "scores.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def is_red(item: str) -> bool:
    """The first 24 of the 60 unlabelled images are red, and so positive."""
    return int(item.removeprefix("U/item").removesuffix(".png")) < 24


def write_truth(path: Path, run: Path, header: str = "item,label", mark: str = ",") -> Path:
    rows = [
        f"{row['item']}{mark}{'positive' if is_red(row['item']) else 'negative'}"
        for row in items_of(run)
    ]
    path.write_text("\n".join([header, *rows, ""]))
    return path


def test_without_labels_it_tells_what_the_run_found(trained: Path) -> None:
    result = json.loads((trained / "result.json").read_text())
    told = json.loads(call("evaluate", trained, "--json").out)
    assert told == {key: result[key] for key in TOLD}
    shown = call("evaluate", trained)
    assert shown.exit_code == 0
    assert "Without negatives, from P and U that were not trained on" in shown.out
    assert f"{result['pu']['figures']['proxy_auc']['value']:.1%}" in shown.out


def test_figures_that_are_missing_leave_their_reason(trained: Path) -> None:
    """With few held-out items nobody can tell the share, and the table says so."""
    result = json.loads((trained / "result.json").read_text())
    assert result["prior"] is None
    shown = " ".join(call("evaluate", trained).out.split())
    figures = read_figures(result)
    assert figures["precision"].missing is not None
    assert figures["precision"].missing in shown
    for name in ("precision", "f1", "proxy_accuracy", "auc", "prior"):
        assert figures[name].missing == figures["precision"].missing


def test_metrics_are_those_of_the_decisions_in_the_file(cross_fitted: Path, tmp_path: Path) -> None:
    truth = write_truth(tmp_path / "truth.csv", cross_fitted)
    told = json.loads(call("evaluate", cross_fitted, "--labels", truth, "--json").out)
    rows = items_of(cross_fitted)
    assert (told["listed"], told["matched"]) == (len(rows), len(rows))
    hits = sum(is_red(row["item"]) and row["decision"] == "positive" for row in rows)
    called = sum(row["decision"] == "positive" for row in rows)
    right = sum(is_red(row["item"]) == (row["decision"] == "positive") for row in rows)
    assert told["test"]["oa"] == pytest.approx(right / len(rows))
    assert told["test"]["recall"] == pytest.approx(hits / sum(is_red(row["item"]) for row in rows))
    assert told["test"]["precision"] == pytest.approx(hits / called if called else 0)
    pairs = [
        (float(red["score"]) > float(blue["score"])) + (red["score"] == blue["score"]) / 2
        for red in rows
        if is_red(red["item"])
        for blue in rows
        if not is_red(blue["item"])
    ]
    assert told["test"]["auc"] == pytest.approx(sum(pairs) / len(pairs))


@pytest.mark.parametrize(
    ("header", "mark"),
    [("path,label", ","), ("Item, Label", ","), ("item;label", ";"), ('"item"\t"label"', "\t")],
)
def test_tables_of_any_spreadsheet_will_do(
    trained: Path, tmp_path: Path, header: str, mark: str
) -> None:
    plain = write_truth(tmp_path / "plain.csv", trained)
    other = write_truth(tmp_path / "other.csv", trained, header, mark)
    other.write_bytes(b"\xef\xbb\xbf" + other.read_bytes().replace(b"\n", b"\r\n"))
    expected = call("evaluate", trained, "--labels", plain, "--json")
    assert call("evaluate", trained, "--labels", other, "--json") == expected


def test_items_that_the_run_does_not_know_are_counted(cross_fitted: Path, tmp_path: Path) -> None:
    truth = write_truth(tmp_path / "truth.csv", cross_fitted)
    truth.write_text(truth.read_text() + "elsewhere/1.png,positive\n")
    count = len(items_of(cross_fitted))
    shown = call("evaluate", cross_fitted, "--labels", truth)
    assert f"{count} of {count + 1} labelled items are in scores.csv." in shown.err
    assert "Against truth.csv" in shown.out
    assert call("evaluate", cross_fitted, "--labels", truth, "--quiet").err == ""


def test_labels_of_one_class_leave_the_auc_open(cross_fitted: Path, tmp_path: Path) -> None:
    item = items_of(cross_fitted)[0]["item"]
    (tmp_path / "truth.csv").write_text(f"item,label\n{item},positive\n")
    outcome = call("evaluate", cross_fitted, "--labels", tmp_path / "truth.csv", "--json")
    assert json.loads(outcome.out)["test"]["auc"] is None


def test_items_that_were_trained_on_are_no_evidence(trained: Path, tmp_path: Path) -> None:
    truth = write_truth(tmp_path / "truth.csv", trained)
    outcome = call("evaluate", trained, "--labels", truth)
    assert_refused(outcome, "48 of 60 listed items were trained on", "too few for a figure")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("item,truth\na,positive\n", ["needs the column 'label'", "item, truth"]),
        ("", ["needs the column 'label'", "nothing"]),
        ("item,label\n", ["lists no item"]),
        ("name,label\na,positive\n", ["line 2", "column item or path"]),
        ("item,label\n,positive\n", ["line 2", "column item or path"]),
        ("item,label\na,damaged\n", ["line 2", "positive or negative", "'damaged'"]),
        ("item,label\na,1\n", ["line 2", "positive or negative", "'1'"]),
        ('item,label\n"a\nb",positive\nc,\n', ["line 4", "''"]),
        ("item,label\na,positive\na,negative\n", ["line 3", "'a'", "positive and as negative"]),
        ("item,label\nfoo.png,positive\n", ["No item of", "'foo.png'", "'U/item"]),
    ],
)
def test_bad_labels_are_refused_with_the_place(
    trained: Path, tmp_path: Path, text: str, words: list[str]
) -> None:
    truth = tmp_path / "truth.csv"
    truth.write_text(text)
    assert_refused(call("evaluate", trained, "--labels", truth), truth, *words)


def test_labels_that_are_no_text_are_refused(trained: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth.csv"
    truth.write_bytes(b"item,label\n\xff\xfe,positive\n")
    assert_refused(call("evaluate", trained, "--labels", truth), truth, "UTF-8")
    assert_refused(call("evaluate", trained, "--labels", tmp_path), tmp_path, "cannot be read")
    missing = tmp_path / "no.csv"
    assert_refused(call("evaluate", trained, "--labels", missing), "There is no file", missing)


def test_a_run_that_is_not_finished_is_told(run: Path, tmp_path: Path) -> None:
    (run / "result.json").unlink()
    told = "finish it with the same fit command"
    assert_refused(call("evaluate", run), f"There is no result.json in {run}", told)
    for path in (tmp_path / "no", run / "config.toml"):
        assert_refused(call("evaluate", path), f"There is no folder {path}", told)


@pytest.mark.parametrize("text", ["item,score\nU/item00.png,high\n", "item,score\n", "item\nx\n"])
def test_damaged_scores_are_told(run: Path, tmp_path: Path, text: str) -> None:
    truth = write_truth(tmp_path / "truth.csv", run)
    (run / "scores.csv").write_text(text)
    assert_refused(call("evaluate", run, "--labels", truth), run / "scores.csv")


def test_a_flipped_bit_in_the_split_is_noticed(tmp_path: Path, run: Path) -> None:
    truth = write_truth(tmp_path / "truth.csv", run)
    content = bytearray((run / "split.csv").read_bytes())
    content[len(content) // 2] ^= 1
    (run / "split.csv").write_bytes(content)
    assert_refused(call("evaluate", run, "--labels", truth), "split.csv does not have the checksum")
