import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onesided.data.read.files import ACCEPTED_ENDINGS
from tests.cli.command import TINY, Outcome, assert_refused, call, fit
from tests.cli.pictures import draw, draw_data, picture
from tests.data.image_files import gradient, tiff_bytes


def fit_folders(positives: Path, unlabelled: Path, output: Path, *words: object) -> Outcome:
    folders = ("-p", positives, "-u", unlabelled, "-o", output)
    return call("fit", *folders, *TINY, "--quiet", "--allow-degenerate", *words)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Barely enough to train on: 12 positives, 20 unlabelled."""
    return draw_data(tmp_path / "small", positives=12, unlabelled=20)


def test_a_missing_folder_is_named_with_the_accepted_endings(data: Path, tmp_path: Path) -> None:
    outcome = fit_folders(tmp_path / "nowhere", data / "U", tmp_path / "run")
    assert_refused(outcome, tmp_path / "nowhere", "does not exist", *ACCEPTED_ENDINGS)
    assert not (tmp_path / "run").exists()


def test_an_empty_folder_is_named(data: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    outcome = fit_folders(data / "P", tmp_path / "empty", tmp_path / "run")
    assert_refused(outcome, tmp_path / "empty", "holds no image", "found nothing", ".png")


def test_a_folder_of_other_files_is_named_with_what_it_holds(data: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.docx").write_text("no image")
    outcome = fit_folders(tmp_path / "other", data / "U", tmp_path / "run")
    assert_refused(outcome, tmp_path / "other", "holds no image", "1 .docx", ".png")


def test_a_file_instead_of_a_folder_is_named(data: Path, tmp_path: Path) -> None:
    file = data / "P" / "red00.png"
    assert_refused(fit_folders(file, data / "U", tmp_path / "run"), file, "not a folder")


def spoil(folder: Path) -> set[str]:
    """Add five files that look like images and cannot be read; return their names."""
    (folder / "empty.png").write_bytes(b"")
    (folder / "text.jpg").write_text("this is a diary")
    draw(folder / "truncated.png", 1)
    whole = (folder / "truncated.png").read_bytes()
    (folder / "truncated.png").write_bytes(whole[: len(whole) // 2])
    # The size stands at bytes 16 to 24 of a PNG; 60000 x 60000 would take 10 GB.
    draw(folder / "huge.png", 2)
    header = bytearray((folder / "huge.png").read_bytes())
    header[16:24] = (60000).to_bytes(4, "big") * 2
    (folder / "huge.png").write_bytes(bytes(header))
    (folder / "link.png").symlink_to(folder / "gone.png")
    return {"empty.png", "text.jpg", "truncated.png", "huge.png", "link.png"}


def test_too_many_unreadable_files_are_refused_with_the_way_out(small: Path) -> None:
    spoil(small / "U")
    outcome = fit(small, small / "run")
    assert_refused(outcome, "5 of 25 images", small / "U", "5 %", "empty.png", "--tolerate 0.2")


def test_unreadable_files_are_skipped_and_listed_if_tolerated(small: Path) -> None:
    names = spoil(small / "U")
    assert fit(small, small / "run", "--tolerate", "0.2").exit_code == 0
    result = json.loads((small / "run" / "result.json").read_text())
    assert {name for name, _ in result["skipped"]} == {f"U/{name}" for name in names}
    assert all(len(reason) > 10 for _, reason in result["skipped"])
    assert result["n_unlabelled"] == 16


def test_unreadable_files_are_told_in_the_terminal(small: Path) -> None:
    names = spoil(small / "U")
    (small / "U" / "z.png").write_bytes(b"")
    folders = ("-p", small / "P", "-u", small / "U", "-o", small / "run", "--tolerate", "0.3")
    outcome = call("fit", *folders, *TINY, "--allow-degenerate")
    assert outcome.exit_code == 0
    for name in names:
        assert f"Skipped U/{name}: it " in outcome.err
    assert "And 1 more file that cannot be read." in outcome.err


def test_a_few_unreadable_files_need_no_permission(small: Path) -> None:
    for number in range(20, 40):
        draw(small / "U" / f"item{number}.png", 5000 + number)
    (small / "U" / "empty.png").write_bytes(b"")
    assert fit(small, small / "run").exit_code == 0


def test_lost_positives_do_not_hide_behind_a_large_pool(data: Path) -> None:
    for number in range(3):
        (data / "P" / f"empty{number}.png").write_bytes(b"")
    assert_refused(fit(data, data / "run"), "3 of 33 images", data / "P")


@pytest.mark.parametrize(("scenario", "left"), [("single-set", 14), ("case-control", 17)])
def test_files_in_both_folders_are_counted_and_treated_as_the_scenario_says(
    small: Path, scenario: str, left: int
) -> None:
    for number in range(3):
        copied = (small / "P" / f"red{number:02}.png").read_bytes()
        (small / "U" / f"item{number:02}.png").write_bytes(copied)
    fit(small, small / "run", "--set", f"data.scenario={scenario}")
    result = json.loads((small / "run" / "result.json").read_text())
    notice, *_ = result["notices"]
    assert notice.startswith("3 unlabelled files are also among the positives (same content)")
    assert ("dropped" in notice) == (scenario == "single-set")
    assert result["n_unlabelled"] == left


def test_the_same_folder_twice_is_noticed(data: Path, tmp_path: Path) -> None:
    outcome = fit_folders(data / "P", data / "P", tmp_path / "run")
    assert_refused(outcome, "Is the same folder given twice?")


def test_nine_positives_are_too_few(tmp_path: Path) -> None:
    folder = draw_data(tmp_path, positives=9, unlabelled=20)
    assert_refused(fit(folder, tmp_path / "run"), "9 positives are too few", "at least 10")


def test_a_batch_larger_than_the_data_is_refused_with_the_largest_that_fits(small: Path) -> None:
    outcome = fit(small, small / "run", "--set", "train.batch_size=64")
    assert_refused(outcome, "train.batch_size is 64", "only 26 training samples", "at most 26")
    assert not (small / "run").exists()


def test_images_of_several_sizes_are_brought_to_one(small: Path) -> None:
    draw(small / "U" / "large.png", 7, side=40)
    assert fit(small, small / "run").exit_code == 0
    model = json.loads((small / "run" / "model.json").read_text())
    assert model["sample_shape"] == [3, 32, 32]


def test_grey_images_among_colour_are_repeated_and_told(small: Path) -> None:
    picture(1).convert("L").save(small / "U" / "grey.png")
    folders = ("-p", small / "P", "-u", small / "U", "-o", small / "run")
    outcome = call("fit", *folders, *TINY, "--allow-degenerate")
    assert outcome.exit_code == 0
    assert "1 of 33 images are grey" in outcome.err
    assert "U/grey.png" in outcome.err


def test_another_number_of_channels_is_refused_by_name(small: Path) -> None:
    (small / "U" / "radar.tif").write_bytes(tiff_bytes(gradient(8, 8, 6)))
    outcome = fit(small, small / "run")
    assert_refused(outcome, "U/radar.tif has 6 channels", "3 channels (colour) are needed")


def test_test_images_of_another_kind_are_refused_by_name(small: Path) -> None:
    draw(small / "T" / "negative" / "b.png", 1)
    (small / "T" / "positive").mkdir()
    Image.fromarray(np.zeros((8, 8, 4), np.uint8)).save(small / "T" / "positive" / "a.png")
    (small / "T" / "positive" / "radar.tif").write_bytes(tiff_bytes(gradient(8, 8, 6)))
    outcome = fit(small, small / "run", "--test", small / "T")
    assert_refused(outcome, "T/positive/radar.tif has 6 channels")


def test_a_test_folder_needs_both_classes_by_these_names(small: Path) -> None:
    draw(small / "T" / "damaged" / "a.png", 1)
    draw(small / "T" / "intact" / "b.png", 2)
    outcome = fit(small, small / "run", "--test", small / "T")
    assert_refused(outcome, "`positive` and `negative`", "it holds damaged, intact")


def test_supervised_learning_of_own_data_is_refused_with_the_reason(small: Path) -> None:
    outcome = fit(small, small / "run", "--method", "supervised")
    assert_refused(outcome, "Supervised needs the true class", "onesided methods")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["path,label"], ["no row is positive; found no rows"]),
        (["path,label", "P/red00.png,positive"], ["no row is unlabelled; found positive"]),
        (["path,label", "P/red00.png,1"], ["line 2", "'1'", "positive, unlabelled or negative"]),
        (["path", "P/red00.png"], ["no column 'label'"]),
        ([""], ["empty", "path,label"]),
        (["label,x", "positive,inf", "unlabelled,1"], ["line 2", "column 'x'", "'inf'"]),
        (["path,label", "P/no.png,positive", "U/item00.png,unlabelled"], ["P/no.png"]),
    ],
)
def test_a_bad_table_is_refused_with_the_line(
    small: Path, lines: list[str], words: list[str]
) -> None:
    table = small / "items.csv"
    table.write_text("\n".join(lines))
    outcome = call("fit", "--table", table, "-o", small / "run", "--quiet")
    assert_refused(outcome, table, *words)


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    outcome = call("fit", "--table", tmp_path / "no.csv", "-o", tmp_path / "run")
    assert_refused(
        outcome, "There is no table", tmp_path / "no.csv", "the columns label, and path or"
    )


def test_an_endless_cell_does_not_fill_the_screen(tmp_path: Path) -> None:
    rows = [f"{'positive' if row < 20 else 'unlabelled'},{row}" for row in range(60)]
    rows[3] = f"positive,{'9' * 100_000}"
    (tmp_path / "own.csv").write_text("\n".join(["label,weight", *rows, ""]))
    outcome = call("fit", "--table", tmp_path / "own.csv", "-o", tmp_path / "run", *TINY)
    assert_refused(outcome, "only finite numbers", "999...999")
    assert len(outcome.err) < 1000
