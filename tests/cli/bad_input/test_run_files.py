"""`onesided evaluate` and `report` on a run whose results somebody damaged."""

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.bad_input.refusals import (
    NO_JSON,
    Damage,
    assert_refused_untouched,
    cut,
    drop,
    each,
    make_folder,
    put,
    remove,
    write,
)
from tests.cli.command import call

FIGURE = {"name": "recall", "label": "Recall", "assumes": "", "low": None, "high": None}
RESULTS: dict[str, list[object]] = {
    "method": [5, None, []],
    "seed": ["x", None, 1.5],
    "threshold": ["0.5", None, 7, -1, float("nan"), []],
    "test": [5, "x", [], {"oa": "high"}, {"oa": []}],
    "pu": [5, "x", [1], {}, {"figures": {}}, {"figures": 5, "degenerate": None}],
    "pu.degenerate": [5, ["x"], {}],
    "pu.figures": [[], "x", {"recall": 5}, {"recall": {}}, {"recall": {**FIGURE, "value": "x"}}],
    "warnings": [5, "x", {"a": 1}, [5], None],
    "prior": [5, "x", {}, {"value": "x"}],
    "notices": [5, [5]],
    "scenario": ["cohort", 5],
    "threshold_rule": [5, "x", []],
    "known_negatives": [5, "x"],
}
WRONG_RESULTS = {
    f"{key} is {json.dumps(value)[:40]}": put(key, value)
    for key, values in RESULTS.items()
    for value in values
}


@each({**NO_JSON, **WRONG_RESULTS, **{f"{key} is lost": drop(key) for key in ("pu", "test")}})
def test_a_damaged_result_is_refused(run: Path, case: Damage) -> None:
    case(run / "result.json")
    assert_refused_untouched(run, "evaluate", run, said="result.json")


@each(
    {
        "a threshold": ("--threshold", "0.4"),
        "labels": ("--labels", "truth.csv"),
        "for machines": ("--json",),
    }
)
def test_a_damaged_result_is_refused_whatever_is_asked(run: Path, case: tuple[str, ...]) -> None:
    put("pu", "x")(run / "result.json")
    assert_refused_untouched(run, "evaluate", run, *case, said="result.json")


@each({**NO_JSON, "the result of another program": write('{"a": 1}')})
def test_a_page_of_a_damaged_result_is_refused(run: Path, case: Damage) -> None:
    case(run / "result.json")
    assert_refused_untouched(run, "report", run, said="result.json")


def arrays(change: Callable[[dict[str, np.ndarray]], object]) -> Damage:
    """Return what changes the arrays of an .npz file; objects are pickled."""

    def damage(path: Path) -> None:
        with np.load(path) as archive:
            content = {name: archive[name] for name in archive.files}
        change(content)
        with path.open("wb") as file:
            np.savez_compressed(file, allow_pickle=True, **content)

    return damage


def set_array(name: str, value: Any) -> Damage:  # noqa: ANN401 - whatever numpy takes
    return arrays(lambda content: content.update({name: np.asarray(value)}))


def change_array(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Damage:
    return arrays(lambda content: content.update({name: change(content[name])}))


def spoil_middle(path: Path) -> None:
    """Flip bytes of packed data, so that unpacking fails and not the list of contents."""
    raw = bytearray(path.read_bytes())
    for place in range(60, 90):
        raw[place] ^= 0xFF
    path.write_bytes(bytes(raw))


def members(content: dict[str, bytes]) -> Damage:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, raw in content.items():
            archive.writestr(name, raw)
    return write(stream.getvalue())


NO_ARRAYS: dict[str, Damage] = {
    "empty": write(b""),
    "text": write("scores"),
    "half of it": cut(0.5),
    "all but a byte": cut(0.999),
    "packed data spoiled": spoil_middle,
    "a single array": lambda path: path.write_bytes(_one_array()),
    "members that are no arrays": members({"train.npy": b"x", "train_labelled.npy": b"x"}),
    "members of other kinds": members({"train": b"x"}),
    "a folder": make_folder,
}


def _one_array() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.ones(3))
    return stream.getvalue()


