"""Work that goes on after a kill: damaged caches of decoded images and half-written rankings."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from onesided.data.problem import samples
from onesided.data.read import cache
from tests.cli.bad_input.refusals import (
    NO_JSON,
    Damage,
    assert_is_a_sentence,
    cut,
    each,
    make_folder,
    put,
    remove,
    write,
)
from tests.cli.command import Outcome, call, fit


@pytest.fixture(scope="module")
def decoded(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run whose images were decoded into a file; no test changes it."""
    run = tmp_path_factory.mktemp("decoded") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "WORTH_A_FILE", 0)
        assert fit(shared_data, run).exit_code == 0
    return run


@pytest.fixture
def again(decoded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that run; the next command reads its cache."""
    monkeypatch.setattr(cache, "WORTH_A_FILE", 0)
    return Path(shutil.copytree(decoded, tmp_path / "run"))


def entry_of(run: Path) -> Path:
    (entry,) = (path for path in (run / "cache").iterdir() if path.is_dir())
    return entry


def results_of(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}


WRONG_SHAPES: list[object] = [[], 5, [-1, 3, 8, 8], ["a"], None]
INDEX: dict[str, Damage] = {
    **{f"shape is {value}": put("shape", value) for value in WRONG_SHAPES},
    **{f"plan is {value}": put("plan", json.loads(value)) for value in ("5", "null", "{}")},
    **{
        f"unreadable is {value}": put("unreadable", json.loads(value))
        for value in ("5", "[1]", '{"x": "y"}', '{"999": "gone"}', '{"0": 5}')
    },
    **{f"notices is {value}": put("notices", value) for value in (5, None)},
}
SPOILED: dict[str, tuple[str, Damage]] = {
    **{f"index: {name}": ("index.json", case) for name, case in {**NO_JSON, **INDEX}.items()},
    **{
        f"journal: {name}": ("journal", case)
        for name, case in {
            "missing": remove,
            "empty": write(""),
            "half of it": cut(0.5),
            "text": write("decoded all\n"),
            "a number for an entry": lambda path: append(path, "5\n"),
            "numbers for files": lambda path: append(path, "[1, 2]\n"),
            "an entry too many": lambda path: append(path, '[["", "", false, 0]]\n'),
            "no JSON": lambda path: append(path, "{\n"),
            "nested without end": lambda path: append(path, "[" * 100_000 + "\n"),
            "a folder": make_folder,
        }.items()
    },
    "pixels: missing": ("pixels", remove),
    "pixels: empty": ("pixels", write("")),
    "pixels: half of them": ("pixels", cut(0.5)),
    "pixels: too many": ("pixels", lambda path: append(path, "more")),
    "pixels: a folder": ("pixels", make_folder),
}


def append(path: Path, text: str) -> None:
    with path.open("ab") as file:
        file.write(text.encode())


@each(SPOILED)
def test_a_damaged_cache_is_decoded_again(
    shared_data: Path, again: Path, case: tuple[str, Damage]
) -> None:
    name, damage = case
    damage(entry_of(again) / name)
    before = results_of(again)
    outcome = fit(shared_data, again)
    assert outcome.exit_code == 0, outcome.err
    assert results_of(again) == before
    index = json.loads((entry_of(again) / "index.json").read_text())
    assert index["shape"] == [90, 3, 8, 8]


@each({name: case for name, case in SPOILED.items() if not name.startswith("index")})
def test_a_damaged_beginning_of_a_cache_is_begun_anew_or_refused(
    shared_data: Path, again: Path, case: tuple[str, Damage]
) -> None:
    name, damage = case
    damage(entry_of(again) / name)
    part = entry_of(again)
    (part / "index.json").unlink()
    part.rename(part.with_name(f"{part.name}.part"))
    before = results_of(again)
    outcome = fit(shared_data, again)
    assert results_of(again) == before
    done_or_told(outcome)


def done_or_told(outcome: Outcome) -> None:
    """Check for success, or for a sentence that says what to delete."""
    if outcome.exit_code != 0:
        assert outcome.exit_code == 2
        assert outcome.err.count("\n") == 1, outcome.err
        assert_is_a_sentence(outcome.err.strip())


@pytest.fixture
def stopped(
    trained: Path, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder that a killed ranking left, with all pieces scored and nothing written."""
    monkeypatch.setattr(samples, "CHUNK_ITEMS", 16)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("onesided.run.rank._tally", killed)
        outcome = call("rank", trained, shared_data / "U", "-o", tmp_path / "ranked.csv")
    assert outcome.exit_code == 130
    return tmp_path / "ranked.csv.partial"


def replace_last(path: Path, line: str) -> None:
    *before, _ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(before) + line.encode() + b"\n")


PARTIAL: dict[str, Damage] = {
    "missing": remove,
    "empty": write(""),
    "half of it": cut(0.5),
    "text": write("scored all\n"),
    "zero bytes": write(bytes(100)),
    "a folder": make_folder,
    **{
        f"an entry is {line[:30]}": partial(replace_last, line=line)
        for line in (
            *("5", "null", "[]", "{}", "{", '{"scores": 5, "reasons": {}}', "[" * 100_000),
            *('{"scores": [], "reasons": {}}', '{"scores": ["a"], "reasons": {}}'),
            *('{"scores": [NaN, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "reasons": {}}',),
            *('{"scores": [0.1], "reasons": 5}', '{"scores": [0.1]}', '{"reasons": {}}'),
            *('{"scores": [7,7,7,7,7,7,7,7,7,7,7,7], "reasons": {}}',),
        )
    },
    "an entry too many": lambda path: append(path, '{"scores": [0.5], "reasons": {}}\n'),
}


@each(PARTIAL)
def test_a_damaged_beginning_of_a_ranking_is_begun_anew_or_refused(
    trained: Path, shared_data: Path, stopped: Path, case: Damage
) -> None:
    case(stopped / "scores")
    output = stopped.with_name("ranked.csv")
    outcome = call("rank", trained, shared_data / "U", "-o", output, "--quiet")
    done_or_told(outcome)
    if outcome.exit_code == 0:
        fresh = output.with_name("fresh.csv")
        call("rank", trained, shared_data / "U", "-o", fresh, "--quiet")
        assert output.read_bytes() == fresh.read_bytes()
    else:
        assert "ranked.csv.partial" in outcome.err
        assert not output.exists()


@each({"missing": remove, "empty": write(""), "text": write("a\nb\n"), "a folder": make_folder})
def test_a_damaged_listing_of_a_ranking_is_made_again(
    trained: Path, shared_data: Path, stopped: Path, case: Damage
) -> None:
    case(stopped / "listing")
    output = stopped.with_name("ranked.csv")
    outcome = call("rank", trained, shared_data / "U", "-o", output, "--quiet")
    done_or_told(outcome)
    assert output.exists() == (outcome.exit_code == 0)
