import sys
from pathlib import Path

import numpy as np
import pytest
import rasterio  # type: ignore[import-untyped, unused-ignore]
import shapely  # type: ignore[import-untyped, unused-ignore]
from PIL import Image

from onesided.core.errors import DataError, OnesidedError
from onesided.geo.input.coordinates import system
from onesided.geo.input.image import (
    ImageWindow,
    Stretch,
    choose_stretch,
    edge_in_degrees,
    inner_window,
    open_image,
    outlines_in_pixels,
    overview,
    to_map,
    to_pixels,
)
from tests.geo.rasters import NORTH, WEST, noise, write_tiff

TURNED = (0.4, 0.3, 1000.0, 0.3, -0.4, 2000.0)


def test_pixels_and_places_are_each_others_inverse() -> None:
    pixels = np.array([[0.0, 0.0], [3.5, 7.25], [-2.0, 100.0]])
    np.testing.assert_allclose(to_pixels(TURNED, to_map(TURNED, pixels)), pixels, atol=1e-9)


def test_the_first_corner_of_the_first_pixel_is_the_origin(tmp_path: Path) -> None:
    corner = np.array([shapely.box(WEST, NORTH - 2, WEST + 1, NORTH)], object)
    with open_image(write_tiff(tmp_path / "a.tif", noise(0))) as image:
        (outline,) = outlines_in_pixels(image, corner, system("EPSG:32615"))
    assert outline.bounds == (0, 0, 1, 2)


def test_a_picture_with_a_world_file_is_where_the_same_geotiff_is(tmp_path: Path) -> None:
    pixels = noise(1)
    Image.fromarray(pixels.transpose(1, 2, 0)).save(tmp_path / "b.png")
    # World files give the middle of the first pixel.
    (tmp_path / "b.pgw").write_text(f"1\n0\n0\n-1\n{WEST + 0.5}\n{NORTH - 0.5}\n")
    with (
        open_image(write_tiff(tmp_path / "a.tif", pixels)) as tiff,
        open_image(tmp_path / "b.png", "EPSG:32615") as picture,
    ):
        assert picture.matrix == tiff.matrix
        assert picture.bands == tiff.bands
        window = (5, 7, 20, 19)
        np.testing.assert_array_equal(picture.read(*window).values, tiff.read(*window).values)
        np.testing.assert_array_equal(picture.read(*window).values, pixels[:, 7:19, 5:20])


def test_a_picture_without_a_place_is_refused(tmp_path: Path) -> None:
    Image.fromarray(noise(1)[0]).save(tmp_path / "a.jpg")
    with pytest.raises(DataError, match=r"a\.wld"), open_image(tmp_path / "a.jpg"):
        pass
    (tmp_path / "a.jgw").write_text("1\n0\n0\n-1\n0\n0\n")
    with pytest.raises(DataError, match="--image-crs"), open_image(tmp_path / "a.jpg"):
        pass
    (tmp_path / "a.jgw").write_text("1 0 0")
    with pytest.raises(DataError, match="six numbers"), open_image(tmp_path / "a.jpg"):
        pass


def test_eight_bits_stay_as_they_are(tmp_path: Path) -> None:
    pixels = noise(2)
    with open_image(write_tiff(tmp_path / "a.tif", pixels)) as image:
        stretch = choose_stretch(image, overview(image, 100))
    np.testing.assert_array_equal(stretch.apply(pixels), pixels)


def test_other_values_are_stretched_between_two_percentiles_of_each_band(tmp_path: Path) -> None:
    band = np.linspace(100, 1100, 2400).reshape(1, 40, 60)
    pixels = np.concatenate([band, 3 * band]).astype(np.uint16)
    with open_image(write_tiff(tmp_path / "a.tif", pixels)) as image:
        stretch = choose_stretch(image, overview(image, 100))
    assert stretch.low == pytest.approx((120, 360), rel=0.02)
    assert stretch.high == pytest.approx((1080, 3240), rel=0.02)
    drawn = stretch.apply(pixels)
    assert (drawn[:, 0, 0].max(), drawn[:, -1, -1].min()) == (0, 255)
    middle = np.abs(pixels[0].astype(int) - 600).argmin()
    assert abs(int(drawn[0].flat[middle]) - 127) <= 1


