import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onesided.core.errors import DataError, DataNotFound
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.problem.dataset import Scenario
from onesided.data.read import cache
from onesided.data.read.cache import DecodeCache, MappedImages
from onesided.data.read.folder import OneSided, read_class_folders, read_folders
from onesided.data.read.picture import decode
from onesided.storage.names import printable
from tests.data.image_files import gradient, tiff_bytes, write_png

SCENARIOS: tuple[Scenario, ...] = ("single-set", "case-control")


def fill(folder: Path, seeds: range, shape: tuple[int, ...] = (8, 8, 3)) -> Path:
    for seed in seeds:
        write_png(folder / f"{seed}.png", seed, shape)
    return folder


@pytest.fixture
def positives(tmp_path: Path) -> Path:
    return fill(tmp_path / "damaged", range(4))


@pytest.fixture
def unlabelled(tmp_path: Path) -> Path:
    return fill(tmp_path / "buildings", range(10, 17))


def test_two_folders_become_positives_and_unlabelled(positives: Path, unlabelled: Path) -> None:
    read = read_folders(positives, unlabelled)
    assert read.samples.classes.tolist() == [POSITIVE] * 4 + [UNKNOWN] * 7
    assert read.labelled.tolist() == [True] * 4 + [False] * 7
    assert read.samples.class_names == ("negative", "positive")
    assert read.duplicates == 0
    assert read.notices == ()
    np.testing.assert_array_equal(read.samples.values[4], decode(unlabelled / "10.png"))


def test_names_start_with_the_folders_own_name(positives: Path, unlabelled: Path) -> None:
    write_png(unlabelled / "a" / "b.png", seed=99)
    names = read_folders(positives, unlabelled).samples.names
    assert names[0] == "damaged/0.png"
    assert names[-1] == "buildings/a/b.png"


