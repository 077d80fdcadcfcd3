import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onesided.core.errors import DataError, DataNotFound
from onesided.report.page import render
from onesided.report.runfiles import read_run
from tests.report.fake_run import EPOCHS, N_UNLABELLED, write_fake_run, write_json


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fake_run(tmp_path_factory.mktemp("runs") / "quake", side=8)


@pytest.fixture
def run(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "quake"))


def change_arrays(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    with np.load(run / "report.npz") as archive:
        arrays = dict(archive)
    change(arrays)
    np.savez(run / "report.npz", **arrays)


def test_a_whole_run_is_read_without_complaint(run: Path) -> None:
    files = read_run(run)
    assert files.notes == ()
    assert len(files.epochs) == EPOCHS
    assert files.ranking is not None
    assert len(files.ranking.scores) == N_UNLABELLED
    assert list(files.thumbnails) == ["top", "threshold", "bottom", "doubted"]
    assert files.positive_scores is not None
    assert files.embedding is not None
    assert len(files.comparison) == 5


def test_the_number_called_positive_is_counted_from_the_decisions(run: Path) -> None:
    rows = ["item,score,rank,decision", "a,0.9,1,positive", "b,0.8,2,positive", "c,.1,3,negative"]
    (run / "scores.csv").write_text("\n".join(rows))
    ranking = read_run(run).ranking
    assert ranking is not None
    assert ranking.called_positive == 2
    assert ranking.scores.tolist() == [0.9, 0.8, 0.1]


def test_scores_that_are_not_finite_are_left_out_and_named(run: Path) -> None:
    (run / "scores.csv").write_text("item,score,rank,decision\na,0.9,1,positive\nb,nan,2,negative")
    files = read_run(run)
    assert files.ranking is None
    assert "not finite numbers" in files.notes[0]


def test_a_table_without_decisions_is_left_out_and_named(run: Path) -> None:
    (run / "scores.csv").write_text("path,score\na,0.9")
    (note,) = read_run(run).notes
    assert "no columns score and decision" in note


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound, match=r"no run folder .*nowhere"):
        read_run(tmp_path / "nowhere")


def test_a_run_without_result_is_not_finished(run: Path) -> None:
    (run / "result.json").unlink()
    with pytest.raises(DataNotFound, match="not finished: run the same fit command again"):
        read_run(run)


@pytest.mark.parametrize(
    "content", [b"", b'{"method": ', b"[1, 2]", b"\xff\xfe\x00", b"[" * 99_999]
)
def test_a_damaged_result_asks_for_the_same_command(run: Path, content: bytes) -> None:
    (run / "result.json").write_bytes(content)
    with pytest.raises(DataError, match=r"result\.json .*run the same fit command again"):
        read_run(run)


@pytest.mark.parametrize(
    "name", ["manifest.json", "compare.json", "log.jsonl", "scores.csv", "report.npz"]
)
def test_every_other_file_may_be_missing(run: Path, name: str) -> None:
    (run / name).unlink()
    assert read_run(run).notes == ()


@pytest.mark.parametrize(
    "name", ["manifest.json", "compare.json", "log.jsonl", "scores.csv", "report.npz"]
)
@pytest.mark.parametrize("content", [b"\x00\xff garbage, not a file", b"PK\x03\x04 torn"])
def test_a_damaged_file_is_left_out_and_named(run: Path, name: str, content: bytes) -> None:
    (run / name).write_bytes(content)
    (note,) = read_run(run).notes
    assert name in note
    assert "could not be read" in note


@pytest.mark.parametrize(
    "name", ["manifest.json", "compare.json", "log.jsonl", "scores.csv", "report.npz"]
)
def test_a_folder_in_place_of_a_file_is_left_out_and_named(run: Path, name: str) -> None:
    (run / name).unlink()
    (run / name).mkdir()
    (note,) = read_run(run).notes
    assert note.startswith(f"{name} could not be read")


def test_a_torn_last_line_costs_only_that_line(run: Path) -> None:
    with (run / "log.jsonl").open("a") as log:
        log.write('{"stage": "train", "epo')
    files = read_run(run)
    assert len(files.epochs) == EPOCHS
    assert files.notes == (f"log.jsonl: 1 of {EPOCHS + 1} lines could not be read.",)


