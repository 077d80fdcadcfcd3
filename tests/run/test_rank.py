import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from onesided.core.errors import CheckpointError, DataError, DataNotFound
from onesided.data.problem import samples
from onesided.data.read.files import Found, find_images
from onesided.data.read.images import decode_all, decode_chunk
from onesided.engine.model_file import ModelDescription, load_model, save_model
from onesided.nets.build import BackboneConfig
from onesided.run.rank import Ranking, alarm_of, rank_items
from tests.data.image_files import write_png


def describe(
    shape: tuple[int, ...] = (3, 8, 8), feature_names: tuple[str, ...] = ()
) -> ModelDescription:
    numbers = (0.5,) * shape[0]
    return ModelDescription(
        method="ce",
        settings={},
        backbone=BackboneConfig(width=0.125),
        sample_shape=shape,
        mean=numbers,
        std=numbers,
        kind="photograph" if len(shape) == 3 else "vector",
        feature_names=feature_names,
    )


def save(
    folder: Path, shape: tuple[int, ...] = (3, 8, 8), feature_names: tuple[str, ...] = ()
) -> Path:
    """Write the files of a model whose weights are as drawn."""
    folder.mkdir()
    description = describe(shape, feature_names)
    save_model(folder, description.build(), description)
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return save(tmp_path / "run")


@pytest.fixture
def items(tmp_path: Path) -> Path:
    for number in range(10):
        write_png(tmp_path / "items" / f"{number}.png", seed=number)
    return tmp_path / "items"


@pytest.fixture
def chunks_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "CHUNK_ITEMS", 4)


def rows_of(table: Path) -> list[dict[str, str]]:
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def ranked(run: Path, items: Path, tolerate: float = 0.0, **wanted: int) -> list[dict[str, str]]:
    output = items.parent / "ranked.csv"
    rank_items(run, items, output, tolerate=tolerate, top=wanted.get("top"))
    assert not (items.parent / "ranked.csv.partial").exists()
    return rows_of(output)


def test_scores_are_those_of_the_model_for_the_images(run: Path, items: Path) -> None:
    found = find_images(items)
    predictor, _ = load_model(run)
    scores = predictor.scores(decode_all(found, channels=3, size=(8, 8)).values)
    order = np.argsort(-scores)
    rows = ranked(run, items)
    assert [row["item"] for row in rows] == [f"items/{found[row].name}" for row in order]
    np.testing.assert_allclose([float(row["score"]) for row in rows], scores[order], rtol=1e-8)
    assert ranked(run, items, top=3) == rows[:3]


@pytest.mark.usefixtures("chunks_of_four")
def test_progress_is_reported_for_every_chunk(run: Path, items: Path) -> None:
    heard: list[tuple[int, int]] = []
    output = items.parent / "ranked.csv"
    rank_items(run, items, output, tolerate=0, progress=lambda *done: heard.append(done))
    assert heard == [(4, 10), (8, 10), (10, 10)]


def test_large_images_come_in_smaller_chunks(
    run: Path, items: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "CHUNK_BYTES", 3 * (3 * 8 * 8) + 1)
    heard: list[tuple[int, int]] = []
    output = items.parent / "ranked.csv"
    rank_items(run, items, output, tolerate=0, progress=lambda *done: heard.append(done))
    assert heard == [(3, 10), (6, 10), (9, 10), (10, 10)]


def test_chunks_change_nothing_but_memory(run: Path, items: Path) -> None:
    whole = ranked(run, items)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "CHUNK_ITEMS", 4)
        parts = ranked(run, items)
    assert [row["item"] for row in parts] == [row["item"] for row in whole]
    np.testing.assert_allclose(
        [float(row["score"]) for row in parts], [float(row["score"]) for row in whole], rtol=1e-6
    )


