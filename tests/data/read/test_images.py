import hashlib
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onesided.core.errors import ConfigError, DataError, DataNotFound
from onesided.data.read import images, picture
from onesided.data.read.files import find_images
from onesided.data.read.images import LARGEST_SIDE, SIDES, Decoded, choose_size, decode_all
from onesided.data.read.picture import decode
from tests.data.image_files import found, gradient, noise, tiff_bytes, write_png

NOT_AN_IMAGE = "is not an image, or of an unknown kind"


def many(folder: Path, count: int, broken: Sequence[int] = ()) -> Path:
    for number in range(count):
        path = write_png(folder / f"{number:03}.png", seed=number)
        if number in broken:
            path.write_text("broken")
    return folder


def test_images_come_in_the_order_of_the_list_with_name_and_digest(tmp_path: Path) -> None:
    files = find_images(many(tmp_path, 5))
    backwards = files[::-1]
    decoded = decode_all(backwards)
    assert decoded.kept == ("004.png", "003.png", "002.png", "001.png", "000.png")
    for file, values, digest in zip(backwards, decoded.values, decoded.digests, strict=True):
        np.testing.assert_array_equal(values, decode(file.path))
        assert digest == hashlib.sha256(values.tobytes()).hexdigest()


def test_the_digest_is_of_the_pixels_however_the_file_was_written(tmp_path: Path) -> None:
    one = write_png(tmp_path / "one.png", seed=1)
    Image.open(one).save(tmp_path / "two.bmp")
    decoded = decode_all(find_images(tmp_path))
    assert len(set(decoded.digests)) == 1


def test_images_of_zeros_and_ones_are_refused_as_nearly_black(tmp_path: Path) -> None:
    for seed in range(3):
        mask = np.random.default_rng(seed).integers(0, 2, (8, 8), dtype=np.uint8)
        Image.fromarray(mask).save(tmp_path / f"{seed}.png")
    with pytest.raises(DataError, match=r"is above 1 of 255.*multiply all values by 255"):
        decode_all(find_images(tmp_path))


@pytest.mark.parametrize("chunk", [1, 7, 128])
def test_workers_and_chunks_do_not_change_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    broken = (3, 17, 18)
    files = find_images(many(tmp_path, 40, broken))
    alone = decode_all(files, size=(6, 6), tolerate=0.1, workers=1)
    monkeypatch.setattr(images, "CHUNK", chunk)
    crowd = decode_all(files, size=(6, 6), tolerate=0.1, workers=4)
    np.testing.assert_array_equal(alone.values, crowd.values)
    assert (alone.kept, alone.digests) == (crowd.kept, crowd.digests)
    assert alone.skipped == crowd.skipped
    assert alone.skipped == tuple((f"{row:03}.png", NOT_AN_IMAGE) for row in broken)


def test_files_damaged_in_header_or_pixels_are_skipped_in_order(tmp_path: Path) -> None:
    files = find_images(many(tmp_path, 6, broken=(4,)))
    whole = files[1].path.read_bytes()
    files[1].path.write_bytes(whole[:100])
    files[2].path.write_bytes(b"")
    decoded = decode_all(files, tolerate=0.5)
    assert decoded.kept == ("000.png", "003.png", "005.png")
    assert [name for name, _ in decoded.skipped] == ["001.png", "002.png", "004.png"]
    for place, row in enumerate((0, 3, 5)):
        np.testing.assert_array_equal(decoded.values[place], decode(files[row].path))


@pytest.mark.parametrize(
    ("total", "unreadable", "tolerate", "passes"),
    [
        (20, 1, 0.05, True),
        (19, 1, 0.05, False),
        (40, 2, 0.05, True),
        (40, 3, 0.05, False),
        (10, 0, 0.0, True),
        (10, 1, 0.0, False),
        (50, 29, 0.58, True),
        (10, 9, 1.0, True),
    ],
)
def test_as_many_may_be_unreadable_as_are_tolerated(
    tmp_path: Path, total: int, unreadable: int, tolerate: float, passes: bool
) -> None:
    files = find_images(many(tmp_path, total, range(unreadable)))
    if passes:
        assert len(decode_all(files, tolerate=tolerate).skipped) == unreadable
    else:
        with pytest.raises(DataError, match=f"^{unreadable} of {total} images in damaged/"):
            decode_all(files, tolerate=tolerate, what="damaged/")


def test_too_many_unreadable_files_are_reported_with_the_first_and_its_reason(
    tmp_path: Path,
) -> None:
    files = find_images(many(tmp_path, 10, (4, 7)))
    with pytest.raises(DataError) as caught:
        decode_all(files, what="damaged/")
    assert f"The first: 004.png {NOT_AN_IMAGE}." in str(caught.value)
    assert "more than the 5 % that are tolerated" in str(caught.value)
    assert "--tolerate 0.2" in str(caught.value)


def test_truncated_pixels_count_as_unreadable_too(tmp_path: Path) -> None:
    files = find_images(many(tmp_path, 10))
    files[4].path.write_bytes(files[4].path.read_bytes()[:120])
    with pytest.raises(DataError, match=r"1 of 10 images.*004\.png is damaged"):
        decode_all(files)


