import csv
import json
from pathlib import Path

from tests.cli.command import assert_refused, call


def test_the_page_is_written_again_and_its_place_is_told(run: Path) -> None:
    (run / "report.html").unlink()
    told = call("report", run)
    assert told.exit_code == 0
    assert told.out == f"Report: {run / 'report.html'}\n"
    assert (run / "report.html").exists()


def test_true_labels_stand_beside_the_estimates(cross_fitted: Path, tmp_path: Path) -> None:
    run = cross_fitted
    before = (run / "report.html").read_text()
    assert "Estimate and truth" not in before
    with (run / "scores.csv").open(newline="") as file:
        items = [row["item"] for row in csv.DictReader(file)]
    labels = tmp_path / "truth.csv"
    lines = [
        f"{item},{'positive' if place < 20 else 'negative'}" for place, item in enumerate(items)
    ]
    labels.write_text("\n".join(["item,label", *lines]))
    told = json.loads(call("report", run, "--labels", labels, "--json").out)
    page = Path(told["report"]).read_text()
    assert f"True, {len(items)} labelled items" in page
    assert "Estimate and truth" in page


def test_labels_of_other_items_are_refused_and_the_page_stays(run: Path, tmp_path: Path) -> None:
    before = (run / "report.html").read_bytes()
    labels = tmp_path / "truth.csv"
    labels.write_text("item,label\nelsewhere.png,positive\n")
    assert_refused(call("report", run, "--labels", labels), "elsewhere.png")
    assert (run / "report.html").read_bytes() == before