@pytest.mark.usefixtures("chunks_of_four")
@pytest.mark.parametrize("after", [4, 8, 10])
def test_a_stopped_ranking_goes_on_and_ends_with_the_same_bytes(
    run: Path, items: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (items / "5.png").write_bytes(b"")
    output, whole = items.parent / "ranked.csv", items.parent / "whole.csv"
    rank_items(run, items, whole, tolerate=0.1)

    def stop(done: int, total: int) -> None:
        if done == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rank_items(run, items, output, tolerate=0.1, progress=stop)
    assert not output.exists()
    read: list[str] = []

    def noted(found: list[Found], **wanted: object) -> object:
        read.extend(file.name for file in found)
        return decode_chunk(found, **wanted)  # type: ignore[arg-type]

    monkeypatch.setattr("onesided.data.read.items.decode_chunk", noted)
    notices: list[str] = []
    rank_items(run, items, output, tolerate=0.1, notify=notices.append)
    assert read == [f"{number}.png" for number in range(after, 10)]
    assert notices == [f"Resuming after {after} of 10 items, scored by a stopped command."]
    assert output.read_bytes() == whole.read_bytes()
    skipped = items.parent / "ranked.skipped.csv"
    assert skipped.read_bytes() == (items.parent / "whole.skipped.csv").read_bytes()
    assert not list(items.parent.glob("*.partial"))


@pytest.mark.usefixtures("chunks_of_four")
def test_a_chunk_without_one_readable_image_does_not_end_the_ranking(
    run: Path, items: Path
) -> None:
    for number in range(4, 8):  # exactly the second chunk
        (items / f"{number}.png").write_bytes(b"")
    output = items.parent / "ranked.csv"
    ranking: Ranking = rank_items(run, items, output, tolerate=0.4)
    assert (ranking.items, ranking.written, ranking.skipped) == (6, 6, 4)
    assert [name for name, _ in ranking.first_skipped] == [f"items/{n}.png" for n in range(4, 8)]
    assert all("empty" in reason for _, reason in ranking.first_skipped)
    assert ranking.skipped_file is not None
    assert [row["item"] for row in rows_of(ranking.skipped_file)] == [
        name for name, _ in ranking.first_skipped
    ]
    with pytest.raises(DataError, match="4 of 10 images"):
        rank_items(run, items, output, tolerate=0.3)
    for number in range(4, 8):
        write_png(items / f"{number}.png", seed=number)
    assert rank_items(run, items, output, tolerate=0).skipped_file is None
    assert rows_of(items.parent / "ranked.skipped.csv") == [], "no list of yesterday stays"


def test_no_readable_image_is_refused_whatever_is_tolerated(run: Path, items: Path) -> None:
    for path in items.iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataNotFound, match="none of 10 files can be read"):
        ranked(run, items, tolerate=1)


def test_the_best_come_with_a_picture_of_their_own_size(run: Path, items: Path) -> None:
    write_png(items / "wide.png", seed=77, shape=(100, 600, 3))
    output = items.parent / "ranked.csv"
    ranking = rank_items(run, items, output, tolerate=0, best=11)
    assert [best.name for best in ranking.best] == [row["item"] for row in rows_of(output)]
    pictures = {best.name: best.picture for best in ranking.best}
    shapes = {name: seen.shape for name, seen in pictures.items() if isinstance(seen, np.ndarray)}
    assert shapes["items/wide.png"] == (3, 43, 256)
    assert shapes["items/0.png"] == (3, 8, 8)


def test_a_table_lists_files_anywhere(run: Path, items: Path) -> None:
    table = items.parent / "list.csv"
    lines = ["extra;path", *(f"{number};items/{number}.png" for number in (7, 3, 5))]
    table.write_text("\n".join(lines))
    of_folder = {row["item"]: row["score"] for row in ranked(run, items)}
    of_table = {row["item"]: row["score"] for row in ranked(run, table)}
    assert set(of_table) == {"items/3.png", "items/5.png", "items/7.png"}
    for name, score in of_table.items():
        assert float(score) == pytest.approx(float(of_folder[name]), rel=1e-6)


