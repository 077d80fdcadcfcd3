"""Photograph a run's report for README.md, as the browser shows it.

    onesided demo -o runs/demo
    python -m website.shots runs/demo/auto-0/report.html

On the left a desk by day, on the right a phone by night, which has been turned to the pictures of
what was found. Needs Chromium and its driver.
"""

import io
import sys
from pathlib import Path

from PIL import Image

from release.outside import REPOSITORY
from tests.browser import opened

PICTURE = REPOSITORY / "docs" / "images" / "report.png"
HEIGHT, DESK, PHONE = 945, 1100, 390


def shot(report: Path, *, width: int, dark: bool, at: str) -> Image.Image:
    """Return what a window of this width shows, turned to the element that CSS calls `at`."""
    with opened(report, width=width, height=HEIGHT, dark=dark) as chrome:
        chrome.execute_script("document.querySelector(arguments[0]).scrollIntoView()", at)
        return Image.open(io.BytesIO(chrome.get_screenshot_as_png())).convert("RGB")


def main(report: Path) -> None:
    """Write the picture: two windows side by side, in few colours, because everybody loads it."""
    desk = shot(report, width=DESK, dark=False, at="body")
    phone = shot(report, width=PHONE, dark=True, at="#items")
    both = Image.new("RGB", (DESK + PHONE, HEIGHT))
    both.paste(desk, (0, 0))
    both.paste(phone, (DESK, 0))
    both.quantize(128).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