@pytest.mark.parametrize("tolerate", [0.05, 1.0])
def test_nothing_readable_is_not_found_whatever_is_tolerated(
    tmp_path: Path, tolerate: float
) -> None:
    files = find_images(many(tmp_path, 3, range(3)))
    with pytest.raises(DataNotFound, match=r"damaged/.*000\.png is not an image.*\.png, \.jpg"):
        decode_all(files, tolerate=tolerate, what="damaged/")


def test_an_empty_list_is_not_found() -> None:
    with pytest.raises(DataNotFound, match="damaged/"):
        decode_all([], what="damaged/")


@pytest.mark.parametrize("tolerate", [-0.1, 1.5, float("nan")])
def test_a_share_outside_0_to_1_is_refused(tmp_path: Path, tolerate: float) -> None:
    with pytest.raises(ConfigError, match="from 0 to 1"):
        decode_all(find_images(many(tmp_path, 1)), tolerate=tolerate)


def test_an_absurdly_large_image_is_skipped_without_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    files = found(
        write_png(tmp_path / "a.png", shape=(8, 8)), write_png(tmp_path / "b.png", shape=(16, 16))
    )
    # Between one and two times Pillow's limit it only warns.
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 200)
    decoded = decode_all(files, tolerate=0.5)
    assert decoded.kept == ("a.png",)
    assert "more pixels than Pillow decodes" in decoded.skipped[0][1]
    assert not recwarn.list


def test_our_own_limit_of_pixels_skips_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "MAXIMUM_PIXELS", 100)
    files = found(
        write_png(tmp_path / "a.png", shape=(8, 8)), write_png(tmp_path / "b.png", shape=(16, 16))
    )
    assert decode_all(files, tolerate=0.5).kept == ("a.png",)


def test_mixed_sizes_become_one_size(tmp_path: Path) -> None:
    shapes = [(40, 60, 3), (70, 50, 3), (64, 64, 3)]
    files = found(*(write_png(tmp_path / f"{h}.png", shape=(h, w, c)) for h, w, c in shapes))
    decoded = decode_all(files)
    assert decoded.values.shape == (3, 3, 64, 64)
    np.testing.assert_array_equal(decoded.values[0], decode(files[0].path, size=(64, 64)))


@pytest.mark.parametrize(
    ("shapes", "size"),
    [
        ([(8, 8)] * 5, (8, 8)),
        ([(28, 28)] * 5, (28, 28)),
        ([(28, 20)] * 5, (28, 20)),
        ([(128, 128)] * 2, (128, 128)),
        ([(129, 129)] * 2, (128, 128)),
        ([(3000, 4000)] * 3, (128, 128)),
        ([(28, 28), (28, 29)], (32, 32)),
        ([(5, 5), (9, 9)], (32, 32)),
        ([(40, 40), (40, 41)], (32, 32)),
        ([(41, 41), (41, 42)], (48, 48)),
        ([(60, 70), (64, 64), (10, 2000)], (64, 64)),
        ([(80, 80), (80, 81)], (64, 64)),
        ([(100, 100), (101, 101)], (96, 96)),
    ],
)
def test_size_is_chosen_from_the_data(shapes: list[tuple[int, int]], size: tuple[int, int]) -> None:
    assert choose_size(shapes) == size


@pytest.mark.parametrize(
    ("shapes", "largest", "size"),
    [
        ([(128, 128)] * 3, 64, (64, 64)),
        ([(40, 60)] * 3, 64, (40, 60)),
        ([(500, 300), (20, 20)], 64, (64, 64)),
        ([(500, 300), (20, 20)], 20, (20, 20)),
        # A pretrained network sees 224 pixels: images that have them keep them.
        ([(200, 300)] * 3, 224, (224, 224)),
        ([(170, 170), (180, 180)], 224, (160, 160)),
        ([(3000, 4000)] * 3, 224, (224, 224)),
    ],
)
def test_a_chosen_size_stays_below_the_largest_allowed(
    shapes: list[tuple[int, int]], largest: int, size: tuple[int, int]
) -> None:
    assert choose_size(shapes, largest) == size


def test_a_chosen_side_is_never_farther_from_the_median_than_another() -> None:
    for one, other in itertools.product(range(2, 200, 7), repeat=2):
        if one == other:
            continue
        height, width = choose_size([(one, one), (other, other)])
        middle = (one + other) / 2
        assert height == width
        allowed = [side for side in SIDES if side <= LARGEST_SIDE]
        assert abs(height - middle) == min(abs(side - middle) for side in allowed)


def test_grey_among_colour_is_repeated_with_one_notice(tmp_path: Path) -> None:
    grey = [write_png(tmp_path / f"grey{row}.png", row, (8, 8)) for row in range(3)]
    files = found(*grey, write_png(tmp_path / "colour.png"))
    decoded = decode_all(files)
    assert decoded.values.shape == (4, 3, 8, 8)
    np.testing.assert_array_equal(decoded.values[0], np.repeat(decode(grey[0]), 3, axis=0))
    (notice,) = decoded.notices
    assert "3 of 4 images are grey" in notice
    assert "grey0.png" in notice