def test_what_is_no_data_does_not_stretch_and_a_flat_band_divides_by_nothing() -> None:
    values = np.array([[[0.0, 5.0, np.nan, 9000.0]], [[7.0, 7.0, 7.0, 7.0]]])
    valid = np.array([[True, True, True, False]])

    class Flat:
        is_eight_bit, bands = False, 2

    stretch = choose_stretch(Flat(), ImageWindow(values, valid))  # type: ignore[arg-type]
    assert stretch.high[0] < 10
    assert np.isfinite(stretch.apply(values)).all()


def test_a_stretch_rounds_to_the_nearest_value() -> None:
    drawn = Stretch(low=(0.0,), high=(1.0,)).apply(np.array([[[0.0, 0.5, 1.0, 2.0, -1.0, np.nan]]]))
    assert drawn.tolist() == [[[0, 128, 255, 255, 0, 0]]]


def test_the_edge_of_an_image_is_in_degrees(tmp_path: Path) -> None:
    with open_image(write_tiff(tmp_path / "a.tif", noise(0))) as image:
        west, south, east, north = edge_in_degrees(image)
    assert west == pytest.approx(-93, abs=1e-6)
    assert east - west == pytest.approx(60 / 107_500, rel=0.02)
    assert north - south == pytest.approx(40 / 110_600, rel=0.02)


def test_a_window_is_cut_to_the_image(tmp_path: Path) -> None:
    with open_image(write_tiff(tmp_path / "a.tif", noise(0))) as image:
        assert inner_window((-3.5, 2.2, 4.1, 99.0), image) == (0, 2, 5, 40)
        assert inner_window((60.0, 0.0, 70.0, 10.0), image) is None


def world_file(path: Path) -> None:
    path.write_text(f"1\n0\n0\n-1\n{WEST + 0.5}\n{NORTH - 0.5}\n")


