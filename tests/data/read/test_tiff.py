import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onesided.data.read.files import Unreadable
from onesided.data.read.picture import decode, read_header
from onesided.data.read.tiff import eight_bits, read_tiff_facts
from tests.data.image_files import gradient, tiff_bytes

needs_tifffile = pytest.mark.skipif(
    find_spec("tifffile") is None,
    reason="tifffile is missing; pip install onesided[geo] to test reading many channels",
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL")


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "image.tif"
    path.write_bytes(data)
    return path


def test_pillow_reads_six_channels_as_rgb_which_is_why_tags_are_read_first(tmp_path: Path) -> None:
    path = written(tmp_path, tiff_bytes(gradient(5, 4, 6), extra=(0, 0, 0)))
    with Image.open(path) as image:
        assert image.mode == "RGB"
    facts = read_tiff_facts(path)
    assert facts is not None
    assert facts.samples == 6
    assert not facts.is_picture


@pytest.mark.parametrize(
    ("samples", "photometric", "extra", "is_picture"),
    [
        (1, 1, (), True),
        (1, 0, (), True),
        (3, 2, (), True),
        (2, 1, (2,), True),
        (4, 2, (1,), True),
        (4, 2, (2,), True),
        (4, 5, (), True),
        (4, 2, (0,), False),
        (4, 2, (), False),
        (2, 1, (0,), False),
        (3, 1, (0, 0), False),
        (6, 2, (0, 0, 0), False),
        (6, 2, (2, 0, 0), False),
        (6, 1, (), False),
        (5, 5, (0,), False),
    ],
)
def test_a_picture_is_grey_or_colour_with_nothing_but_alpha(
    tmp_path: Path, samples: int, photometric: int, extra: tuple[int, ...], is_picture: bool
) -> None:
    data = tiff_bytes(gradient(5, 4, samples), photometric=photometric, extra=extra)
    facts = read_tiff_facts(written(tmp_path, data))
    assert facts is not None
    assert facts.is_picture == is_picture


def test_a_file_that_is_no_tiff_has_no_facts(tmp_path: Path) -> None:
    path = tmp_path / "image.tif"
    Image.fromarray(gradient(4, 4)).save(path, "PNG")
    assert read_tiff_facts(path) is None


@pytest.mark.parametrize(("samples", "extra"), [(6, (0, 0, 0)), (4, (0,))])
def test_without_tifffile_many_channels_are_refused_with_the_remedy(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    samples: int,
    extra: tuple[int, ...],
) -> None:
    monkeypatch.setitem(sys.modules, "tifffile", None)
    path = written(tmp_path, tiff_bytes(gradient(5, 4, samples), extra=extra))
    with pytest.raises(Unreadable, match=rf"{samples} channels.*pip install 'onesided\[geo\]'"):
        decode(path)


def test_the_channels_of_any_tiff_are_known_without_tifffile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tifffile", None)
    path = written(tmp_path, tiff_bytes(gradient(5, 4, 6), extra=(0, 0, 0)))
    header = read_header(path)
    assert (header.channels, header.height, header.width) == (6, 5, 4)


@needs_tifffile
@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize(("samples", "photometric"), [(6, 2), (6, 1), (4, 2), (2, 1), (13, 1)])
def test_all_channels_are_read(
    tmp_path: Path, planar: bool, samples: int, photometric: int
) -> None:
    pixels = gradient(5, 4, samples)
    extra = (0,) * (samples - (3 if photometric == 2 else 1))
    data = tiff_bytes(pixels, photometric=photometric, extra=extra, planar=planar)
    decoded = decode(written(tmp_path, data))
    np.testing.assert_array_equal(decoded, pixels.transpose(2, 0, 1))


@needs_tifffile
def test_many_channels_of_16_bits_are_scaled_to_8(tmp_path: Path) -> None:
    pixels = gradient(5, 4, 6).astype(np.uint16) * 257
    decoded = decode(written(tmp_path, tiff_bytes(pixels, extra=(0, 0, 0))))
    np.testing.assert_array_equal(decoded, gradient(5, 4, 6).transpose(2, 0, 1))


@needs_tifffile
def test_many_channels_are_rotated_and_resized_like_pictures(tmp_path: Path) -> None:
    pixels = gradient(5, 4, 6)
    turned = decode(written(tmp_path, tiff_bytes(pixels, extra=(0, 0, 0), orientation=3)))
    np.testing.assert_array_equal(turned, pixels[::-1, ::-1].transpose(2, 0, 1))
    resized = decode(written(tmp_path, tiff_bytes(pixels, extra=(0, 0, 0))), size=(3, 2))
    for band, original in zip(resized, pixels.transpose(2, 0, 1), strict=True):
        alone = Image.fromarray(original).resize((2, 3), Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(band, np.asarray(alone))


@needs_tifffile
def test_many_channels_cut_short_are_damaged(tmp_path: Path) -> None:
    path = written(tmp_path, tiff_bytes(gradient(50, 40, 6), extra=(0, 0, 0))[:-100])
    assert read_header(path).channels == 6
    with pytest.raises(Unreadable):
        decode(path)


@needs_tifffile
@pytest.mark.parametrize(
    ("without", "words"), [((277,), "contradict each other"), ((258, 277), "of bool")]
)
def test_files_that_do_not_say_how_many_channels_they_have_are_refused(
    tmp_path: Path, without: tuple[int, ...], words: str
) -> None:
    data = tiff_bytes(gradient(5, 4, 6), extra=(0, 0, 0), without=without)
    with pytest.raises(Unreadable, match=words):
        decode(written(tmp_path, data))


@pytest.mark.parametrize(
    ("pixels", "words"),
    [
        (gradient(5, 4, 1).astype(np.float32), "floating-point"),
        (gradient(5, 4, 6).astype(np.float32), "floating-point"),
        (gradient(5, 4, 1).astype(np.int16), "signed"),
        (gradient(5, 4, 1).astype(np.uint32), "32-bit"),
    ],
)
def test_numbers_without_black_and_white_are_refused(
    tmp_path: Path, pixels: np.ndarray, words: str
) -> None:
    path = written(tmp_path, tiff_bytes(pixels, photometric=1, extra=(0,) * (pixels.shape[2] - 1)))
    with pytest.raises(Unreadable, match=words):
        decode(path)


def test_several_pages_are_refused(tmp_path: Path) -> None:
    pages = tiff_bytes(gradient(5, 4, 1), photometric=1, subfiles=(0, 0, 0))
    with pytest.raises(Unreadable, match="several pages"):
        decode(written(tmp_path, pages))


def test_previews_and_masks_are_not_pages(tmp_path: Path) -> None:
    data = tiff_bytes(gradient(5, 4, 1), photometric=1, subfiles=(0, 1, 4))
    np.testing.assert_array_equal(decode(written(tmp_path, data))[0], gradient(5, 4))


def test_pages_that_lead_in_circles_end(tmp_path: Path) -> None:
    data = bytearray(tiff_bytes(gradient(5, 4, 1), photometric=1, subfiles=(1, 1)))
    entries = int.from_bytes(data[8:10], "little")
    second = int.from_bytes(data[10 + 12 * entries : 14 + 12 * entries], "little")
    end = second + 2 + 12 * entries
    data[end : end + 4] = (8).to_bytes(4, "little")
    facts = read_tiff_facts(written(tmp_path, bytes(data)))
    assert facts is not None
    assert facts.pages == 1


@pytest.mark.parametrize("length", range(4, 170, 9))
def test_tags_cut_short_anywhere_give_a_reason(tmp_path: Path, length: int) -> None:
    data = tiff_bytes(gradient(5, 4, 3))[:length]
    with pytest.raises(Unreadable):
        decode(written(tmp_path, data))


def test_sixteen_bits_are_divided_by_257() -> None:
    every = np.arange(65536)
    np.testing.assert_array_equal(eight_bits(every, 16), np.rint(every / 257).astype(np.uint8))


def test_eight_bits_stay_as_they_are() -> None:
    np.testing.assert_array_equal(eight_bits(gradient(7, 9), 8), gradient(7, 9))


def test_twelve_bits_use_their_own_range() -> None:
    assert eight_bits(np.array([0, 4095]), 12).tolist() == [0, 255]


def test_a_file_of_absurdly_many_channels_is_refused_by_its_tags(tmp_path: Path) -> None:
    honest = tiff_bytes(gradient(5, 4, 6), extra=(0, 0, 0))
    path = written(tmp_path, honest)
    facts = read_tiff_facts(path)
    assert facts is not None
    with pytest.MonkeyPatch.context() as patch:
        vast = replace(facts, width=8000, height=8000, samples=1000)
        patch.setattr("onesided.data.read.picture.read_tiff_facts", lambda path: vast)
        with pytest.raises(Unreadable, match="8000 x 8000 pixels of 1000 channels"):
            decode(path)


def test_unwanted_channels_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr("onesided.data.read.picture.read_bands", read)
    path = written(tmp_path, tiff_bytes(gradient(5, 4, 6), extra=(0, 0, 0)))
    with pytest.raises(Unreadable, match="has 6 channels where 3 were expected"):
        decode(path, channels=3)
