import io
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.support.wait import WebDriverWait

from onesided.geo.output.page import write_map
from tests.browser import complaints, opened
from tests.geo.fake_town import page_of, town
from tests.geo.map_browser import OPEN, TOWN, Map


def test_the_keyboard_is_enough(shown: Map) -> None:
    shown.run("document.getElementById('map').focus()")
    start = shown.view()
    shown.press(Keys.ARROW_RIGHT, Keys.ARROW_UP)
    moved = shown.view()
    assert moved["longitude"] > start["longitude"]
    assert moved["latitude"] > start["latitude"]
    shown.press("+", "+", "-")
    assert shown.view()["scale"] == pytest.approx(1.6 * start["scale"])
    shown.press(Keys.ENTER)
    frame = shown.element("map").rect
    x, y = frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2
    nearest = shown.nearest(TOWN, x, y)
    assert shown.selected() == nearest.name
    shown.press("0")
    assert shown.view() == pytest.approx(start)


def test_dragging_moves_the_map_with_the_hand(shown: Map) -> None:
    x, y = shown.place(TOWN[50])
    actions = ActionChains(shown.chrome)
    pointer = actions.w3c_actions.pointer_action
    pointer.move_to_location(500, 400).pointer_down()  # type: ignore[no-untyped-call]
    pointer.move_to_location(560, 370).pointer_up()  # type: ignore[no-untyped-call]
    actions.perform()
    shown.settle()
    assert shown.place(TOWN[50]) == pytest.approx((x + 60, y - 30), abs=0.01)
    assert shown.selected() is None


def test_the_wheel_zooms_around_the_pointer(shown: Map) -> None:
    x, y = shown.place(TOWN[50])
    origin = ScrollOrigin.from_viewport(round(x), round(y))
    before = shown.view()["scale"]
    ActionChains(shown.chrome).scroll_from_origin(origin, 0, -240).perform()
    shown.settle()
    assert shown.view()["scale"] > 1.3 * before
    assert shown.place(TOWN[50]) == pytest.approx((x, y), abs=2)


def half_red_half_blue() -> bytes:
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[:, :32, 0] = pixels[:, 32:, 2] = 200
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("middle", [10.0, 180.0])
def test_the_image_lies_where_its_bounds_say(empty: Map, tmp_path: Path, middle: float) -> None:
    west, east = middle - 0.01, (middle + 0.01 + 180) % 360 - 180
    # Two buildings at the ends keep the image in view, and the cut of the map elsewhere.
    ends = [
        replace(OPEN[0], name="west", rings=[[(west, 0.0)]]),
        replace(OPEN[1], name="east", rings=[[(east, 0.005)]]),
    ]
    page = replace(page_of(ends), base=(half_red_half_blue(), (west, -0.01, east, 0.01)))
    empty.show(page, tmp_path / "map.html")
    WebDriverWait(empty.chrome, 10).until(
        lambda _: empty.pixel(*empty.project(middle - 0.001, 0.001))[0] > 150
    )
    assert empty.pixel(*empty.project(middle + 0.001, 0.001)) == (0, 0, 200)
    assert empty.pixel(*empty.project(middle - 0.001, -0.004)) == (200, 0, 0)


def test_an_event_across_the_antimeridian_is_one_town(empty: Map, tmp_path: Path) -> None:
    items = town(100, west=179.9988, south=-17.0)
    longitudes = [corner[0] for item in items for corner in item.rings[0]]
    assert min(longitudes) < -179 < 179 < max(longitudes)
    empty.show(page_of(items), tmp_path / "map.html")
    frame = empty.element("map").rect
    corners = empty.project_all([corner for item in items for corner in item.rings[0]])
    across = np.ptp(corners[:, 0])
    assert frame["width"] / 3 < across < frame["width"]
    for building in (items[50], items[59]):
        empty.click(*empty.place(replace(building, rings=[building.rings[0][:1]])))
        assert empty.selected() == building.name


