import re
from importlib.resources import files

import pytest

PACKAGE = files("onesided")
SHARED = PACKAGE.joinpath("pages/style.css").read_text("utf-8")
OWN = {
    page: PACKAGE.joinpath(f"{page}/web/style.css").read_text("utf-8")
    for page in ("report", "geo/output")
}


def luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def colours(scheme: str) -> dict[str, str]:
    """Return the colours of a light or dark screen; what dark does not change stays light."""
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#\w{6})", rules))
        for rules in re.findall(r":root \{(.*?)\}", SHARED, re.DOTALL)
    )
    return light if scheme == "light" else light | dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("text", "ground"),
    [
        *[
            (text, ground)
            for text in ("ink", "muted", "accent", "known")
            for ground in ("paper", "card")
        ],
        ("ink", "rule"),
        ("ink", "alarm-paper"),
        ("alarm", "paper"),
        ("alarm", "alarm-paper"),
        ("accent-ink", "accent"),
        ("halo", "sign"),
        ("halo", "damaged"),
    ],
)
def test_text_stands_out_enough_on_both_kinds_of_screen(
    scheme: str, text: str, ground: str
) -> None:
    known = colours(scheme)
    lighter, darker = sorted((luminance(known[text]), luminance(known[ground])), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5


@pytest.mark.parametrize("page", OWN)
def test_colours_are_chosen_in_one_place(page: str) -> None:
    assert re.findall(r"#[0-9a-f]{3,8}\b", OWN[page]) == []
    assert (
        re.findall(
            r"font-family|system-ui|monospace", OWN[page].replace("font-family: inherit", "")
        )
        == []
    )


def test_every_token_is_used_and_every_used_token_exists() -> None:
    everything = "".join(
        file.read_text("utf-8")
        for folder in ("pages", "report", "report/web", "geo/output/web")
        for file in PACKAGE.joinpath(folder).iterdir()
        if file.name.endswith((".css", ".html", ".js", ".py"))
    )
    defined = set(re.findall(r"--([a-z][\w-]*):", SHARED + "".join(OWN.values())))
    set_by_elements = {"low", "high", "at"}
    assert set(re.findall(r"var\(--([\w-]+)\)", everything)) - set_by_elements <= defined
    read_by_scripts = set(re.findall(r"\"(\w+)\"", everything))
    assert defined <= set(re.findall(r"var\(--([\w-]+)\)", everything)) | read_by_scripts
