import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from onesided.core.errors import ConfigError, DataError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.problem.dataset import PUSplit, Selection
from onesided.methods import METHODS
from onesided.run.config import data_config
from onesided.run.load import (
    STATISTICS_ROWS,
    LoadedData,
    channel_statistics,
    load_data,
    stored_path,
)
from onesided.run.problem import negatives_for_evaluation, training_split
from tests.data.image_files import noise, write_png


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for number in range(20):
        write_png(tmp_path / "P" / f"{number}.png", seed=number)
        write_png(tmp_path / "U" / f"{number}.png", seed=100 + number)
    return tmp_path


def loaded(root: Path, **settings: object) -> LoadedData:
    paths = {"positive_folder": str(root / "P"), "unlabelled_folder": str(root / "U")}
    return load_data(data_config({"name": "folders", **paths, **settings}, "test"))


@pytest.mark.parametrize("shape", [(50, 3, 4, 5), (50, 1, 4, 4)])
def test_statistics_are_those_of_every_channel_from_0_to_1(shape: tuple[int, ...]) -> None:
    images = noise(0, *shape)
    mean, std = channel_statistics(Selection(images, np.arange(50)))
    for channel in range(shape[1]):
        values = images[:, channel].astype(float).ravel() / 255
        assert mean[channel] == pytest.approx(values.mean())
        assert std[channel] == pytest.approx(values.std())


