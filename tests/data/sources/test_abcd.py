import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from onesided.core.errors import ConfigError, DataError, DataNotFound
from onesided.data.problem.split import SplitRecipe, split_source
from onesided.data.sources import SOURCES
from onesided.data.sources.abcd import CLASS_NAMES, inspect_abcd, load_abcd
from tests.geo.fakes import FakePairs, write_abcd


def pairs_in(root: Path, *, pairs: int = 20) -> FakePairs:
    return write_abcd(root, seed=0, pairs=pairs)


def test_all_six_channels_are_read_before_and_after(tmp_path: Path) -> None:
    fake = pairs_in(tmp_path)
    train = load_abcd(tmp_path).train
    assert train.sample_shape == (6, 128, 128)
    np.testing.assert_array_equal(train.values, fake.pixels)
    assert train.names == tuple(building.name for building in fake.buildings)
    assert train.kind == "remote"


def test_classes_come_from_the_lists_and_1_is_washed_away(tmp_path: Path) -> None:
    fake = pairs_in(tmp_path)
    train = load_abcd(tmp_path).train
    assert train.class_names == ("surviving", "washed-away")
    assert train.classes.tolist() == [int(building.damaged) for building in fake.buildings]


def test_the_damage_is_in_the_channels_after_and_not_in_those_before(tmp_path: Path) -> None:
    pairs_in(tmp_path, pairs=40)
    train = load_abcd(tmp_path).train
    middle = train.values[:, :, 56:72, 56:72].astype(float)
    before, after = middle[:, :3].mean(axis=(1, 2, 3)), middle[:, 3:].mean(axis=(1, 2, 3))
    assert roc_auc_score(train.classes, -after) > 0.95
    assert 0.2 < roc_auc_score(train.classes, -before) < 0.8


def test_pairs_sorted_into_class_folders_are_read_as_well(tmp_path: Path) -> None:
    fake = write_abcd(tmp_path, seed=0, pairs=12, layout="classes")
    train = load_abcd(tmp_path).train
    damaged = [building.name for building in fake.buildings if building.damaged]
    washed_away = np.array(train.names)[train.classes == 1]
    assert washed_away.tolist() == [f"washed-away/{name}" for name in damaged]
    assert len(train) == 12
    assert train.groups == {}


@pytest.mark.parametrize("place", [".", "ABCDdataset", "ABCDdataset/resized"])
def test_the_root_may_be_any_of_the_folders_on_the_way(place: str, tmp_path: Path) -> None:
    pairs_in(tmp_path)
    assert len(load_abcd(tmp_path / place).train) == 20


def test_whole_folds_of_the_publisher_can_be_held_out(tmp_path: Path) -> None:
    fake = pairs_in(tmp_path, pairs=60)
    source, entry = load_abcd(tmp_path), SOURCES["abcd"]
    assert source.train.groups["fold"].tolist() == list(fake.fold)
    recipe = SplitRecipe(
        positive_classes=entry.positive_classes,
        positives=10,
        unlabelled=10,
        prior=0.4,
        grouping="fold",
    )
    split = split_source(source, recipe)
    assert split.test is not None
    fold_of = dict(zip(source.train.names, fake.fold, strict=True))
    tested = {fold_of[name] for name in split.test.names}
    assert len(tested) == 2, "two folds of five are 40 %"
    assert not tested & {fold_of[name] for name in split.train.names}


def test_without_lists_there_are_no_folds_to_hold_out(tmp_path: Path) -> None:
    write_abcd(tmp_path, seed=0, pairs=40, layout="classes")
    recipe = SplitRecipe(
        positive_classes=(1,), positives=10, unlabelled=10, prior=0.4, grouping="fold"
    )
    with pytest.raises(ConfigError, match=r"no such groups\. Leave"):
        split_source(load_abcd(tmp_path), recipe)


def test_the_papers_numbers_are_the_defaults() -> None:
    entry = SOURCES["abcd"]
    assert (entry.positives, entry.unlabelled, entry.prior) == (300, 4000, 0.5)
    assert (entry.held_out_positives, entry.held_out_unlabelled) == (30, 400)
    assert [CLASS_NAMES[index] for index in entry.positive_classes] == ["washed-away"]
    mean = [119.9391, 114.9877, 103.1147, 140.6345, 142.3115, 130.3468]
    std = [69.6637, 66.0012, 65.2355, 35.8397, 32.8773, 33.7203]
    np.testing.assert_allclose(255 * np.array(entry.mean), mean)
    np.testing.assert_allclose(255 * np.array(entry.std), std)


def test_a_missing_or_damaged_pair_is_skipped_and_reported(tmp_path: Path) -> None:
    fake = pairs_in(tmp_path, pairs=60)
    (fake.folder / "patch-pairs" / "patch-pair_3.tif").unlink()
    (fake.folder / "patch-pairs" / "patch-pair_7.tif").write_bytes(b"II*\0")
    train = load_abcd(tmp_path).train
    assert len(train) == len(train.groups["fold"]) == 58
    assert [name for name, _ in train.skipped] == ["patch-pair_3.tif", "patch-pair_7.tif"]
    assert "does not exist" in train.skipped[0][1]
    fold_of = dict(zip((b.name for b in fake.buildings), fake.fold, strict=True))
    assert train.groups["fold"].tolist() == [fold_of[name] for name in train.names]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text + "../../secret.tif,1\n", r"line 5 is '\.\./\.\./secret\.tif,1'"),
        (lambda text: text + "patch-pair_1.tif,2\n", "line 5 is"),
        (lambda text: text + "patch-pair_1.tif\n", "line 5 is"),
        (lambda text: text.replace(",1", ",0"), "contradicts another list"),
    ],
)
def test_lists_that_cannot_be_are_refused(
    spoil: Callable[[str], str], message: str, tmp_path: Path
) -> None:
    fake = pairs_in(tmp_path)
    path = fake.folder / "5fold-list" / "cv2-test.csv"
    path.write_text(spoil(path.read_text()))
    with pytest.raises(DataError, match=message):
        load_abcd(tmp_path)


def test_a_pair_that_two_folds_test_on_is_refused(tmp_path: Path) -> None:
    lists = pairs_in(tmp_path).folder / "5fold-list"
    (lists / "cv2-test.csv").write_text((lists / "cv1-test.csv").read_text())
    with pytest.raises(DataError, match="and so does another list"):
        load_abcd(tmp_path)


def test_missing_files_are_named_with_where_to_get_them(tmp_path: Path) -> None:
    for root in (None, tmp_path):
        with pytest.raises(DataNotFound, match=r"https://github\.com/gistairc/ABCDdataset"):
            load_abcd(root)


def test_a_check_reports_which_pairs_are_missing(tmp_path: Path) -> None:
    assert [status.state for status in inspect_abcd(tmp_path)] == ["missing"]
    fake = pairs_in(tmp_path)
    gone = fake.folder / "patch-pairs" / "patch-pair_3.tif"
    gone.unlink()
    statuses = inspect_abcd(tmp_path)
    assert len(statuses) == 20
    assert [status.path for status in statuses if status.state == "missing"] == [gone]


def test_the_published_pairs_are_read() -> None:
    root = Path(os.environ.get("ONESIDED_DATA", "ONESIDED_DATA is not set"))
    if any(status.state == "missing" for status in inspect_abcd(root)):
        pytest.skip(
            "ABCD is not there: get it from https://github.com/gistairc/ABCDdataset, unpack it "
            "in DATA, and set ONESIDED_DATA=DATA"
        )
    train = load_abcd(root).train
    assert len(train) == 8444
    assert int((train.classes == 1).sum()) == 4223
