from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

from onesided.core.errors import ConfigError, DataError
from onesided.metrics.calibration import ORDER, Calibration, PUCalibrator

PRIOR, GAP = 0.3, 2.0


def clouds(seed: int, *, easy: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, labels and the true probability of positive of each item.

    `easy` is by how much labelled positives score higher than others.
    """
    random = np.random.default_rng(seed)
    hidden = random.random(6000) < PRIOR
    seen = np.concatenate(
        [
            random.standard_normal(2000) + GAP + easy,
            random.standard_normal(6000) + GAP * hidden,
        ]
    )
    labels = (np.arange(8000) < 2000).astype(np.int64)
    probability = expit(GAP * seen - GAP**2 / 2 + np.log(PRIOR / (1 - PRIOR)))
    return expit(5 * seen - 3), labels, probability  # too sure, and shifted


def test_probabilities_of_overconfident_scores_become_the_true_ones() -> None:
    scores, labels, true = clouds(0)
    found = PUCalibrator(prior=PRIOR).fit(scores, labels).predict(scores)
    pool = labels == 0
    assert np.abs(found - true)[pool].mean() < 0.03 < np.abs(scores - true)[pool].mean()


def test_probabilities_keep_the_order_and_average_to_the_prior() -> None:
    scores, labels, _ = clouds(1)
    found = PUCalibrator(prior=PRIOR).fit(scores, labels).predict(scores)
    assert (np.diff(found[np.argsort(scores)]) >= 0).all()
    assert found[labels == 0].mean() == pytest.approx(PRIOR, rel=0.05)


def test_steps_are_the_ratio_of_the_shares_of_p_and_u() -> None:
    # One step below with 1 of 2 in P and 3 of 4 in U, one above with 1 and 1; and half an item of
    # P more below, and half an item of U more above.
    scores = np.array([0.2, 0.2, 0.2, 0.2, 0.8, 0.8])
    labels = np.array([1, 0, 0, 0, 1, 0])
    found = PUCalibrator(prior=0.4).fit(scores, labels).predict(np.array([0.2, 0.8]))
    assert found == pytest.approx([0.4 * (1.5 / 2.5) / (3 / 4.5), 0.4 * (1 / 2.5) / (1.5 / 4.5)])


def test_a_prior_that_the_scores_contradict_gives_no_probabilities() -> None:
    scores, labels, _ = clouds(2)
    with pytest.raises(DataError, match="prior is too high, or P is not typical"):
        PUCalibrator(prior=0.8).fit(scores, labels)


def test_answers_calibrate_also_where_p_is_not_typical() -> None:
    scores, labels, true = clouds(3, easy=1.5)
    random = np.random.default_rng(0)
    pool = np.flatnonzero(labels == 0)
    asked = random.permutation(pool)[:1500]
    answers = (random.random(1500) < true[asked]).astype(np.int64)
    found = PUCalibrator().fit_answers(scores[asked], answers).predict(scores[pool])
    assert np.abs(found - true[pool]).mean() < 0.05


def test_weights_undo_an_uneven_draw() -> None:
    scores, classes = np.full(4, 0.5), np.array([1, 1, 1, 0])
    found = PUCalibrator().fit_answers(scores, classes, np.array([1.0, 1.0, 1.0, 9.0]))
    assert found.predict(scores[:1])[0] == pytest.approx(0.25)


def test_a_few_answers_that_are_alike_do_not_say_always_or_never() -> None:
    scores = np.array([0.1, 0.2, 0.3, 0.8, 0.9])
    weights = np.array([4.0, 4.0, 4.0, 1.0, 1.0])
    found = PUCalibrator().fit_answers(scores, np.array([0, 0, 0, 1, 1]), weights)
    lowest, highest = found.predict(np.array([0.0, 1.0]))
    assert highest == pytest.approx(2 / 2.5)
    assert lowest == pytest.approx(2 / 14)


def test_what_cannot_be_calibrated_is_refused() -> None:
    scores, labels, _ = clouds(4)
    with pytest.raises(ConfigError, match="needs a prior"):
        PUCalibrator().fit(scores, labels)
    with pytest.raises(DataError, match="both P"):
        PUCalibrator(prior=0.3).fit(scores, np.ones(8000, dtype=np.int64))
    with pytest.raises(DataError, match="and no others"):
        PUCalibrator().fit_answers(scores, -labels)
    with pytest.raises(DataError, match="NaN"):
        PUCalibrator(prior=0.3).fit(np.where(scores > 0.5, np.nan, scores), labels)


def test_scikit_learn_can_clone_it() -> None:
    assert clone(PUCalibrator(prior=0.2)).prior == 0.2


@dataclass
class Block:
    scores: list[float]
    p: float = 0.0
    u: float = 0.0


def slow_ratio(scores: np.ndarray, labels: np.ndarray, prior: float) -> list[float]:
    """Return probabilities by pooling neighbours that fall, one pair at a time."""
    blocks = [Block([score]) for score in sorted(set(scores.tolist()))]
    for block in blocks:
        here = scores == block.scores[0]
        block.p, block.u = float((labels[here] == 1).sum()), float((labels[here] == 0).sum())
    blocks[0].p += 0.5
    blocks[-1].u += 0.5
    p_all, u_all = sum(block.p for block in blocks), sum(block.u for block in blocks)
    place = 0
    while place < len(blocks) - 1:
        one, other = blocks[place], blocks[place + 1]
        if one.p * (other.p + other.u) < other.p * (one.p + one.u):
            place += 1
            continue
        blocks[place : place + 2] = [
            Block(one.scores + other.scores, one.p + other.p, one.u + other.u)
        ]
        place = 0
    value: dict[float, float] = {}
    for block in blocks:
        ratio = np.inf if block.u == 0 else (block.p / p_all) / (block.u / u_all)
        value |= dict.fromkeys(block.scores, min(1.0, prior * ratio))
    return [value[score] for score in scores.tolist()]


@pytest.mark.parametrize("seed", range(5))
def test_probabilities_equal_those_of_a_slow_version(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = (np.arange(90) < 30).astype(np.int64)
    scores = np.round(expit(random.standard_normal(90) + 1.5 * (np.arange(90) < 60)), 2)
    found = PUCalibrator(prior=0.2).fit(scores, labels).predict(scores)
    np.testing.assert_allclose(found, slow_ratio(scores, labels, 0.2), atol=1e-12)


def test_plain_numbers_give_the_same_probabilities_in_the_strict_order_of_scores() -> None:
    scores, labels, _ = clouds(5)
    calibrator = PUCalibrator(prior=PRIOR).fit(scores, labels)
    curve = calibrator.calibration("prior")
    again = Calibration.from_settings(curve.model_dump(mode="json"))
    found = again.of(scores)
    assert np.abs(found - calibrator.predict(scores)).max() <= ORDER
    ranked = np.unique(scores)
    assert (np.diff(again.of(ranked)) > 0).all()
    assert 0 < found.min() < found.max() < 1


@pytest.mark.parametrize(
    ("scores", "probabilities", "words"),
    [
        ([0.1, 0.2], [0.5], "one probability for each"),
        ([0.2, 0.1], [0.1, 0.2], "rise"),
        ([0.1, 0.2], [0.2, 0.1], "do not fall"),
        ([0.1, 1.2], [0.1, 0.2], "from 0 to 1"),
        ([], [], "scores"),
    ],
)
def test_a_curve_that_nobody_could_have_fitted_is_refused(
    scores: list[float], probabilities: list[float], words: str
) -> None:
    content = {"scores": scores, "probabilities": probabilities, "basis": "prior"}
    with pytest.raises(ConfigError, match=words):
        Calibration.from_settings(content)
