"""One browser for all tests of a module: starting it takes longer than most of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver

from onesided.geo.output.page import write_map
from tests.browser import complaints, opened
from tests.geo.fake_town import page_of
from tests.geo.map_browser import TOWN, Map


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    path = tmp_path_factory.mktemp("page") / "map.html"
    write_map(page_of([]), path)
    with opened(path) as browser:
        yield browser


@pytest.fixture
def empty(chrome: WebDriver) -> Iterator[Map]:
    """A browser without a page yet; whatever is shown in it must not complain."""
    complaints(chrome)
    page = Map(chrome)
    page.forget()
    yield page
    assert complaints(chrome) == []


@pytest.fixture
def shown(empty: Map, tmp_path: Path) -> Map:
    """The town."""
    empty.show(page_of(TOWN), tmp_path / "map.html")
    return empty
