"""Answers that were saved before, loaded into the map page again."""

import csv
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.support.wait import WebDriverWait

from onesided.storage.answers import ANSWERS, read_answers
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
    lines = str(page.run("return onesidedMap.csv()")).splitlines(keepends=True)
    return [row[:2] for row in list(csv.reader(lines))[1:]]


def mark(page: Map, keys: Iterable[str]) -> None:
    for key in keys:
        page.press("j")
        page.press(key)


def test_what_onesided_review_exports_is_loaded(page: Map, tmp_path: Path) -> None:
    lines = (
        "item,answer,reviewer,time,strategy,round,score\r\nplain;,positive,Anna,,likely,1,0.8\r\n"
    )
    assert load(page, lines, tmp_path, "answers.csv") == "1 answer loaded."
    assert checks(page) == [["plain;", "positive"]]


def test_what_was_saved_comes_back_to_the_letter(page: Map, tmp_path: Path) -> None:
    mark(page, "12312")
    saved = str(page.run("return onesidedMap.csv()"))
    page.forget()
    page.show(page_of(ITEMS), tmp_path / "map.html")
    assert checks(page) == []
    assert load(page, saved, tmp_path) == "5 answers loaded."
    assert str(page.run("return onesidedMap.csv()")) == saved
    assert "5 checked: 2 damaged, 2 not damaged, 1 unsure" in page.text("review")
    page.press("j")
    assert page.selected() == "later"  # the only one not checked


def test_a_spreadsheet_s_way_of_writing_is_read(page: Map, tmp_path: Path) -> None:
    text = '\ufeffseen by;Label;ID\r\nme;Positive;"plain;"\r\nme;NEGATIVE;later\r\n\r\n'
    assert load(page, text, tmp_path) == "2 answers loaded."
    assert checks(page) == [["plain;", "positive"], ["later", "negative"]]


def test_unknown_ids_are_counted_and_left_out(page: Map, tmp_path: Path) -> None:
    text = "id,label\nlater,positive\nnobody,positive\nnowhere,negative\nplain;,perhaps\n"
    message = load(page, text, tmp_path)
    assert (
        message == "1 answer loaded; 2 unknown ids left out; 1 line with another answer left out."
    )
    assert checks(page) == [["later", "positive"]]


def test_what_was_checked_in_this_window_stays(page: Map, tmp_path: Path) -> None:
    mark(page, "1")
    text = 'id,label\n"\'=HYPERLINK(""x"")",negative\nlater,unlabelled\nlater,negative\n'
    message = load(page, text, tmp_path)
    assert message == "2 answers loaded; 1 building kept as checked here."
    # The newest last, as the list of what was checked shows them from the end.
    assert checks(page) == [["later", "negative"], ["'" + NAMES[0], "positive"]]


def test_a_file_without_checks_changes_nothing(page: Map, tmp_path: Path) -> None:
    mark(page, "1")
    before = checks(page)
    contents = ("", "a,b\n1,2\n", "id\nlater\n", 'id,label\n"later', b"\x89PNG\r\n\x1a\n\0\xff")
    for content in contents:
        assert load(page, content, tmp_path).startswith(
            "This file holds no answers: its first line"
        )
    assert checks(page) == before


def test_nothing_in_a_file_is_run(page: Map, tmp_path: Path) -> None:
    attack = "<img src=x onerror='window.hacked = 1'>"
    text = f'id,label\n"{attack}",positive\nlater,"{attack}"\n__proto__,positive\nlater,__proto__\n'
    message = load(page, text, tmp_path, name="<img src=x onerror=window.hacked=2>.csv")
    assert (
        message == "0 answers loaded; 2 unknown ids left out; 2 lines with another answer left out."
    )
    assert page.run("return window.hacked") is None
    assert page.run("return document.querySelectorAll('img').length") == 0


def test_the_button_is_reached_and_pressed_by_keys(page: Map) -> None:
    # The dialog of the operating system is out of reach; that it is asked for is not.
    page.run(
        "document.getElementById('review-file').click = () => { window.asked = true; };"
        "document.getElementById('list-kind').focus()"
    )
    for _ in range(50):
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


