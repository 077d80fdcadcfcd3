"""Images, pictures, filters and new buildings on the map page, in a real browser."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shapely  # type: ignore[import-untyped, unused-ignore]
from selenium.webdriver import Keys
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from onesided.geo.input.footprints import read_footprints
from onesided.geo.input.vector import read_layer
from onesided.geo.output.page import MapItem, MapPage, render, write_map
from onesided.geo.output.page_content import map_page
from onesided.geo.output.summary import summarise
from onesided.geo.scene.footprint_scene import open_scene
from tests.browser import complaints, opened
from tests.geo.fake_town import page_of, rectangle, town
from tests.geo.map_browser import OPEN, TOWN, Map, middle_of
from tests.geo.maps import chips, houses, table
from tests.geo.rasters import write_tiff

SIDE, METRES = 1200, 0.5
WEST, NORTH = 500_000.0, 1_600_000.0


def striped(first: tuple[int, int, int], second: tuple[int, int, int]) -> np.ndarray:
    """Return an image whose every other column of pixels has another colour."""
    pixels = np.zeros((3, SIDE, SIDE), np.uint8)
    pixels[:, :, 0::2] = np.array(first)[:, None, None]
    pixels[:, :, 1::2] = np.array(second)[:, None, None]
    return pixels


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MapPage]:
    """A place that was red before the event, and blue after it, in stripes of one pixel."""
    folder = tmp_path_factory.mktemp("images")
    transform = (METRES, 0.0, WEST, 0.0, -METRES, NORTH)
    write_tiff(folder / "pre.tif", striped((220, 120, 120), (120, 20, 20)), transform=transform)
    write_tiff(folder / "post.tif", striped((120, 120, 220), (20, 20, 120)), transform=transform)
    buildings = houses(20)
    moved = shapely.transform(buildings.geometries, lambda corners: corners + np.array([100, -300]))
    buildings = replace(buildings, geometries=moved)
    drawn = table(buildings)
    with ExitStack() as stack:
        scene = open_scene(stack, buildings, [folder / "pre.tif", folder / "post.tif"])
        yield map_page(
            drawn,
            chips(20, 6),
            summarise(drawn),
            title="damage",
            after_from=3,
            images=scene.images,
        )


@pytest.fixture
def place(empty: Map, seen: MapPage, tmp_path: Path) -> Map:
    empty.show(seen, tmp_path / "map.html")
    loaded(empty)
    return empty


def loaded(page: Map) -> None:
    """Wait until no tile is under way."""

    def done(_: object) -> bool:
        tiles = page.run("return onesidedMap.tiles()")
        return bool(sum(tiles[1::2]) > 0 and sum(tiles[0::2]) == 0)

    WebDriverWait(page.chrome, 20).until(done)
    page.settle()


def beside(page: Map, right: float = 0) -> tuple[int, ...]:
    """Return the colour of the ground near the middle of the map, outside of buildings."""
    frame = page.element("map").rect
    x, y = frame["x"] + frame["width"] / 2 + right, frame["y"] + frame["height"] * 0.9
    return page.pixel(x, y)


def test_single_pixels_of_the_image_are_seen_at_building_zoom(place: Map, seen: MapPage) -> None:
    longitude, latitude = middle_of(seen.items[10])
    place.run("onesidedMap.moveTo(...arguments)", longitude, latitude, 0.05)
    loaded(place)
    # Ten screen pixels are one of the image: stripes are as bright as they were drawn.
    colours = np.array([beside(place, right) for right in range(0, 40, 4)])
    assert colours[:, 0].max() > 100
    assert colours[:, 0].min() < 45
    assert (colours[:, 2] > colours[:, 0] + 60).all()


def test_a_roof_is_seen_through_its_colour_at_building_zoom(place: Map, seen: MapPage) -> None:
    place.run("onesidedMap.moveTo(...arguments)", *middle_of(seen.items[10]), 0.05)
    loaded(place)
    x, y = place.place(seen.items[10])
    reds = [place.pixel(x + right, y)[0] for right in range(0, 40, 4)]
    assert np.ptp(reds) > 50, "half of what the stripes differ by beside it, 100"


def test_before_and_after_by_button_key_and_swipe(place: Map, seen: MapPage) -> None:
    place.run("onesidedMap.moveTo(...arguments)", *middle_of(seen.items[10]), 0.2)
    loaded(place)
    assert beside(place)[2] > beside(place)[0]
    place.press("b")
    loaded(place)
    assert beside(place)[0] > beside(place)[2]
    place.chrome.find_element(By.CSS_SELECTOR, "#compare [data-mode=swipe]").click()
    loaded(place)
    left, right = beside(place, -60), beside(place, 60)
    assert left[0] > left[2]
    assert right[2] > right[0]
    curtain = place.element("curtain")
    curtain.send_keys(Keys.END)
    place.settle()
    assert beside(place, 60)[0] > beside(place, 60)[2]
    assert curtain.get_attribute("aria-valuenow") == "100"


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1400, 900)])
def test_the_curtain_starts_beside_the_selected_building(
    seen: MapPage, tmp_path: Path, width: int, height: int
) -> None:
    write_map(seen, tmp_path / "map.html")
    with opened(tmp_path / "map.html", width=width, height=height) as chrome:
        page = Map(chrome)
        page.settle()
        page.press("s")
        frame, start = page.element("map").rect, curtain_span(page).mean()
        page.press("s", "j")
        page.settle()
        first = next(item for item in seen.items if item.name == page.selected())
        page.press("s")
        assert not touches(curtain_span(page), page, first), "where the list puts a building"
        page.press("s", Keys.ESCAPE)
        item = seen.items[10]
        longitude, latitude = middle_of(item)
        metres = (start - frame["x"] - frame["width"] / 2) * 0.2
        shift = metres / (111_320 * np.cos(np.radians(latitude)))
        page.run("onesidedMap.moveTo(...arguments)", longitude - shift, latitude, 0.2)
        page.settle()
        assert page.place(item)[0] == pytest.approx(start, abs=1)
        page.click(*page.place(item))
        assert page.selected() == item.name
        page.press("s")
        assert not touches(curtain_span(page), page, item), "one that lies where it would start"


def curtain_span(page: Map) -> np.ndarray:
    handle = page.element("curtain").rect
    return np.array([handle["x"], handle["x"] + handle["width"]])


def touches(span: np.ndarray, page: Map, item: MapItem) -> bool:
    across = page.project_all(
        [(east, north) for east, north in np.asarray(item.rings[0]).tolist()]
    )[:, 0]
    return bool(across.min() <= span[1] and span[0] <= across.max())


def test_every_building_has_a_picture_with_its_surroundings(place: Map, seen: MapPage) -> None:
    search = place.element("search")
    for item in (seen.items[0], seen.items[-1]):  # the last one was skipped
        search.clear()
        search.send_keys(item.name, Keys.ENTER)
        loaded(place)
        script = """
        return [...document.querySelectorAll("#card-pictures canvas")].map((canvas) => {
          const { data } = canvas.getContext("2d").getImageData(5, 5, 1, 1);
          const { width, height } = canvas.getBoundingClientRect();
          return [...data, width, height, getComputedStyle(canvas).objectFit];
        });
        """
        before, after = place.run(script)
        assert before[0] > before[2] + 60
        assert after[2] > after[0] + 60
        assert before[4] == pytest.approx(before[5]), "a square picture in a square, not cropped"
        assert before[6] == "contain"


def test_the_card_swipes_too(place: Map) -> None:
    place.press("j")
    place.chrome.find_element(By.CSS_SELECTOR, "#card-compare [data-compare=swipe]").click()
    slider = place.chrome.find_element(By.CSS_SELECTOR, "#card-pictures input")
    slider.send_keys(Keys.HOME)
    after = place.chrome.find_elements(By.CSS_SELECTOR, "#card-pictures canvas")[1]
    assert after.value_of_css_property("clip-path").endswith(" 0%)")
    slider.send_keys(Keys.END)
    assert after.value_of_css_property("clip-path").endswith(" 100%)")


def test_a_page_that_was_sent_alone_still_works_and_says_what_is_missing(
    chrome: WebDriver, seen: MapPage, tmp_path: Path
) -> None:
    (tmp_path / "alone.html").write_bytes(render(seen, folder="map-files/0123456789abcdef"))
    page = Map(chrome)
    chrome.get((tmp_path / "alone.html").as_uri())
    WebDriverWait(chrome, 20).until(lambda _: page.element("files-missing").is_displayed())
    page.press("j")
    pictures = page.element("card-pictures").find_elements(By.TAG_NAME, "img")
    assert len(pictures) == 2, "those inside the page"
    page.show(page_of([]), tmp_path / "map.html")
    assert all("FILE_NOT_FOUND" in complaint for complaint in complaints(chrome))


def test_without_an_image_chips_come_from_files(empty: Map, tmp_path: Path) -> None:
    drawn = table(houses(600))
    page = map_page(drawn, chips(600), summarise(drawn), title="points")
    empty.show(page, tmp_path / "map.html")
    empty.element("search").send_keys("h450", Keys.ENTER)
    width = "return document.querySelector('#card-pictures img')?.naturalWidth"
    WebDriverWait(empty.chrome, 20).until(lambda _: empty.run(width) == 16)


def test_attributes_are_shown_and_never_run(empty: Map, tmp_path: Path) -> None:
    attack = "<img src=x onerror='window.hacked = 1'>"
    attributes: dict[str, list[object]] = {
        attack: [attack] * 400,
        "floors": list(range(400)),
        "none": [None] * 400,
    }
    empty.show(replace(page_of(TOWN), attributes=attributes), tmp_path / "map.html")
    empty.press("j")
    shown = empty.text("card-attributes")
    assert attack in shown
    assert "none" not in shown
    assert empty.run("return window.hacked") is None
    assert empty.run("return document.querySelectorAll('img').length") == 0


def choose(page: Map, name: str, value: str) -> None:
    page.run(
        "const field = document.getElementById(arguments[0]); field.value = arguments[1];"
        "field.dispatchEvent(new Event('input'))",
        name,
        value,
    )
    page.settle()


def test_filters_by_attribute_score_area_and_answer(empty: Map, tmp_path: Path) -> None:
    kinds = ["school" if number % 7 == 0 else "house" for number in range(400)]
    floors = [number % 5 for number in range(400)]
    page = replace(page_of(TOWN), attributes={"kind": kinds, "floors": floors})
    empty.show(page, tmp_path / "map.html")

    def names(test: object) -> list[str]:
        chosen = [item for item in OPEN if test(TOWN.index(item), item)]  # type: ignore[operator]
        ranked = sorted(chosen, key=lambda item: -(item.score or 0))
        return [item.name for item in ranked if (item.score or 0) > 0.5][:10]

    choose(empty, "attribute", "0")
    choose(empty, "attribute-text", "SCHOOL")
    assert empty.names() == names(lambda number, _: number % 7 == 0)
    choose(empty, "attribute", "1")
    choose(empty, "attribute-from", "4")
    assert empty.names() == names(lambda number, _: number % 5 == 4)
    empty.element("filter-clear").click()
    choose(empty, "score-to", "0.7")
    assert empty.names() == names(lambda _, item: item.score <= 0.7)
    empty.element("filter-clear").click()
    choose(empty, "area-from", "250")
    areas = [float(text) for text in shown_areas(empty)]
    assert areas
    assert min(areas) >= 249.5
    empty.element("filter-clear").click()
    empty.press("j", "2")
    choose(empty, "filter-answer", "not damaged")
    assert empty.text("filter-count") == "1 of 400 buildings shown"
    assert "No such building" not in empty.text("list-empty")


def shown_areas(page: Map) -> list[str]:
    found = []
    for row in range(min(5, len(page.rows()))):
        page.rows()[row].click()
        page.settle()
        facts = page.text("card-facts").splitlines()
        found.append(facts[facts.index("Area") + 1].removesuffix(" m²").replace(",", ""))
    return found


def test_the_area_of_a_building_is_its_area(empty: Map, tmp_path: Path) -> None:
    outer, court = rectangle(0, 0, 60, 40, 10, 50)[0], rectangle(20, 10, 20, 20, 10, 50)[0]
    item = MapItem("yard", [outer, court], 0.9, 1, "unlabelled")
    empty.show(page_of([item]), tmp_path / "map.html")
    assert float(shown_areas(empty)[0]) == pytest.approx(60 * 40 - 20 * 20, rel=0.01)


def test_what_is_not_shown_cannot_be_clicked(shown: Map) -> None:
    building = TOWN[150]
    choose(shown, "search", "building-00399")
    shown.click(*shown.place(building))
    assert shown.selected() is None


def test_the_map_is_saved_with_threshold_answers_and_new_buildings(
    shown: Map, tmp_path: Path
) -> None:
    shown.set_threshold(0.3)
    shown.press("j", "1")
    answered = shown.selected()
    shown.run("document.getElementById('map').focus()")
    shown.press("n", Keys.ENTER, Keys.ARROW_RIGHT, Keys.ENTER, Keys.ARROW_UP, Keys.ENTER, "f")
    shown.press("n", Keys.ENTER, "f")
    path = tmp_path / "decisions.geojson"
    path.write_text(str(shown.run("return onesidedMap.geojson()")), encoding="utf-8")
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["threshold"] == 0.3
    assert content["model_threshold"] == 0.5
    layer = read_layer(path)
    names = layer.columns["id"].tolist()
    assert names == [*(item.name for item in TOWN), "new-1", "new-2"]
    for item, decision in zip(TOWN, layer.columns["decision"].tolist(), strict=False):
        expected = None if item.score is None else "negative"
        assert decision == ("positive" if (item.score or 0) > 0.3 else expected)
    answers = dict(zip(names, layer.columns["answer"].tolist(), strict=True))
    given = {name: answer for name, answer in answers.items() if answer is not None}
    assert given == {answered: "positive", "new-1": "positive", "new-2": "positive"}
    assert [shape.geom_type for shape in layer.geometries[-2:]] == ["Polygon", "Point"]
    assert shapely.is_ccw(layer.geometries[-2].exterior)
    drawn = shapely.Polygon(TOWN[7].rings[0])
    assert shapely.hausdorff_distance(layer.geometries[7], drawn) < 2e-7


def test_a_courtyard_stays_a_courtyard_in_the_saved_map(empty: Map, tmp_path: Path) -> None:
    outer, court = rectangle(0, 0, 60, 60, 10, 50)[0], rectangle(20, 20, 20, 20, 10, 50)[0]
    second = rectangle(80, 0, 10, 10, 10, 50)[0]
    empty.show(
        page_of([MapItem("a", [outer, court, second], 0.9, 1, "unlabelled")]), tmp_path / "map.html"
    )
    path = tmp_path / "a.geojson"
    path.write_text(str(empty.run("return onesidedMap.geojson()")), encoding="utf-8")
    (shape,) = read_layer(path).geometries
    assert shape.geom_type == "MultiPolygon"
    assert sorted(len(part.interiors) for part in shape.geoms) == [0, 1]


def test_new_buildings_are_kept_and_can_be_taken_back(shown: Map, tmp_path: Path) -> None:
    shown.element("add").click()
    frame = shown.element("map").rect
    shown.click(frame["x"] + 300, frame["y"] + 300)
    shown.element("add-finish").click()
    shown.show(page_of(TOWN), tmp_path / "map.html")
    row = shown.element("additions")
    assert "new-1" in row.text
    row.find_elements(By.TAG_NAME, "button")[1].click()
    shown.show(page_of(TOWN), tmp_path / "map.html")
    assert not shown.element("additions").is_displayed()


def test_many_buildings_are_drawn_and_found_where_they_are(empty: Map, tmp_path: Path) -> None:
    items = town(12_000)
    empty.show(page_of(items), tmp_path / "map.html")
    highest = max(items, key=lambda item: item.score or 0)
    x, y = empty.place(highest)
    ground = empty.pixel(empty.element("map").rect["x"] + 3, y)
    red, green, blue = empty.pixel(x, y)
    assert (red, green, blue) != ground
    assert green > blue, "the colours of high scores"
    empty.run("onesidedMap.moveTo(...arguments)", *middle_of(highest), 0.3)
    empty.settle()
    empty.click(*empty.place(highest))
    assert empty.selected() == highest.name


def test_the_legend_covers_nothing(shown: Map) -> None:
    legend, view = shown.element("legend").rect, shown.element("map").rect
    assert legend["y"] >= view["y"] + view["height"] - 1
    assert shown.element("legend").get_attribute("open") is not None


def test_footprints_are_read_back_from_a_saved_map(shown: Map, tmp_path: Path) -> None:
    shown.press("j", "1")
    path = tmp_path / "decisions.geojson"
    path.write_text(str(shown.run("return onesidedMap.geojson()")), encoding="utf-8")
    assert len(read_footprints(path)) == 400
