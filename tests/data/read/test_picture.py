import io
import os
import random
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from onesided.core.errors import ConfigError, DataError
from onesided.data.read import picture
from onesided.data.read.files import Unreadable
from onesided.data.read.picture import Header, decode, read_header
from tests.data.image_files import gradient, noise, tiff_bytes, write_png

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:PIL"),
    pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning"),
]


def saved(image: Image.Image, path: Path, **options: object) -> Path:
    image.save(path, **options)  # type: ignore[arg-type]
    return path


def channels_of(image: Image.Image) -> np.ndarray:
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


@pytest.mark.parametrize("ending", [".png", ".bmp", ".tif", ".webp", ".ppm"])
def test_colour_is_read_as_it_was_written(tmp_path: Path, ending: str) -> None:
    image = Image.fromarray(gradient(7, 5, 3))
    path = saved(image, tmp_path / f"a{ending}", **({"lossless": True} if "webp" in ending else {}))
    np.testing.assert_array_equal(decode(path), channels_of(image))


@pytest.mark.parametrize("ending", [".png", ".bmp", ".tif", ".pgm"])
def test_grey_stays_one_channel(tmp_path: Path, ending: str) -> None:
    image = Image.fromarray(gradient(7, 5))
    np.testing.assert_array_equal(
        decode(saved(image, tmp_path / f"a{ending}")), gradient(7, 5)[None]
    )


def test_black_and_white_becomes_0_and_255(tmp_path: Path) -> None:
    pixels = gradient(7, 5) > 120
    path = saved(Image.fromarray(pixels), tmp_path / "a.png")
    np.testing.assert_array_equal(decode(path)[0], pixels * 255)


def test_a_palette_becomes_its_colours(tmp_path: Path) -> None:
    image = Image.fromarray(noise(0, 7, 5, 3)).quantize(16)
    path = saved(image, tmp_path / "a.png")
    np.testing.assert_array_equal(decode(path), channels_of(image.convert("RGB")))


def test_cmyk_becomes_rgb(tmp_path: Path) -> None:
    image = Image.fromarray(noise(0, 7, 5, 3)).convert("CMYK")
    path = saved(image, tmp_path / "a.tif")
    np.testing.assert_array_equal(decode(path), channels_of(image.convert("RGB")))


def test_a_jpeg_is_read_like_pillow_reads_it(tmp_path: Path) -> None:
    path = saved(Image.fromarray(noise(0, 7, 5, 3)), tmp_path / "a.jpg")
    with Image.open(path) as image:
        np.testing.assert_array_equal(decode(path), channels_of(image))


@pytest.mark.parametrize("ending", [".png", ".tif"])
def test_transparent_parts_become_black(tmp_path: Path, ending: str) -> None:
    pixels = np.full((2, 3, 4), 200, np.uint8)
    pixels[:, :, 3] = [[0, 255, 128], [255, 255, 255]]
    decoded = decode(saved(Image.fromarray(pixels), tmp_path / f"a{ending}"))
    assert decoded.shape == (3, 2, 3)
    np.testing.assert_allclose(decoded[:, 0], [[0, 200, 100]] * 3, atol=1)
    np.testing.assert_array_equal(decoded[:, 1], 200)


def test_grey_with_alpha_becomes_one_channel_on_black(tmp_path: Path) -> None:
    pixels = np.array([[[200, 0], [200, 255]]], np.uint8)
    path = saved(Image.fromarray(pixels, "LA"), tmp_path / "a.png")
    assert decode(path).tolist() == [[[0, 200]]]


def test_a_transparent_colour_of_a_palette_becomes_black(tmp_path: Path) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putdata([0, 1])
    path = saved(image, tmp_path / "a.png", transparency=0)
    assert decode(path)[:, 0].T.tolist() == [[0, 0, 0], [40, 50, 60]]


