"""What the policy of each page keeps out, tried in a real browser."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from onesided.geo.output.page import write_map
from onesided.report import write_report
from onesided.report.ranking import write_ranking_page
from tests.browser import complaints, opened
from tests.data.image_files import noise
from tests.geo.fake_town import page_of, town
from tests.report.fake_run import write_fake_run

ATTACK = """
<script>window.foreign = ["inline"]</script>
<script src="foreign.js"></script>
<script type="module" src="https://foreign.example/module.js"></script>
<link rel="stylesheet" href="foreign.css">
<img src="foreign.png" onerror="window.foreign = ['handler']">
<iframe src="foreign.html"></iframe>
<object data="foreign.html"></object>
"""
"""What a page must not obey, wherever it came from; the files lie beside the page."""

FOREIGN_STYLE = "return getComputedStyle(document.body).letterSpacing === '9px'"
CONNECT = """
const done = arguments[0];
fetch("https://foreign.example/").then(() => done("answered"), (error) => done(error.name));
"""
REFUSED = """
const done = arguments[0];
document.addEventListener("securitypolicyviolation",
  (event) => done([event.effectiveDirective, event.blockedURI]), { once: true });
const font = new FontFace("foreign", "url(https://foreign.example/font.woff2)");
font.load().catch(() => {});
"""


def report(folder: Path) -> Path:
    return write_report(write_fake_run(folder / "quake"))


def ranking(folder: Path) -> Path:
    path = folder / "ranking.html"
    items = [("a.png", 0.9, noise(0, 3, 8, 8))]
    write_ranking_page(path, title="pool", headline="One item", lede="It is first.", items=items)
    return path


def town_map(folder: Path) -> Path:
    path = folder / "map.html"
    write_map(page_of(town(20)), path)
    return path


every_page = pytest.mark.parametrize("made", [report, ranking, town_map])


def attacked(page: Path) -> Path:
    folder, text = page.parent, page.read_text("utf-8")
    page.write_text(text.replace("</body>", f"{ATTACK}</body>"), encoding="utf-8")
    (folder / "foreign.js").write_text("window.foreign = ['file']")
    (folder / "foreign.css").write_text("body { letter-spacing: 9px !important }")
    (folder / "foreign.html").write_text("<p>foreign</p>")
    return page


def works(chrome: Chrome) -> bool:
    """Return whether what the page is for is there: its pictures, or its drawn map."""
    script = """
    const pictures = [...document.images].filter((image) => image.src.startsWith("data:"));
    const shown = pictures.length && pictures.every((image) => image.naturalWidth > 0);
    return Boolean(shown || (window.onesidedMap && onesidedMap.view()));
    """
    return bool(chrome.execute_script(script))


@every_page
def test_nothing_foreign_runs_and_the_page_still_works(
    made: Callable[[Path], Path], tmp_path: Path
) -> None:
    with opened(attacked(made(tmp_path))) as chrome:
        refused = " ".join(complaints(chrome))
        assert chrome.execute_script("return window.foreign") is None
        assert not chrome.execute_script(FOREIGN_STYLE)
        assert works(chrome)
        assert chrome.execute_async_script(CONNECT) == "TypeError"
        assert chrome.execute_async_script(REFUSED)[0] == "font-src"
    for what in ("foreign.js", "module.js", "foreign.css", "foreign.png", "inline script"):
        assert what in refused
    assert len(re.findall("Content Security Policy", refused)) >= 6


def test_without_the_policy_the_attack_would_succeed(tmp_path: Path) -> None:
    page = attacked(ranking(tmp_path))
    text = page.read_text("utf-8")
    page.write_text(re.sub(r"<meta http-equiv[^>]*>", "", text), encoding="utf-8")
    with opened(page) as chrome:
        assert chrome.execute_script("return window.foreign") is not None
        assert chrome.execute_script(FOREIGN_STYLE)
