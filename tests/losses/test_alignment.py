import itertools
import math
from typing import Protocol, get_args

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from onesided.losses.alignment import (
    Bound,
    SelfPair,
    class_alignment_loss,
    predicted_pairs,
    robust_alignment_loss,
    same_class_pairs,
    self_alignment_loss,
)

BOUNDS: tuple[Bound, ...] = get_args(Bound)
SELF_PAIRS: tuple[SelfPair, ...] = get_args(SelfPair)
MARGIN = 1e-4

QUERY = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64)
KEY = torch.tensor([[0.8, 0.6], [0.0, 1.0]], dtype=torch.float64)
ALL_PAIRS = torch.ones(2, 2, dtype=torch.bool)
THREE_PAIRS = torch.tensor([[True, False], [True, True]])

COSINES = st.floats(-0.999, 0.999)
SCALES = st.floats(0.05, 20)


class AlignmentLoss(Protocol):
    def __call__(self, query: Tensor, key: Tensor, same_class: Tensor) -> Tensor: ...


def bare_robust_loss(query: Tensor, key: Tensor, same_class: Tensor) -> Tensor:
    """Eq. 7 without a bound, as the paper's derivations have it."""
    return robust_alignment_loss(query, key, same_class, bound="none")


def random_batch(rows: int = 6, dim: int = 5, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings of any length and sign, and a mask with the self pairs in it."""
    generator = torch.Generator().manual_seed(seed)
    query, key = torch.randn(2, rows, dim, generator=generator, dtype=torch.float64)
    mask = torch.rand(rows, rows, generator=generator) < 0.5
    return query, key, mask | torch.eye(rows, dtype=torch.bool)


def unit(vector: list[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]


def kept_inside(value: float) -> float:
    return min(max(value, MARGIN), 1 - MARGIN)


def loop_loss(
    query: Tensor, key: Tensor, same_class: Tensor, *, bound: Bound, self_pair: SelfPair
) -> float:
    """Eq. 7 and the last term of Eq. 14, pair by pair."""
    rows = len(query)
    total = 0.0
    for i in range(rows):
        costs = []
        for j in range(rows):
            if not same_class[i, j]:
                continue
            q, k = unit(query[i].tolist()), unit(key[j].tolist())
            if bound == "coordinate":
                q, k = [kept_inside(value) for value in q], [kept_inside(value) for value in k]
            cosine = sum(a * b for a, b in zip(q, k, strict=True))
            if bound == "similarity":
                cosine = kept_inside(cosine)
            plain = i == j and self_pair == "plain"
            costs.append(2 * (1 - cosine) if plain else 2 * math.sqrt(1 - cosine))
        total += sum(costs) / len(costs)
    return total / rows


def pair(cosine: float, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """One query of length `scale` and one key, at this cosine, off the axes."""
    first, second = torch.tensor([[2.0, 1.0, 2.0], [1.0, 2.0, -2.0]], dtype=torch.float64) / 3
    key = cosine * first + math.sqrt(1 - cosine**2) * second
    return (scale * first)[None].requires_grad_(), key[None]


def pull(loss: AlignmentLoss, cosine: float, scale: float = 1.0) -> float:
    """Length of the gradient that a pair at this cosine exerts on its query."""
    query, key = pair(cosine, scale)
    (gradient,) = torch.autograd.grad(loss(query, key, torch.ones(1, 1).bool()), query)
    return math.sqrt(gradient.square().sum().item())


# values


def test_plain_and_robust_loss_of_two_samples_all_paired() -> None:
    assert class_alignment_loss(QUERY, KEY, ALL_PAIRS).item() == pytest.approx(0.72, abs=1e-12)
    robust = bare_robust_loss(QUERY, KEY, ALL_PAIRS).item()
    assert robust == pytest.approx(1.0472135955, abs=1e-10)


def test_plain_and_robust_loss_of_two_samples_in_three_pairs() -> None:
    assert class_alignment_loss(QUERY, KEY, THREE_PAIRS).item() == pytest.approx(0.32, abs=1e-12)
    robust = bare_robust_loss(QUERY, KEY, THREE_PAIRS).item()
    assert robust == pytest.approx(0.7708203932, abs=1e-10)


def test_released_form_of_two_samples_all_paired() -> None:
    loss = robust_alignment_loss(QUERY, KEY, ALL_PAIRS, bound="coordinate", self_pair="plain")
    assert loss.item() == pytest.approx(0.7999700025, abs=1e-10)


@pytest.mark.parametrize("same_class", [None, ALL_PAIRS, THREE_PAIRS])
def test_self_loss_uses_self_pairs_only(same_class: Tensor | None) -> None:
    assert self_alignment_loss(QUERY, KEY, same_class).item() == pytest.approx(0.4, abs=1e-12)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("self_pair", SELF_PAIRS)
@pytest.mark.parametrize("seed", range(3))
def test_robust_loss_is_equation_7_written_as_loops(
    bound: Bound, self_pair: SelfPair, seed: int
) -> None:
    batch = random_batch(seed=seed)
    fast = robust_alignment_loss(*batch, bound=bound, self_pair=self_pair).item()
    assert fast == pytest.approx(loop_loss(*batch, bound=bound, self_pair=self_pair), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_class_loss_is_equation_5_written_as_loops(seed: int) -> None:
    query, key, same_class = random_batch(seed=seed)
    total = 0.0
    for i, chosen in enumerate(same_class.tolist()):
        costs = [
            2 * (1 - sum(a * b for a, b in zip(unit(query[i].tolist()), k, strict=True)))
            for j, k in enumerate(unit(row) for row in key.tolist())
            if chosen[j]
        ]
        total += sum(costs) / len(costs) / len(query)
    assert class_alignment_loss(query, key, same_class).item() == pytest.approx(total, abs=1e-12)


def test_with_self_pairs_only_the_class_loss_is_the_self_loss() -> None:
    query, key, _ = random_batch()
    only_self = torch.eye(len(query), dtype=torch.bool)
    torch.testing.assert_close(
        class_alignment_loss(query, key, only_self), self_alignment_loss(query, key)
    )


def test_by_default_the_similarity_is_bounded_and_self_pairs_are_like_all_others() -> None:
    batch = random_batch()
    expected = loop_loss(*batch, bound="similarity", self_pair="root")
    assert robust_alignment_loss(*batch).item() == pytest.approx(expected, abs=1e-12)


def test_a_query_without_a_partner_is_not_passed_over_in_silence() -> None:
    lonely = torch.tensor([[True, True], [False, False]])
    assert class_alignment_loss(QUERY, KEY, lonely).isnan()
    assert robust_alignment_loss(QUERY, KEY, lonely).isnan()


# what does not matter


@pytest.mark.parametrize(
    "loss", [self_alignment_loss, class_alignment_loss, robust_alignment_loss, bare_robust_loss]
)
@given(query_scale=SCALES, key_scale=SCALES)
def test_the_length_of_embeddings_does_not_matter(
    loss: AlignmentLoss, query_scale: float, key_scale: float
) -> None:
    query, key, same_class = random_batch()
    torch.testing.assert_close(
        loss(query_scale * query, key_scale * key, same_class), loss(query, key, same_class)
    )


@pytest.mark.parametrize(
    "loss", [self_alignment_loss, class_alignment_loss, robust_alignment_loss, bare_robust_loss]
)
@given(seed=st.integers(0, 1000))
def test_a_common_rotation_does_not_matter(loss: AlignmentLoss, seed: int) -> None:
    query, key, same_class = random_batch()
    rotation = random_rotation(5, seed)
    torch.testing.assert_close(
        loss(query @ rotation, key @ rotation, same_class), loss(query, key, same_class)
    )


def random_rotation(dim: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    square = torch.randn(dim, dim, generator=generator, dtype=torch.float64)
    rotation: Tensor = torch.linalg.qr(square).Q
    return rotation


def test_the_released_bound_alone_depends_on_the_axes() -> None:
    query, key, same_class = random_batch()
    rotation = random_rotation(5, seed=0)
    turned = robust_alignment_loss(query @ rotation, key @ rotation, same_class, bound="coordinate")
    straight = robust_alignment_loss(query, key, same_class, bound="coordinate")
    assert abs(turned - straight) > 1e-3


# Eq. 6 and 8: how hard a pair pulls


@pytest.mark.parametrize(
    ("cosine", "plain", "robust"), [(-0.5, 3, 0.5), (0, 4, 1), (0.5, 3, 1.5), (0.9, 0.76, 1.9)]
)
def test_squared_pull_at_four_cosines(cosine: float, plain: float, robust: float) -> None:
    assert pull(class_alignment_loss, cosine) ** 2 == pytest.approx(plain, abs=1e-10)
    assert pull(bare_robust_loss, cosine) ** 2 == pytest.approx(robust, abs=1e-10)


@given(cosine=COSINES, scale=SCALES)
def test_pull_of_the_plain_loss_follows_equation_6(cosine: float, scale: float) -> None:
    expected = 4 * (1 - cosine**2) / scale**2
    assert pull(class_alignment_loss, cosine, scale) ** 2 == pytest.approx(expected, rel=1e-9)


@given(cosine=COSINES, scale=SCALES)
def test_pull_of_the_robust_loss_follows_equation_8(cosine: float, scale: float) -> None:
    expected = (1 + cosine) / scale**2
    assert pull(bare_robust_loss, cosine, scale) ** 2 == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("robust", [bare_robust_loss, robust_alignment_loss])
@given(noisy=st.floats(0.001, 0.95), clean=st.floats(0.001, 0.999))
def test_the_square_root_turns_around_who_pulls_harder(
    robust: AlignmentLoss, noisy: float, clean: float
) -> None:
    assume(noisy < clean - 1e-3)
    assert pull(class_alignment_loss, noisy) > pull(class_alignment_loss, clean)
    assert pull(robust, noisy) < pull(robust, clean)


def pull_on_shared_query(loss: AlignmentLoss) -> tuple[float, float]:
    """Pull of a clean and of a noisy key on the one query that is paired with both.

    The clean key leans from the query into the second axis, the noisy one into the
    third, so the gradient shows the two apart.
    """
    clean, noisy = 0.95, 0.05
    query = torch.eye(3, dtype=torch.float64).requires_grad_()
    key = torch.tensor(
        [
            [1.0, 0.0, 0.0],
            [clean, math.sqrt(1 - clean**2), 0.0],
            [noisy, 0.0, math.sqrt(1 - noisy**2)],
        ],
        dtype=torch.float64,
    )
    pairs = torch.tensor([[False, True, True], [False, True, False], [False, False, True]])
    (gradient,) = torch.autograd.grad(loss(query, key, pairs), query)
    return abs(gradient[0, 1].item()), abs(gradient[0, 2].item())


def test_in_one_batch_the_noisy_partner_dominates_the_plain_loss() -> None:
    clean, noisy = pull_on_shared_query(class_alignment_loss)
    assert noisy > 3 * clean


@pytest.mark.parametrize("robust", [bare_robust_loss, robust_alignment_loss])
def test_in_one_batch_the_clean_partner_dominates_the_robust_loss(robust: AlignmentLoss) -> None:
    clean, noisy = pull_on_shared_query(robust)
    assert clean > 1.3 * noisy


# the inequality that the paper's bound on the likelihood rests on


def pair_cost(loss: AlignmentLoss, cosine: float) -> float:
    query, key = pair(cosine)
    return loss(query, key, torch.ones(1, 1, dtype=torch.bool)).item()


@given(cosine=st.floats(0, 1))
def test_for_cosines_from_zero_on_robust_is_above_plain(cosine: float) -> None:
    plain, robust = pair_cost(class_alignment_loss, cosine), pair_cost(bare_robust_loss, cosine)
    assert robust >= plain - 1e-12


@given(cosine=st.floats(-1, -1e-3))
def test_for_negative_cosines_the_inequality_is_false(cosine: float) -> None:
    assert pair_cost(bare_robust_loss, cosine) < pair_cost(class_alignment_loss, cosine)


def test_at_minus_one_half_the_plain_loss_is_3_and_the_robust_one_2_449() -> None:
    assert pair_cost(bare_robust_loss, -0.5) == pytest.approx(2.449489743, abs=1e-9)
    assert pair_cost(class_alignment_loss, -0.5) == pytest.approx(3, abs=1e-12)


@given(cosine=st.floats(-1, 1))
def test_on_the_bounded_similarity_it_holds_everywhere(cosine: float) -> None:
    plain = 2 * (1 - kept_inside(cosine))
    assert pair_cost(robust_alignment_loss, cosine) >= plain - 1e-12


@given(cosine=st.floats(-1, -1e-6))
def test_bounded_pairs_of_negative_cosine_do_not_pull(cosine: float) -> None:
    assert pull(robust_alignment_loss, cosine) == 0


@given(cosine=st.floats(0.001, 0.999))
def test_inside_the_bound_the_pull_is_that_of_the_bare_formula(cosine: float) -> None:
    assert pull(robust_alignment_loss, cosine) == pytest.approx(pull(bare_robust_loss, cosine))


# limits


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("self_pair", SELF_PAIRS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_identical_embeddings_give_finite_numbers_and_a_modest_gradient(
    bound: Bound, self_pair: SelfPair, dtype: torch.dtype
) -> None:
    # Wide and positive: here clamped coordinates give cosines above 1.
    row = torch.cat([torch.ones(8, dtype=dtype), torch.zeros(504, dtype=dtype)])
    query = row.repeat(4, 1).requires_grad_()
    # The other pairs are masked out; they must not leak 0 * infinity either.
    same_class = torch.eye(4, dtype=torch.bool)
    loss = robust_alignment_loss(
        query, row.repeat(4, 1), same_class, bound=bound, self_pair=self_pair
    )
    (gradient,) = torch.autograd.grad(loss, query)
    assert 0 <= loss.item() <= 2 * math.sqrt(MARGIN) + 1e-6
    assert gradient.square().sum() < 100


def test_at_cosine_one_the_plain_formula_has_no_cost_and_no_gradient() -> None:
    query = torch.eye(3, dtype=torch.float64).requires_grad_()
    loss = bare_robust_loss(query, torch.eye(3, dtype=torch.float64), torch.eye(3).bool())
    (gradient,) = torch.autograd.grad(loss, query)
    assert loss.item() == pytest.approx(0, abs=1e-100)
    assert gradient.abs().max() == 0


def test_opposite_embeddings_cost_the_most() -> None:
    query, _, same_class = random_batch()
    only_self = torch.eye(len(query), dtype=torch.bool)
    assert self_alignment_loss(query, -query).item() == pytest.approx(4)
    assert bare_robust_loss(query, -query, only_self).item() == pytest.approx(2 * math.sqrt(2))
    bounded = robust_alignment_loss(query, -query, only_self).item()
    assert bounded == pytest.approx(2 * math.sqrt(1 - MARGIN))
    assert class_alignment_loss(query, -query, same_class).item() <= 4


def test_a_margin_of_zero_is_still_finite() -> None:
    query = torch.eye(3, dtype=torch.float64).requires_grad_()
    loss = robust_alignment_loss(
        query, torch.eye(3, dtype=torch.float64), torch.ones(3, 3).bool(), margin=0.0
    )
    (gradient,) = torch.autograd.grad(loss, query)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("self_pair", SELF_PAIRS)
def test_the_gradient_is_the_derivative(bound: Bound, self_pair: SelfPair) -> None:
    query, key, same_class = random_batch()

    def loss(query: Tensor, key: Tensor) -> Tensor:
        return robust_alignment_loss(query, key, same_class, bound=bound, self_pair=self_pair)

    assert torch.autograd.gradcheck(loss, (query.requires_grad_(), key.requires_grad_()))


def angle_after_descent(loss: AlignmentLoss) -> float:
    """Degrees between the first axis and where five queries come to rest.

    Each is paired with three clean keys on the first axis and two noisy ones on the second.
    """
    first, second = torch.eye(2, dtype=torch.float64)
    key = torch.stack([first, first, first, second, second])
    query = torch.tensor([[0.8, 0.6]], dtype=torch.float64).repeat(5, 1).requires_grad_()
    for _ in range(400):
        (gradient,) = torch.autograd.grad(loss(query, key, torch.ones(5, 5).bool()), query)
        query = (query - 0.2 * gradient).detach().requires_grad_()
    return math.degrees(math.atan2(abs(query[0, 1].item()), query[0, 0].item()))


def test_a_mislabelled_minority_bends_the_plain_loss_and_not_the_robust_one() -> None:
    # The plain loss ends at the mean of the keys, the robust one at their median.
    plain = angle_after_descent(class_alignment_loss)
    assert plain == pytest.approx(math.degrees(math.atan2(2, 3)), abs=1)
    assert angle_after_descent(robust_alignment_loss) < 5


# who is paired with whom


def two_columns(positive: Tensor) -> Tensor:
    return torch.stack([1 - positive, positive], dim=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [1e-6, 1e-3, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(5))
def test_at_one_half_pairs_are_those_with_the_same_predicted_class(
    dtype: torch.dtype, spread: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(512, 2, generator=generator, dtype=dtype)
    probabilities = logits.softmax(dim=1)
    decided = probabilities[:, 0] != probabilities[:, 1]
    probabilities = probabilities[decided]
    assert len(probabilities) > 100
    predicted = probabilities.argmax(dim=1)
    assert same_class_pairs(probabilities).equal(predicted[:, None] == predicted)


def test_pairs_by_prediction_are_those_of_one_argmax_and_a_tie_is_negative() -> None:
    p_positive = torch.tensor([0.5, 0.9, 0.1, 0.6])
    pairs = predicted_pairs(two_columns(p_positive))
    predicted = [p > 0.5 for p in p_positive.tolist()]
    assert pairs.tolist() == [[one == other for other in predicted] for one in predicted]


@given(st.lists(st.floats(0.001, 0.999).filter(lambda p: p != 0.5), min_size=1, max_size=8))
def test_without_ties_both_rules_of_pairs_agree_at_one_half(p_positive: list[float]) -> None:
    probabilities = two_columns(torch.tensor(p_positive, dtype=torch.float64))
    assert predicted_pairs(probabilities).equal(same_class_pairs(probabilities))


def test_rounding_does_not_pair_opposite_classes() -> None:
    # In float32 the product of these rows is 0.5 to the last digit, yet the classes differ.
    probabilities = two_columns(torch.tensor([0.5 + 1e-7, 0.5 - 1e-7]))
    assert (probabilities[0] @ probabilities[1]).item() == 0.5
    assert same_class_pairs(probabilities).tolist() == [[True, False], [False, True]]


def test_a_sample_on_the_fence_pairs_with_both_sides() -> None:
    pairs = same_class_pairs(two_columns(torch.tensor([0.5, 0.9, 0.1])))
    assert pairs.tolist() == [[True, True, True], [True, True, False], [True, False, True]]


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.sampled_from([0.0, 0.2, 0.5, 0.7, 0.9, 1.0]),
)
def test_pairs_agree_with_the_product_of_probabilities(
    positive: list[float], threshold: float
) -> None:
    pairs = same_class_pairs(
        two_columns(torch.tensor(positive, dtype=torch.float64)), threshold=threshold
    )
    for (i, a), (j, b) in itertools.product(enumerate(positive), repeat=2):
        agreement = a * b + (1 - a) * (1 - b)
        if i == j:
            assert pairs[i, j]
        elif abs(agreement - threshold) > 1e-12:
            assert pairs[i, j].item() == (agreement >= threshold)


def test_a_lower_threshold_admits_unsure_pairs_of_opposite_classes() -> None:
    probabilities = two_columns(torch.tensor([0.7, 0.3, 0.99], dtype=torch.float64))
    assert same_class_pairs(probabilities, threshold=0.2)[0].tolist() == [True, True, True]
    assert same_class_pairs(probabilities, threshold=0.5)[0].tolist() == [True, False, True]
    assert same_class_pairs(probabilities, threshold=0.7)[0].tolist() == [True, False, False]


def test_an_unsure_sample_is_still_paired_with_itself() -> None:
    pairs = same_class_pairs(two_columns(torch.full((3,), 0.5)), threshold=0.9)
    assert pairs.equal(torch.eye(3, dtype=torch.bool))
