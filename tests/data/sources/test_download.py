import gzip
import hashlib
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import ConfigError, DataError, DataNotFound
from onesided.data import sources
from onesided.data.sources import SOURCES
from onesided.data.sources.download import (
    Archive,
    ExpectedFile,
    FileStatus,
    Layout,
    check,
    download,
    fetch,
    unpack,
)
from tests.data.sources.fakes import Site, md5, serving, tarball, write_cifar10_python

CONTENTS = np.random.default_rng(0).bytes(3_000_000)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(Site(CONTENTS)) as site:
        yield site


def archive_at(site: Site, contents: bytes = CONTENTS, name: str = "set.bin") -> Archive:
    return Archive(f"http://127.0.0.1:{site.port}/{name}", len(contents), md5(contents))


def silent(done: int, total: int | None) -> None:
    """Ignore progress."""


def test_a_file_arrives_complete_and_progress_ends_at_its_size(site: Site, tmp_path: Path) -> None:
    reported: list[tuple[int, int | None]] = []
    path = download(archive_at(site), tmp_path, lambda done, total: reported.append((done, total)))
    assert path == tmp_path / "set.bin"
    assert path.read_bytes() == CONTENTS
    assert reported[-1] == (len(CONTENTS), len(CONTENTS))
    assert reported == sorted(reported)
    assert len(reported) > 2
    assert list(tmp_path.iterdir()) == [path]


def test_a_broken_download_continues_where_it_stopped(site: Site, tmp_path: Path) -> None:
    site.breaks_off_after = 1_234_567
    with pytest.raises(DataNotFound, match=r"after 1234567 of 3000000 bytes.* continues"):
        download(archive_at(site), tmp_path, silent)
    assert (tmp_path / "set.bin.part").stat().st_size == 1_234_567
    site.breaks_off_after = None
    assert download(archive_at(site), tmp_path, silent).read_bytes() == CONTENTS
    assert site.asked == [None, "bytes=1234567-"]


def test_a_server_that_ignores_ranges_makes_it_start_over(site: Site, tmp_path: Path) -> None:
    (tmp_path / "set.bin.part").write_bytes(CONTENTS[:1000])
    site.honours_ranges = False
    assert download(archive_at(site), tmp_path, silent).read_bytes() == CONTENTS
    assert site.asked == ["bytes=1000-"]