def test_statistics_of_features_keep_their_scale() -> None:
    values = np.random.default_rng(0).normal(7, 3, (40, 2)).astype(np.float32)
    mean, std = channel_statistics(Selection(values, np.arange(10, 40)))
    np.testing.assert_allclose(mean, values[10:].mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(std, values[10:].std(axis=0), rtol=1e-6)


def test_statistics_of_many_rows_come_from_rows_all_over_the_set() -> None:
    values = np.arange(10 * STATISTICS_ROWS, dtype=np.float32)[:, None]
    (mean,), (std,) = channel_statistics(Selection(values, np.arange(len(values))))
    assert mean == pytest.approx(values.mean(), rel=1e-3)
    assert std == pytest.approx(values.std(), rel=1e-3)


def test_folders_become_a_split_with_a_held_out_part(folders: Path) -> None:
    data = loaded(folders, held_out=0.25)
    assert data.split.held_out is not None
    assert (len(data.split.train), len(data.split.held_out)) == (30, 10)
    assert data.split.test is None
    assert data.known_negatives is None
    assert len(data.mean) == len(data.std) == 3


def test_known_negatives_are_kept_apart_from_training(folders: Path) -> None:
    for number in range(7):
        write_png(folders / "N" / f"{number}.png", seed=200 + number)
    data = loaded(folders, negative_folder=str(folders / "N"))
    negatives = data.known_negatives
    assert negatives is not None
    assert (len(negatives.train), len(negatives.held_out)) == (6, 1)
    assert not [name for _, name in data.split.roles() if name.startswith("N/")]
    for part in (negatives.train, negatives.held_out):
        for name, value in zip(part.names, part.values.take(slice(None)), strict=True):
            assert (value == np.asarray(Image.open(folders / name)).transpose(2, 0, 1)).all()


def negative_rows(split: PUSplit) -> list[str]:
    mask = split.train.negative
    return [] if mask is None else [split.train.names[row] for row in np.flatnonzero(mask)]


def test_a_method_is_trained_on_known_negatives_only_if_it_uses_them(folders: Path) -> None:
    for number in range(10):
        write_png(folders / "N" / f"{number}.png", seed=200 + number)
    data = loaded(folders, negative_folder=str(folders / "N"))
    assert data.known_negatives is not None
    for name, config in METHODS.items():
        settings = config.from_settings({})
        split, unseen = training_split(data, settings), negatives_for_evaluation(data, settings)
        assert unseen is not None
        if not config.uses_negatives:
            assert split is data.split, name
            assert len(unseen) == 10
        else:
            assert unseen.names == data.known_negatives.held_out.names
            used = [*negative_rows(split), *(split.clean.names if split.clean else ())]
            assert not set(used) & set(unseen.names)
            assert set(data.known_negatives.train.names) <= set(used)


def test_lagam_gets_its_clean_set_from_known_negatives_and_as_many_positives(
    folders: Path,
) -> None:
    for number in range(5):
        write_png(folders / "N" / f"{number}.png", seed=200 + number)
    data = loaded(folders, negative_folder=str(folders / "N"))
    split = training_split(data, METHODS["lagam"].from_settings({}))
    assert split.clean is not None
    assert split.clean.truth.tolist() == [POSITIVE] * 4 + [NEGATIVE] * 4
    assert [name[0] for name in split.clean.names] == ["P"] * 4 + ["N"] * 4
    assert not set(split.clean.names) & set(split.train.names)
    assert split.train.labelled.sum() == 16 - 4
    assert negative_rows(split) == []


def test_a_test_folder_is_brought_to_the_size_and_channels_of_training(folders: Path) -> None:
    for number in range(4):
        write_png(folders / "T" / "positive" / f"{number}.png", 300 + number, (16, 16))
        write_png(folders / "T" / "negative" / f"{number}.png", 400 + number)
    (folders / "T" / "negative" / "broken.png").write_bytes(b"")
    data = loaded(folders, test_folder=str(folders / "T"), tolerate=0.2)
    assert data.split.test is not None
    assert data.split.test.values.sample_shape == data.split.sample_shape == (3, 8, 8)
    words = [name.split("/")[1] for name in data.split.test.names]
    assert data.split.test.truth.tolist() == [
        POSITIVE if word == "positive" else NEGATIVE for word in words
    ]
    assert [name for name, _ in data.skipped] == ["T/negative/broken.png"]
    assert any("4 of 8 images are grey" in notice for notice in data.notices)


def test_a_test_folder_holds_positive_and_negative(folders: Path) -> None:
    write_png(folders / "T" / "yes" / "a.png")
    write_png(folders / "T" / "no" / "b.png")
    with pytest.raises(DataError, match="`positive` and `negative`; it holds no, yes"):
        loaded(folders, test_folder=str(folders / "T"))


def test_test_images_do_not_go_with_a_table_of_numbers(tmp_path: Path) -> None:
    rows = [f"{word},{number}" for word in ("positive", "unlabelled") for number in range(12)]
    (tmp_path / "numbers.csv").write_text("\n".join(["label,x", *rows]))
    settings = {"name": "table", "table": str(tmp_path / "numbers.csv")}
    assert load_data(data_config(settings, "test")).split.sample_shape == (1,)
    with pytest.raises(ConfigError, match="takes image folders"):
        load_data(data_config({**settings, "test_folder": str(tmp_path)}, "test"))


def test_the_size_can_be_given(folders: Path) -> None:
    assert loaded(folders, image_size=12).split.sample_shape == (3, 12, 12)


@pytest.mark.parametrize("name", ["folders", "table"])
def test_own_data_without_a_path_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"-p .* -u|--table"):
        load_data(data_config({"name": name}, "test"))


def test_an_embedded_set_is_split_as_its_numbers_say() -> None:
    config = data_config({"name": "digits", "positives": 50, "unlabelled": 200}, "test")
    split = load_data(config).split
    assert (int(split.train.labelled.sum()), int((~split.train.labelled).sum())) == (50, 200)


def test_a_path_means_the_file_that_is_there(tmp_path: Path) -> None:
    plain, escaped, odd = tmp_path / "a\\\\b", tmp_path / "c\\xff", tmp_path / "c\udcff"
    plain.mkdir()
    assert stored_path(str(plain)) == plain
    assert stored_path(str(tmp_path / "missing\\xff")) == tmp_path / "missing\\xff"
    try:
        odd.mkdir()
    except OSError:
        pytest.skip("this file system allows no names outside UTF-8")
    assert stored_path(str(escaped)) == odd
    escaped.mkdir()
    assert stored_path(str(escaped)) == escaped
    assert os.path.isdir(odd)
