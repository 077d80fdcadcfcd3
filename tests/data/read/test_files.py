import csv
import html
import io
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.core.errors import DataError, DataNotFound
from onesided.data.read.files import ACCEPTED_ENDINGS, find_images, list_images
from onesided.storage.names import original_name, printable

HOSTILE_NAMES = [
    b"plain.png",
    b"comma, \"quote\" and 'quote'.png",
    b"<script>alert(1)</script>.png".replace(b"/", b""),
    b"two\nlines.png",
    b"carriage\rreturn.png",
    b"\xff\xfe.png",
    b"back\\slash.png",
    b"back\\xff.png",
    "Überschwemmung 洪水.png".encode(),
    b" spaces .png",
    b"=HYPERLINK(1).png",
]


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


def names(folder: Path) -> list[str]:
    return [file.name for file in find_images(folder)]


def test_images_are_found_in_nested_folders_sorted_by_the_bytes_of_their_names(
    tmp_path: Path,
) -> None:
    for name in ("b.png", "a/z.jpg", "a/B.png", "Z.tif", "é.png", "a/b/c/d.webp"):
        touch(tmp_path / name)
    assert names(tmp_path) == ["Z.tif", "a/B.png", "a/b/c/d.webp", "a/z.jpg", "b.png", "é.png"]


@pytest.mark.parametrize("ending", ACCEPTED_ENDINGS)
def test_endings_count_in_small_and_capital_letters(tmp_path: Path, ending: str) -> None:
    touch(tmp_path / f"small{ending}")
    touch(tmp_path / f"CAPITAL{ending.upper()}")
    assert len(find_images(tmp_path)) == 2


def test_hidden_files_and_folders_are_left_out(tmp_path: Path) -> None:
    for name in ("seen.png", ".hidden.png", "._seen.png", ".thumbnails/small.png"):
        touch(tmp_path / name)
    assert names(tmp_path) == ["seen.png"]


def test_files_of_other_kinds_are_counted_by_ending(tmp_path: Path) -> None:
    for name in ("a.png", "b.heic", "c.HEIC", "notes.txt", "README"):
        touch(tmp_path / name)
    assert list_images(tmp_path).others == {".heic": 2, ".txt": 1, "no ending": 1}


def test_a_folder_whose_name_looks_like_an_image_is_a_folder(tmp_path: Path) -> None:
    touch(tmp_path / "folder.png" / "inside.png")
    assert names(tmp_path) == ["folder.png/inside.png"]


def test_links_to_files_and_folders_are_followed(tmp_path: Path) -> None:
    touch(tmp_path / "elsewhere" / "a.png")
    given_folder = tmp_path / "given"
    given_folder.mkdir()
    (given_folder / "folder").symlink_to(tmp_path / "elsewhere")
    (given_folder / "file.png").symlink_to(tmp_path / "elsewhere" / "a.png")
    assert names(given_folder) == ["file.png", "folder/a.png"]


def test_links_that_lead_in_circles_end(tmp_path: Path) -> None:
    touch(tmp_path / "a" / "image.png")
    touch(tmp_path / "b" / "image.png")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "aside").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "aside").symlink_to(tmp_path / "a")
    (tmp_path / "itself").symlink_to(tmp_path / "itself")
    assert names(tmp_path) == ["a/image.png", "b/image.png"]


def test_a_link_that_sorts_first_does_not_rename_the_real_folder(tmp_path: Path) -> None:
    touch(tmp_path / "real" / "deep" / "image.png")
    (tmp_path / "alias").symlink_to(tmp_path / "real" / "deep")
    assert names(tmp_path) == ["real/deep/image.png"]


def test_a_broken_link_is_found_so_that_it_can_be_reported(tmp_path: Path) -> None:
    (tmp_path / "broken.png").symlink_to(tmp_path / "nowhere.png")
    assert names(tmp_path) == ["broken.png"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: None, "does not exist"),
        (lambda folder: folder.write_bytes(b""), "is a file, not a folder"),
        (lambda folder: folder.mkdir(), "found nothing"),
        (lambda folder: touch(folder / "photo.heic"), "1 .heic"),
    ],
)
def test_a_folder_without_images_is_named_with_the_accepted_endings(
    tmp_path: Path, make: object, words: str
) -> None:
    folder = tmp_path / "damaged"
    assert callable(make)
    make(folder)
    with pytest.raises(DataNotFound) as caught:
        find_images(folder)
    message = str(caught.value)
    assert words in message
    assert str(folder) in message
    assert ".png, .jpg, .jpeg, .bmp, .tif" in message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every folder; run as a person")
def test_a_folder_that_may_not_be_opened_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    with pytest.raises(DataError, match=r"closed cannot be opened: Permission denied"):
        find_images(tmp_path)


@pytest.mark.parametrize("raw", HOSTILE_NAMES)
def test_hostile_names_survive_json_csv_and_html(tmp_path: Path, raw: bytes) -> None:
    path = os.path.join(os.fsencode(tmp_path), raw)
    with open(path, "wb") as file:
        file.write(b"x")
    (only,) = find_images(tmp_path)
    assert os.fsencode(only.name) == raw
    assert os.fsencode(only.path) == path

    shown = printable(only.name)
    table = io.StringIO(newline="")
    csv.writer(table).writerow([shown, "next"])
    row = next(csv.reader(io.StringIO(table.getvalue(), newline="")))
    through_json = json.loads(json.dumps({"name": shown}, ensure_ascii=False).encode())["name"]
    through_html = html.unescape(html.escape(shown).encode().decode())
    assert row[0] == through_json == through_html == shown
    assert os.fsencode(original_name(shown)) == raw


def test_bytes_that_are_not_text_are_shown_as_escapes() -> None:
    assert printable(os.fsdecode(b"a\xff.png")) == r"a\xff.png"


def test_ordinary_names_are_shown_as_they_are() -> None:
    assert printable("damaged/été 1.png") == "damaged/été 1.png"


@given(st.binary(max_size=30))
def test_any_bytes_can_be_written_as_text_and_read_back(raw: bytes) -> None:
    shown = printable(raw.decode("utf-8", "surrogateescape"))
    assert original_name(shown.encode().decode()).encode("utf-8", "surrogateescape") == raw


@given(st.text(st.characters(), max_size=20))
def test_any_python_string_can_be_written_and_read_back(text: str) -> None:
    assert original_name(printable(text).encode().decode()) == text
