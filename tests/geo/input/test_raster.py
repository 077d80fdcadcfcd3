import sys
from pathlib import Path

import numpy as np
import pytest
import rasterio  # type: ignore[import-untyped, unused-ignore]

from onesided.core.errors import DataError, OnesidedError
from onesided.geo.input.image import open_image
from tests.geo.rasters import noise, write_tiff


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


def test_a_file_that_is_cut_short_is_told_in_one_sentence(tmp_path: Path) -> None:
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