SCORED: dict[str, Damage] = {
    **NO_ARRAYS,
    "missing": remove,
    "no members": members({}),
    "a pickled object": set_array("train", np.array([{"a": 1}], dtype=object)),
    "a stranger": set_array("stranger", [1.0]),
    "train lost": arrays(lambda content: content.pop("train")),
    "truth of whom is lost": arrays(lambda content: content.pop("held_out_labelled")),
    "words": set_array("train", ["a"] * 72),
    "complex numbers": change_array("train", lambda array: array.astype(complex)),
    "NaN": change_array("train", lambda array: array * np.nan),
    "infinity": change_array("held_out", lambda array: array + np.inf),
    "scores above one": change_array("held_out", lambda array: array + 5),
    "scores below zero": change_array("train", lambda array: array - 5),
    "one too few": change_array("train", lambda array: array[1:]),
    "two axes": arrays(
        lambda content: content.update(
            train=content["train"][None], train_labelled=content["train_labelled"][None]
        )
    ),
    "a scalar": arrays(
        lambda content: content.update(train=np.asarray(0.5), train_labelled=np.asarray(True))
    ),
    "numbers that say who is labelled": change_array(
        "train_labelled", lambda array: array.astype(np.int64) * 3
    ),
    "nobody at all": arrays(
        lambda content: content.update(train=np.empty(0), train_labelled=np.empty(0, bool))
    ),
    "nobody held out is labelled": change_array("held_out_labelled", np.zeros_like),
    "everybody held out is labelled": change_array("held_out_labelled", np.ones_like),
    "other items than scores.csv": arrays(
        lambda content: content.update(
            train=content["train"][:40], train_labelled=content["train_labelled"][:40]
        )
    ),
}


@each(SCORED)
def test_damaged_scores_do_not_move_a_threshold(run: Path, case: Damage) -> None:
    case(run / "scores.npz")
    assert_refused_untouched(run, "evaluate", run, "--threshold", "max-f1", said="scores.")


TABLES: dict[str, Damage] = {
    "missing": remove,
    "empty": write(""),
    "a folder": make_folder,
    "zero bytes": write(bytes(100)),
    "not UTF-8": write(b"item,score,rank,decision\n\xff,0.5,1,positive\n"),
    "no heading": write("U/item00.png,0.5,1,positive\n"),
    "only a heading": write("item,score,rank,decision\n"),
    "another table": write("a,b\n1,2\n"),
    "an open quote": write('item,score,rank,decision\n"U/item00.png,0.5,1,positive\n'),
    "short lines": write("item,score,rank,decision\nU/item00.png\n"),
    "half of it": cut(0.5),
}


@each(TABLES)
def test_a_damaged_list_of_scores_does_not_move_a_threshold(run: Path, case: Damage) -> None:
    case(run / "scores.csv")
    assert_refused_untouched(run, "evaluate", run, "--threshold", "0.4", said="scores.csv")


@each(
    {
        **{name: case for name, case in TABLES.items() if name != "half of it"},
        "words for scores": write("item,score\nU/item00.png,high\n"),
        "NaN for scores": write("item,score\nU/item00.png,nan\n"),
        "scores above one": write("item,score\nU/item00.png,7\n"),
    }
)
def test_a_damaged_list_of_scores_is_not_compared(run: Path, case: Damage) -> None:
    (run.parent / "truth.csv").write_text("item,label\nU/item00.png,positive\n")
    case(run / "scores.csv")
    words = ("--labels", run.parent / "truth.csv")
    assert_refused_untouched(run, "evaluate", run, *words, said="scores.csv")


@each(
    {
        **NO_ARRAYS,
        "a pickled object": set_array("embedding", np.array([{"a": 1}], dtype=object)),
    }
)
def test_damaged_pictures_do_not_leave_a_threshold_half_moved(run: Path, case: Damage) -> None:
    case(run / "report.npz")
    assert_refused_untouched(run, "evaluate", run, "--threshold", "0.4", said="report.npz")


