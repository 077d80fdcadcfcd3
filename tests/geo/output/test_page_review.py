"""Checks that were saved before, loaded into the map page again."""

import csv
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.support.wait import WebDriverWait

from tests.geo.fake_town import page_of
from tests.geo.map_browser import OPEN, Map

NAMES = ['=HYPERLINK("x")', 'quote",comma', "line\nfeed", "'+1", "plain;", "later"]
ITEMS = [
    replace(item, name=name, score=1 - place / 20)
    for place, (name, item) in enumerate(zip(NAMES, OPEN, strict=False))
]


@pytest.fixture
def page(empty: Map, tmp_path: Path) -> Map:
    """Six buildings with the names of a hostile register, in the order of the list."""
    empty.show(page_of(ITEMS), tmp_path / "map.html")
    return empty


def load(page: Map, content: str | bytes, folder: Path, name: str = "review.csv") -> str:
    """Choose a file as a person does; return what the page says about it."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    page.run("document.getElementById('loaded').textContent = ''")
    page.element("review-file").send_keys(str(path))
    WebDriverWait(page.chrome, 10).until(lambda _: page.text("loaded"))
    page.settle()
    return page.text("loaded")


def checks(page: Map) -> list[list[str]]:
    """Return the lines that would be saved now."""
    return list(csv.reader(str(page.run("return onesidedMap.csv()")).splitlines(keepends=True)))[1:]


def mark(page: Map, keys: Iterable[str]) -> None:
    for key in keys:
        page.press("j")
        page.press(key)


def test_what_was_saved_comes_back_to_the_letter(page: Map, tmp_path: Path) -> None:
    mark(page, "12312")
    saved = str(page.run("return onesidedMap.csv()"))
    page.show(page_of(ITEMS), tmp_path / "map.html")
    assert checks(page) == []
    assert load(page, saved, tmp_path) == "5 checks loaded."
    assert str(page.run("return onesidedMap.csv()")) == saved
    assert "5 checked: 2 damaged, 2 not damaged, 1 unsure" in page.text("review")
    page.press("j")
    assert page.selected() == "later"  # the only one not checked


def test_a_spreadsheet_s_way_of_writing_is_read(page: Map, tmp_path: Path) -> None:
    text = '\ufeffseen by;Label;ID\r\nme;Positive;"plain;"\r\nme;NEGATIVE;later\r\n\r\n'
    assert load(page, text, tmp_path) == "2 checks loaded."
    assert checks(page) == [["plain;", "positive"], ["later", "negative"]]


def test_unknown_ids_are_counted_and_left_out(page: Map, tmp_path: Path) -> None:
    text = "id,label\nlater,positive\nnobody,positive\nnowhere,negative\nplain;,perhaps\n"
    message = load(page, text, tmp_path)
    assert message == "1 check loaded; 2 unknown ids left out; 1 line with another label left out."
    assert checks(page) == [["later", "positive"]]


def test_what_was_checked_in_this_window_stays(page: Map, tmp_path: Path) -> None:
    mark(page, "1")
    text = 'id,label\n"\'=HYPERLINK(""x"")",negative\nlater,unlabelled\nlater,negative\n'
    message = load(page, text, tmp_path)
    assert message == "2 checks loaded; 1 building kept as checked here."
    # The newest last, as the list of what was checked shows them from the end.
    assert checks(page) == [["later", "negative"], ["'" + NAMES[0], "positive"]]


def test_a_file_without_checks_changes_nothing(page: Map, tmp_path: Path) -> None:
    mark(page, "1")
    before = checks(page)
    contents = ("", "a,b\n1,2\n", "id\nlater\n", 'id,label\n"later', b"\x89PNG\r\n\x1a\n\0\xff")
    for content in contents:
        assert load(page, content, tmp_path).startswith("This file holds no checks: its first line")
    assert checks(page) == before


def test_nothing_in_a_file_is_run(page: Map, tmp_path: Path) -> None:
    attack = "<img src=x onerror='window.hacked = 1'>"
    text = f'id,label\n"{attack}",positive\nlater,"{attack}"\n__proto__,positive\nlater,__proto__\n'
    message = load(page, text, tmp_path, name="<img src=x onerror=window.hacked=2>.csv")
    assert (
        message == "0 checks loaded; 2 unknown ids left out; 2 lines with another label left out."
    )
    assert page.run("return window.hacked") is None
    assert page.run("return document.querySelectorAll('img').length") == 0


def test_the_button_is_reached_and_pressed_by_keys(page: Map) -> None:
    # The dialog of the operating system is out of reach; that it is asked for is not.
    page.run(
        "document.getElementById('review-file').click = () => { window.asked = true; };"
        "document.getElementById('list-kind').focus()"
    )
    for _ in range(30):
        page.press(Keys.TAB)
        if page.chrome.switch_to.active_element.get_attribute("id") == "load":
            break
    page.press(Keys.ENTER)
    assert page.run("return window.asked") is True


def test_loaded_checks_alone_need_no_second_save(page: Map, tmp_path: Path) -> None:
    def asks_before_leaving() -> bool:
        script = (
            "const leaving = new Event('beforeunload', { cancelable: true });"
            "window.dispatchEvent(leaving); return leaving.defaultPrevented"
        )
        return bool(page.run(script))

    load(page, "id,label\nlater,positive\n", tmp_path)
    assert not asks_before_leaving()
    mark(page, "1")
    assert asks_before_leaving()