def test_a_picture_lies_as_it_is_stored_whatever_a_camera_noted(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = 6  # turned by a quarter
    Image.fromarray(noise(1).transpose(1, 2, 0)).save(tmp_path / "a.png", exif=exif)
    world_file(tmp_path / "a.pgw")
    with open_image(tmp_path / "a.png", "EPSG:32615") as image:
        assert (image.height, image.width) == (40, 60)
        np.testing.assert_array_equal(image.read(0, 0, 60, 40).values, noise(1))


def test_transparent_parts_of_a_picture_are_holes(tmp_path: Path) -> None:
    opacity = np.full((1, 40, 60), 255, np.uint8)
    opacity[:, :, :30] = 0
    layered = np.concatenate([noise(1), opacity])
    Image.fromarray(layered.transpose(1, 2, 0)).save(tmp_path / "a.png")
    world_file(tmp_path / "a.pgw")
    with open_image(tmp_path / "a.png", "EPSG:32615") as image:
        piece = image.read(20, 0, 40, 40)
    np.testing.assert_array_equal(piece.valid, np.tile(np.arange(20) >= 10, (40, 1)))


def test_an_image_across_the_antimeridian_is_as_narrow_as_it_is(tmp_path: Path) -> None:
    # UTM zone 60 south ends at 180 degrees: 833 km east of its middle at the equator.
    place = (100, 0, 833_000 - 3000, 0, -100, 9_999_000)
    with open_image(
        write_tiff(tmp_path / "a.tif", noise(1), crs="EPSG:32760", transform=place)
    ) as image:
        west, _, east, _ = edge_in_degrees(image)
    assert west < 180 < east
    assert east - west < 0.1


def test_an_image_of_the_whole_earth_stays_whole(tmp_path: Path) -> None:
    place = (6, 0, -180, 0, -4, 80)
    with open_image(
        write_tiff(tmp_path / "a.tif", noise(1), crs="EPSG:4326", transform=place)
    ) as image:
        assert edge_in_degrees(image) == (-180, -80, 180, 80)


def test_any_number_of_bands_is_read_and_transparency_is_no_band(tmp_path: Path) -> None:
    pixels = noise(0, bands=5)
    with open_image(write_tiff(tmp_path / "a.tif", pixels)) as image:
        assert image.bands == 5
        np.testing.assert_array_equal(image.read(0, 0, 60, 40).values, pixels)
    pixels = noise(1, bands=4)
    pixels[3] = 255
    pixels[3, :10] = 0
    with open_image(
        write_tiff(tmp_path / "b.tif", pixels, photometric="RGB", alpha="YES")
    ) as image:
        piece = image.read(0, 0, 60, 40)
    assert piece.values.shape[0] == 3
    np.testing.assert_array_equal(piece.valid, pixels[3] > 0)


def test_holes_are_known_by_nodata_and_by_values_that_are_no_numbers(tmp_path: Path) -> None:
    pixels = noise(2, bands=1).astype(np.float32) + 1
    pixels[0, :5], pixels[0, 5:9] = -9999, np.nan
    with open_image(write_tiff(tmp_path / "a.tif", pixels, nodata=-9999)) as image:
        valid = image.read(0, 0, 60, 40).valid
    assert not valid[:9].any()
    assert valid[9:].all()


def test_a_smaller_copy_has_the_shape_that_was_asked_for(tmp_path: Path) -> None:
    with open_image(write_tiff(tmp_path / "a.tif", noise(3))) as image:
        assert image.read(0, 0, 60, 40, shrink=7).values.shape == (3, 6, 9)


def test_a_file_that_is_cut_short_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "a.tif", noise(4, height=512, width=512), tiled=True,
                      blockxsize=256, blockysize=256)  # fmt: skip
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cut short"), open_image(path) as image:
        image.read(0, 0, 512, 512)
    path.write_bytes(whole[:6])
    with pytest.raises(DataError, match="cut short"), open_image(path):
        pass


def test_an_image_without_a_place_or_a_system_is_refused(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "a.tif", noise(5), crs=None)
    with pytest.raises(DataError, match="--image-crs"), open_image(path):
        pass
    with open_image(path, "EPSG:32615") as image:
        assert image.system.to_epsg() == 32615
    with rasterio.open(tmp_path / "b.tif", "w", driver="GTiff", count=1, height=9, width=9,
                       dtype="uint8") as file:  # fmt: skip
        file.write(noise(5, bands=1, height=9, width=9))
    with pytest.raises(DataError, match="where on Earth"), open_image(tmp_path / "b.tif"):
        pass


def test_a_palette_is_not_taken_for_brightness(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "a.tif", noise(6, bands=1), photometric="PALETTE")
    with rasterio.open(path, "r+") as file:
        file.write_colormap(1, {value: (value, 0, 0, 255) for value in range(256)})
    with pytest.raises(DataError, match="palette"), open_image(path):
        pass


def test_without_gdal_a_geotiff_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tiff(tmp_path / "a.tif", noise(7))
    for module in [name for name in sys.modules if name.partition(".")[0] == "rasterio"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(OnesidedError, match=r"pip install 'onesided\[geo\]'"), open_image(path):
        pass


def test_gdal_may_cache_megabytes_of_a_file_and_not_bytes(tmp_path: Path) -> None:
    from rasterio._env import get_gdal_config  # type: ignore[import-untyped, unused-ignore]

    with open_image(write_tiff(tmp_path / "post.tif", noise(1))):
        assert get_gdal_config("GDAL_CACHEMAX") == 128 * 2**20
