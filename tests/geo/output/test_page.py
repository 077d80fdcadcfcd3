import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from onesided.core.errors import DataError
from onesided.geo.output.page import SCRIPTS, MapItem, MapPage, render, write_map
from tests.geo.fake_town import page_of, picture, town

HOSTILE = "</script><script>alert(1)</script><!--\u2028<img src=x onerror=alert(2)>'\"&\x00"


class Page(HTMLParser):
    """The elements of a page and the text of those that have an id or are scripts."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.inside = ""
        self.feed(content.decode("utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        named = dict(attributes)
        self.inside = named.get("id") or named.get("type") or tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        self.texts[self.inside] = self.texts.get(self.inside, "") + data


def item(name: str = "a", score: float | None = 0.5, **changes: object) -> MapItem:
    plain = MapItem(name, [[(10.0, 50.0)]], score, rank=1, role="unlabelled")
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_hostile_texts_arrive_unharmed_and_add_no_element() -> None:
    page = MapPage(
        title=HOSTILE,
        items=[item(HOSTILE, role=HOSTILE, reason=HOSTILE, score=None)],
        threshold=0.5,
        facts=[(HOSTILE, HOSTILE)],
        warnings=[HOSTILE],
    )
    hostile, harmless = Page(render(page)), Page(render(page_of([item()])))
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in harmless.tags]
    data = json.loads(hostile.texts["data"])
    assert data["names"] == data["roles"] == data["reasons"] == data["warnings"] == [HOSTILE]
    assert data["facts"] == [[HOSTILE, HOSTILE]]
    assert data["title"] == HOSTILE


def test_names_that_are_not_unicode_survive() -> None:
    names = ["not utf-8 \udcff", "snow \N{SNOWMAN}", "back\\slash"]
    data = Page(render(page_of([item(name) for name in names]))).texts["data"]
    assert json.loads(data)["names"] == names


def test_the_browser_may_run_and_apply_only_what_was_written_here() -> None:
    page = Page(render(page_of([item()])))
    (policy,) = [str(tag["content"]) for _, tag in page.tags if "http-equiv" in tag]
    for kind, text in (("script", page.texts["module"]), ("style", page.texts["style"])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy


def test_the_page_names_no_address() -> None:
    text = render(page_of(town(5))).decode("utf-8")
    assert not re.findall(r"(?:https?:)?//[a-z]", re.sub(r"^ *//.*$|; //.*$", "", text, flags=re.M))
    assert "url(" not in text
    assert "@import" not in text


def test_scripts_write_text_and_never_markup() -> None:
    web = files("onesided.geo.output").joinpath("web")
    scripts = "".join(web.joinpath(name).read_text("utf-8") for name in SCRIPTS)
    assert {path.name for path in web.iterdir()} == {*SCRIPTS, "page.html", "style.css"}
    assert not re.findall(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(", scripts
    )


def test_scores_and_threshold_keep_every_bit() -> None:
    scores = [0.1 + 0.2, float(np.float32(0.7)), 1e-300, 1.0, None]
    items = [item(str(number), score) for number, score in enumerate(scores)]
    data = json.loads(Page(render(page_of(items, threshold=0.1 + 0.2))).texts["data"])
    assert data["scores"] == scores
    assert data["threshold"] == 0.1 + 0.2


def test_pictures_can_be_cut_out_again() -> None:
    red, blue = picture(200, 0, 0), picture(0, 0, 200, kind="JPEG")
    items = [item("a", before=red, after=blue), item("b"), item("c", after=red)]
    page = Page(render(page_of(items)))
    lengths = json.loads(page.texts["data"])["pictures"]
    ends = np.cumsum(lengths)
    cut = [
        base64.b64decode(page.texts["pictures"][end - length : end])
        for length, end in zip(lengths, ends, strict=True)
    ]
    assert cut == [red, blue, b"", b"", b"", red]


def test_twenty_thousand_buildings_make_a_small_page(tmp_path: Path) -> None:
    write_map(page_of(town(20_000)), tmp_path / "map.html")
    assert (tmp_path / "map.html").stat().st_size < 4_000_000


def test_the_image_is_put_on_the_side_of_the_antimeridian_where_the_buildings_are() -> None:
    items = [item("a", rings=[[(179.9, -17.0)]]), item("b", rings=[[(-179.9, -17.0)]])]
    page, image = page_of(items), picture(1, 2, 3)
    for bounds in ((179.8, -17.1, -179.8, -16.9), (-180.2 + 360, -17.1, 180.2, -16.9)):
        data = json.loads(Page(render(replace(page, base=(image, bounds)))).texts["data"])
        assert data["bounds"] == pytest.approx([179.8, -17.1, 180.2, -16.9])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold": float("nan")}, "threshold of the map must be a number"),
        ({"items": [item("b7", float("inf"))]}, "score of 'b7' must be a number"),
        ({"base": (picture(0, 0, 0), (3e6, 2e5, 4e6, 3e5))}, "west, south, east, north in degrees"),
        ({"base": (picture(0, 0, 0), (0.0, 1.0, 1.0, 0.0))}, "west, south, east, north in degrees"),
        ({"base": (b"GIF89a", (0.0, 0.0, 1.0, 1.0))}, "must be JPEG, PNG or WebP"),
        ({"items": [item(after=b"GIF89a")]}, "must be JPEG, PNG or WebP"),
    ],
)
def test_a_page_that_could_not_be_shown_is_refused(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        render(replace(page_of([item()]), **changes))  # type: ignore[arg-type]


def test_a_page_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "map.html"
    write_map(page_of([item()]), path)
    before = path.read_bytes()
    with pytest.raises(DataError):
        write_map(page_of([item(score=float("nan"))]), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
