"""`onesided fit` on an unfinished run whose checkpoint, log or manifest somebody damaged."""

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.cli.bad_input.refusals import (
    NO_JSON,
    Damage,
    assert_refused_untouched,
    cut,
    each,
    make_folder,
    write,
)
from tests.cli.command import TINY

State = dict[str, Any]


@pytest.fixture
def resume(run: Path, shared_data: Path) -> Callable[[str], None]:
    """Go on with the unfinished run, which must be refused."""
    (run / "result.json").unlink()

    def refuse(said: str) -> None:
        folders = ("-p", shared_data / "P", "-u", shared_data / "U", "-o", run)
        words = ("fit", *folders, *TINY, "--quiet", "--allow-degenerate")
        assert_refused_untouched(run, *words, said=said)

    return refuse


def state(change: Callable[[State], object]) -> Damage:
    """Return what changes the entries of a checkpoint."""

    def damage(path: Path) -> None:
        content = torch.load(path, weights_only=True)
        change(content)
        torch.save(content, path)

    return damage


def entry(key: str, value: object) -> Damage:
    """Return what sets an entry of a checkpoint: `position.epoch`."""

    def change(content: State) -> None:
        *tables, last = key.split(".")
        inner = content
        for table in tables:
            inner = inner[table]
        inner[last] = value

    return state(change)


def weight(change: Callable[[torch.Tensor], object]) -> Damage:
    def damage(content: State) -> None:
        method = content["method"]
        name = max(method, key=lambda key: getattr(method[key], "ndim", 0))
        method[name] = change(method[name])

    return state(damage)


def flip(share: float) -> Damage:
    def damage(path: Path) -> None:
        raw = bytearray(path.read_bytes())
        for place in range(8):
            raw[int(share * len(raw)) + place] ^= 0xFF
        path.write_bytes(bytes(raw))

    return damage


def old_format(path: Path) -> None:
    content = torch.load(path, weights_only=True)
    torch.save({**content, "format": 0}, path, _use_new_zipfile_serialization=False)


def zipped(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


ENTRIES: dict[str, list[object]] = {
    "format": [0, 2, "1", None, [1]],
    "identity": ["", 5, None, "x-y-z"],
    "position": [None, 5, [0, 0, 0], {}, {"stage": 0}],
    "position.stage": [-1, "0", 1.5, None, 99, 10**30],
    "position.epoch": [-1, "0", 1.5, 99],
    "position.step": [-1, "0", None, 10**6],
    "method": [None, 5, [], {}, {"a": 1}],
    "optimizer": [5, "x", [1], {"state": {}}, {"state": 5, "param_groups": []}],
    "tally": [None, 5, {"loss": 5}, {"loss": ["a", 1]}, {"loss": [1.0]}],
    "seconds": [None, "x", [], float("nan"), -5.0],
}
CHECKPOINTS: dict[str, Damage] = {
    **{
        f"{key} is {str(value)[:30]}": entry(key, value)
        for key, values in ENTRIES.items()
        for value in values
    },
    **{f"bytes spoiled at {share}": flip(share) for share in (0.0, 0.1, 0.3, 0.5, 0.7, 0.99)},
    **{f"{kept} of it": cut(kept) for kept in (0.01, 0.5, 0.99)},
    "text": write("my checkpoint"),
    "a number": lambda path: torch.save(5, path),
    "a list": lambda path: torch.save([1, 2], path),
    "a tensor": lambda path: torch.save(torch.ones(3), path),
    "a pickle": write(pickle.dumps({"format": 1})),
    "a pickle of 2002": write(pickle.dumps({"format": 1}, protocol=2)),
    "an empty archive": write(b"PK\x05\x06" + bytes(18)),
    "an archive of something else": write(zipped("letter.txt", b"Dear all")),
    "an archive with half a pickle": write(zipped("archive/data.pkl", b"\x80\x02}")),
    "the format before torch 1.6": old_format,
    "a stranger among the weights": state(lambda all: all["method"].update(x=torch.ones(1))),
    "a weight lost": state(lambda all: all["method"].popitem()),
    "a weight cut": weight(lambda tensor: tensor[:1]),
    "a weight that is a word": weight(lambda tensor: "heavy"),
    "weights that are NaN": weight(lambda tensor: tensor * float("nan")),
    "a folder": make_folder,
}


@each(CHECKPOINTS)
def test_a_damaged_checkpoint_is_refused(
    run: Path, resume: Callable[[str], None], case: Damage
) -> None:
    case(run / "last.pt")
    resume("")


@each({name: NO_JSON[name] for name in ("half of it", "zero bytes", "a folder")})
def test_a_damaged_manifest_is_refused(
    run: Path, resume: Callable[[str], None], case: Damage
) -> None:
    case(run / "manifest.json")
    resume("manifest.json")


@each({"a number": write('{"identity": 5}'), "no identity": write("{}")})
def test_a_manifest_of_nobody_is_another_run(
    run: Path, resume: Callable[[str], None], case: Damage
) -> None:
    case(run / "manifest.json")
    resume("holds another run")


@each({"a folder": make_folder})
def test_a_log_that_cannot_be_written_is_told(
    run: Path, resume: Callable[[str], None], case: Damage
) -> None:
    case(run / "log.jsonl")
    resume("log.jsonl")
