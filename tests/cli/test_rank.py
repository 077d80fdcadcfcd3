import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from tests.cli.command import TINY, Outcome, assert_refused, call, unlisted
from tests.cli.pictures import draw
from tests.data.image_files import gradient, tiff_bytes


def ranked(run: Path, items: Path, *words: object) -> tuple[Outcome, list[dict[str, str]]]:
    output = items.parent / "ranked.csv"
    outcome = call("rank", run, items, "-o", output, *words)
    with output.open(newline="") as file:
        return outcome, list(csv.DictReader(file))


def test_items_come_best_first_with_score_rank_and_decision(trained: Path, data: Path) -> None:
    outcome, rows = ranked(trained, data / "U")
    assert outcome.exit_code == 0
    assert list(rows[0]) == ["item", "score", "rank", "decision"]
    assert {row["item"] for row in rows} == {f"U/{path.name}" for path in (data / "U").iterdir()}
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert [int(row["rank"]) for row in rows] == list(range(1, 61))
    called = sum(row["decision"] == "positive" for row in rows)
    assert called == sum(score > 0.5 for score in scores)
    assert f"60 items ranked, {called} called positive, 0 skipped, 60 written" in outcome.out


def test_scores_are_those_of_the_run(trained: Path, data: Path) -> None:
    _, rows = ranked(trained, data / "U")
    scores = {row["item"]: float(row["score"]) for row in rows}
    with (trained / "scores.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            # Batches of another make-up round differently in the last digits.
            assert scores[row["item"]] == pytest.approx(float(row["score"]), rel=1e-5)


def test_equal_scores_come_in_the_order_of_names(trained: Path, tmp_path: Path) -> None:
    for name in ("c", "a", "b"):
        draw(tmp_path / "same" / f"{name}.png", seed=5)
    _, rows = ranked(trained, tmp_path / "same")
    assert [row["item"] for row in rows] == ["same/a.png", "same/b.png", "same/c.png"]
    assert len({row["score"] for row in rows}) == 1


def test_top_keeps_the_best_and_their_ranks(trained: Path, data: Path) -> None:
    _, everything = ranked(trained, data / "U")
    outcome, best = ranked(trained, data / "U", "--top", "7", "--json")
    assert best == everything[:7]
    told = json.loads(outcome.out)
    assert (told["items"], told["written"]) == (60, 7)
    # Trained for an epoch only, it calls nothing positive; no other word comes beside the JSON.
    (told_beside,) = outcome.err.splitlines()
    assert told_beside.startswith("Warning: Of the 12 unlabelled items that it was not trained on")


def test_more_than_there_are_is_all_there_are(trained: Path, data: Path) -> None:
    assert len(ranked(trained, data / "U", "--top", "1000")[1]) == 60


def test_unreadable_files_are_told_and_left_out(trained: Path, data: Path) -> None:
    (data / "U" / "broken.png").write_bytes(b"no image")
    outcome, rows = ranked(trained, data / "U")
    assert outcome.exit_code == 0
    assert "Skipped U/broken.png: it " in outcome.err
    assert len(rows) == 60
    told = json.loads(ranked(trained, data / "U", "--json")[0].out)
    assert [name for name, _ in told["skipped"]] == ["U/broken.png"]
    assert "Skipped" not in ranked(trained, data / "U", "--quiet")[0].err


def test_too_many_unreadable_files_leave_the_old_ranking_alone(trained: Path, data: Path) -> None:
    output = data / "ranked.csv"
    output.write_text("yesterday's")
    for number in range(10):
        (data / "U" / f"broken{number}.png").write_bytes(b"")
    refused = call("rank", trained, data / "U", "-o", output)
    assert_refused(refused, "10 of 70 images", "--tolerate 0.15")
    assert output.read_text() == "yesterday's"
    assert call("rank", trained, data / "U", "-o", output, "--tolerate", "0.15").exit_code == 0


def test_images_are_brought_to_the_size_of_the_run(trained: Path, tmp_path: Path) -> None:
    draw(tmp_path / "large" / "photograph.png", 3, side=50)
    outcome, rows = ranked(trained, tmp_path / "large")
    assert (outcome.exit_code, len(rows)) == (0, 1)


def test_other_channels_than_the_run_has_are_refused_by_name(trained: Path, data: Path) -> None:
    (data / "U" / "radar.tif").write_bytes(tiff_bytes(gradient(8, 8, 6)))
    outcome = call("rank", trained, data / "U", "-o", data / "ranked.csv")
    assert_refused(outcome, "radar.tif has 6 channels", "3 channels (colour) are needed")


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_folder_without_images_is_named(trained: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    outcome = call("rank", trained, tmp_path / name, "-o", tmp_path / "ranked.csv")
    assert_refused(outcome, tmp_path / name)


def test_a_place_that_cannot_be_written_is_told_first(trained: Path, tmp_path: Path) -> None:
    # There are no items either, but nobody should wait for them to be scored.
    (tmp_path / "no-items").mkdir()
    words = ("rank", trained, tmp_path / "no-items", "-o")
    assert_refused(call(*words, tmp_path / "no" / "ranked.csv"), "no folder", tmp_path / "no")
    assert_refused(call(*words, tmp_path), tmp_path, "-o takes a file")


def test_a_folder_that_is_no_run_is_told(data: Path, tmp_path: Path) -> None:
    words = (data / "U", "-o", tmp_path / "ranked.csv")
    assert_refused(call("rank", tmp_path / "no", *words), "no run folder", tmp_path / "no")
    assert_refused(call("rank", data, *words), "not the folder of a finished run", data)
    file = data / "U" / "item00.png"
    assert_refused(call("rank", file, *words), "no run folder", file)


@pytest.mark.parametrize("kept", [0, 7, 100, -1])
def test_truncated_weights_are_refused(run: Path, data: Path, kept: int) -> None:
    weights = run / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    outcome = call("rank", run, data / "U", "-o", data / "ranked.csv")
    assert_refused(outcome, weights, "damaged")


def test_weights_of_another_network_are_refused(run: Path, data: Path, tmp_path: Path) -> None:
    model = json.loads((run / "model.json").read_text())
    model["backbone"]["width"] = 0.25
    (unlisted(run) / "model.json").write_text(json.dumps(model))
    outcome = call("rank", run, data / "U", "-o", data / "ranked.csv")
    assert_refused(outcome, "model.safetensors does not fit model.json")


def undigested(run: Path) -> Path:
    """Remove all checksums of a model, as one of an earlier version has none."""
    model = json.loads((unlisted(run) / "model.json").read_text())
    del model["weights_digest"]
    (run / "model.json").write_text(json.dumps(model))
    return run


def test_lost_weights_are_refused(run: Path, data: Path) -> None:
    tensors = load_file(run / "model.safetensors")
    tensors.pop(sorted(tensors)[0])
    save_file(tensors, undigested(run) / "model.safetensors")
    outcome = call("rank", run, data / "U", "-o", data / "ranked.csv")
    assert_refused(outcome, "model.safetensors does not fit model.json")


def test_weights_that_are_no_numbers_are_refused(run: Path, data: Path) -> None:
    tensors = load_file(run / "model.safetensors")
    save_file(
        {
            name: value * float("nan") if value.is_floating_point() else value
            for name, value in tensors.items()
        },
        undigested(run) / "model.safetensors",
    )
    outcome = call("rank", run, data / "U", "-o", data / "ranked.csv")
    assert_refused(outcome, "no numbers")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("", "damaged"),
        ("[1, 2]", "holds no JSON object"),
        ('{"method": "ce"}', "model.json"),
        ("method", "There is no method 'cee'. Did you mean 'ce'?"),
        ("threshold", "threshold"),
        ("mean", "1 means and 1 standard deviations"),
    ],
)
def test_a_damaged_description_is_refused(run: Path, data: Path, damage: str, said: str) -> None:
    model = json.loads((run / "model.json").read_text())
    changed = {
        "method": {**model, "method": "cee"},
        "threshold": {**model, "threshold": 7},
        "mean": {**model, "mean": [0.5], "std": [0.5]},
    }
    text = json.dumps(changed[damage]) if damage in changed else damage
    (unlisted(run) / "model.json").write_text(text)
    outcome = call("rank", run, data / "U", "-o", data / "ranked.csv")
    assert_refused(outcome, said)