def test_one_grey_file_saved_as_colour_does_not_triple_the_others(tmp_path: Path) -> None:
    for number in range(19):
        write_png(tmp_path / f"{number}.png", seed=number, shape=(8, 8))
    pixels = noise(9, 8, 8)
    Image.fromarray(pixels).convert("RGBA").save(tmp_path / "layered.png")
    decoded = decode_all(find_images(tmp_path))
    assert decoded.values.shape[:2] == (20, 1)
    (notice,) = decoded.notices
    assert "alpha" in notice
    assert np.array_equal(decoded.values[decoded.kept.index("layered.png"), 0], pixels)


def test_one_file_of_real_colour_still_makes_all_of_them_colour(tmp_path: Path) -> None:
    for number in range(19):
        write_png(tmp_path / f"{number}.png", seed=number, shape=(8, 8))
    write_png(tmp_path / "red.png", shape=(8, 8, 3))
    assert decode_all(find_images(tmp_path)).values.shape[:2] == (20, 3)


def test_only_grey_images_stay_grey_without_notice(tmp_path: Path) -> None:
    files = found(*(write_png(tmp_path / f"{row}.png", row, (8, 8)) for row in range(3)))
    decoded = decode_all(files)
    assert decoded.values.shape == (3, 1, 8, 8)
    assert decoded.notices == ()


def test_a_run_of_colour_takes_grey_and_a_run_of_grey_refuses_colour(tmp_path: Path) -> None:
    grey = found(write_png(tmp_path / "grey.png", shape=(8, 8)))
    colour = found(write_png(tmp_path / "colour.png"))
    assert decode_all(grey, channels=3).values.shape == (1, 3, 8, 8)
    with pytest.raises(DataError, match=r"colour\.png has 3 channels.*1 channel \(grey\)"):
        decode_all(colour, channels=1)


def test_channels_that_differ_name_the_first_offender(tmp_path: Path) -> None:
    paths = [write_png(tmp_path / f"{row}.png", row) for row in range(3)]
    for name in ("b.tif", "a.tif"):
        (tmp_path / name).write_bytes(tiff_bytes(gradient(8, 8, 6), extra=(0, 0, 0)))
    files = found(*paths, tmp_path / "b.tif", tmp_path / "a.tif")
    with pytest.raises(DataError, match=r"b\.tif has 6 channels, but 3 channels"):
        decode_all(files, tolerate=1.0)


def test_the_majority_decides_who_offends(tmp_path: Path) -> None:
    for name in ("b.tif", "a.tif"):
        (tmp_path / name).write_bytes(tiff_bytes(gradient(8, 8, 6), extra=(0, 0, 0)))
    files = found(write_png(tmp_path / "first.png"), tmp_path / "b.tif", tmp_path / "a.tif")
    with pytest.raises(DataError, match=r"first\.png has 3 channels"):
        decode_all(files)


def test_dark_16_bit_images_are_noticed(tmp_path: Path) -> None:
    dark, bright = tmp_path / "dark.png", tmp_path / "bright.png"
    Image.fromarray(np.full((8, 8), 10000, np.uint16)).save(dark)
    Image.fromarray(np.full((8, 8), 60000, np.uint16)).save(bright)
    (notice,) = decode_all(found(dark)).notices
    assert "16 bits" in notice
    (notice,) = decode_all(found(dark, bright)).notices
    assert notice == (
        "2 of 2 images have 16 bits per value and are scaled to 8 bits, divided by 257."
    )


def test_transparent_images_are_noticed(tmp_path: Path) -> None:
    clear, plain = tmp_path / "clear.png", tmp_path / "plain.png"
    Image.new("RGBA", (8, 8), (200, 100, 50, 0)).save(clear)
    Image.new("RGB", (8, 8), (200, 100, 50)).save(plain)
    assert decode_all(found(plain)).notices == ()
    (notice,) = decode_all(found(clear, plain)).notices
    assert notice == "1 of 2 images have an alpha channel; their transparent parts count as black."


def test_progress_counts_files_and_rises_to_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "CHUNK", 4)
    steps: list[tuple[int, int]] = []
    decode_all(find_images(many(tmp_path, 10)), progress=lambda *step: steps.append(step))
    assert steps == [(done, 10) for done in (2, 4, 5, 7, 9, 10)]


def test_sizes_and_formats_mix(tmp_path: Path) -> None:
    image = Image.fromarray(noise(0, 40, 30, 3))
    modes = {"rgb.png": "RGB", "grey.jpg": "L", "palette.gif": "P", "alpha.webp": "RGBA"}
    for name, mode in modes.items():
        image.convert(mode).save(tmp_path / name)
    Image.fromarray(np.full((9, 9), 40000, np.uint16)).save(tmp_path / "deep.tif")
    decoded: Decoded = decode_all(find_images(tmp_path))
    assert decoded.values.shape == (5, 3, 32, 32)
    assert decoded.skipped == ()