@pytest.mark.parametrize("name", ["set.bin", "set.bin.part"])
def test_what_is_already_complete_is_not_fetched(site: Site, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(CONTENTS)
    assert download(archive_at(site), tmp_path, silent) == tmp_path / "set.bin"
    assert [path.name for path in tmp_path.iterdir()] == ["set.bin"]
    assert site.asked == []


def test_a_part_that_is_too_long_is_fetched_again(site: Site, tmp_path: Path) -> None:
    (tmp_path / "set.bin.part").write_bytes(CONTENTS + b"more")
    assert download(archive_at(site), tmp_path, silent).read_bytes() == CONTENTS
    assert site.asked == [None]


def test_a_wrong_checksum_is_refused_and_what_was_there_stays(site: Site, tmp_path: Path) -> None:
    old = tmp_path / "set.bin"
    old.write_bytes(b"an older version")
    site.contents = b"x" + CONTENTS[1:]
    with pytest.raises(DataError, match=r"published checksum \w+ and was discarded"):
        download(archive_at(site), tmp_path, silent)
    assert old.read_bytes() == b"an older version"
    assert list(tmp_path.iterdir()) == [old]
    site.contents = CONTENTS
    assert download(archive_at(site), tmp_path, silent).read_bytes() == CONTENTS


def test_a_file_with_the_right_md5_and_another_sha256_is_refused(
    site: Site, tmp_path: Path
) -> None:
    forged = replace(archive_at(site), sha256="0" * 64)
    with pytest.raises(DataError, match=r"published checksum 0{64} and was discarded"):
        download(forged, tmp_path, silent)
    assert list(tmp_path.iterdir()) == []
    right = replace(forged, sha256=hashlib.sha256(CONTENTS).hexdigest())
    assert download(right, tmp_path, silent).read_bytes() == CONTENTS


def test_an_address_without_https_is_not_asked(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"http://example\.org/set\.bin is not fetched: only https"):
        download(Archive("http://example.org/set.bin", 1, "0" * 32), tmp_path, silent)


@pytest.mark.parametrize("elsewhere", ["http://example.org/set.bin", "ftp://example.org/set.bin"])
def test_a_redirect_away_from_https_is_not_followed(
    site: Site, tmp_path: Path, elsewhere: str
) -> None:
    site.leads_to = elsewhere
    with pytest.raises(DataNotFound, match=r"leads to .*, which is not https"):
        download(archive_at(site), tmp_path, silent)
    assert list(tmp_path.iterdir()) == []


def test_a_login_page_is_not_taken_for_the_file(site: Site, tmp_path: Path) -> None:
    site.contents = b"<html>Please log in</html>"
    with pytest.raises(DataError, match="offers 26 bytes instead of 3000000"):
        download(archive_at(site), tmp_path, silent)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_lost_its_end_makes_it_start_over(site: Site, tmp_path: Path) -> None:
    (tmp_path / "set.bin.part").write_bytes(CONTENTS[:2000])
    site.contents = CONTENTS[:1000]
    with pytest.raises(DataError, match="offers 1000 bytes instead of 3000000"):
        download(archive_at(site), tmp_path, silent)
    assert site.asked == ["bytes=2000-", None]
    assert (tmp_path / "set.bin.part").stat().st_size == 2000


def test_more_bytes_than_announced_do_not_fill_the_disk(site: Site, tmp_path: Path) -> None:
    site.says_length = False
    with pytest.raises(DataError, match="more than 1000 bytes"):
        download(archive_at(site, CONTENTS[:1000]), tmp_path, silent)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1000


def test_a_server_without_lengths_is_accepted(site: Site, tmp_path: Path) -> None:
    site.says_length = False
    assert download(archive_at(site), tmp_path, silent).read_bytes() == CONTENTS


def test_without_a_network_the_error_names_address_and_folder(tmp_path: Path) -> None:
    address = "http://127.0.0.1:1/set.tar.gz"  # nothing listens on port 1
    with pytest.raises(DataNotFound) as raised:
        download(Archive(address, 10, "0" * 32, folder="deep"), tmp_path, silent)
    message = str(raised.value)
    assert f"{address} cannot be reached" in message
    assert f"put it into {tmp_path / 'deep'}" in message


def test_a_file_that_is_gone_from_the_server_is_reported(site: Site, tmp_path: Path) -> None:
    site.status = 404
    with pytest.raises(DataNotFound, match=r"cannot be reached .*404"):
        download(archive_at(site), tmp_path, silent)


def test_a_root_that_cannot_be_written_is_said_so(site: Site, tmp_path: Path) -> None:
    (tmp_path / "root").write_text("a file where a folder should be")
    with pytest.raises(DataError, match=r"cannot be written .* choose another --root"):
        download(archive_at(site), tmp_path / "root", silent)


def test_a_tarball_is_unpacked_and_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "set.tar.gz"
    path.write_bytes(tarball({"set/a.bin": b"new", "set/deep/b.bin": b"b"}))
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.bin").write_bytes(b"old")
    (tmp_path / "set" / "mine.txt").write_bytes(b"mine")
    unpack(path, tmp_path)
    found = {
        file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()
    }
    assert found == {"set.tar.gz", "set/a.bin", "set/deep/b.bin", "set/mine.txt"}
    assert (tmp_path / "set" / "a.bin").read_bytes() == b"new"


@pytest.mark.parametrize("outside", ["../outside.txt", "set/../../outside.txt"])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_tarball_that_reaches_outside_is_refused_as_a_whole(
    tmp_path: Path, outside: str, kind: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    path = root / "set.tar.gz"
    files = {"set/a.bin": b"a"} | ({outside: b"x"} if kind == "file" else {})
    path.write_bytes(tarball(files, {"link": outside} if kind == "link" else {}))
    with pytest.raises(DataError, match=r"set\.tar\.gz cannot be unpacked"):
        unpack(path, root)
    assert list(tmp_path.rglob("*")) == [root, path]


def test_a_tarball_cut_short_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "set.tar.gz"
    path.write_bytes(tarball({"set/a.bin": CONTENTS})[:-100_000])
    with pytest.raises(DataError, match="cannot be unpacked"):
        unpack(path, tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_plain_gz_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(b"pixels"))
    unpack(path, tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_python_without_the_safe_filter_does_not_unpack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "set.tar.gz"
    path.write_bytes(tarball({"a": b"a"}))
    monkeypatch.delattr(tarfile, "data_filter")
    with pytest.raises(DataError, match=r"3\.11\.4 or later"):
        unpack(path, tmp_path)


def expected(
    files: Mapping[str, bytes], *, may_be_gzipped: bool = False
) -> tuple[ExpectedFile, ...]:
    return tuple(
        ExpectedFile(name, len(contents), md5(contents), may_be_gzipped=may_be_gzipped)
        for name, contents in files.items()
    )


def register(monkeypatch: pytest.MonkeyPatch, *layouts: Layout) -> str:
    entry = replace(SOURCES["digits"], layouts=layouts)
    monkeypatch.setattr(sources, "SOURCES", {**SOURCES, "miniature": entry})
    return "miniature"


FILES = {"a": b"aa", "b": b"bb", "c": b"cc", "d": b"dd"}
NOWHERE = Archive("http://127.0.0.1:1/set.tar.gz", 1, "0" * 32)


def test_check_distinguishes_good_missing_short_and_changed_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = register(monkeypatch, Layout(("set",), (NOWHERE,), expected(FILES)))
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "a").write_bytes(b"aa")
    (folder / "c").write_bytes(b"c")
    (folder / "d").write_bytes(b"xx")
    assert check(name, tmp_path) == (
        FileStatus(folder / "a", "good", 2, 2),
        FileStatus(folder / "b", "missing", 2),
        FileStatus(folder / "c", "wrong size", 2, 1),
        FileStatus(folder / "d", "wrong contents", 2, 2),
    )


def test_check_compares_the_contents_of_a_gz_and_not_its_compression(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = expected({"a": b"aa", "b": b"bb"}, may_be_gzipped=True)
    name = register(monkeypatch, Layout((".",), (NOWHERE,), files))
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"aa", compresslevel=1))
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"bb")[:-9])
    good, cut = check(name, tmp_path)
    assert (good.state, cut.state) == ("good", "wrong contents")