def test_a_model_of_vectors_cannot_rank_images(tmp_path: Path, data: Path) -> None:
    rows = [
        f"{word},{number % 3},{number % 5}"
        for word in ("positive", "unlabelled")
        for number in range(20)
    ]
    (tmp_path / "numbers.csv").write_text("\n".join(["label,a,b", *rows]))
    run = tmp_path / "vectors"
    words = ("--table", tmp_path / "numbers.csv", "-o", run, *TINY, "--allow-degenerate")
    assert call("fit", *words).exit_code == 0
    outcome = call("rank", run, data / "U", "-o", data / "ranked.csv")
    assert_refused(outcome, "vectors of 2 numbers")


def test_a_table_of_numbers_is_ranked_by_the_names_of_its_columns(tmp_path: Path) -> None:
    numbers = [(number % 7, number % 5 - 9, 100 * (number % 3)) for number in range(40)]
    rows = [
        f"{'positive' if number < 20 else 'unlabelled'},{age},{height},{width},item{number}"
        for number, (age, height, width) in enumerate(numbers)
    ]
    trained_on = tmp_path / "trained-on.csv"
    trained_on.write_text("\n".join(["label,Age,Height,Width,name", *rows]))
    run = tmp_path / "run"
    words = ("--table", trained_on, "-o", run, *TINY, "--allow-degenerate", "--quiet")
    assert call("fit", *words).exit_code == 0
    _, expected = ranked(run, trained_on)
    assert len({row["score"] for row in expected}) > 10
    other = tmp_path / "other.csv"
    rows = [
        f"{width},note,item{number},{age},{height}"
        for number, (age, height, width) in enumerate(numbers)
    ]
    other.write_text("\n".join(["width,remark,name,age,height", *rows]))
    outcome, found = ranked(run, other)
    assert found == expected
    assert outcome.err.count("other.csv: columns that were not used: remark.") == 1
    assert "not used" not in ranked(run, other, "--quiet")[0].err
    other.write_text(other.read_text().replace("height", "heights"))
    outcome = call("rank", run, other, "-o", tmp_path / "ranked.csv")
    assert_refused(outcome, "no column 'Height'", "Did you mean 'heights'?")


