"""The EM section of the NcPU paper (Eq. 15-19), checked by numbers; docs/theory.md names each test.

g(x) are unit vectors, S_c the samples predicted as c, nu_c their mean, n all samples. R and R~ are
the means of the plain and of the robust loss over all pairs of one predicted class; key = query.
"""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.stats import vonmises_fisher
from torch import Tensor

from onesided.losses.alignment import class_alignment_loss, predicted_pairs, robust_alignment_loss
from onesided.losses.classification import mean_entropy

SEEDS = st.integers(0, 10_000)


def unit_vectors(seed: int, *, rows: int = 12, dim: int = 3, shift: float = 0.0) -> Tensor:
    """Return g(x); a large shift makes all of them point into one direction."""
    draw = torch.Generator().manual_seed(seed)
    raw = torch.randn(rows, dim, generator=draw, dtype=torch.float64)
    return F.normalize(raw + shift, dim=1)


def some_of_both(seed: int, rows: int = 12) -> Tensor:
    """Return predicted classes, some of each."""
    draw = torch.Generator().manual_seed(seed + 1)
    predicted = torch.randint(0, 2, (rows,), generator=draw)
    predicted[:2] = torch.tensor([0, 1])
    return predicted


def pairs_of(predicted: Tensor) -> Tensor:
    return predicted_pairs(F.one_hot(predicted, 2).double())


def centres(vectors: Tensor, predicted: Tensor) -> list[tuple[int, Tensor]]:
    """Return size and mean of each cluster that has members."""
    groups = [vectors[predicted == label] for label in (0, 1)]
    return [(len(group), group.mean(dim=0)) for group in groups if len(group)]


def lower(vectors: Tensor, predicted: Tensor) -> float:
    """Return L_1 of the theorem."""
    return sum(size / len(vectors) * float(nu @ nu) for size, nu in centres(vectors, predicted))


def upper(vectors: Tensor, predicted: Tensor) -> float:
    """Return L_2 of the theorem."""
    return sum(size / len(vectors) * float(nu.norm()) for size, nu in centres(vectors, predicted))


def plain_risk(vectors: Tensor, predicted: Tensor) -> float:
    return float(class_alignment_loss(vectors, vectors, pairs_of(predicted)))


def robust_risk(vectors: Tensor, predicted: Tensor) -> float:
    pairs = pairs_of(predicted)
    return float(robust_alignment_loss(vectors, vectors, pairs, bound="none"))


@given(joint=st.tuples(*[st.floats(0.01, 1)] * 2), share=st.floats(0.01, 0.99))
def test_any_assignment_bounds_the_likelihood_and_the_posterior_reaches_it(
    joint: tuple[float, float], share: float
) -> None:
    def bound(q: tuple[float, float]) -> float:
        return sum(w * math.log(p / w) for w, p in zip(q, joint, strict=True))

    likelihood = math.log(sum(joint))
    assert bound((share, 1 - share)) <= likelihood + 1e-12
    posterior = (joint[0] / sum(joint), joint[1] / sum(joint))
    assert bound(posterior) == pytest.approx(likelihood, abs=1e-12)


@given(joint=st.tuples(*[st.floats(0.01, 1)] * 2))
def test_a_hard_assignment_loses_up_to_log_two(joint: tuple[float, float]) -> None:
    posterior = max(joint) / sum(joint)
    lost = math.log(sum(joint)) - math.log(max(joint))
    assert lost == pytest.approx(-math.log(posterior), abs=1e-12)
    assert 0 <= lost <= math.log(2) + 1e-12


@given(st.floats(0.5, 0.999), st.floats(0.5, 0.999))
def test_the_surer_the_posterior_the_smaller_entropy_and_loss(one: float, other: float) -> None:
    def entropy(p: float) -> float:
        logits = torch.tensor([[math.log(p), math.log(1 - p)]], dtype=torch.float64)
        return float(mean_entropy(logits))

    less, more = sorted((one, other))
    assume(more - less > 1e-6)
    assert entropy(more) < entropy(less)
    assert -math.log(more) < -math.log(less)


@given(SEEDS)
def test_the_plain_risk_is_the_spread_of_each_cluster_around_its_mean(seed: int) -> None:
    vectors, predicted = unit_vectors(seed), some_of_both(seed)
    spread = 0.0
    for label in (0, 1):
        group = vectors[predicted == label]
        spread += sum(float((g - group.mean(dim=0)).square().sum()) for g in group)
    assert plain_risk(vectors, predicted) == pytest.approx(2 * spread / len(vectors), abs=1e-12)


def test_without_self_pairs_the_spread_is_only_approximate() -> None:
    vectors, predicted = unit_vectors(0), torch.zeros(12, dtype=torch.int64)
    others = pairs_of(predicted) & ~torch.eye(12, dtype=torch.bool)
    ratio = float(class_alignment_loss(vectors, vectors, others)) / plain_risk(vectors, predicted)
    assert ratio == pytest.approx(12 / 11)


@given(SEEDS)
def test_minimising_the_plain_risk_is_maximising_l1(seed: int) -> None:
    vectors, predicted = unit_vectors(seed), some_of_both(seed)
    risk = plain_risk(vectors, predicted)
    assert risk == pytest.approx(2 * (1 - lower(vectors, predicted)), abs=1e-12)


