from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import OnesidedError
from onesided.report.ranking import write_ranking_page
from tests.browser import complaints, opened
from tests.data.image_files import noise

ITEMS = [
    ('a/<b>bold</b> &amp; "quoted".png', 0.99, noise(0, 3, 8, 8)),
    ("two channels.tif", 0.9, noise(1, 2, 40, 300)),
    ("six channels.tif", 0.8, noise(2, 6, 200, 100)),
    ("a row of numbers", 0.7, None),
]


def write(path: Path) -> Path:
    write_ranking_page(
        path, title="<i>pool</i>", headline="The first 4 items", lede="1 < 2.", items=ITEMS
    )
    return path


def test_every_text_is_escaped(tmp_path: Path) -> None:
    text = write(tmp_path / "page.html").read_text(encoding="utf-8")
    for unsafe in ("<b>bold", "<i>pool", "1 < 2"):
        assert unsafe not in text
    assert "&lt;b&gt;bold&lt;/b&gt; &amp;amp; &#34;quoted&#34;.png" in text


def test_a_page_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OnesidedError, match=r"Cannot write .*folder"):
        write(tmp_path / "folder")
    write(tmp_path / "page.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "page.html"]


@pytest.mark.parametrize("width", [360, 1200])
def test_a_browser_shows_all_pictures_and_complains_of_nothing(tmp_path: Path, width: int) -> None:
    with opened(write(tmp_path / "page.html"), width=width) as chrome:
        sizes = chrome.execute_script(
            "return [...document.images].map(image => [image.naturalWidth, image.naturalHeight])"
        )
        wider = chrome.execute_script(
            "return document.documentElement.scrollWidth > window.innerWidth"
        )
        assert complaints(chrome) == []
    assert len(sizes) == 3
    assert np.array(sizes).min() > 0
    assert not wider