def test_a_table_may_list_missing_files_and_fewer_than_tolerated_are_skipped(
    run: Path, items: Path
) -> None:
    table = items.parent / "list.csv"
    table.write_text("path\nitems/1.png\nitems/missing.png\n")
    ranking = rank_items(run, table, items.parent / "ranked.csv", tolerate=0.5)
    assert ranking.first_skipped == (("items/missing.png", "does not exist"),)


NUMBERS = "name,a,b,label\none,1,2,unlabelled\ntwo,3,,negative\nthree,5,6,whatever\n"


def test_rows_of_numbers_are_ranked_and_gaps_skipped(tmp_path: Path) -> None:
    run, table = save(tmp_path / "vectors", (2,)), tmp_path / "numbers.csv"
    table.write_text(NUMBERS)
    ranking = rank_items(run, table, tmp_path / "ranked.csv", tolerate=0.4, best=2)
    assert ranking.first_skipped == (
        ("two", "cannot be used: line 3, column 'b' holds '', which is not a number"),
    )
    predictor, _ = load_model(run)
    scores = predictor.scores(np.array([[1, 2], [5, 6]], np.float32))
    rows = {row["item"]: float(row["score"]) for row in rows_of(tmp_path / "ranked.csv")}
    assert rows == {
        "one": pytest.approx(scores[0], rel=1e-8),
        "three": pytest.approx(scores[1], rel=1e-8),
    }
    assert [best.picture for best in ranking.best] == [None, None]


@pytest.mark.parametrize(
    ("shape", "text", "words"),
    [
        ((3,), NUMBERS, r"vectors of 3 numbers.*2 columns of numbers \(a, b\)"),
        ((3, 8, 8), NUMBERS, "trained on images.*no column 'path'"),
        ((2,), "path\nx.png\n", "vectors of 2 numbers; it cannot rank the files that"),
        ((2,), "", "the table is empty"),
        ((2,), "a,a\n1,2\n", "two columns are called 'a'"),
        ((2,), "a,b\n1,2,3\n", "line 2: 3 cells"),
    ],
)
def test_a_table_that_does_not_fit_the_model_is_refused(
    tmp_path: Path, shape: tuple[int, ...], text: str, words: str
) -> None:
    run, table = save(tmp_path / "model", shape), tmp_path / "table.csv"
    table.write_text(text)
    with pytest.raises(DataError, match=words):
        rank_items(run, table, tmp_path / "ranked.csv", tolerate=0)
    assert not (tmp_path / "ranked.csv.partial").exists()


ORDERS = {
    "as trained": "name,Age,Height\none,1,2\ntwo,3,4\n",
    "the other way round": "Height,Age,name\n2,1,one\n4,3,two\n",
    "in other letters": "HEIGHT , name,age\n2,one,1\n4,two,3\n",
    "with more columns": "name,note,height,label,age,width\none,x,2,,1,9\ntwo,,4,,3,\n",
}


@pytest.mark.parametrize("text", ORDERS.values(), ids=ORDERS.keys())
def test_columns_are_found_by_name_wherever_they_stand(tmp_path: Path, text: str) -> None:
    run, table = save(tmp_path / "vectors", (2,), ("Age", "Height")), tmp_path / "numbers.csv"
    table.write_text(text)
    notices: list[str] = []
    rank_items(run, table, tmp_path / "ranked.csv", tolerate=0, notify=notices.append)
    scores = load_model(run)[0].scores(np.array([[1, 2], [3, 4]], np.float32))
    rows = {row["item"]: float(row["score"]) for row in rows_of(tmp_path / "ranked.csv")}
    assert rows == pytest.approx({"one": scores[0], "two": scores[1]}, rel=1e-8)
    unused = ["numbers.csv: columns that were not used: note, width."]
    assert notices == (unused if "note" in text else [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "age,heights\n1,2\n",
            r"no column 'Height'\. .* trained with it\. Did you mean 'heights'\?",
        ),
        ("age\n1\n", r"no column 'Height'\..*The first line names: age\."),
        ("a,b\n1,2\n", r"no column 'Age' \(2 columns are missing\).*Did you mean 'a'\?"),
        (
            "name,label\nx,\n",
            r"no column 'Age' \(2 columns are missing\).*line names: name, label\.",
        ),
    ],
)
def test_a_missing_column_is_named_with_the_nearest(tmp_path: Path, text: str, words: str) -> None:
    run, table = save(tmp_path / "vectors", (2,), ("Age", "Height")), tmp_path / "numbers.csv"
    table.write_text(text)
    with pytest.raises(DataError, match=rf"numbers\.csv: there is {words}"):
        rank_items(run, table, tmp_path / "ranked.csv", tolerate=0)