def test_an_epoch_that_was_logged_again_after_a_resume_counts_once(run: Path) -> None:
    rows = [("train", 0, 1.0), ("train", 1, 2.0), ("train", 1, 3.0), ("tune", 1, 4.0)]
    lines = [json.dumps({"stage": s, "epoch": e, "loss": {"total": v}}) for s, e, v in rows]
    (run / "log.jsonl").write_text("\n".join(lines))
    assert [epoch.loss["total"] for epoch in read_run(run).epochs] == [1.0, 3.0, 4.0]


def test_values_that_are_no_numbers_are_as_good_as_missing(run: Path) -> None:
    (run / "log.jsonl").write_text(
        '{"stage": "train", "epoch": 0, "loss": {"a": NaN, "b": "x", "c": 1}, '
        '"watched": null, "share_positive": true, "proxy_auc": Infinity}'
    )
    (epoch,) = read_run(run).epochs
    assert epoch.loss == {"c": 1.0}
    assert (epoch.watched, epoch.share_positive, epoch.proxy_auc) == ({}, None, None)


def test_names_that_are_not_utf8_do_not_cost_the_ranking(run: Path) -> None:
    (run / "scores.csv").write_bytes(
        b'item,score,rank,decision\n"b\xfcro,\n.png",0.7,1,positive\nb,0.2,2,negative\n'
    )
    ranking = read_run(run).ranking
    assert ranking is not None
    assert (len(ranking.scores), ranking.called_positive) == (2, 1)


def test_an_array_that_would_run_code_is_refused(run: Path, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return (Path.touch, (str(tmp_path / "exploded"),))

    np.savez(run / "report.npz", positive_scores=np.array([Bomb()], dtype=object))
    (note,) = read_run(run).notes
    assert "report.npz could not be read" in note
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("top_images", np.zeros((16, 8, 8, 6), np.uint8)),
        ("top_images", np.zeros((16, 8, 8, 3), np.float32)),
        ("top_images", np.zeros((3, 8, 8, 3), np.uint8)),
        ("top_images", np.uint8(1)),
        ("top_scores", np.zeros(5)),
        ("top_names", np.arange(16)),
    ],
)
def test_thumbnails_of_a_wrong_shape_are_left_out_and_named(
    run: Path, key: str, value: np.ndarray
) -> None:
    change_arrays(run, lambda arrays: arrays.update({key: value}))
    files = read_run(run)
    assert list(files.thumbnails) == ["threshold", "bottom", "doubted"]
    assert "the pictures of the group top are left out" in files.notes[0]


@pytest.mark.parametrize("roles", [np.zeros(3, int), np.zeros(1500), np.array(0)])
def test_an_embedding_of_a_wrong_shape_is_left_out_and_named(run: Path, roles: np.ndarray) -> None:
    change_arrays(run, lambda arrays: arrays.update(embedding_role=roles))
    files = read_run(run)
    assert files.embedding is None
    assert "the picture of items as points is left out" in files.notes[0]


def test_points_that_are_nowhere_are_not_drawn(run: Path) -> None:
    points = np.array([[0.0, 1.0], [np.nan, 1.0], [2.0, np.inf]])
    roles = np.array([0, 1, 2])
    change_arrays(run, lambda arrays: arrays.update(embedding=points, embedding_role=roles))
    embedding = read_run(run).embedding
    assert embedding is not None
    assert embedding.points.tolist() == [[0.0, 1.0]]
    assert embedding.roles.tolist() == [0]


def test_a_comparison_that_is_no_list_of_rows_is_no_comparison(run: Path) -> None:
    write_json(run / "compare.json", {"method": "ncpu"})
    assert read_run(run).comparison == ()


def test_a_run_of_an_earlier_version_has_the_name_of_today(run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    write_json(run / "result.json", {**result, "variant": "budget"})
    (run / "compare" / "ncpu").mkdir(parents=True)
    write_json(run / "compare" / "ncpu" / "result.json", {**result, "variant": "features"})
    rows = [{"method": "ncpu", "seed": 0}, {"method": "ncpu", "seed": 1}, {"method": "ce"}]
    write_json(run / "compare.json", rows)
    read = read_run(run)
    assert (read.result["method"], read.result["title"]) == ("teacher", "Teacher")
    named = [(row["method"], row["variant"]) for row in read.comparison]
    assert named == [("teacher", "plain"), ("teacher", "features"), ("ce", None)]
    page = render(read)
    assert "Trained by Teacher." in page
    assert "onesided methods teacher" in page
    assert "ncpu" not in page.partition("<main>")[0]