@pytest.mark.parametrize("ending", [".png", ".tif", ".pgm"])
def test_sixteen_bit_grey_is_divided_by_257(tmp_path: Path, ending: str) -> None:
    values = np.array([[0, 128, 129, 257], [32768, 65278, 65407, 65535]], np.uint16)
    decoded = decode(saved(Image.fromarray(values), tmp_path / f"a{ending}"))
    np.testing.assert_array_equal(decoded[0], np.rint(values / 257))
    assert read_header(tmp_path / f"a{ending}").is_deep


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("ending", [".jpg", ".png", ".webp", ".tif"])
def test_the_orientation_that_the_camera_wrote_is_applied(
    tmp_path: Path, orientation: int, ending: str
) -> None:
    upright = Image.fromarray(np.kron(noise(1, 3, 2, 3), np.ones((16, 16, 1), np.uint8)))
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"a{ending}"
    upright.save(path, exif=exif)
    with Image.open(path) as image:
        expected = channels_of(ImageOps.exif_transpose(image))
    decoded = decode(path)
    np.testing.assert_array_equal(decoded, expected)
    assert decoded.shape == ((3, 48, 32) if orientation < 5 else (3, 32, 48))
    header = read_header(path)
    assert (header.height, header.width) == decoded.shape[1:]


def test_orientation_6_turns_the_left_side_up(tmp_path: Path) -> None:
    stored = np.zeros((4, 6), np.uint8)
    stored[:, 0] = 255
    exif = Image.Exif()
    exif[0x0112] = 6
    path = saved(Image.fromarray(stored), tmp_path / "a.png", exif=exif)
    decoded = decode(path)[0]
    assert decoded.shape == (6, 4)
    assert decoded[0].tolist() == [255] * 4
    assert decoded[1:].max() == 0


@pytest.mark.parametrize(
    "exif",
    [
        b"nonsense",
        b"II*\0\xff\xff\xff\xff",
        # One tag, the orientation, that says "ab".
        b"II*\0\x08\0\0\0\x01\0\x12\x01\x02\0\x02\0\0\0ab\0\0\0\0\0\0",
    ],
)
def test_damaged_exif_does_not_cost_the_photograph(tmp_path: Path, exif: bytes) -> None:
    image = Image.fromarray(gradient(7, 5, 3))
    path = saved(image, tmp_path / "a.jpg", exif=b"Exif\0\0" + exif)
    assert decode(path).shape == (3, 7, 5)


def test_an_animation_gives_its_first_frame(tmp_path: Path) -> None:
    frames = [Image.new("L", (4, 4), value) for value in (10, 200)]
    path = saved(frames[0], tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    np.testing.assert_array_equal(decode(path), np.full((3, 4, 4), 10))


def test_shrinking_averages_and_does_not_pick(tmp_path: Path) -> None:
    board = (np.indices((64, 64)).sum(axis=0) % 2 * 255).astype(np.uint8)
    decoded = decode(saved(Image.fromarray(board), tmp_path / "a.png"), size=(8, 8))
    np.testing.assert_allclose(decoded, 127.5, atol=2)


def test_size_is_height_then_width(tmp_path: Path) -> None:
    assert decode(write_png(tmp_path / "a.png"), size=(5, 9)).shape == (3, 5, 9)


def test_a_large_photograph_shrinks_to_nearly_what_full_decoding_gives(tmp_path: Path) -> None:
    smooth = Image.fromarray(noise(0, 8, 8, 3)).resize((640, 480), Image.Resampling.BICUBIC)
    path = saved(smooth, tmp_path / "a.jpg", quality=95)
    with Image.open(path) as image:
        expected = channels_of(image.resize((32, 32), Image.Resampling.BILINEAR)).astype(int)
    assert np.abs(decode(path, size=(32, 32)).astype(int) - expected).max() <= 4


def test_grey_is_repeated_where_colour_is_wanted(tmp_path: Path) -> None:
    path = write_png(tmp_path / "a.png", shape=(8, 8))
    np.testing.assert_array_equal(decode(path, channels=3), np.repeat(decode(path), 3, axis=0))


def test_colour_is_refused_where_grey_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.png has 3 channels \(colour\) where 1"):
        decode(write_png(tmp_path / "a.png"), channels=1)


@cache
def encoded(kind: str, side: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(noise(0, side, side, 3)).save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "TIFF", "WEBP", "GIF", "PPM"])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("size", [None, (8, 8)])
def test_truncated_files_are_refused(
    tmp_path: Path, kind: str, share: float, size: tuple[int, int] | None
) -> None:
    data = encoded(kind, 64)
    path = tmp_path / "a.png"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(Unreadable):
        decode(path, size=size)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "TIFF", "WEBP", "GIF", "PPM"])
