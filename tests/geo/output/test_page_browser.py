import csv
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from onesided.geo.output.page import MapItem, MapPage
from onesided.storage.names import name_in_cell, spreadsheet_safe
from tests.geo.fake_town import page_of, picture, rectangle
from tests.geo.map_browser import OPEN, TOWN, Map, middle_of


def called(threshold: float) -> int:
    return sum(item.score is not None and item.score > threshold for item in OPEN)


def test_the_page_opens_from_disk_and_counts(shown: Map) -> None:
    assert shown.chrome.title == "Town"
    marked, skipped = (
        sum(item.role == "positive" for item in TOWN),
        sum(item.score is None for item in TOWN),
    )
    assert shown.text("summary") == f"400 buildings · {marked} marked · {skipped} skipped"
    assert shown.count() == called(0.5) > 0
    assert f"of {len(OPEN)} unmarked buildings" in shown.text("count-rest")


def test_the_slider_calls_more_or_fewer(shown: Map) -> None:
    for threshold in (0.05, 0.25, 0.9):
        shown.set_threshold(threshold)
        assert shown.count() == called(threshold)
    shown.element("threshold").send_keys(Keys.END)
    assert shown.count() == 0
    shown.element("reset").click()
    assert shown.count() == called(0.5)


def test_a_building_at_the_threshold_is_not_called(empty: Map, tmp_path: Path) -> None:
    score = OPEN[0].score
    assert score is not None
    empty.show(page_of(TOWN, threshold=score), tmp_path / "map.html")
    assert empty.count() == called(score)


def test_a_number_of_visits_sets_the_threshold(shown: Map) -> None:
    field = shown.element("top")
    field.clear()
    field.send_keys("25", Keys.ENTER)
    assert shown.count() == 25
    threshold = float(shown.element("threshold-number").get_attribute("value") or "nan")
    assert called(threshold) in (24, 25, 26)  # the field shows four decimals


def test_the_threshold_changes_the_picture_of_a_building(shown: Map) -> None:
    building = min(OPEN, key=lambda item: abs((item.score or 0) - 0.5))
    x, y = shown.place(building)
    shown.set_threshold(0.01)
    shown.settle()
    as_called = shown.pixel(x, y)
    shown.set_threshold(0.99)
    shown.settle()
    assert shown.pixel(x, y) != as_called


def test_buildings_of_one_score_have_one_colour_however_small(empty: Map, tmp_path: Path) -> None:
    sizes = {"tiny": 5, "shed": 12, "hall": 60, "shed too": 12, "tiny too": 5}
    items = [
        MapItem(name, rectangle(300 * place, 0, size, size, 10, 50), 0.2, None, "unlabelled")
        for place, (name, size) in enumerate(sizes.items())
    ]
    empty.show(page_of(items), tmp_path / "map.html")
    colours = {empty.pixel(*empty.place(item)) for item in items}
    assert len(colours) == 1
    assert colours != {empty.pixel(*np.add(empty.place(items[2]), (0, 100)))}  # the ground


@pytest.mark.parametrize("number", [150, 255, 399])
def test_a_click_opens_the_building_under_it(shown: Map, number: int) -> None:
    building = TOWN[number]
    shown.click(*shown.place(building))
    assert shown.selected() == shown.text("card-name") == building.name
    assert f"{building.score:.4f}" in shown.text("card-facts")
    verdict = "Called damaged" if (building.score or 0) > 0.5 else "Not called damaged"
    assert shown.text("card-verdict") == verdict
    shown.press(Keys.ESCAPE)
    assert not shown.element("card").is_displayed()


def test_a_skipped_building_says_why(shown: Map) -> None:
    building = [item for item in TOWN if item.score is None][2]
    shown.click(*shown.place(building))
    assert shown.selected() == building.name
    assert shown.text("card-verdict") == "Skipped: no score"
    assert "outside the image" in shown.text("card-facts")


def test_a_courtyard_is_not_the_building_around_it(empty: Map, tmp_path: Path) -> None:
    outer = rectangle(0, 0, 60, 60, 10, 50)[0]
    court = rectangle(20, 20, 20, 20, 10, 50)[0]
    shed = rectangle(27, 27, 6, 6, 10, 50)
    around = MapItem("around", [outer, court], 0.9, 1, "unlabelled")
    inside = MapItem("shed", shed, 0.1, 2, "unlabelled")
    empty.show(page_of([inside, around]), tmp_path / "map.html")
    empty.click(*empty.place(inside))
    assert empty.selected() == "shed"
    x, y = empty.place(around)
    corner = empty.project(*outer[0])
    empty.click((3 * corner[0] + x) / 4, (3 * corner[1] + y) / 4)
    assert empty.selected() == "around"


