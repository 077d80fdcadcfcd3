import re
from importlib.resources import files

import pytest


def luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("text", "ground"),
    [
        *[
            (text, ground)
            for text in ("ink", "muted", "accent", "known")
            for ground in ("paper", "card")
        ],
        ("alarm", "paper"),
        ("alarm", "alarm-paper"),
        ("ink", "alarm-paper"),
    ],
)
def test_text_stands_out_enough_on_both_kinds_of_screen(
    scheme: str, text: str, ground: str
) -> None:
    style = files("onesided.report").joinpath("style.css").read_text("utf-8")
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", light if scheme == "light" else dark))
    lighter, darker = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5


def test_every_class_and_element_that_is_styled_exists() -> None:
    style = files("onesided.report").joinpath("style.css").read_text("utf-8")
    rules = re.sub(r"\{[^{}]*\}", ",", style).replace("{", ",").replace("}", ",")
    classes = set(re.findall(r"\.([a-z]+)", rules))
    sources = [
        file for file in files("onesided.report").iterdir() if file.name[-3:] in (".py", "tml")
    ]
    code = "".join(file.read_text("utf-8") for file in sources)
    used = {word for names in re.findall(r'class="([^"]+)"', code) for word in names.split()}
    elements = set(re.findall(r"(?:^|[\s,>])([a-z][a-z0-9]*)(?=[\s,:.\[]|$)", rules, re.MULTILINE))
    assert classes == used
    words_of_media_queries, drawn_by_matplotlib = {"and", "print"}, {"text"}
    written = set(re.findall(r"<([a-z][a-z0-9]*)", code))
    assert elements <= written | words_of_media_queries | drawn_by_matplotlib
