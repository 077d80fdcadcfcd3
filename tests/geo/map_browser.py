"""The map page in a real browser, as a person meets it."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from selenium.webdriver import ActionChains
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from onesided.geo.output.page import MapItem, MapPage, write_map
from tests.geo.fake_town import town

TOWN = town(400)
OPEN = [item for item in TOWN if item.role == "unlabelled" and item.score is not None]


def middle_of(item: MapItem) -> tuple[float, float]:
    corners = np.array([corner for ring in item.rings for corner in ring])
    longitude, latitude = ((corners.min(0) + corners.max(0)) / 2).tolist()
    return longitude, latitude


class Map:
    """The page in a browser, as a person meets it."""

    def __init__(self, chrome: WebDriver) -> None:
        self.chrome = chrome

    def show(self, page: MapPage, path: Path) -> None:
        write_map(page, path)
        self.chrome.get(path.resolve().as_uri())
        self.settle()

    def forget(self) -> None:
        """Empty what the browser keeps for all pages from disk."""
        self.run("localStorage.clear()")

    def run(self, script: str, *values: object) -> Any:  # noqa: ANN401
        return self.chrome.execute_script(script, *values)

    def element(self, name: str) -> WebElement:
        return self.chrome.find_element(By.ID, name)

    def text(self, name: str) -> str:
        return str(self.element(name).text)

    def view(self) -> dict[str, Any]:
        return dict(self.run("return onesidedMap.view()"))

    def settle(self) -> None:
        """Wait until no flight is under way and the frame after it is painted."""
        WebDriverWait(self.chrome, 10).until(lambda _: not self.view()["flying"])
        self.chrome.execute_async_script(
            "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
        )

    def place(self, item: MapItem) -> tuple[float, float]:
        """Return where the middle of a building is in the window."""
        return self.project(*middle_of(item))

    def nearest(self, items: list[MapItem], x: float, y: float) -> MapItem:
        """Return the building whose middle is nearest a place in the window."""
        places = self.project_all([middle_of(item) for item in items])
        return items[int(np.argmin(np.hypot(*(places - (x, y)).T)))]

    def project(self, longitude: float, latitude: float) -> tuple[float, float]:
        ((x, y),) = self.project_all([(longitude, latitude)]).tolist()
        return x, y

    def project_all(self, places: list[tuple[float, float]]) -> np.ndarray:
        script = "return arguments[0].map((place) => onesidedMap.project(...place))"
        return np.array([(place["x"], place["y"]) for place in self.run(script, places)])

    def click(self, x: float, y: float) -> None:
        actions = ActionChains(self.chrome)
        pointer = actions.w3c_actions.pointer_action
        pointer.move_to_location(round(x), round(y)).click()  # type: ignore[no-untyped-call]
        actions.perform()
        self.settle()

    def press(self, *keys: str) -> None:
        ActionChains(self.chrome).send_keys(*keys).perform()
        self.settle()

    def set_threshold(self, value: float) -> None:
        self.run(
            "const slider = document.getElementById('threshold'); slider.value = arguments[0];"
            "slider.dispatchEvent(new Event('input'))",
            value,
        )

    def count(self) -> int:
        return int(self.text("count").replace(",", ""))

    def rows(self) -> list[WebElement]:
        return list(self.chrome.find_elements(By.CSS_SELECTOR, "#list button"))

    def names(self) -> list[str]:
        return [row.find_element(By.TAG_NAME, "bdi").text for row in self.rows()]

    def selected(self) -> str | None:
        name = self.run("return onesidedMap.selected()")
        return None if name is None else str(name)

    def pixel(self, x: float, y: float) -> tuple[int, ...]:
        image = Image.open(io.BytesIO(self.chrome.get_screenshot_as_png())).convert("RGB")
        return tuple(np.asarray(image)[round(y), round(x)].tolist())
