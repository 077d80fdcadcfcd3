import json
from pathlib import Path

import pytest

from onesided.run.config import RunConfig
from tests.cli.command import TINY, assert_refused, call
from tests.geo.fakes import write_abcd, write_xbd_event


@pytest.fixture
def event(tmp_path: Path) -> Path:
    """A root with a small event of xBD, not yet prepared."""
    root = tmp_path / "DATA"
    write_xbd_event(root, seed=0, tiles=4, buildings_per_tile=25, size=160, un_classified=1)
    return root


def prepare(root: Path, *words: object) -> tuple[object, ...]:
    return ("data", "prepare", "xbd", "--root", root, *words)


def test_nothing_is_prepared_before_the_licence_is_accepted(event: Path) -> None:
    outcome = call(*prepare(event))
    assert_refused(outcome, "CC BY-NC-SA 4.0", "--accept-licence")
    assert not (event / "xbd-crops").exists()


def test_what_was_cut_and_left_out_is_told(event: Path) -> None:
    outcome = call(*prepare(event, "--accept-licence"))
    assert outcome.exit_code == 0, outcome.err
    assert outcome.out.startswith(f"{event / 'xbd-crops'}: 4 tiles, 96 crops, ")
    assert outcome.out.endswith("\nLeft out: 4 un-classified.\n")
    assert call(*prepare(event, "--accept-licence")).out == outcome.out
    assert call("data", "check", "xbd", "--root", event).exit_code == 0


def test_json_is_one_document(event: Path) -> None:
    outcome = call(*prepare(event, "--accept-licence", "--json"))
    told = json.loads(outcome.out)
    assert told["folder"] == str(event / "xbd-crops")
    assert told["counts"]["crops"] == 96
    assert (told["left_out"], told["skipped"]) == ({"un-classified": 4}, [])


def test_a_prepared_set_can_be_trained_on(event: Path, tmp_path: Path) -> None:
    sizes = {"positives": 10, "unlabelled": 20, "held_out_positives": 0}
    sizes["held_out_unlabelled"] = 0
    settings = [word for key, value in sizes.items() for word in ("--set", f"data.{key}={value}")]
    words = ("fit", "--data", "xbd", "--root", event, "-o", tmp_path / "run", *TINY, *settings)
    before = call(*words, "--allow-degenerate", "--quiet")
    assert_refused(before, f"onesided data prepare xbd --root {event} --accept-licence")
    call(*prepare(event, "--accept-licence", "--quiet"))
    after = call(*words, "--allow-degenerate", "--quiet", "--set", "data.grouping=tile")
    assert after.exit_code == 0, after.err
    assert 'grouping = "tile"' in (tmp_path / "run" / "config.toml").read_text()


def test_a_run_that_groups_nothing_is_the_run_it_was_before_there_were_groups() -> None:
    shuffled = {"data": {"name": "xbd"}}
    grouped = {"data": {"name": "xbd", "grouping": "event"}}
    assert "grouping" not in RunConfig.from_settings(shuffled).to_settings()["data"]
    prints = {RunConfig.from_settings(given).fingerprint() for given in (shuffled, grouped)}
    assert len(prints) == 2


def test_a_set_that_is_fetched_by_hand_says_so(tmp_path: Path) -> None:
    for name, address in (("xbd", "https://xview2.org"), ("abcd", "gistairc/ABCDdataset")):
        for verb in ("get", "check"):
            outcome = call("data", verb, name, "--root", tmp_path)
            assert outcome.exit_code == 2
            assert address in outcome.err
            assert outcome.err.count("\n") == 1


def test_what_is_read_as_it_comes_needs_no_preparation(tmp_path: Path) -> None:
    for name in ("abcd", "cifar10", "digits"):
        outcome = call("data", "prepare", name, "--root", tmp_path, "--accept-licence")
        assert_refused(outcome, f"{name} needs no preparation")
    assert_refused(call("data", "prepare", "xdb", "--root", tmp_path), "Did you mean 'xbd'?")


def test_a_root_without_xbd_is_told(tmp_path: Path) -> None:
    outcome = call(*prepare(tmp_path, "--accept-licence"))
    assert_refused(outcome, "There is no xBD in", "https://xview2.org")


def test_a_check_of_thousands_of_files_is_a_line(tmp_path: Path) -> None:
    fake = write_abcd(tmp_path, seed=0, pairs=30)
    whole = call("data", "check", "abcd", "--root", tmp_path)
    assert (whole.exit_code, whole.out) == (0, "good: 30 of 30 files\n")
    (fake.folder / "patch-pairs" / "patch-pair_3.tif").unlink()
    broken = call("data", "check", "abcd", "--root", tmp_path)
    assert broken.exit_code == 2
    assert "patch-pair_3.tif\ngood: 29 of 30 files\n" in broken.out


def test_sets_with_terms_are_listed_with_them() -> None:
    rows = {row["name"]: row for row in json.loads(call("data", "list", "--json").out)}
    for name in ("abcd", "xbd"):
        assert not rows[name]["embedded"]
        assert "on-commercial" in rows[name]["licence"]