def test_buildings_at_the_poles_and_without_shape_do_not_break_the_page(
    empty: Map, tmp_path: Path
) -> None:
    places = [[(0.0, 90.0)], [(120.0, -90.0)], [(20.0, 89.95)], []]
    items = [
        replace(OPEN[number], name=f"pole {number}", rings=[ring])
        for number, ring in enumerate(places)
    ]
    empty.show(page_of(items, threshold=0.0), tmp_path / "map.html")
    assert empty.count() == 4
    empty.rows()[[name == "pole 3" for name in empty.names()].index(True)].click()
    assert "no usable shape" in empty.text("card-facts")
    empty.rows()[[name == "pole 2" for name in empty.names()].index(True)].click()
    empty.settle()
    assert empty.view()["latitude"] == pytest.approx(89.95, abs=1e-4)


PLAIN_RECTANGLES = """
const context = document.createElement("canvas").getContext("2d");
return Array.from({length: 15}, () => {
  const start = performance.now();
  for (let place = 0; place < 20000; place++) context.fillRect(place % 300, place % 150, 3, 3);
  context.getImageData(0, 0, 1, 1);
  return performance.now() - start;
});
"""


def test_twenty_thousand_buildings_stay_fluid(empty: Map, tmp_path: Path) -> None:
    empty.show(page_of(town(20_000)), tmp_path / "map.html")
    # 200 ms are generous: there is no graphics card here. On a machine busy with other things
    # nothing is that fast, so what counts there is the least that any drawing could take.
    bound = max(200, 5 * statistics.median(empty.run(PLAIN_RECTANGLES)))
    assert statistics.median(empty.run("return onesidedMap.paintMilliseconds(15)")) < bound
    empty.element("zoom-in").click()
    empty.settle()
    assert statistics.median(empty.run("return onesidedMap.paintMilliseconds(15)")) < bound


@pytest.fixture
def saved_town(tmp_path: Path) -> Path:
    path = tmp_path / "map.html"
    write_map(replace(page_of(TOWN), warnings=["a warning"], facts=[("Method", "ncpu")]), path)
    return path


def test_dark_screens_get_a_dark_map(saved_town: Path) -> None:
    with opened(saved_town, dark=True) as chrome:
        shown = Map(chrome)
        shown.settle()
        assert sum(shown.pixel(5, 5)) < 150  # the page
        assert sum(shown.pixel(5, 300)) < 300  # the map's ground
        assert complaints(chrome) == []


def touch(chrome: WebDriver, kind: str, *places: tuple[float, float]) -> None:
    points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
    chrome.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def test_a_phone_shows_map_and_list_without_sideways_scrolling(saved_town: Path) -> None:
    with opened(saved_town, width=390, height=844) as chrome:
        shown = Map(chrome)
        shown.settle()
        chrome.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
        assert shown.run("return document.documentElement.scrollWidth") <= 390
        shown.run("document.getElementById('list').scrollIntoView()")
        frame = shown.run("return document.getElementById('map').getBoundingClientRect().toJSON()")
        assert frame["top"] == 0  # the map stays while the list scrolls
        before = shown.view()["scale"]
        touch(chrome, "touchStart", (150, 200), (250, 200))
        touch(chrome, "touchMove", (100, 200), (300, 200))
        touch(chrome, "touchEnd")
        shown.settle()
        assert shown.view()["scale"] == pytest.approx(2 * before, rel=0.05)
        building = shown.nearest(TOWN, 195, 200)
        touch(chrome, "touchStart", shown.place(building))
        touch(chrome, "touchEnd")
        shown.settle()
        assert shown.selected() == building.name
        assert shown.run("return document.documentElement.scrollWidth") <= 390
        assert complaints(chrome) == []


def test_long_names_leave_the_score_in_sight(tmp_path: Path) -> None:
    named = [replace(item, name=f"{item.name}-{'0123456789' * 6}") for item in town(60)]
    write_map(page_of(named), tmp_path / "map.html")
    with opened(tmp_path / "map.html") as chrome:
        shown = Map(chrome)
        shown.settle()
        last = "const all = [...document.querySelectorAll('#list .score')];"
        rights = shown.run(f"{last} return all.map(one => one.getBoundingClientRect().right)")
        assert rights
        assert max(rights) <= shown.run("return document.documentElement.clientWidth")
