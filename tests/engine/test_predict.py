"""Scores: probabilities in double precision, in row order, whatever the batch."""

import numpy as np
import pytest
import torch
from torch import Tensor

from onesided.core.errors import CheckpointError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.problem.dataset import Selection
from onesided.engine.predict import Predictor
from onesided.methods.base import GradientMethod

CPU = torch.device("cpu")


class Given(GradientMethod):
    """Takes the first feature as the logit of positive."""

    def classify(self, images: Tensor) -> Tensor:
        logits = torch.zeros(len(images), 2)
        logits[:, POSITIVE] = images[:, 0]
        return logits

    def embed(self, images: Tensor) -> Tensor:
        return images


def test_scores_are_the_sigmoid_of_the_margin_in_row_order() -> None:
    values = np.linspace(-3, 3, 1100, dtype=np.float32)[:, None]
    scores = Predictor(Given(), CPU).scores(values)
    assert np.allclose(scores, 1 / (1 + np.exp(-values[:, 0].astype(np.float64))))


def test_the_top_of_a_ranking_is_not_one_big_tie() -> None:
    values = np.array([[18.0], [19.0], [20.0]], dtype=np.float32)
    assert len(set(Predictor(Given(), CPU).scores(values).tolist())) == 3


def test_a_tie_at_the_threshold_is_negative() -> None:
    predictor = Predictor(Given(), CPU)
    scores = predictor.scores(np.array([[0.0], [0.1]], dtype=np.float32))
    assert predictor.decisions(scores).tolist() == [bool(NEGATIVE), bool(POSITIVE)]


def test_pictures_are_scaled_to_one() -> None:
    pictures = np.full((2, 1, 4, 4), 255, dtype=np.uint8)

    class Mean(Given):
        def classify(self, images: Tensor) -> Tensor:
            return super().classify(images.flatten(1).mean(dim=1, keepdim=True))

    scores = Predictor(Mean(), CPU).scores(Selection(pictures, np.array([1])))
    assert np.allclose(scores, 1 / (1 + np.exp(-1.0)))


def test_scoring_does_not_change_the_training_mode() -> None:
    method = Given().train()
    Predictor(method, CPU).scores(np.zeros((3, 1), dtype=np.float32))
    assert method.training


@pytest.mark.parametrize("number", [np.nan, -np.nan])
def test_a_model_that_gives_no_number_gives_no_decision_either(number: float) -> None:
    values = np.array([[0.5], [number], [1.0]], dtype=np.float32)
    with pytest.raises(CheckpointError, match="no numbers for 1 of 3 items"):
        Predictor(Given(), CPU).scores(values)
