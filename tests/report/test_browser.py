"""The page in a real browser, as the people see it to whom it is shown."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from onesided.report import write_report
from tests.browser import complaints, opened
from tests.report.fake_run import make_hostile, write_fake_run

PHONE, DESK = 390, 1200

TEXTS = """
const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
const seen = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim();
  const holder = walker.currentNode.parentElement;
  if (!text || !holder.checkVisibility()) continue;
  const look = getComputedStyle(holder);
  let behind = holder, ground = [0, 0, 0, 0];
  while (behind && ground[3] === 0) {
    const [red, green, blue, alpha = 1] = channels(getComputedStyle(behind).backgroundColor);
    ground = [red, green, blue, alpha];
    behind = behind.parentElement;
  }
  const ink = holder instanceof SVGElement ? look.fill : look.color;
  seen.push([text, channels(ink).slice(0, 3), ground]);
}
return seen;
"""

BEYOND_THE_EDGE = """
return [...document.body.querySelectorAll('*')]
  .filter((part) => !part.closest('.scroll > table, pre > code, svg'))
  .filter((part) => part.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((part) => part.outerHTML.slice(0, 200));
"""

ACTIVE = """
const part = document.activeElement, look = getComputedStyle(part);
return [part.outerHTML.slice(0, 160), look.outlineStyle, parseFloat(look.outlineWidth)];
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(write_fake_run(tmp_path_factory.mktemp("runs") / "quake"))


@pytest.fixture(scope="module")
def desk(page: Path) -> Iterator[Chrome]:
    with opened(page, width=DESK) as chrome:
        yield chrome


@pytest.fixture(scope="module")
def phone_at_night(page: Path) -> Iterator[Chrome]:
    with opened(page, width=PHONE, height=844, dark=True) as chrome:
        yield chrome


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    run = write_fake_run(tmp_path_factory.mktemp("runs") / "quake")
    make_hostile(run)
    # A folder name is the one text that a file system, not a file, brings along.
    run = Path(shutil.move(run, run.parent / "<script>alert(1)<\u2215script> $title"))
    with opened(write_report(run), width=PHONE, height=844) as chrome:
        yield chrome


@pytest.fixture(params=["desk", "phone_at_night", "attacked"])
def any_page(request: pytest.FixtureRequest) -> Chrome:
    chrome: Chrome = request.getfixturevalue(request.param)
    return chrome


def luminance(colour: list[float]) -> float:
    shares = [part / 255 for part in colour[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(ink: list[float], ground: list[float]) -> float:
    darker, lighter = sorted((luminance(ink), luminance(ground)))
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_measured_as_the_guidelines_do() -> None:
    assert contrast([0, 0, 0], [255, 255, 255]) == pytest.approx(21)
    assert contrast([119, 119, 119], [255, 255, 255]) == pytest.approx(4.48, abs=0.01)


def test_the_browser_has_nothing_to_complain_about(any_page: Chrome) -> None:
    assert complaints(any_page) == []


def test_every_picture_is_there(any_page: Chrome) -> None:
    widths = any_page.execute_script("return [...document.images].map((i) => i.naturalWidth)")
    assert len(widths) == 60
    assert min(widths) > 0


def test_nothing_is_fetched(any_page: Chrome) -> None:
    fetched = any_page.execute_script(
        "return performance.getEntriesByType('resource').map((r) => r.name)"
    )
    assert [name for name in fetched if not name.startswith("data:")] == []


def test_nothing_reaches_beyond_the_edge_of_the_screen(any_page: Chrome) -> None:
    width = any_page.execute_script("return document.documentElement.clientWidth")
    scrollbar = any_page.execute_script("return innerWidth") - width
    assert width + scrollbar in (PHONE, DESK)
    assert any_page.execute_script("return document.documentElement.scrollWidth") == width
    assert any_page.execute_script(BEYOND_THE_EDGE) == []


def test_every_text_stands_out_from_what_is_behind_it(any_page: Chrome) -> None:
    any_page.execute_script("document.querySelectorAll('details').forEach((d) => d.open = true)")
    texts = any_page.execute_script(TEXTS)
    assert len(texts) > 200
    faint = [text for text, ink, ground in texts if contrast(ink, ground) < 4.5]
    assert faint == []


def test_the_text_of_plots_follows_the_colours_of_the_screen(
    desk: Chrome, phone_at_night: Chrome
) -> None:
    fill = "return getComputedStyle(document.querySelector('svg.plot text')).fill"
    ground = "return getComputedStyle(document.body).backgroundColor"
    by_day, by_night = desk.execute_script(ground), phone_at_night.execute_script(ground)
    assert luminance(numbers(by_day)) > 0.8
    assert luminance(numbers(by_night)) < 0.05
    assert luminance(numbers(desk.execute_script(fill))) < 0.2
    assert luminance(numbers(phone_at_night.execute_script(fill))) > 0.3


def numbers(colour: str) -> list[float]:
    return [float(part) for part in colour.strip("rgba()").split(",")]


def test_hostile_names_run_nothing(attacked: Chrome) -> None:
    # An alert that had opened would make every further command to the browser fail.
    assert attacked.execute_script("return document.scripts.length") == 0
    own = "return [...document.querySelectorAll('*')].flatMap((e) => e.getAttributeNames())"
    assert [name for name in attacked.execute_script(own) if name.startswith("on")] == []
    assert "<script>alert(1)" in attacked.title
    assert "<script>alert(1)</script>" in attacked.find_element("tag name", "main").text


def test_the_keyboard_reaches_everything_and_shows_where_it_is(desk: Chrome) -> None:
    desk.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
    wanted = desk.execute_script(
        "return document.querySelectorAll('a[href], summary, [tabindex=\"0\"]').length"
    )
    reached = []
    for _ in range(wanted):
        ActionChains(desk).send_keys(Keys.TAB).perform()
        what, style, width = desk.execute_script(ACTIVE)
        assert style == "solid", what
        assert width >= 2, what
        reached.append(what)
    assert len(set(reached)) == wanted > 8


def test_the_small_print_opens_by_keyboard(phone_at_night: Chrome) -> None:
    phone_at_night.execute_script("document.querySelector('details').open = false")
    phone_at_night.find_element("tag name", "summary").send_keys(Keys.ENTER)
    assert phone_at_night.execute_script("return document.querySelector('details').open")


def test_a_wide_table_scrolls_inside_its_frame(phone_at_night: Chrome) -> None:
    frame = "document.querySelector('.scroll[aria-labelledby=comparison]')"
    wider = f"return {frame}.scrollWidth > {frame}.clientWidth + 50"
    assert phone_at_night.execute_script(wider)
    first = f"return {frame}.querySelector('tbody th').getBoundingClientRect().left"
    before = phone_at_night.execute_script(first)
    phone_at_night.execute_script(f"{frame}.scrollLeft = 200")
    # The name of the method stays in view, or the numbers would be nobody's.
    assert phone_at_night.execute_script(first) == pytest.approx(before, abs=1)
