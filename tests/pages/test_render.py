import ast
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from onesided.pages.document import document
from onesided.pages.render import environment, render, visible

HOSTILE = "</style><script>alert('1')</script>\"&"


def test_text_is_escaped_and_markup_is_not() -> None:
    page = environment().from_string('<p title="{{ text }}">{{ text }}{{ ready }}</p>')
    shown = page.render(text=HOSTILE, ready=Markup("<b>ready</b>"))
    escaped = "&lt;/style&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&#34;&amp;"
    assert shown == f'<p title="{escaped}">{escaped}<b>ready</b></p>'


def test_what_was_not_given_is_an_error_and_not_an_empty_place() -> None:
    with pytest.raises(UndefinedError, match="is undefined"):
        render("report/web/galleries.html")


def test_a_template_knows_only_what_it_is_given() -> None:
    assert environment().globals == {}


def test_every_template_can_be_read() -> None:
    package = files("onesided")
    names = [
        f"{folder}/{file.name}"
        for folder in ("pages", "report/web", "geo/output/web")
        for file in package.joinpath(folder).iterdir()
        if file.name.endswith(".html")
    ]
    assert len(names) > 5
    for name in names:
        environment().get_template(name)


def test_no_template_switches_escaping_off() -> None:
    sources = [
        file.read_text("utf-8")
        for folder in ("pages", "report/web", "geo/output/web")
        for file in files("onesided").joinpath(folder).iterdir()
        if file.name.endswith(".html")
    ]
    for word in ("|safe", "| safe", "autoescape"):
        assert not any(word in source for source in sources)


def test_a_page_with_a_hostile_title_has_one_title_and_no_script() -> None:
    page = document(
        "report/web/ranking.html",
        title=HOSTILE,
        style="report/web/style.css",
        headline="",
        lede="",
        gallery="",
    )
    assert page.count("<title>") == page.count("</style>") == 1
    assert "<script" not in page


def test_pages_need_no_torch() -> None:
    code = "import sys, onesided.pages.document; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain.png", "plain.png"),
        ("two\nlines\t.png", r"two\nlines\t.png"),
        ("byte\udcff.png", r"byte\xff.png"),
        ("lone\ud800.png", r"lone\ud800.png"),
        ("back\u202ewards", r"back\u202ewards"),
        ("nul\x00", r"nul\x00"),
        ("naïve 写真 👩‍🚒", "naïve 写真 👩‍🚒"),
    ],
)
def test_every_character_of_a_name_can_be_seen(text: str, seen: str) -> None:
    assert visible(text) == seen


def test_a_name_that_is_not_utf8_can_be_written(tmp_path: Path) -> None:
    name = b"b\xfcro \x80.png".decode("utf-8", "surrogateescape")
    page = render("report/web/skipped.html", pairs=[(name, "is empty")], most=9)
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    assert r"<bdi>b\xfcro \x80.png</bdi>" in (tmp_path / "page.html").read_text("utf-8")


def test_long_text_keeps_both_ends() -> None:
    text = visible("start" + "x" * 5000 + ".png", limit=40)
    assert text.startswith("start")
    assert text.endswith(".png")
    assert len(text) <= 41


def test_no_module_that_makes_a_page_builds_html_from_strings() -> None:
    texts = {path: path.read_text("utf-8") for path in Path(str(files("onesided"))).rglob("*.py")}
    makers = {path: text for path, text in texts.items() if "onesided.pages" in text}
    assert len(makers) > 5
    for path, text in makers.items():
        nodes = ast.walk(ast.parse(text))
        constants = [str(node.value) for node in nodes if isinstance(node, ast.Constant)]
        assert not re.findall(r"</[a-z]\w*>|<[a-z]\w* \w+=", " ".join(constants)), path
