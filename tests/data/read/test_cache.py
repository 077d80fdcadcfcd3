"""Decoded once, reused, safe against kills, and the same bytes as without a cache."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import CheckpointError, OnesidedError
from onesided.data.read import cache as caches
from onesided.data.read import images, picture
from onesided.data.read.cache import CacheEntry, DecodeCache, MappedImages
from onesided.data.read.files import find_images
from onesided.data.read.images import Decoded, decode_all
from onesided.storage.lock import alone
from tests.data.image_files import write_png

COUNT = 40
BROKEN_HEADER, BROKEN_PIXELS, COPIES = (5, 30), (9, 22), {17: 3, 2: 33}
KNOWN = [number < 4 or number > 31 for number in range(COUNT)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty images: two that do not open, two torn ones, and two copies of known ones."""
    for number in range(COUNT):
        write_png(tmp_path / "images" / f"{number:02}.png", seed=number)
    paths = sorted((tmp_path / "images").iterdir())
    for row in BROKEN_HEADER:
        paths[row].write_text("broken")
    for row in BROKEN_PIXELS:
        paths[row].write_bytes(paths[row].read_bytes()[:100])
    for copy, original in COPIES.items():
        paths[copy].write_bytes(paths[original].read_bytes())
    return tmp_path / "images"


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is worth a file, and a few images are saved at a time."""
    monkeypatch.setattr(caches, "WORTH_A_FILE", 0)
    monkeypatch.setattr(caches, "SYNC_BYTES", 5 * 3 * 8 * 8)
    monkeypatch.setattr(caches, "FORGET_BYTES", 1)
    monkeypatch.setattr(images, "CHUNK", 4)


def read(folder: Path, cache: Path | None, size: tuple[int, int] | None = None) -> Decoded:
    kept = DecodeCache(cache) if cache else None
    return decode_all(find_images(folder), size=size, known=KNOWN, tolerate=0.2, cache=kept)


def assert_same(one: Decoded, other: Decoded) -> None:
    np.testing.assert_array_equal(one.values, other.values)
    for part in ("kept", "digests", "skipped", "notices", "copies"):
        assert getattr(one, part) == getattr(other, part), part


def names_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def entries(cache: Path) -> list[Path]:
    return [path for path in sorted(cache.iterdir()) if path.is_dir()]


@pytest.mark.usefixtures("small_chunks")
def test_with_and_without_a_cache_everything_is_the_same(folder: Path, tmp_path: Path) -> None:
    plain = read(folder, None)
    assert [name for name, _ in plain.skipped] == ["05.png", "09.png", "22.png", "30.png"]
    # Known files are never left out, whichever of the two comes first.
    assert [name for name, _ in plain.copies] == ["17.png"]
    first, again = read(folder, tmp_path / "cache"), read(folder, tmp_path / "cache")
    assert_same(first, plain)
    assert_same(again, plain)
    assert isinstance(first.values, MappedImages)


@pytest.mark.usefixtures("small_chunks")
def test_the_second_start_opens_no_image(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read(folder, tmp_path / "cache")
    for path in folder.iterdir():  # other content, but the same size and time
        status = path.stat()
        path.write_bytes(b"x" * status.st_size)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert_same(read(folder, tmp_path / "cache"), before)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("change", ["time", "length", "new", "gone", "size", "known"])
def test_what_changed_is_decoded_again(folder: Path, tmp_path: Path, change: str) -> None:
    read(folder, tmp_path / "cache")
    path, size, known = folder / "20.png", None, list(KNOWN)
    match change:
        case "time":
            os.utime(path, ns=(0, 0))
        case "length":
            path.write_bytes(path.read_bytes() + b"tail")
        case "new":
            write_png(folder / "99.png", seed=99)
            known.append(False)
        case "gone":
            path.unlink()
            known.pop(20)
        case "size":
            size = (6, 6)
        case "known":
            known[20] = True
    kept = DecodeCache(tmp_path / "cache")
    files = find_images(folder)
    again = decode_all(files, size=size, known=known, tolerate=0.2, cache=kept)
    assert_same(again, decode_all(files, size=size, known=known, tolerate=0.2))
    assert len(entries(tmp_path / "cache")) == 2


def test_small_data_needs_no_file(folder: Path, tmp_path: Path) -> None:
    assert not isinstance(read(folder, tmp_path / "cache").values, MappedImages)
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("small_chunks")
def test_the_folder_says_that_it_may_be_deleted(folder: Path, tmp_path: Path) -> None:
    read(folder, tmp_path / "cache")
    assert "may be deleted" in (tmp_path / "cache" / "README.txt").read_text()


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("at", range(0, COUNT - 2, 5))
def test_decoding_that_was_stopped_resumes_there(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    whole = read(folder, tmp_path / "whole")
    decoded: list[str] = []
    really = picture.decode

    def decode(path: Path, **wanted: object) -> np.ndarray:
        if len(decoded) == at:
            raise KeyboardInterrupt
        decoded.append(path.name)
        return really(path, **wanted)  # type: ignore[arg-type]

    monkeypatch.setattr(images, "decode", decode)
    with pytest.raises(KeyboardInterrupt):
        read(folder, tmp_path / "cache")
    assert entries(tmp_path / "cache")[0].suffix == ".part"
    before, at = list(decoded), 10_000
    decoded.clear()
    assert_same(read(folder, tmp_path / "cache"), whole)
    # At most one unsaved part, one chunk that other threads were at, and unreadable files. The
    # known ones are decoded first by both, to find copies of them.
    rest = COUNT - 2 - max(0, len(before) - sum(KNOWN))
    assert len(decoded) <= rest + sum(KNOWN) + 5 + 4 + 2
    assert names_of(entries(tmp_path / "cache")[0]) == [
        *("checksums.txt", "index.json", "journal", "pixels")
    ]


@pytest.mark.usefixtures("small_chunks")
def test_pixels_beyond_and_lines_torn_by_a_kill_are_cut_off(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at(monkeypatch, 25)
    with pytest.raises(KeyboardInterrupt):
        read(folder, tmp_path / "cache")
    (part,) = entries(tmp_path / "cache")
    with (part / "pixels").open("ab") as pixels, (part / "journal").open("ab") as journal:
        pixels.write(b"half an image")
        journal.write(b'[["torn')
    monkeypatch.undo()
    monkeypatch.setattr(caches, "WORTH_A_FILE", 0)
    assert_same(read(folder, tmp_path / "cache"), read(folder, None))


def stop_at(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let decoding be stopped by the keyboard after as many images."""
    really, done = picture.decode, iter(range(count))

    def decode(path: Path, **wanted: object) -> np.ndarray:
        if next(done, None) is None:
            raise KeyboardInterrupt
        return really(path, **wanted)  # type: ignore[arg-type]

    monkeypatch.setattr(images, "decode", decode)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("file", ["pixels", "journal", "index.json"])
