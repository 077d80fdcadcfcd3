import io
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onesided.geo.input.footprints import read_footprints
from onesided.geo.output.page import write_map
from onesided.geo.output.page_content import base_picture, map_page, pictured_rows
from onesided.geo.output.summary import Summary, summarise
from onesided.geo.scene.footprint_scene import open_scene
from onesided.metrics.figure import Figure
from onesided.metrics.words import BIASED
from tests.geo.fakes import write_geotiff_scene
from tests.geo.maps import chips, houses, table


def pixels_of(picture: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(picture)))


def test_the_page_shows_every_building_once_with_its_score_and_place() -> None:
    drawn = table(houses(20))
    page = map_page(drawn, chips(20), summarise(drawn), title="damage")
    assert [item.name for item in page.items] == list(drawn.buildings.names)
    assert [item.score for item in page.items[:-1]] == drawn.scores[:-1].tolist()
    assert page.items[-1].score is None
    assert page.items[-1].reason == "far away"
    assert np.abs(np.array(page.items[0].rings[0])[:, 0] + 93).max() < 0.001


def test_six_channels_are_a_picture_before_and_one_after() -> None:
    drawn, seen = table(houses(20)), chips(20, channels=6)
    page = map_page(drawn, seen, summarise(drawn), title="damage", after_from=3)
    for picture, bands in ((page.items[5].before, slice(0, 3)), (page.items[5].after, slice(3, 6))):
        assert picture is not None
        error = pixels_of(picture).astype(int) - seen.values[5, bands].transpose(1, 2, 0)
        # Noise is what JPEG keeps worst; another picture would be 85 away on average.
        assert np.abs(error).mean() < 60
    assert page.items[-1].after is None


def test_only_the_buildings_people_look_at_carry_pictures() -> None:
    drawn = table(houses(2000), marked=300)
    rows = pictured_rows(drawn.scores, drawn.marked, drawn.threshold)
    assert len(rows) <= 500
    ranks = drawn.ranks
    assert set(np.flatnonzero((ranks > 0) & (ranks <= 300))) <= set(rows)
    nearest = np.abs(np.where(drawn.marked, np.nan, drawn.scores) - 0.5)
    assert int(np.nanargmin(nearest)) in rows


def test_the_base_lies_where_the_buildings_are(tmp_path: Path) -> None:
    """Each roof's middle, found through degrees and Mercator, has the colour that was drawn."""
    scene = write_geotiff_scene(tmp_path, seed=6, size=512, buildings=25, damaged_share=0)
    with ExitStack() as stack:
        opened = open_scene(stack, read_footprints(scene.gpkg), [scene.post])
        base = base_picture(opened.images[0])
    assert base is not None
    pixels, (west, south, east, north) = pixels_of(base[0]), base[1]
    height, width = pixels.shape[:2]

    def mercator(latitude: float) -> float:
        return float(np.arcsinh(np.tan(np.radians(latitude))))

    for building in scene.buildings:
        x = (building.lon - west) / (east - west) * width
        y = (mercator(north) - mercator(building.lat)) / (mercator(north) - mercator(south))
        # Roofs are bright, the ground is not.
        assert pixels[int(y * height), int(x)].mean() > 130
    assert pixels.mean() < 160


def test_facts_are_bounds_or_missing_with_one_reason() -> None:
    """A plain number, a biased one, and missing ones."""
    figures = (
        Figure("buildings", 20),
        Figure("prior", 0.25, 0.2, 0.3125, bias="high"),
        Figure("f1", None, missing="it is long"),
        Figure("auc", None, missing="it is long"),
    )
    drawn = table(houses(20))
    page = map_page(drawn, chips(20), Summary(figures, None, ()), title="damage")
    share = "at most 31.2% (95% interval 20.0% to 31.2%, " + BIASED["high"] + ")"
    assert page.facts == [
        ("buildings", "20"),
        ("damaged among the unmarked, share", share),
        ("F1", "not estimated: it is long"),
        ("AUC", "not estimated"),
    ]
    summary = summarise(drawn)
    facts = list(map_page(drawn, chips(20), summary, title="damage").facts)
    missing = [figure.missing for figure in summary.figures if figure.missing]
    assert len(missing) > 1
    assert sum(missing[0] in text for _, text in facts) == 1, "the reason appears once"


def test_the_page_can_be_written(tmp_path: Path) -> None:
    drawn = table(houses(20))
    page = map_page(drawn, chips(20), summarise(drawn), title="damage", warnings=("careful",))
    write_map(page, tmp_path / "map.html")
    assert (tmp_path / "map.html").stat().st_size > 1000


@pytest.mark.parametrize("bands", [1, 2, 5])
def test_pictures_of_any_number_of_bands_can_be_shown(bands: int) -> None:
    drawn = table(houses(20))
    page = map_page(drawn, chips(20, channels=bands), summarise(drawn), title="damage")
    assert page.items[5].after is not None
    assert pixels_of(page.items[5].after).shape == (16, 16, 3)