def test_names_that_no_table_can_tell_apart_are_reported(tmp_path: Path) -> None:
    run, table = save(tmp_path / "vectors", (2,), ("a", "A")), tmp_path / "numbers.csv"
    table.write_text("a\n1\n")
    with pytest.raises(DataError, match="differ in capitals or spaces alone"):
        rank_items(run, table, tmp_path / "ranked.csv", tolerate=0)


def test_a_model_saved_without_names_is_checked_by_count(tmp_path: Path) -> None:
    run, table = save(tmp_path / "vectors", (2,)), tmp_path / "numbers.csv"
    description = json.loads((run / "model.json").read_text())
    del description["feature_names"]  # as files were written before there were names
    (run / "model.json").write_text(json.dumps(description))
    table.write_text("name,what,ever\none,1,2\n")
    assert rank_items(run, table, tmp_path / "ranked.csv", tolerate=0).items == 1
    table.write_text("name,what,ever,else\none,1,2,3\n")
    with pytest.raises(DataError, match=r"vectors of 2 numbers.*3 columns of numbers"):
        rank_items(run, table, tmp_path / "ranked.csv", tolerate=0)


def test_a_model_file_names_every_feature_or_none() -> None:
    for shape in ((2,), (3, 8, 8)):
        with pytest.raises(ValueError, match="there are 3 feature_names for samples"):
            describe(shape, ("a", "b", "c"))


def test_one_image_and_a_missing_table_are_refused(run: Path, items: Path) -> None:
    output = items.parent / "ranked.csv"
    with pytest.raises(DataError, match=r"0\.png is one image. Give the folder"):
        rank_items(run, items / "0.png", output, tolerate=0)
    with pytest.raises(DataNotFound, match=r"no table .*missing\.csv"):
        rank_items(run, items / "missing.csv", output, tolerate=0)


def test_weights_that_give_no_numbers_are_refused(run: Path, items: Path) -> None:
    description = describe()
    method = description.build()
    assert isinstance(method, torch.nn.Module)
    with torch.no_grad():
        for parameter in method.parameters():
            parameter.fill_(torch.nan)
    save_model(run, method, description)
    with pytest.raises(CheckpointError, match="no numbers"):
        ranked(run, items)
    assert not (items.parent / "ranked.csv.partial").exists()


def test_a_model_of_vectors_ranks_no_images(tmp_path: Path, items: Path) -> None:
    with pytest.raises(DataError, match="vectors of 5 numbers"):
        ranked(save(tmp_path / "vectors", (5,)), items)


def test_a_folder_that_is_no_run_is_refused(items: Path) -> None:
    for folder in (items / "no", items / "0.png"):
        with pytest.raises(DataNotFound, match="no run folder"):
            ranked(folder, items)


def test_the_alarm_of_a_run_is_known_where_its_result_is(run: Path) -> None:
    assert alarm_of(run) is None
    result = {"method": "ce", "seed": 0, "threshold": 0.5, "test": None, "warnings": []}
    result["scenario"] = "single-set"
    quiet: dict[str, object] = {"figures": {}, "degenerate": None}
    for pu, alarm in ((None, None), (quiet, None), ({**quiet, "degenerate": "!"}, "!")):
        (run / "result.json").write_text(json.dumps({**result, "pu": pu}))
        assert alarm_of(run) == alarm
