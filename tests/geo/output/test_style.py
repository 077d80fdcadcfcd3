from xml.etree import ElementTree

import pytest

from onesided.geo.output.style import style_text


@pytest.mark.parametrize(("is_point", "kind"), [(True, "marker"), (False, "fill")])
def test_every_score_has_a_colour_and_no_score_has_one_too(is_point: bool, kind: str) -> None:
    page = ElementTree.fromstring(style_text(is_point=is_point))
    renderer = page.find("renderer-v2")
    assert renderer is not None
    assert renderer.get("attr") == 'coalesce("score", -1)'
    ranges = [
        (float(part.attrib["lower"]), float(part.attrib["upper"]), part.attrib["symbol"])
        for part in renderer.iter("range")
    ]
    for score in (-1, 0, 0.2, 0.5, 0.999, 1):
        assert any(low <= score <= high for low, high, _ in ranges), score
    symbols = {part.attrib["name"]: part.attrib["type"] for part in renderer.iter("symbol")}
    assert {symbol for _, _, symbol in ranges} == set(symbols)
    assert set(symbols.values()) == {kind}