@given(SEEDS, st.integers(1, 20))
def test_maximising_the_likelihood_of_vmf_clusters_is_maximising_l2(
    seed: int, concentration: int
) -> None:
    vectors, predicted = unit_vectors(seed), some_of_both(seed)
    total = 0.0
    for label in (0, 1):
        group = vectors[predicted == label]
        direction = F.normalize(group.mean(dim=0), dim=0).numpy()
        total += float(vonmises_fisher(direction, concentration).logpdf(group.numpy()).sum())
    constant = math.log(concentration / (4 * math.pi * math.sinh(concentration)))  # c_3(kappa)
    expected = len(vectors) * (constant + concentration * upper(vectors, predicted))
    assert total == pytest.approx(expected, abs=1e-8)


@given(SEEDS)
def test_no_other_direction_of_a_cluster_is_more_likely_than_its_mean(seed: int) -> None:
    vectors = unit_vectors(seed)
    best = float((vectors @ F.normalize(vectors.mean(dim=0), dim=0)).sum())
    others = unit_vectors(seed + 7, rows=50)
    assert float((vectors @ others.T).sum(dim=0).max()) <= best + 1e-12


@given(SEEDS, st.floats(0, 30))
def test_l1_is_at_most_l2_and_at_most_a_quarter_below(seed: int, shift: float) -> None:
    vectors, predicted = unit_vectors(seed, shift=shift), some_of_both(seed)
    gap = upper(vectors, predicted) - lower(vectors, predicted)
    assert -1e-12 <= gap <= 0.25 + 1e-12


def test_the_bound_is_tight_for_concentrated_clusters_and_also_for_spread_ones() -> None:
    predicted = torch.tensor([0, 0, 1, 1])
    one_point = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]], dtype=torch.float64)
    opposite = torch.tensor([[1.0, 0], [-1, 0], [0, 1], [0, -1]], dtype=torch.float64)
    assert lower(one_point, predicted) == upper(one_point, predicted) == 1
    assert lower(opposite, predicted) == upper(opposite, predicted) == 0


def fan(length: float) -> list[list[float]]:
    """Return two unit vectors whose mean has this length."""
    height = math.sqrt(1 - length**2)
    return [[length, height], [length, -height]]


def test_a_larger_l1_can_mean_a_smaller_l2() -> None:
    predicted = torch.tensor([0, 0, 1, 1])
    uneven = torch.tensor([*fan(0.9), *fan(0.1)], dtype=torch.float64)
    even = torch.tensor([*fan(0.55), *fan(0.55)], dtype=torch.float64)
    assert lower(uneven, predicted) > lower(even, predicted)
    assert upper(uneven, predicted) < upper(even, predicted)


@given(SEEDS)
def test_without_negative_cosines_the_robust_risk_bounds_the_likelihood(seed: int) -> None:
    vectors, predicted = unit_vectors(seed).abs(), some_of_both(seed)
    robust, plain = robust_risk(vectors, predicted), plain_risk(vectors, predicted)
    assert robust >= plain - 1e-9
    assert 1 - robust / 2 <= lower(vectors, predicted) + 1e-9
    assert lower(vectors, predicted) <= upper(vectors, predicted) + 1e-12


def test_with_opposite_vectors_the_robust_risk_bounds_nothing() -> None:
    vectors = torch.tensor([[1.0, 0], [-1, 0]], dtype=torch.float64)
    predicted = torch.zeros(2, dtype=torch.int64)
    assert plain_risk(vectors, predicted) == 2
    assert robust_risk(vectors, predicted) == pytest.approx(math.sqrt(2))
    assert 1 - robust_risk(vectors, predicted) / 2 > upper(vectors, predicted) == 0


def pair_at(cosine: float) -> tuple[Tensor, Tensor, Tensor]:
    query = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    key = torch.tensor([[cosine, math.sqrt(1 - cosine**2)]], dtype=torch.float64)
    return query, key, torch.ones(1, 1, dtype=torch.bool)


@given(st.floats(-1, -1e-3))
@example(-0.5)
def test_a_bounded_similarity_does_not_bound_the_plain_loss_of_a_negative_cosine(
    cosine: float,
) -> None:
    pair = pair_at(cosine)
    bounded = float(robust_alignment_loss(*pair, bound="similarity"))
    assert bounded == pytest.approx(2, abs=1e-3)
    assert bounded < float(class_alignment_loss(*pair)) == pytest.approx(2 * (1 - cosine))


@given(SEEDS)
def test_assigning_each_sample_to_the_likelier_cluster_never_lowers_l2(seed: int) -> None:
    vectors, predicted = unit_vectors(seed), some_of_both(seed)
    directions = torch.stack([F.normalize(nu, dim=0) for _, nu in centres(vectors, predicted)])
    assigned = (vectors @ directions.T).argmax(dim=1)
    assert upper(vectors, assigned) >= upper(vectors, predicted) - 1e-12


def test_a_classifier_may_assign_otherwise_and_lower_l2() -> None:
    angles = np.radians([0, 10, 90, 100])
    vectors = torch.tensor(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    near, far = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])
    assert upper(vectors, far) < upper(vectors, near)
