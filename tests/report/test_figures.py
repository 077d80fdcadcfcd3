import base64
import io
import re
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest
from PIL import Image

from onesided.report.figures import THUMBNAIL_SIDE, curve, histogram, scatter, thumbnail
from onesided.report.runfiles import Embedding

RNG = np.random.default_rng(0)
SCORES = RNG.random(500)


def a_curve(name: str = "loss") -> str:
    return curve([3.0, 2.0, 1.5, 1.2], name=name, description="It falls.")


def a_histogram(**changes: float | None) -> str:
    threshold = changes.get("threshold", 0.5)
    return histogram(SCORES[:50], SCORES, name="h", description="Scores.", threshold=threshold)


def a_scatter(points: int = 300) -> str:
    roles = RNG.integers(0, 3, points)
    embedding = Embedding(RNG.normal(size=(points, 2)), roles)
    return scatter(embedding, name="s", description="Points.")


def line_points(svg: str) -> int:
    (path,) = re.findall(r'd="([^"]*)"[^>]*stroke: var\(--accent\)', svg)
    return len(re.findall(r"[ML]", path))


@pytest.mark.parametrize("svg", [a_curve(), a_histogram(), a_scatter()])
def test_a_plot_is_one_well_formed_element_with_words_for_it(svg: str) -> None:
    root = ElementTree.fromstring(svg)
    assert root.tag == "svg"
    assert root.get("role") == "img"
    assert root.get("aria-label")


@pytest.mark.parametrize("svg", [a_curve(), a_histogram(), a_scatter()])
def test_a_plot_has_no_colour_of_its_own(svg: str) -> None:
    assert set(re.findall(r"(?:fill|stroke): ([^;\"]+)", svg)) <= {
        "none",
        "var(--accent)",
        "var(--ink)",
        "var(--known)",
        "var(--muted)",
        "var(--rule)",
    }


@pytest.mark.parametrize("svg", [a_curve(), a_histogram(), a_scatter()])
def test_a_plot_names_nothing_outside_itself(svg: str) -> None:
    assert "http" not in svg
    assert "<style" not in svg
    ids = set(re.findall(r'\bid="([^"]+)"', svg))
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg))
    assert {first or second for first, second in used} <= ids


def test_two_plots_share_no_id() -> None:
    ids = [set(re.findall(r'\bid="([^"]+)"', a_curve(name))) for name in ("one", "two")]
    assert ids[0]
    assert ids[0].isdisjoint(ids[1])


def test_the_same_plot_is_the_same_text() -> None:
    assert a_curve() == a_curve()


def test_a_users_own_matplotlib_settings_neither_matter_nor_change() -> None:
    expected = a_histogram()
    with matplotlib.rc_context({"lines.linewidth": 9, "svg.fonttype": "path", "font.size": 30}):
        before = dict(matplotlib.rcParams)
        assert a_histogram() == expected
        assert dict(matplotlib.rcParams) == before


def test_a_description_cannot_leave_its_attribute() -> None:
    svg = curve([1.0, 2.0], name="x", description='"><script>alert(1)</script>')
    assert "<script" not in svg
    assert ElementTree.fromstring(svg).get("aria-label") == '"><script>alert(1)</script>'


def test_epochs_without_a_value_do_not_break_the_line() -> None:
    values = [None if epoch % 2 else np.sqrt(epoch) for epoch in range(40)]
    assert line_points(curve(values, name="x", description="x")) > 10


def test_a_single_epoch_is_a_dot() -> None:
    one = curve([0.5], name="x", description="x")
    many = curve([0.5, 0.6, 0.4, 0.7], name="x", description="x")
    assert re.search(r"<use[^>]*fill: var\(--accent\)", one)
    assert not re.search(r"<use[^>]*fill: var\(--accent\)", many)


def test_a_level_line_and_stage_borders_are_drawn_when_asked_for() -> None:
    def dashed(svg: str) -> int:
        return svg.count("stroke-dasharray")

    values = [0.4, 0.3, 0.2, 0.1]
    plain = curve(values, name="x", description="x")
    full = curve(values, name="x", description="x", reference=0.2, stage_starts=[2, 4])
    assert (dashed(plain), dashed(full)) == (0, 3)


def test_shares_are_labelled_in_percent() -> None:
    svg = curve([0.1, 0.3, 0.2], name="x", description="x", percent=True)
    assert re.search(r">[\d.]+%</text>", svg)


def test_a_long_training_stays_small() -> None:
    values = RNG.random(50_000).tolist()
    assert len(curve(values, name="x", description="x")) < 40_000


def test_a_large_embedding_stays_small() -> None:
    assert len(a_scatter(100_000)) < 400_000


def test_the_histogram_adds_up_to_one_for_each_group() -> None:
    # Ten positives against a thousand unlabelled: as shares, equal piles are equally high.
    pile = np.full(1000, 0.25)
    svg = histogram(np.full(10, 0.75), pile, name="h", description="x", threshold=None)
    tops = [
        min(float(y) for y in re.findall(r"[ML] [\d.]+ ([\d.]+)", path))
        for path in re.findall(r'd="([^"]*)"[^>]*stroke: var\(--(?:known|muted)\)', svg)
        if path.count("L") > 40
    ]
    assert len(tops) == 2
    assert tops[0] == tops[1]


def test_the_threshold_is_drawn_only_where_there_is_one() -> None:
    assert a_histogram().count("stroke-dasharray") == 1
    assert a_histogram(threshold=None).count("stroke-dasharray") == 0


@pytest.mark.parametrize(
    "scores", [np.zeros(5), np.full(5, 7.0), np.array([-3.0, 12.0]), np.array([np.nan])]
)
def test_unusual_scores_are_drawn_too(scores: np.ndarray) -> None:
    svg = histogram(None, scores, name="h", description="x", threshold=0.5)
    assert "nan" not in svg


def decoded(address: str) -> Image.Image:
    head, _, content = address.partition(",")
    assert head == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(content)))


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (3, "RGB")])
def test_a_small_image_survives_bit_by_bit(channels: int, mode: str) -> None:
    image = RNG.integers(0, 256, (28, 32, channels), np.uint8)
    encoded = thumbnail(image)
    picture = decoded(encoded.address)
    assert picture.mode == mode
    assert (encoded.width, encoded.height) == (32, 28)
    np.testing.assert_array_equal(np.asarray(picture).reshape(image.shape), image)


def test_a_large_image_is_made_smaller_in_proportion() -> None:
    encoded = thumbnail(np.zeros((400, 800, 3), np.uint8))
    assert (encoded.width, encoded.height) == (THUMBNAIL_SIDE, THUMBNAIL_SIDE // 2)
    assert decoded(encoded.address).size == (encoded.width, encoded.height)