@pytest.mark.parametrize("damage", ["cut", "gone", "garbled"])
def test_a_damaged_entry_is_made_again(
    folder: Path, tmp_path: Path, file: str, damage: str
) -> None:
    whole = read(folder, tmp_path / "cache")
    values = np.array(whole.values)
    path = entries(tmp_path / "cache")[0] / file
    match damage:
        case "cut":
            path.write_bytes(path.read_bytes()[:-40])
        case "gone":
            path.unlink()
        case "garbled":
            path.write_bytes(b"{}\n" + path.read_bytes())
    again = read(folder, tmp_path / "cache")
    np.testing.assert_array_equal(again.values, values)
    assert again.kept == whole.kept


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("unreadable", [["no", "table"], {"1000000": "is no image"}])
def test_an_index_without_meaning_is_made_again(
    folder: Path, tmp_path: Path, unreadable: object
) -> None:
    whole = read(folder, tmp_path / "cache")
    values = np.array(whole.values)
    path = entries(tmp_path / "cache")[0] / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "unreadable": unreadable}))
    np.testing.assert_array_equal(read(folder, tmp_path / "cache").values, values)


@pytest.mark.usefixtures("small_chunks")
def test_rows_taken_from_the_file_are_copies_that_outlive_it(folder: Path, tmp_path: Path) -> None:
    mapped, plain = read(folder, tmp_path / "cache").values, read(folder, None).values
    rows = np.array([7, 0, 30, 7])
    taken = mapped[rows]
    assert type(taken) is np.ndarray
    assert taken.flags.writeable
    for path in (tmp_path / "cache").rglob("pixels"):
        path.unlink()
    np.testing.assert_array_equal(taken, plain[rows])
    np.testing.assert_array_equal(mapped[rows], plain[rows])
    with pytest.raises(ValueError, match="read-only"):
        mapped[0] = 0