def test_check_compares_the_layout_that_is_there(tmp_path: Path) -> None:
    write_cifar10_python(tmp_path)
    statuses = check("cifar10", tmp_path)
    assert {status.path.parent.name for status in statuses} == {"cifar-10-batches-py"}
    assert {status.state for status in statuses} == {"wrong size"}  # a miniature
    assert statuses[0].expected_size == 31_035_704


def test_check_of_an_embedded_set_has_nothing_to_say(tmp_path: Path) -> None:
    assert check("digits", tmp_path) == ()
    assert fetch("digits", tmp_path, silent) == ()
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no data set called 'cifar11'\. Did you mean 'cifar1"):
        check("cifar11", tmp_path)


@pytest.fixture
def published(site: Site, monkeypatch: pytest.MonkeyPatch) -> str:
    site.contents = tarball({f"set/{name}": contents for name, contents in FILES.items()})
    archive = archive_at(site, site.contents, "set.tar.gz")
    return register(monkeypatch, Layout(("set",), (archive,), expected(FILES)))


def test_fetch_brings_a_set_into_place_and_then_leaves_it_alone(
    site: Site, published: str, tmp_path: Path
) -> None:
    root = tmp_path / "not" / "there" / "yet"
    assert {status.state for status in fetch(published, root, silent)} == {"good"}
    assert (root / "set" / "d").read_bytes() == b"dd"
    assert {status.state for status in fetch(published, root, silent)} == {"good"}
    assert len(site.asked) == 1


def test_fetch_repairs_a_damaged_file(site: Site, published: str, tmp_path: Path) -> None:
    fetch(published, tmp_path, silent)
    (tmp_path / "set" / "c").write_bytes(b"c")
    assert {status.state for status in fetch(published, tmp_path, silent)} == {"good"}
    assert len(site.asked) == 1


def test_an_archive_brought_by_hand_is_unpacked_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = tarball({f"other/{name}": contents for name, contents in FILES.items()})
    by_hand = Archive("http://127.0.0.1:1/other.tar.gz", len(contents), md5(contents))
    usual = Layout(("set",), (NOWHERE,), expected({"x": b"x"}))
    other = Layout(("other",), (by_hand,), expected(FILES))
    name = register(monkeypatch, usual, other)
    (tmp_path / "other.tar.gz").write_bytes(contents)
    assert {status.state for status in fetch(name, tmp_path, silent)} == {"good"}