def test_damaged_bytes_give_an_image_or_a_reason_and_nothing_else(
    tmp_path: Path, kind: str
) -> None:
    dice = random.Random(kind)
    path = tmp_path / "a.png"
    for _ in range(60):
        data = bytearray(encoded(kind, 12))
        for _ in range(dice.randint(1, 6)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data)
        with suppress(Unreadable):
            assert decode(path, size=(8, 8)).shape[1:] == (8, 8)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.touch()
    with pytest.raises(Unreadable, match="empty"):
        decode(path)


def test_text_that_calls_itself_an_image_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_text("This is not an image.")
    with pytest.raises(Unreadable, match="not an image"):
        decode(path)


def test_postscript_that_calls_itself_an_image_is_not_executed(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n%%EOF\n")
    with pytest.raises(Unreadable, match="not an image"):
        decode(path)


def test_a_wrong_ending_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    Image.fromarray(gradient(7, 5)).save(path, "PNG")
    np.testing.assert_array_equal(decode(path)[0], gradient(7, 5))


def test_files_that_are_not_there_give_the_reason(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="does not exist"):
        decode(tmp_path / "a.png")
    (tmp_path / "b.png").symlink_to(tmp_path / "a.png")
    with pytest.raises(Unreadable, match="link to a file that is not there"):
        decode(tmp_path / "b.png")
    with pytest.raises(Unreadable, match="is not a file"):
        decode(tmp_path)
    with pytest.raises(Unreadable, match="cannot be opened: File name too long"):
        decode(tmp_path / ("a" * 300 + ".png"))


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(Unreadable, match="is not a file"):
        decode(tmp_path / "a.png")


def test_more_pixels_than_our_limit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_png(tmp_path / "a.png", shape=(20, 20))
    many = tmp_path / "many.tif"
    many.write_bytes(tiff_bytes(gradient(20, 20, 6), extra=(0, 0, 0)))
    monkeypatch.setattr(picture, "MAXIMUM_PIXELS", 399)
    for bomb in (path, many):
        with pytest.raises(Unreadable, match=r"too large.*20 x 20"):
            decode(bomb)
        with pytest.raises(Unreadable, match="too large"):
            read_header(bomb)
    monkeypatch.setattr(picture, "MAXIMUM_PIXELS", 400)
    assert decode(path).shape == (1, 20, 20)


def test_more_pixels_than_pillow_allows_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_png(tmp_path / "a.png", shape=(20, 20))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(Unreadable, match="too large"):
        decode(path)


def test_a_large_image_can_be_allowed_and_the_message_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_png(tmp_path / "a.png", shape=(1200, 1000))
    monkeypatch.setattr(picture, "MAXIMUM_PIXELS", 1_000_000)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 700_000)
    with pytest.raises(Unreadable, match=r"is too large .* --largest-image 2\.$"):
        decode(path)
    with picture.reading_up_to(2):
        assert decode(path).shape == (1, 1200, 1000)
    assert (picture.MAXIMUM_PIXELS, Image.MAX_IMAGE_PIXELS) == (1_000_000, 700_000)


@pytest.mark.parametrize("megapixels", [0, -1, float("nan"), float("inf"), 10**400])
def test_an_impossible_largest_image_is_refused(megapixels: float) -> None:
    with pytest.raises(ConfigError, match="millions of pixels"), picture.reading_up_to(megapixels):
        pass


def test_our_limit_is_below_the_one_at_which_pillow_warns() -> None:
    assert Image.MAX_IMAGE_PIXELS is not None
    assert picture.MAXIMUM_PIXELS < Image.MAX_IMAGE_PIXELS


def test_a_header_equals_what_decoding_gives(tmp_path: Path) -> None:
    assert read_header(write_png(tmp_path / "a.png", shape=(9, 5, 3))) == Header(9, 5, 3, False)
    assert read_header(write_png(tmp_path / "b.png", shape=(9, 5))) == Header(9, 5, 1, False)


def test_colours_that_pillow_cannot_convert_are_refused(tmp_path: Path) -> None:
    path = saved(Image.new("LAB", (4, 4)), tmp_path / "a.tif")
    with pytest.raises(Unreadable, match="kind LAB"):
        decode(path)