@pytest.mark.usefixtures("small_chunks")
def test_a_full_disk_is_reported_before_and_while_decoding(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _: usage(10**9, 10**9, 100))
        with pytest.raises(OnesidedError, match=r"has room for 0\.0 GB.*--cache"):
            read(folder, tmp_path / "cache")
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OnesidedError, match=r"Cannot write decoded images.*--cache"):
        read(folder, tmp_path / "file" / "cache")


@pytest.mark.usefixtures("small_chunks")
def test_too_many_unreadable_files_are_reported_from_the_cache_too(
    folder: Path, tmp_path: Path
) -> None:
    read(folder, tmp_path / "cache")
    with pytest.raises(OnesidedError, match="4 of 40 images"):
        decode_all(
            find_images(folder), known=KNOWN, tolerate=0.05, cache=DecodeCache(tmp_path / "cache")
        )


SLOW_DECODE = """
import sys, time
from pathlib import Path
from onesided.data.read import cache, images
from onesided.data.read.files import find_images
cache.WORTH_A_FILE, cache.SYNC_BYTES = 0, 1
really = images.decode
def decode(path, **wanted):
    time.sleep(float(sys.argv[3]))
    return really(path, **wanted)
images.decode = decode
done = images.decode_all(
    find_images(Path(sys.argv[1])), tolerate=.2, cache=cache.DecodeCache(Path(sys.argv[2]))
)
print(len(done.values))
"""


def start(folder: Path, cache: Path, wait: float) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", SLOW_DECODE, str(folder), str(cache), str(wait)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_killed_or_side_by_side_processes_end_with_one_complete_entry(
    folder: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    process = start(folder, cache, wait=0.05)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        journals = list(cache.glob("*.part/journal"))
        if journals and journals[0].read_bytes().count(b"\n") > 5:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    two = [start(folder, cache, wait=0.0) for _ in range(2)]
    assert [other.communicate(timeout=60)[0] for other in two] == ["36\n", "36\n"]
    assert [path.suffix for path in entries(cache)] == [""]
    plain = decode_all(find_images(folder), tolerate=0.2)
    assert (entries(cache)[0] / "pixels").read_bytes() == plain.values.tobytes()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such lock on Windows")
@pytest.mark.usefixtures("small_chunks")
def test_a_writer_checks_its_folder_only_when_no_other_can_rename_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = []

    def look(entry: CacheEntry, part: Path, wanted: int) -> None:
        busy = OnesidedError("another process is inside")
        with pytest.raises(OnesidedError), alone(entry.folder / f"{entry.key}.lock", busy):
            pass
        looked.append(part.is_dir())

    monkeypatch.setattr(CacheEntry, "_check_room", look)
    read(folder, tmp_path / "cache")
    assert looked == [True]


def test_an_index_is_small_and_can_be_read_by_people(
    folder: Path, tmp_path: Path, small_chunks: None
) -> None:
    read(folder, tmp_path / "cache")
    index = json.loads((entries(tmp_path / "cache")[0] / "index.json").read_text())
    assert index["shape"] == [35, 3, 8, 8]
    assert list(index["unreadable"]) == ["5", "30"]


@pytest.mark.usefixtures("small_chunks")
def test_a_flipped_bit_in_decoded_pixels_is_told(folder: Path, tmp_path: Path) -> None:
    read(folder, tmp_path / "cache")
    (entry,) = entries(tmp_path / "cache")
    damaged = bytearray((entry / "pixels").read_bytes())
    damaged[3 * 8 * 8 * 2] ^= 4  # in the third row
    (entry / "pixels").write_bytes(damaged)
    values = read(folder, tmp_path / "cache").values
    assert len(values[np.array([0, 1, 3])]) == 3
    with pytest.raises(CheckpointError, match=r"decoded images .* damaged .* Delete that folder"):
        values[np.array([1, 2])]


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("name", ["index.json", "journal", "checksums.txt"])
def test_an_entry_whose_lists_are_damaged_is_decoded_again(
    folder: Path, tmp_path: Path, name: str
) -> None:
    plain = read(folder, tmp_path / "cache")
    (entry,) = entries(tmp_path / "cache")
    damaged = bytearray((entry / name).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (entry / name).write_bytes(damaged)
    assert_same(read(folder, tmp_path / "cache"), plain)
    assert (entry / name).read_bytes() != damaged