def test_model_files_alone_are_enough(run: Path, data: Path) -> None:
    for path in run.iterdir():
        if not path.name.startswith("model."):
            path.unlink()
    assert len(ranked(run, data / "U")[1]) == 60


def test_all_that_was_skipped_is_listed_beside_the_ranking(trained: Path, data: Path) -> None:
    (data / "U" / "=1+1.png").write_bytes(b"")
    outcome, _ = ranked(trained, data / "U")
    listed = data / "ranked.skipped.csv"
    assert f"listed in {listed}" in outcome.err
    with listed.open(newline="") as file:
        assert list(csv.reader(file)) == [["item", "reason"], ["U/=1+1.png", "is empty (0 bytes)"]]
    told = json.loads(ranked(trained, data / "U", "--json")[0].out)
    assert (told["skipped_count"], told["skipped_file"]) == (1, str(listed))


def test_a_table_of_files_is_ranked(trained: Path, data: Path) -> None:
    table = data / "list.csv"
    names = sorted(path.name for path in (data / "U").iterdir())[:20]
    table.write_text("\n".join(["path", *(f"U/{name}" for name in names)]))
    outcome, rows = ranked(trained, table)
    assert outcome.exit_code == 0
    assert {row["item"] for row in rows} == {f"U/{name}" for name in names}


def test_the_page_shows_the_best_and_loads_nothing(trained: Path, data: Path) -> None:
    (data / "U" / "item00.png").rename(data / "U" / "<img src=x onerror=alert(1)>.png")
    page = data / "ranked.html"
    outcome, rows = ranked(trained, data / "U", "--top", "60", "--page", page)
    assert outcome.exit_code == 0, outcome.err
    text = page.read_text(encoding="utf-8")
    assert text.count("<li>") == text.count("data:image/png;base64,") == 60
    places = [text.index(f"{row['item']}, score") for row in rows if "<" not in row["item"]]
    assert places == sorted(places)
    assert "<img src=x" not in text
    assert "&lt;img src=x" in text
    assert "http://" not in text
    assert "https://" not in text
    few = ranked(trained, data / "U", "--top", "3", "--page", page)[0]
    assert few.exit_code == 0
    assert page.read_text(encoding="utf-8").count("<li>") == 3


def test_a_page_that_cannot_be_written_is_told_first(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "no-items").mkdir()
    words = ("rank", trained, tmp_path / "no-items", "-o", tmp_path / "ranked.csv", "--page")
    assert_refused(call(*words, tmp_path), tmp_path, "--page takes a file")
    assert_refused(call(*words, tmp_path / "no" / "x.html"), "no folder", tmp_path / "no")


@pytest.mark.slow
def test_killed_without_warning_a_ranking_goes_on_to_the_same_bytes(
    trained: Path, tmp_path: Path
) -> None:
    picture = draw(tmp_path / "picture.png", seed=1)
    (tmp_path / "many").mkdir()
    for number in range(8000):
        os.link(picture, tmp_path / "many" / f"{number}.png")
    words = [sys.executable, "-m", "onesided", "rank", str(trained), str(tmp_path / "many"), "-o"]
    journal = tmp_path / "ranked.csv.partial" / "scores"
    process = subprocess.Popen(
        [*words, str(tmp_path / "ranked.csv")],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
    )
    while process.poll() is None and not (
        journal.exists() and journal.read_bytes().count(b"\n") > 2
    ):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "ranked.csv").exists()
    outcome = call("rank", trained, tmp_path / "many", "-o", tmp_path / "ranked.csv")
    assert "Resuming after" in outcome.err
    call("rank", trained, tmp_path / "many", "-o", tmp_path / "whole.csv")
    assert (tmp_path / "ranked.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert not list(tmp_path.glob("*.partial"))
