"""Items as people see them: images, pairs, texts, rows; names that are nowhere show nothing."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onesided.review.items import LARGEST_SIDE, Picture, Shown, encoded
from onesided.review.session import Session
from tests.cli.pictures import draw
from tests.review.fake_run import image_run, text_run, write_run
from tests.run.mixed_tables import mixed_rows, write_table


def pixels(picture: Picture | None) -> np.ndarray:
    assert picture is not None
    return np.asarray(Image.open(io.BytesIO(picture.content)))


def test_an_image_is_shown_with_its_own_pixels(tmp_path: Path) -> None:
    shown = Session(image_run(tmp_path, ["a b.png"])).shown_items
    assert shown.show("U/a b.png") == Shown(pictures=("",))
    original = np.asarray(Image.open(tmp_path / "U" / "a b.png"))
    assert (pixels(shown.picture("U/a b.png", 0)) == original).all()
    assert shown.picture("U/a b.png", 1) is None


def test_a_large_image_is_made_smaller(tmp_path: Path) -> None:
    draw(tmp_path / "U" / "large.png", 0, side=LARGEST_SIDE + 400)
    run = image_run(tmp_path, ["small.png"])
    picture = Session(run).shown_items.picture("U/large.png", 0)
    assert pixels(picture).shape == (LARGEST_SIDE, LARGEST_SIDE, 3)


@pytest.mark.parametrize("name", ["U/../P/one.png", "P/one.png", "/etc/passwd", "U/gone.png", ""])
def test_names_that_are_not_in_the_pool_show_nothing(tmp_path: Path, name: str) -> None:
    shown = Session(image_run(tmp_path, ["a.png"])).shown_items
    assert shown.show(name).missing
    assert shown.picture(name, 0) is None


def test_a_file_that_is_damaged_since_says_so(tmp_path: Path) -> None:
    run = image_run(tmp_path, ["a.png"])
    (tmp_path / "U" / "a.png").write_bytes(b"no image")
    shown = Session(run).shown_items
    assert shown.show("U/a.png").missing.startswith("The file ")
    assert shown.picture("U/a.png", 0) is None


def test_a_folder_that_is_gone_is_told_and_answers_stay_possible(tmp_path: Path) -> None:
    run = image_run(tmp_path, ["a.png"])
    (tmp_path / "U").rename(tmp_path / "moved")
    session = Session(run)
    assert "does not exist" in session.shown_items.show("U/a.png").missing
    assert session.answer("U/a.png", "positive").answer == "positive"


def test_a_text_is_shown_as_it_is(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>\nsecond line"
    shown = Session(text_run(tmp_path, {"a.txt": hostile})).shown_items
    assert shown.show("U/a.txt") == Shown(text=hostile)


def test_a_row_of_a_table_is_shown_cell_by_cell(tmp_path: Path) -> None:
    table = write_table(tmp_path / "houses.csv", mixed_rows(60))
    run = write_run(tmp_path / "run", ["line 3"], {"name": "table", "table": str(table)})
    session = Session(run)
    loaded = session.shown_items
    named = next(iter(loaded.rows))  # type: ignore[attr-defined]
    shown = loaded.show(named)
    assert shown.cells
    assert not shown.pictures
    columns = table.read_text().splitlines()[0].split(",")
    assert {name for name, _ in shown.cells} <= set(columns)


def test_a_pair_has_two_pictures() -> None:
    from onesided.review.items import _one_of

    pair = np.arange(6, dtype=np.uint8)[:, None, None].repeat(4, 1).repeat(4, 2)
    assert pixels(_one_of(pair, 0, first=3))[0, 0].tolist() == [0, 1, 2]
    assert pixels(_one_of(pair, 1, first=3))[0, 0].tolist() == [3, 4, 5]
    assert _one_of(pair, 2, first=3) is None
    assert _one_of(pair, -1, first=3) is None


def test_what_is_sent_holds_nothing_of_the_file_but_pixels(tmp_path: Path) -> None:
    path = tmp_path / "U" / "tagged.jpg"
    path.parent.mkdir()
    exif = Image.Exif()
    exif[0x010E] = "a secret description"
    Image.new("RGB", (400, 300)).save(path, exif=exif)
    run = image_run(tmp_path, ["a.png"])
    picture = Session(run).shown_items.picture("U/tagged.jpg", 0)
    assert picture is not None
    assert picture.media_type == "image/jpeg"
    assert b"secret" not in picture.content


def test_grey_images_are_encoded() -> None:
    assert pixels(encoded(np.zeros((1, 5, 7), np.uint8))).shape == (5, 7)
