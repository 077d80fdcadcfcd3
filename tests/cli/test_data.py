import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from onesided.data import sources
from onesided.data.sources import SOURCES
from onesided.data.sources.download import Archive, ExpectedFile, Layout
from tests.cli.command import assert_refused, call
from tests.data.sources.fakes import Site, md5, serving, write_cifar10_binary

CONTENTS = b"a tiny data set"


@pytest.fixture
def miniature(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A data set called miniature, one file on a server of this machine."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(Site(CONTENTS)) as site:
        address = f"http://127.0.0.1:{site.port}/items.bin"
        archive = Archive(address, len(CONTENTS), md5(CONTENTS))
        file = ExpectedFile("items.bin", len(CONTENTS), md5(CONTENTS))
        entry = replace(SOURCES["digits"], layouts=(Layout((".",), (archive,), (file,)),))
        monkeypatch.setattr(sources, "SOURCES", {**SOURCES, "miniature": entry})
        yield site


def test_the_list_has_every_set_for_people_with_its_counts_and_licence() -> None:
    shown = call("data", "list")
    assert shown.exit_code == 0
    rows = json.loads(call("data", "list", "--json").out)
    assert [row["name"] for row in rows] == [
        name for name, entry in SOURCES.items() if entry.listed
    ]
    for row in rows:
        assert row["name"] in shown.out
        assert (row["positives"], row["licence"] != "") == (SOURCES[row["name"]].positives, True)
    assert "toy" not in shown.out


def test_the_quiet_list_is_names_only() -> None:
    names = call("data", "list", "--quiet").out.splitlines()
    assert names == [name for name, entry in SOURCES.items() if entry.listed]


def test_a_set_that_is_not_there_is_told_file_by_file(tmp_path: Path) -> None:
    outcome = call("data", "check", "cifar10", "--root", tmp_path / "no")
    assert outcome.exit_code == 2
    files = outcome.out.splitlines()
    assert len(files) == 6
    assert f"missing: {tmp_path / 'no' / 'cifar-10-batches-bin' / 'test_batch.bin'}" in files
    assert outcome.err.count("\n") == 1
    assert "6 of 6 files of cifar10 are missing or damaged" in outcome.err
    assert f"onesided data get cifar10 --root {tmp_path / 'no'}" in outcome.err


def test_files_that_are_not_the_published_ones_are_told(tmp_path: Path) -> None:
    write_cifar10_binary(tmp_path)
    outcome = call("data", "check", "cifar10", "--root", tmp_path)
    assert outcome.exit_code == 2
    assert "wrong size: " in outcome.out
    assert "bytes instead of 30730000)" in outcome.out


def test_json_of_a_check_is_one_document(tmp_path: Path) -> None:
    outcome = call("data", "check", "cifar10", "--root", tmp_path, "--json")
    assert outcome.exit_code == 2
    assert {row["state"] for row in json.loads(outcome.out)} == {"missing"}


def test_an_embedded_set_has_nothing_to_check(tmp_path: Path) -> None:
    outcome = call("data", "check", "digits", "--root", tmp_path)
    assert outcome.exit_code == 0
    assert "digits is embedded" in outcome.out


@pytest.mark.parametrize("verb", ["get", "check"])
def test_an_unknown_set_gets_the_nearest_name(verb: str, tmp_path: Path) -> None:
    outcome = call("data", verb, "fashion", "--root", tmp_path)
    assert_refused(outcome, "'fashion'", "Did you mean 'fashion-mnist'?")


def test_getting_a_set_fetches_it_once(miniature: Site, tmp_path: Path) -> None:
    words = ("data", "get", "miniature", "--root", tmp_path)
    first, second = call(*words), call(*words)
    assert first == second
    assert first.exit_code == 0
    assert first.out == f"good: {tmp_path / 'items.bin'}\n"
    assert first.err == "getting miniature ...\n"
    assert len(miniature.asked) == 1
    assert call("data", "check", "miniature", "--root", tmp_path, "--quiet").out == ""


def test_a_server_that_says_no_is_told_with_the_way_by_hand(
    miniature: Site, tmp_path: Path
) -> None:
    miniature.status = 503
    outcome = call("data", "get", "miniature", "--root", tmp_path)
    assert outcome.exit_code == 2
    assert "cannot be reached" in outcome.err
    assert "Without a network" in outcome.err
    assert "Traceback" not in outcome.err


def test_a_root_that_is_a_file_is_told(miniature: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome = call("data", "get", "miniature", "--root", tmp_path / "file")
    assert_refused(outcome, tmp_path / "file", "cannot be written")