@each({name: case for name, case in NO_JSON.items() if name != "missing"})
def test_a_damaged_description_does_not_leave_a_threshold_half_moved(
    run: Path, case: Damage
) -> None:
    case(run / "model.json")
    assert_refused_untouched(run, "evaluate", run, "--threshold", "0.4", said="model.json")


@each({"no TOML": write("[train\n"), "not UTF-8": write(b"\xff"), "a folder": make_folder})
def test_a_damaged_configuration_does_not_move_a_threshold(run: Path, case: Damage) -> None:
    case(run / "config.toml")
    assert_refused_untouched(run, "evaluate", run, "--threshold", "prior", said="config.toml")


RULES = (
    *("", " ", "x", "-0.1", "1.1", "nan", "inf", "1e400", "0,5", "0x1", "half", "true", "=", "=1"),
    *("recall", "recall=", "recall=0", "recall=1.1", "recall=nan", "recall=x", "recall=90%"),
    *("prior=0", "prior=1", "prior=", "prior=-1", "prior=x", "max-f1=1", "max-f1=", "f1", "maxf1"),
    *(
        "top-k",
        "top-k=0",
        "top-k=-5",
        "top-k=1.5",
        "top-k=x",
        "top-k=nan",
        "top-k=61",
        "top-k=1e30",
    ),
)


@pytest.mark.parametrize("rule", RULES)
def test_a_threshold_that_is_none_is_refused(run: Path, rule: str) -> None:
    assert_refused_untouched(run, "evaluate", run, f"--threshold={rule}", said="threshold")


LABELS: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "column 'label'"),
    "another table": ("a,b\n1,2\n", "column 'label'"),
    "only a heading": ("item,label\n", "lists no item"),
    "no column of names": ("x,label\nU/item00.png,positive\n", "item or path"),
    "an empty name": ("item,label\n,positive\n", "line 2"),
    "an empty label": ("item,label\nU/item00.png,\n", "positive or negative"),
    "a number for a label": ("item,label\nU/item00.png,1\n", "positive or negative"),
    "NaN for a label": ("item,label\nU/item00.png,nan\n", "positive or negative"),
    "unlabelled for a label": ("item,label\nU/item00.png,unlabelled\n", "positive or negative"),
    "both labels": ("item,label\na,positive\na,negative\n", "line 3"),
    "other names": ("item,label\nother.png,positive\n", "U/item"),
    "not UTF-8": (b"item,label\n\xff,positive\n", "UTF-8"),
    "UTF-16": ("item,label\nU/item00.png,positive\n".encode("utf-16"), "UTF-8"),
    "zero bytes": (bytes(50), "truth.csv"),
    "a spreadsheet": (b"PK\x03\x04" + bytes(range(256)), "truth.csv"),
    "a field without end": ('item,label\n"' + "x" * 200_000, "truth.csv"),
}


@each(LABELS)
def test_labels_that_are_none_are_refused(run: Path, case: tuple[str | bytes, str]) -> None:
    content, said = case
    write(content)(run.parent / "truth.csv")
    words = ("--labels", run.parent / "truth.csv")
    assert_refused_untouched(run.parent, "evaluate", run, *words, said=said)


@each({"missing": "no.csv", "a folder": "run", "too long a name": "x" * 300})
def test_a_file_of_labels_that_is_none_is_refused(run: Path, case: str) -> None:
    words = ("--labels", run.parent / case)
    assert_refused_untouched(run.parent, "evaluate", run, *words)


@pytest.mark.parametrize("name", ["log.jsonl", "report.npz", "scores.csv", "manifest.json"])
def test_a_page_says_which_file_it_had_to_do_without(run: Path, name: str) -> None:
    (run / name).write_bytes(b"\x00\xff{garbage")
    assert call("report", run).exit_code == 0
    page = (run / "report.html").read_text(encoding="utf-8")
    assert re.search(rf"{name}( could not be read|: \d+ of \d+ lines could not be read)", page)
