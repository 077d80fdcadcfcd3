"""A real browser for tests of pages: Chromium without a screen, no network."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # as root, in a container
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--force-device-scale-factor=1",
)


@contextmanager
def opened(
    page: Path | str, *, width: int = 1200, height: int = 900, dark: bool = False
) -> Iterator[webdriver.Chrome]:
    """Yield a browser that shows a file or an address; skip where there is no browser."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip(
            "needs Chromium and its driver to open the page "
            "(Debian: apt-get install chromium chromium-driver)"
        )
    with TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = browser
        for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        chrome = webdriver.Chrome(options=options, service=Service(driver))
        try:
            chrome.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride",
                {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
            )
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
            chrome.get(page if isinstance(page, str) else page.resolve().as_uri())
            yield chrome
        finally:
            chrome.quit()


def complaints(chrome: webdriver.Chrome) -> list[str]:
    """Return what the page's console says in red: errors, refused loads."""
    rows = chrome.get_log("browser")  # type: ignore[no-untyped-call]
    return [str(row["message"]) for row in rows if row["level"] == "SEVERE"]