def test_answers_and_threshold_survive_a_crash(page: Map, tmp_path: Path) -> None:
    page.run("document.getElementById('reviewer').value = 'Anna; x'")
    mark(page, "14")
    page.set_threshold(0.97)
    before = str(page.run("return onesidedMap.csv()"))
    assert before.count("Anna; x") == 2
    page.show(page_of(ITEMS), tmp_path / "map.html")
    assert page.text("loaded") == "2 answers of an earlier window restored from this browser."
    assert str(page.run("return onesidedMap.csv()")) == before
    assert float(page.element("threshold-number").get_attribute("value") or "nan") == 0.97
    assert "1 damaged, 0 not damaged, 0 unsure, 1 skipped" in page.text("review")


def reviewers(page: Map) -> dict[str, str]:
    lines = str(page.run("return onesidedMap.csv()")).splitlines(keepends=True)
    return {row[0]: row[2] for row in list(csv.reader(lines))[1:]}


def test_a_name_typed_later_is_put_on_answers_given_before(page: Map, tmp_path: Path) -> None:
    text = "id,answer,reviewer\nlater,positive,Ben\nplain;,negative,\n"
    load(page, text, tmp_path)
    mark(page, "12")
    page.element("export").click()
    page.element("reviewer").send_keys("Anna", Keys.TAB)
    expected = {"later": "Ben", "plain;": "", "'" + NAMES[0]: "Anna", NAMES[1]: "Anna"}
    assert reviewers(page) == expected
    assert page.text("loaded") == "This name is now on 2 answers given before."
    assert page.run("return onesidedMap.geojson()").count('"reviewer":"Anna"') == 2
    field = page.element("reviewer")
    field.clear()
    field.send_keys("Carl", Keys.TAB)
    assert reviewers(page) == expected, "an answer keeps the name it has"
    page.show(page_of(ITEMS), tmp_path / "map.html")
    assert reviewers(page) == expected
    field = page.element("reviewer")
    field.clear()
    field.send_keys("Dora", Keys.TAB)
    assert reviewers(page) == expected, "the page still knows which ones are from a file"


def test_a_name_typed_in_a_later_window_counts_too(page: Map, tmp_path: Path) -> None:
    mark(page, "1")
    page.show(page_of(ITEMS), tmp_path / "map.html")
    page.element("reviewer").send_keys("Anna", Keys.TAB)
    assert list(reviewers(page).values()) == ["Anna"]


def test_a_name_typed_later_is_put_on_added_buildings(page: Map, tmp_path: Path) -> None:
    page.run("document.getElementById('map').focus()")
    page.press("n", Keys.ENTER, "f")
    page.element("reviewer").send_keys("Anna", Keys.TAB)
    page.show(page_of(ITEMS), tmp_path / "map.html")
    assert '"reviewer":"Anna"' in page.run("return onesidedMap.geojson()")


def test_another_place_does_not_see_these_answers(page: Map, tmp_path: Path) -> None:
    mark(page, "1")
    page.show(page_of(ITEMS[1:]), tmp_path / "elsewhere.html")
    assert checks(page) == []


def test_two_people_who_disagree_are_told(page: Map, tmp_path: Path) -> None:
    text = "id,answer,reviewer,time\nlater,positive,Anna,2024-01-01T10:00:00Z\n"
    text += "later,negative,Ben,2024-01-01T11:00:00Z\n"
    message = load(page, text, tmp_path)
    assert message == (
        "1 answer loaded; on 1 building reviewers disagree, and the last answer counts."
    )
    assert checks(page) == [["later", "negative"]]


def test_the_page_s_file_is_what_python_reads(page: Map, tmp_path: Path) -> None:
    page.run("document.getElementById('reviewer').value = '=Anna'")
    mark(page, "1234")
    path = tmp_path / "review.csv"
    path.write_text(str(page.run("return onesidedMap.csv()")), encoding="utf-8")
    found = read_answers(path)
    assert [each.item for each in found] == NAMES[:4]
    assert [each.answer for each in found] == list(ANSWERS)
    assert {each.reviewer for each in found} == {"=Anna"}