def test_the_current_folder_is_called_by_its_name(
    positives: Path, unlabelled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(unlabelled)
    names = read_folders(Path("../damaged/"), Path(".")).samples.names
    assert names[0] == "damaged/0.png"
    assert names[-1] == "buildings/16.png"


def test_folders_of_one_name_are_distinguished_by_their_role(tmp_path: Path) -> None:
    first = fill(tmp_path / "a" / "images", range(3))
    second = fill(tmp_path / "b" / "images", range(3, 6))
    third = fill(tmp_path / "positive", range(6, 8))
    names = read_folders(first, second, third).samples.names
    assert names[0] == "positive/images/0.png"
    assert names[3] == "unlabelled/images/3.png"
    assert names[6] == "negative/positive/6.png"
    assert len(set(names)) == len(names)


def test_known_negatives_are_neither_positive_nor_unlabelled(
    tmp_path: Path, positives: Path, unlabelled: Path
) -> None:
    read = read_folders(positives, unlabelled, fill(tmp_path / "intact", range(20, 23)))
    assert read.samples.classes.tolist() == [POSITIVE] * 4 + [UNKNOWN] * 7 + [NEGATIVE] * 3
    assert read.labelled.sum() == 4


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_positive_that_is_also_unlabelled_is_counted_and_treated_as_the_scenario_says(
    positives: Path, unlabelled: Path, scenario: Scenario
) -> None:
    shutil.copy(positives / "1.png", unlabelled / "0_copy.png")
    shutil.copy(positives / "3.png", unlabelled / "16_copy.png")
    read = read_folders(positives, unlabelled, scenario=scenario)
    assert read.duplicates == 2
    (notice,) = read.notices
    assert "2 unlabelled files are also among the positives" in notice
    copies = [name for name in read.samples.names if "copy" in name]
    if scenario == "case-control":
        assert len(copies) == 2
        assert len(read.samples) == 13
        assert "they stay" in notice
    else:
        assert copies == []
        assert len(read.samples) == 11
        assert "dropped" in notice
    for name, values in zip(read.samples.names, read.samples.values, strict=True):
        np.testing.assert_array_equal(values, decode(positives.parent / name))


def test_only_content_makes_a_duplicate_and_not_the_name(positives: Path, unlabelled: Path) -> None:
    write_png(unlabelled / "0.png", seed=77)
    assert read_folders(positives, unlabelled).duplicates == 0


def test_positives_may_lie_inside_the_unlabelled_folder(tmp_path: Path) -> None:
    everything = fill(tmp_path / "all", range(6))
    marked = fill(everything / "marked", range(10, 13))
    read = read_folders(marked, everything)
    assert read.duplicates == 3
    assert read.labelled.sum() == 3
    assert len(read.samples) == 9


def test_a_negative_that_is_also_unlabelled_is_dropped_from_a_single_set(
    tmp_path: Path, positives: Path, unlabelled: Path
) -> None:
    negatives = fill(tmp_path / "intact", range(20, 23))
    shutil.copy(negatives / "20.png", unlabelled)
    single = read_folders(positives, unlabelled, negatives)
    assert (len(single.samples), single.duplicates) == (14, 0)
    assert "among the negatives" in single.notices[0]
    both = read_folders(positives, unlabelled, negatives, scenario="case-control")
    assert len(both.samples) == 15


def test_content_that_is_positive_and_negative_is_a_contradiction(
    tmp_path: Path, positives: Path, unlabelled: Path
) -> None:
    negatives = fill(tmp_path / "intact", range(20, 23))
    shutil.copy(positives / "2.png", negatives)
    with pytest.raises(DataError, match=r"both positive and negative.*damaged/2\.png"):
        read_folders(positives, unlabelled, negatives)


def test_repeats_within_a_folder_stay(positives: Path, unlabelled: Path) -> None:
    shutil.copy(positives / "1.png", positives / "again.png")
    shutil.copy(unlabelled / "10.png", unlabelled / "again.png")
    shutil.copy(unlabelled / "10.png", unlabelled / "once more.png")
    read = read_folders(positives, unlabelled)
    assert len(read.samples) == 14
    assert read.duplicates == 0


def test_an_unlabelled_image_that_was_encoded_again_from_a_positive_one_is_dropped(
    positives: Path, unlabelled: Path
) -> None:
    Image.open(positives / "1.png").save(unlabelled / "again.bmp")
    read = read_folders(positives, unlabelled)
    assert read.duplicates == 1
    assert not any("again" in name for name in read.samples.names)


def test_the_same_folder_twice_leaves_nothing_unlabelled(positives: Path) -> None:
    with pytest.raises(DataError, match="same folder given twice"):
        read_folders(positives, positives)


def test_lost_positives_do_not_hide_behind_a_large_pool(tmp_path: Path, positives: Path) -> None:
    unlabelled = fill(tmp_path / "buildings", range(10, 60))
    (positives / "1.png").write_text("broken")
    with pytest.raises(DataError, match=r"1 of 4 images in .*damaged cannot be read"):
        read_folders(positives, unlabelled)
    read = read_folders(positives, unlabelled, tolerate=0.25)
    assert read.samples.skipped[0][0] == "damaged/1.png"
    assert len(read.samples) == 53


def test_a_folder_without_a_readable_image_is_named(positives: Path, unlabelled: Path) -> None:
    for path in positives.iterdir():
        path.write_text("broken")
    with pytest.raises(DataNotFound, match=r"No readable image in .*damaged.*\.png, \.jpg"):
        read_folders(positives, unlabelled, tolerate=1.0)


@pytest.mark.parametrize("role", [0, 1, 2])
def test_a_missing_folder_is_named(tmp_path: Path, role: int) -> None:
    folders = [fill(tmp_path / f"folder{number}", range(number, number + 2)) for number in range(3)]
    folders[role] = tmp_path / "nowhere"
    with pytest.raises(DataNotFound, match="nowhere does not exist"):
        read_folders(*folders)


def test_size_is_chosen_from_both_folders_together(tmp_path: Path) -> None:
    positives = fill(tmp_path / "p", range(3), (30, 30, 3))
    unlabelled = fill(tmp_path / "u", range(3, 9), (100, 100, 3))
    assert read_folders(positives, unlabelled).samples.sample_shape == (3, 96, 96)
    assert read_folders(positives, unlabelled, size=(9, 7)).samples.sample_shape == (3, 9, 7)


def test_grey_positives_go_with_colour(tmp_path: Path, unlabelled: Path) -> None:
    read = read_folders(fill(tmp_path / "p", range(3), (8, 8)), unlabelled)
    assert read.samples.sample_shape == (3, 8, 8)
    assert "p/0.png" in read.notices[0]


def test_channels_must_agree_between_folders(positives: Path, unlabelled: Path) -> None:
    (positives / "radar.tif").write_bytes(tiff_bytes(gradient(8, 8, 6), extra=(0, 0, 0)))
    with pytest.raises(DataError, match=r"damaged/radar\.tif has 6 channels"):
        read_folders(positives, unlabelled)


def test_files_of_other_kinds_are_noticed(positives: Path, unlabelled: Path) -> None:
    (unlabelled / "photo.heic").touch()
    (notice,) = read_folders(positives, unlabelled).notices
    assert "buildings" in notice
    assert "1 .heic" in notice


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_names_survive_and_are_unique_whatever_the_files_are_called(
    positives: Path, unlabelled: Path, scenario: Scenario
) -> None:
    hostile = (b"\xff.png", b"\\xff.png", b"two\nlines.png", b"<b>,'\".png")
    for number, raw in enumerate(hostile):
        source = write_png(unlabelled / "x.png", seed=50 + number)
        os.rename(os.fsencode(source), os.fsencode(unlabelled) + b"/" + raw)
    with open(os.fsencode(unlabelled) + b"/\xfe.png", "wb"):
        pass
    read = read_folders(positives, unlabelled, tolerate=0.2, scenario=scenario)
    names = read.samples.names
    assert len(set(names)) == len(names) == 15
    assert {b"buildings/" + raw for raw in hostile} <= {os.fsencode(name) for name in names}
    assert len({printable(name).encode() for name in names}) == 15
    assert read.samples.skipped == ((r"buildings/\xfe.png", "is empty (0 bytes)"),)


def test_duplicates_are_dropped_from_a_file_of_pixels_too(
    tmp_path: Path, positives: Path, unlabelled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "WORTH_A_FILE", 0)
    negatives = fill(tmp_path / "intact", range(20, 23))
    shutil.copy(positives / "1.png", unlabelled / "0.png")
    shutil.copy(negatives / "21.png", unlabelled / "1.png")
    kept = DecodeCache(tmp_path / "cache")
    plain = read_folders(positives, unlabelled, negatives)
    for _ in range(2):
        mapped: OneSided = read_folders(positives, unlabelled, negatives, cache=kept)
        assert isinstance(mapped.samples.values, MappedImages)
        np.testing.assert_array_equal(mapped.samples.values, plain.samples.values)
        assert mapped.samples.names == plain.samples.names
        assert (mapped.duplicates, mapped.notices) == (1, plain.notices)
        assert len(mapped.samples) == 14


def test_class_folders_are_numbered_by_name(tmp_path: Path) -> None:
    fill(tmp_path / "labelled" / "positive" / "deep", range(3))
    fill(tmp_path / "labelled" / "negative", range(3, 5))
    fill(tmp_path / "labelled" / "Unclear", range(5, 6))
    fill(tmp_path / "labelled" / ".cache", range(6, 7))
    samples = read_class_folders(tmp_path / "labelled")
    assert samples.class_names == ("Unclear", "negative", "positive")
    assert samples.classes.tolist() == [0, 1, 1, 2, 2, 2]
    assert samples.names[0] == "labelled/Unclear/5.png"
    assert samples.names[-1] == "labelled/positive/deep/2.png"


def test_class_folders_take_size_and_channels_of_a_run(tmp_path: Path) -> None:
    fill(tmp_path / "a", range(2), (8, 8))
    fill(tmp_path / "b", range(2, 4), (8, 8))
    notices: list[str] = []
    samples = read_class_folders(tmp_path, size=(16, 16), channels=3, notify=notices.append)
    assert samples.sample_shape == (3, 16, 16)
    assert len(notices) == 1


def test_class_folders_keep_what_was_skipped(tmp_path: Path) -> None:
    fill(tmp_path / "a", range(12))
    fill(tmp_path / "b", range(12, 20))
    (tmp_path / "b" / "13.png").touch()
    (tmp_path / "b" / "13.png").write_bytes(b"")
    samples = read_class_folders(tmp_path)
    assert samples.skipped == ((f"{tmp_path.name}/b/13.png", "is empty (0 bytes)"),)
    assert samples.classes.tolist() == [0] * 12 + [1] * 7


def test_an_image_beside_the_class_folders_is_refused(tmp_path: Path) -> None:
    fill(tmp_path / "a", range(2))
    fill(tmp_path / "b", range(2, 4))
    write_png(tmp_path / "stray.png")
    with pytest.raises(DataError, match=r"stray\.png"):
        read_class_folders(tmp_path)


def test_one_class_folder_is_not_enough(tmp_path: Path) -> None:
    fill(tmp_path / "all" / "positive", range(2))
    fill(tmp_path / "all" / "negative", range(2, 4))
    with pytest.raises(DataError, match="at least two classes; there is only all"):
        read_class_folders(tmp_path)


def test_a_class_without_images_is_named(tmp_path: Path) -> None:
    fill(tmp_path / "a", range(2))
    (tmp_path / "b").mkdir()
    with pytest.raises(DataNotFound, match=f"{tmp_path.name}/b holds no image"):
        read_class_folders(tmp_path)


def test_a_class_without_readable_images_is_named(tmp_path: Path) -> None:
    fill(tmp_path / "a", range(2))
    fill(tmp_path / "b", range(2, 3))
    (tmp_path / "b" / "2.png").write_text("broken")
    with pytest.raises(DataNotFound, match=f"{tmp_path.name}/b"):
        read_class_folders(tmp_path, tolerate=0.5)
