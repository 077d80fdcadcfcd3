from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from onesided.data.problem.dataset import PUSplit, Selection
from onesided.engine.predict import Predictor
from onesided.run.config import data_config
from onesided.run.gallery import GROUP_SIZE, numbers_in_words, save_report_data, thumbnails
from onesided.run.load import load_data
from tests.data.image_files import noise
from tests.run.test_rank import describe


@pytest.fixture(scope="module")
def split() -> PUSplit:
    return load_data(data_config({"name": "toy-images"}, "test")).split


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return Predictor(describe().build(), torch.device("cpu"))


@pytest.fixture(scope="module")
def arrays(
    split: PUSplit, predictor: Predictor, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, np.ndarray]:
    """What was saved for the report; t-SNE takes seconds, so once."""
    path = tmp_path_factory.mktemp("gallery") / "report.npz"
    assert split.held_out is not None
    scores, held_out = (predictor.scores(p.values) for p in (split.train, split.held_out))
    save_report_data(path, split, scores, held_out, predictor)
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def test_groups_show_the_extremes_of_the_unlabelled_and_doubted_positives(
    arrays: dict[str, np.ndarray], split: PUSplit, predictor: Predictor
) -> None:
    labelled = split.train.labelled
    scores = predictor.scores(split.train.values)
    unlabelled, positive = np.sort(scores[~labelled]), np.sort(scores[labelled])
    expected = {
        "top": unlabelled[::-1][:GROUP_SIZE],
        "bottom": unlabelled[:GROUP_SIZE],
        "doubted": positive[:GROUP_SIZE],
    }
    for group, values in expected.items():
        np.testing.assert_array_equal(arrays[f"{group}_scores"], values)
        assert arrays[f"{group}_images"].shape == (GROUP_SIZE, 8, 8, 3)
    distance = np.abs(arrays["threshold_scores"] - 0.5)
    assert distance.max() <= np.sort(np.abs(unlabelled - 0.5))[GROUP_SIZE - 1]


def test_names_belong_to_their_images(arrays: dict[str, np.ndarray], split: PUSplit) -> None:
    for name, image in zip(arrays["top_names"], arrays["top_images"], strict=True):
        row = split.train.names.index(str(name))
        expected = split.train.values.take(np.array([row]))[0]
        np.testing.assert_array_equal(image, expected.transpose(1, 2, 0))


def test_the_map_has_a_point_and_a_role_for_each_row(
    arrays: dict[str, np.ndarray], split: PUSplit
) -> None:
    assert arrays["embedding"].shape == (len(split.train), 2)
    assert np.isfinite(arrays["embedding"]).all()
    np.testing.assert_array_equal(arrays["embedding_role"] == 1, split.train.labelled)


@pytest.mark.parametrize("weight", [0.0, float("inf")])
def test_a_collapsed_network_gets_pictures_and_no_map(
    split: PUSplit, tmp_path: Path, weight: float
) -> None:
    # All features equal, or none a number: t-SNE divides by their spread, and crashes Python.
    method = describe().build()
    assert isinstance(method, nn.Module)
    with torch.no_grad():
        for parameter in method.parameters():
            parameter.fill_(weight)
    scores = np.full(len(split.train), 0.5)
    predictor = Predictor(method, torch.device("cpu"))
    save_report_data(tmp_path / "report.npz", split, scores, None, predictor)
    with np.load(tmp_path / "report.npz", allow_pickle=False) as archive:
        assert "top_images" in archive.files
        assert "embedding" not in archive.files


def test_vectors_are_listed_with_their_first_numbers_and_names() -> None:
    values = Selection(np.arange(16, dtype=np.float32).reshape(2, 8) / 4, np.arange(2))
    names = [f"column{place}" for place in range(8)]
    (shown,) = numbers_in_words(values, np.array([1]), names)
    assert shown.startswith("column0 2, column1 2.25, ")
    assert "column5 3.25, …" in shown
    assert "column6" not in shown
    (plain,) = numbers_in_words(values, np.array([0]), ())
    assert plain == "0, 0.25, 0.5, 0.75, 1, 1.25, …"


@pytest.mark.parametrize(
    ("channels", "shown"), [(1, [0]), (2, [0]), (3, [0, 1, 2]), (5, [0, 1, 2])]
)
def test_thumbnails_are_grey_or_of_the_first_three_channels(
    channels: int, shown: list[int]
) -> None:
    images = noise(0, 5, channels, 4, 6)
    pictures = thumbnails(Selection(images, np.arange(5)), np.array([3, 1]))
    np.testing.assert_array_equal(pictures, images[[3, 1]][:, shown].transpose(0, 2, 3, 1))


def test_of_images_before_and_after_an_event_the_one_after_is_shown() -> None:
    images = noise(0, 5, 6, 4, 6)
    pictures = thumbnails(Selection(images, np.arange(5)), np.array([2]))
    np.testing.assert_array_equal(pictures, images[[2]][:, 3:].transpose(0, 2, 3, 1))