def test_the_list_offers_the_highest_first_and_flies_there(shown: Map) -> None:
    ranked = sorted(OPEN, key=lambda item: -(item.score or 0))
    assert shown.names() == [item.name for item in ranked[:10]]
    shown.element("page-on").click()
    assert shown.names() == [item.name for item in ranked[10:20]]
    before = shown.view()["scale"]
    shown.rows()[3].click()
    shown.settle()
    assert shown.selected() == ranked[13].name
    assert shown.view()["scale"] > before
    x, y = shown.place(ranked[13])
    frame, card = shown.element("map").rect, shown.element("card").rect
    middle = (card["x"] + card["width"] + frame["x"] + frame["width"]) / 2
    assert abs(x - middle) < 20  # in the middle of what the card leaves free
    assert abs(y - frame["y"] - frame["height"] / 2) < 2


def test_the_list_shows_the_doubtful_ones_too(shown: Map) -> None:
    kind = shown.element("list-kind")
    for value, expected in {
        "borderline": sorted(OPEN, key=lambda item: abs((item.score or 0) - 0.5)),
        "below": [
            item
            for item in sorted(OPEN, key=lambda item: -(item.score or 0))
            if (item.score or 0) <= 0.5
        ],
        "doubted": sorted(
            (item for item in TOWN if item.role == "positive" and item.score is not None),
            key=lambda item: item.score or 0,
        ),
        "skipped": [item for item in TOWN if item.score is None],
    }.items():
        kind.find_element(By.CSS_SELECTOR, f"[value={value}]").click()
        assert shown.names() == [item.name for item in expected[:10]]


def test_search_finds_by_a_part_of_the_name(shown: Map) -> None:
    shown.press("/")
    shown.press("G-0012")
    found = highest_first(item for item in TOWN if "g-0012" in item.name)
    assert shown.names() == [item.name for item in found]
    shown.press(Keys.ENTER)
    assert shown.selected() == found[0].name


def highest_first(items: Iterable[MapItem]) -> list[MapItem]:
    return sorted(items, key=lambda item: -(item.score or 0))


def test_what_was_searched_is_in_the_order_of_the_box(shown: Map) -> None:
    answered = shown.names()[:2]
    for row in range(2):
        shown.rows()[row].click()
        shown.press("2")
    shown.element("search").send_keys("g-0")
    shown.settle()
    skipped = [item for item in TOWN if item.score is None]
    scored = [item for item in TOWN if item.score is not None]
    marked = [item for item in scored if item.role == "positive"]
    below = [item for item in scored if (item.score or 0) <= 0.5]
    for box, first in {
        "called": highest_first(scored),
        "borderline": sorted(scored, key=lambda item: abs((item.score or 0) - 0.5)),
        "below": highest_first(below),
        "doubted": highest_first(marked)[::-1],
        "checked": [item for name in reversed(answered) for item in OPEN if item.name == name],
        "skipped": skipped,
    }.items():
        shown.element("list-kind").find_element(By.CSS_SELECTOR, f"[value={box}]").click()
        named = [item.name for item in first]
        others = [item.name for item in highest_first(scored) if item.name not in named]
        last = [item.name for item in skipped if item.name not in named]
        assert names_of_all_pages(shown) == [*named, *others, *last], box
        assert shown.text("list-count") == "400"


def names_of_all_pages(page: Map) -> list[str]:
    script = """
    const names = [];
    for (;;) {
      for (const name of document.querySelectorAll("#list .name")) names.push(name.textContent);
      if (document.getElementById("page-on").disabled) return names;
      document.getElementById("page-on").click();
    }
    """
    return [str(name) for name in page.run(script)]


def test_after_the_last_checked_of_a_search_comes_the_next(shown: Map) -> None:
    shown.element("search").send_keys("g-0012")
    shown.settle()
    names = shown.names()
    shown.element("list-kind").find_element(By.CSS_SELECTOR, "[value=checked]").click()
    for place in (2, 4):
        shown.rows()[[name == names[place] for name in shown.names()].index(True)].click()
        shown.press("1")
    assert shown.names() == [names[place] for place in (4, 2, 0, 1, 3, 5, 6, 7, 8, 9)]
    shown.element("next").click()
    shown.settle()
    assert shown.selected() == names[0]


