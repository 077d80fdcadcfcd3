"""log.jsonl: one row per epoch, and a resumed run writes no row twice."""

import json
import os
from pathlib import Path

import pytest
import torch

from onesided.core.batch import Losses
from onesided.core.clock import Clock
from onesided.engine.log import EpochLog, Tally


def losses(value: float, watched: float) -> Losses:
    number = torch.tensor(value)
    return Losses(number, {"risk": number}, {"share": torch.tensor(watched)})


def test_a_tally_gives_means_over_steps() -> None:
    tally = Tally()
    tally.add(losses(1.0, 0.2))
    tally.add(losses(3.0, 0.4))
    means = tally.means()
    assert means["loss"] == {"risk": 2.0}
    assert means["watched"]["share"] == pytest.approx(0.3)


def test_numbers_that_are_not_finite_stay_out_of_the_log() -> None:
    tally = Tally()
    tally.add(losses(1.0, float("nan")))
    tally.add(losses(1.0, 0.5))
    assert tally.means()["watched"] == {"share": 0.5}


def test_a_tally_continues_from_a_checkpoint() -> None:
    whole, first = Tally(), Tally()
    for tally in (whole, first):
        tally.add(losses(1.0, 0.0))
    second = Tally(json.loads(json.dumps(first.sums)))
    for tally in (whole, second):
        tally.add(losses(4.0, 1.0))
    assert whole.means() == second.means()


def test_rewinding_deletes_the_epochs_that_will_be_written_again(tmp_path: Path) -> None:
    log = EpochLog(tmp_path / "log.jsonl")
    for stage, epoch in (("warm", 0), ("warm", 1), ("train", 0), ("train", 1)):
        log.write({"stage": stage, "epoch": epoch, "loss": {}, "watched": {}})
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"stage": "train", "epo')  # what a kill leaves of a row
    log.rewind(Clock(0, "train", 1, 5))
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [(row["stage"], row["epoch"]) for row in rows] == [
        ("warm", 0),
        ("warm", 1),
        ("train", 0),
    ]


def test_tensorboard_gets_the_same_numbers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra onesided[tensorboard] is not installed")
    log = EpochLog(tmp_path / "log.jsonl", tensorboard=True)
    log.write({"stage": "train", "epoch": 0, "loss": {"risk": 1.0}, "watched": {}})
    assert list((tmp_path / "tensorboard").iterdir())


@pytest.mark.parametrize(
    "damage",
    [
        b'{"stage": "train", "epo',
        b"\xff\xfe\x00{}\n",
        b"\x00" * 40,
        b"[" * 100_000,
        b'{"stage": "a", "epoch": ' + b"9" * 5000 + b"}\n",
        b'{"stage": "a", "epoch": 1, "loss": {}, "watched": {}, "proxy_auc": "x"}\n',
        b'{"stage": "a", "epoch": 1, "loss": {}, "watched": {}, "proxy_auc": 1'
        + b"0" * 400
        + b"}\n",
    ],
    ids=["cut off", "UTF-16", "NULs", "deep", "long number", "text", "huge"],
)
def test_a_damaged_row_is_left_out_whoever_reads_the_log(tmp_path: Path, damage: bytes) -> None:
    log = EpochLog(tmp_path / "log.jsonl")
    row = {"stage": "train", "epoch": 0, "loss": {}, "watched": {}, "proxy_auc": 0.5, "seconds": 1}
    log.write(row)
    (tmp_path / "log.jsonl").write_bytes((tmp_path / "log.jsonl").read_bytes() + damage)
    assert log.rows() == [row]
    assert log.seconds() == 1


def test_a_log_that_is_no_file_holds_no_rows(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe", "missing"):
        assert EpochLog(tmp_path / name).rows() == []
