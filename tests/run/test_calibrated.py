"""From a run's scores to probabilities: where there are some, and why there are none elsewhere."""

from dataclasses import replace

import numpy as np
import pytest

from onesided.metrics.figure import PUEvaluation
from onesided.metrics.typical import Typical
from onesided.run.calibrated import Calibrated, calibrate
from onesided.run.columns import columns_of, numbers_of
from onesided.run.prior import PriorUsed
from onesided.run.scored import Scored
from onesided.run.typical import without_probabilities

SOUND = PUEvaluation({}, None, ())
PRIOR = PriorUsed(0.4, 0.3, 0.5, "given")


def scored(positives: int = 60, unlabelled: int = 300) -> Scored:
    """Return out-of-fold scores, of which four in ten of U are like those of P."""
    random = np.random.default_rng(0)
    labelled = np.arange(positives + unlabelled) < positives
    positive = labelled | (np.arange(positives + unlabelled) % 10 < 4)
    high, low = random.beta(4, 2, len(labelled)), random.beta(2, 5, len(labelled))
    return Scored(
        train=np.where(positive, high, low),
        train_labelled=labelled,
        fold=np.arange(len(labelled)) % 3,
    )


def test_out_of_fold_scores_and_a_prior_give_probabilities_that_average_to_it() -> None:
    found = calibrate(scored(), PRIOR, SOUND)
    assert found.curve is not None
    probabilities = found.curve.of(scored().unlabelled)
    assert probabilities.mean() == pytest.approx(0.4, rel=0.15)
    assert "the prior 0.400 (95 % interval 0.300 to 0.500)" in found.explained
    assert found.to_json()["basis"] == "prior"


@pytest.mark.parametrize(
    ("scores", "prior", "evaluation", "reason"),
    [
        (replace(scored(), fold=None), PRIOR, SOUND, "a method by name scores items"),
        (scored(positives=19), PRIOR, SOUND, "20 different positives .* there are 19 and 300"),
        (scored(), None, SOUND, "the prior. was not given and cannot be estimated"),
        (scored(), PriorUsed(0.4, 0.1, 0.61, "given"), SOUND, "the prior cannot be told"),
        (scored(), PRIOR, PUEvaluation({}, "It is bad.", ()), "does not separate"),
        (scored(), PriorUsed(0.95, None, None, "given"), SOUND, "prior is too high, or P is not"),
    ],
)
def test_where_there_are_none_a_sentence_says_why(
    scores: Scored, prior: PriorUsed | None, evaluation: PUEvaluation, reason: str
) -> None:
    found = calibrate(scores, prior, evaluation)
    assert found.curve is None
    assert found.to_json()["basis"] is None
    assert found.explained.startswith("There are no probabilities")
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(found.explained)


def test_a_p_that_is_not_typical_gives_none() -> None:
    found = calibrate(scored(), PRIOR, SOUND)
    kept = without_probabilities(found, Typical(0.2, {8: 0.9}))
    assert kept is found
    none = without_probabilities(found, Typical(0.001, {8: 0.9}))
    assert none.curve is None
    assert "they rest on a typical P. P is not typical" in none.explained


def test_the_column_is_there_only_where_there_is_a_curve() -> None:
    curve = calibrate(scored(), PRIOR, SOUND).curve
    assert columns_of(None) == ("item", "score", "rank", "decision")
    assert columns_of(curve) == ("item", "score", "probability", "rank", "decision")
    assert numbers_of(0.25, None) == ("0.25",)
    score, probability = numbers_of(0.9, curve)
    assert score == "0.9"
    assert 0.5 < float(probability) < 1
    assert Calibrated(None, "x").to_json() == {"basis": None, "explained": "x", "reliability": None}