def test_answers_are_saved_with_their_time(empty: Map, tmp_path: Path) -> None:
    names = ['=HYPERLINK("x")', 'quote",comma;=1', "line\nfeed", "'\uff0b1", "plain"]
    items = [
        replace(item, name=name, score=1 - place / 10)
        for place, (name, item) in enumerate(zip(names, OPEN, strict=False))
    ]
    empty.show(page_of(items), tmp_path / "map.html")
    empty.chrome.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    assert not empty.element("export").is_enabled()
    for key in ("1", "2", "3", "1", "1"):
        empty.press("j")
        empty.press(key)
    empty.press("1")  # again: taken back
    assert "4 checked: 2 damaged, 1 not damaged, 1 unsure" in empty.text("review")
    empty.element("export").click()
    saved = tmp_path / "review.csv"
    WebDriverWait(empty.chrome, 10).until(lambda _: saved.exists())
    with saved.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, strict=True))
    assert rows[0] == ["id", "answer", "reviewer", "time"]
    assert [name_in_cell(row[0]) for row in rows[1:]] == names[:4]
    assert [row[1] for row in rows[1:]] == ["positive", "negative", "unsure", "positive"]
    assert all(datetime.fromisoformat(row[3]).tzinfo for row in rows[1:])
    assert [row[0] for row in rows[1:]] == [spreadsheet_safe(name) for name in names[:4]]
    assert '"quote"",comma;=1"' in saved.read_text(encoding="utf-8")


def test_coordinates_can_be_taken_to_another_map(shown: Map) -> None:
    building = TOWN[150]
    shown.click(*shown.place(building))
    shown.element("copy").click()
    WebDriverWait(shown.chrome, 10).until(lambda _: shown.text("copy") == "Copied")
    search = shown.element("search")
    search.send_keys(Keys.CONTROL, "v")
    latitude, longitude = (search.get_attribute("value") or "").split(", ")
    assert (float(longitude), float(latitude)) == pytest.approx(middle_of(building), abs=2e-6)


def test_the_next_button_passes_over_what_is_checked(shown: Map) -> None:
    names = shown.names()
    shown.rows()[1].click()
    shown.press("2")
    shown.rows()[0].click()
    shown.element("next").click()
    shown.settle()
    assert shown.selected() == names[2]
    shown.element("previous").click()
    assert shown.selected() == names[1]


def test_focus_stays_on_the_row_that_was_chosen(shown: Map) -> None:
    row = shown.rows()[4]
    chosen = row.get_attribute("data-item")
    row.send_keys(Keys.ENTER)
    shown.settle()
    assert shown.chrome.switch_to.active_element.get_attribute("data-item") == chosen


def test_the_card_shows_before_and_after(empty: Map, tmp_path: Path) -> None:
    red, blue = picture(200, 30, 30), picture(30, 30, 200, kind="JPEG")
    items = [replace(OPEN[0], before=red, after=blue)]
    empty.show(page_of(items, threshold=0.0), tmp_path / "map.html")
    empty.rows()[0].click()
    empty.settle()
    images = empty.element("card-pictures").find_elements(By.TAG_NAME, "img")
    assert [image.get_attribute("naturalWidth") for image in images] == ["32", "32"]
    middles = [
        (image.rect["x"] + image.rect["width"] / 2, image.rect["y"] + image.rect["height"] / 2)
        for image in images
    ]
    before, after = (empty.pixel(*middle) for middle in middles)
    assert before[0] > 150 > before[2]
    assert after[2] > 150 > after[0]


def test_hostile_names_are_only_shown(empty: Map, tmp_path: Path) -> None:
    name = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    items = [
        replace(OPEN[0], name=name, role=f"unlabelled {name}", score=0.9),
        replace(OPEN[1], name="b", reason=name, score=None),
    ]
    page = MapPage(name, items, 0.0, facts=[(name, name)], warnings=[name])
    empty.show(page, tmp_path / "map.html")
    empty.press("j", "1")
    assert empty.run("return window.hacked") is None
    assert empty.text("title") == empty.text("card-name") == name
    assert empty.run("return document.querySelectorAll('img').length") == 0


def test_a_page_without_buildings_still_opens(empty: Map, tmp_path: Path) -> None:
    empty.show(page_of([]), tmp_path / "map.html")
    assert empty.count() == 0
    assert "No unmarked building" in empty.text("list-empty")
