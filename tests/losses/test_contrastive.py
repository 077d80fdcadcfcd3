"""Contrastive losses against loops over pairs, hand numbers, and what must not change them."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from onesided.losses.contrastive import (
    SpectralContrast,
    instance_contrastive_loss,
    nearest_in_pool,
    own_key,
    spectral_contrast,
    supervised_contrastive_loss,
)

QUERY = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
KEY = torch.tensor([[0.8, 0.6], [0.6, 0.8]], dtype=torch.float64)
QUEUE = torch.tensor([[-1.0, 0.0], [0.0, -1.0]], dtype=torch.float64)


def units(count: int, seed: int, width: int = 5) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(count, width, generator=draw, dtype=torch.float64), dim=1)


def slow_supervised(anchor: Tensor, others: Tensor, positive: Tensor, temperature: float) -> float:
    pool = [*anchor, *others]
    costs = []
    for i, q in enumerate(anchor):
        against = sum(math.exp(float(q @ a) / temperature) for j, a in enumerate(pool) if j != i)
        wanted = [j for j in range(len(pool)) if positive[i, j] and j != i]
        each = [math.log(against) - float(q @ pool[j]) / temperature for j in wanted]
        costs.append(sum(each) / len(each) if each else 0.0)
    return sum(costs) / len(costs)


def test_supervised_contrast_gives_the_number_computed_by_hand() -> None:
    labels = torch.tensor([0, 1])
    pool = torch.tensor([0, 1, 0, 1, 0, 1])
    loss = supervised_contrastive_loss(
        QUERY, torch.cat([KEY, QUEUE]), labels[:, None] == pool[None, :], temperature=0.5
    )
    assert float(loss) == pytest.approx(2.54262130, abs=1e-8)
    # exp(0) + exp(1.6) + exp(1.2) + exp(-2) + exp(0), on either side
    against = math.log(2 + math.exp(1.6) + math.exp(1.2) + math.exp(-2))
    assert against == pytest.approx(2.34262130, abs=1e-8)


def test_instance_contrast_gives_the_number_computed_by_hand() -> None:
    loss = instance_contrastive_loss(QUERY, KEY, QUEUE, temperature=0.5)
    assert float(loss) == pytest.approx(0.20638002, abs=1e-8)


def test_instance_and_group_terms_give_the_numbers_computed_by_hand() -> None:
    instance = supervised_contrastive_loss(QUERY, KEY, own_key(QUERY), temperature=0.5)
    together = torch.ones(2, 4, dtype=torch.bool)
    group = supervised_contrastive_loss(QUERY, KEY, together, temperature=0.5)
    assert float(instance) == pytest.approx(0.62712306, abs=1e-8)
    assert float(group) == pytest.approx(1.29378972, abs=1e-8)
    assert float(instance + group) == pytest.approx(1.92091278, abs=1e-8)


def test_in_a_cluster_of_its_own_a_sample_has_only_its_key() -> None:
    apart = torch.eye(2, dtype=torch.bool).repeat(1, 2)
    group = supervised_contrastive_loss(QUERY, KEY, apart, temperature=0.5)
    instance = supervised_contrastive_loss(QUERY, KEY, own_key(QUERY), temperature=0.5)
    assert float(group) == float(instance)


@pytest.mark.parametrize("temperature", [0.07, 0.5, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_supervised_contrast_equals_the_loop_over_pairs(temperature: float, seed: int) -> None:
    anchor, others = units(4, seed), units(7, 50 + seed)
    draw = torch.Generator().manual_seed(seed)
    positive = torch.rand(4, 11, generator=draw) < 0.4
    loss = supervised_contrastive_loss(anchor, others, positive, temperature=temperature)
    assert float(loss) == pytest.approx(slow_supervised(anchor, others, positive, temperature))


def test_whether_an_anchor_calls_itself_positive_makes_no_difference() -> None:
    anchor, others = units(3, 0), units(3, 1)
    positive = torch.zeros(3, 6, dtype=torch.bool)
    positive[:, 4] = True
    calling = positive.clone()
    calling[torch.arange(3), torch.arange(3)] = True
    plain, selfish = (
        supervised_contrastive_loss(anchor, others, pairs, temperature=0.1)
        for pairs in (positive, calling)
    )
    assert float(plain) == float(selfish)


def test_an_anchor_without_positives_costs_nothing_and_has_no_gradient() -> None:
    anchor = units(3, 0).requires_grad_()
    none = torch.zeros(3, 6, dtype=torch.bool)
    loss = supervised_contrastive_loss(anchor, units(3, 1), none, temperature=0.1)
    (gradient,) = torch.autograd.grad(loss, anchor)
    assert float(loss.detach()) == 0
    assert not gradient.any()


def test_other_anchors_of_the_pool_are_moved_too() -> None:
    anchor = units(2, 0).requires_grad_()
    only_first = torch.tensor([[False, True, False], [False, False, False]])
    loss = supervised_contrastive_loss(anchor, units(1, 1), only_first, temperature=0.5)
    (gradient,) = torch.autograd.grad(loss, anchor)
    assert gradient[1].any(), "the second anchor has no positives, but it is one"


def test_contrast_is_finite_at_a_temperature_where_exponentials_overflow() -> None:
    anchor = units(4, 0).float().requires_grad_()
    loss = supervised_contrastive_loss(
        anchor, units(4, 1).float(), own_key(anchor), temperature=1e-3
    )
    (gradient,) = torch.autograd.grad(loss, anchor)
    assert torch.isfinite(loss)
    assert torch.isfinite(gradient).all()


def test_contrast_falls_as_a_key_approaches_its_query() -> None:
    costs = []
    for angle in (1.5, 1.0, 0.5, 0.0):
        key = torch.tensor([[math.cos(angle), math.sin(angle)]], dtype=torch.float64)
        costs.append(float(instance_contrastive_loss(QUERY[:1], key, QUEUE, temperature=0.5)))
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("count", [0, 1, 3, 50])
def test_neighbours_are_the_closest_of_the_pool_without_the_sample_itself(count: int) -> None:
    anchor, others = units(4, 3), units(5, 4)
    found = nearest_in_pool(anchor, others, count=count)
    pool = torch.cat([anchor, others])
    for i in range(4):
        order = sorted((j for j in range(9) if j != i), key=lambda j: -float(anchor[i] @ pool[j]))
        assert found[i].nonzero()[:, 0].tolist() == sorted(order[:count])


def hand_example(**weights: float) -> SpectralContrast:
    belief = torch.tensor([[0.9, 0.1], [0.2, 0.8]], dtype=torch.float64)
    return spectral_contrast(QUERY, KEY, belief @ belief.T, **weights)


def test_spectral_contrast_gives_the_numbers_computed_by_hand() -> None:
    parts = hand_example(view_weight=1.0, class_weight=12.0, repulsion_weight=3.0)
    assert float(parts.views) == pytest.approx(-1.6)
    assert float(parts.classes) == pytest.approx(-3.2448)
    assert float(parts.repulsion) == pytest.approx(71.5792)
    assert float(parts.total) == pytest.approx(66.7344)


def test_without_classes_it_is_plain_spectral_contrast() -> None:
    parts = hand_example(view_weight=1.0, class_weight=0.0, repulsion_weight=1.0)
    assert float(parts.classes) == 0
    assert float(parts.total) == pytest.approx(-1.11306667, abs=1e-8)


def random_spectral(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    belief = (4 * units(6, 20 + seed, width=2)).softmax(dim=1)
    return units(6, seed), units(6, 10 + seed), belief @ belief.T


WEIGHTS = {"view_weight": 0.7, "class_weight": 3.0, "repulsion_weight": 1.3}


def test_spectral_contrast_equals_the_loop_over_pairs() -> None:
    first, second, same = random_spectral()
    batch, both = 6, torch.cat([first, second])
    classes = repulsion = 0.0
    for i in range(batch):
        for j in range(batch):
            if i != j:
                pulled = first[i] @ second[j] + first[i] @ first[j] + second[i] @ second[j]
                classes += float(same[i, j] * pulled)
    for a in range(2 * batch):
        for b in range(2 * batch):
            if a != b:
                repulsion += float(both[a] @ both[b]) ** 2
    views = sum(float(first[i] @ second[i]) for i in range(batch)) / batch
    expected = (
        -2 * 0.7 * views
        - 2 * 3.0 / 3 * classes / (batch * (batch - 1))
        + 1.3 * (0.7 + 3.0 / 2) ** 2 * repulsion / (2 * batch * (2 * batch - 1))
    )
    assert float(spectral_contrast(first, second, same, **WEIGHTS).total) == pytest.approx(expected)


@pytest.mark.parametrize("change", ["permuted", "swapped", "rotated"])
def test_spectral_contrast_does_not_notice(change: str) -> None:
    first, second, same = random_spectral()
    plain = spectral_contrast(first, second, same, **WEIGHTS).total
    if change == "permuted":
        order = torch.tensor([3, 1, 5, 0, 2, 4])
        first, second, same = first[order], second[order], same[order][:, order]
    elif change == "swapped":
        first, second = second, first
    else:
        turn, _ = torch.linalg.qr(torch.randn(5, 5, generator=torch.Generator().manual_seed(9)))
        first, second = first @ turn.double(), second @ turn.double()
    changed = spectral_contrast(first, second, same, **WEIGHTS).total
    assert float(changed) == pytest.approx(float(plain), abs=1e-6)


def pull_at(cosine: float, **weights: float) -> float:
    """Return the contrast of one big class whose members all have this cosine."""
    count = 300
    members = (1 - cosine) ** 0.5 * torch.eye(count, count + 1, dtype=torch.float64)
    members[:, -1] = cosine**0.5
    same = torch.ones(count, count, dtype=torch.float64)
    parts = spectral_contrast(members, members, same, **weights)
    return float(parts.classes + parts.repulsion)


def test_the_weights_for_ten_classes_repel_two_classes_beyond_a_small_cosine() -> None:
    weights = {"view_weight": 1.0, "class_weight": 12.0, "repulsion_weight": 3.0}
    assert pytest.approx(0.826, abs=5e-4) == 12 / (3 * (1 + 12 / 10) ** 2)
    assert pytest.approx(0.0816, abs=5e-5) == 12 / (3 * (1 + 12 / 2) ** 2)
    grid = [step / 500 for step in range(1, 250)]
    assert min(grid, key=lambda s: pull_at(s, **weights)) == pytest.approx(0.0816, abs=2e-3)


def test_the_binary_weights_attract_a_class_all_the_way() -> None:
    weights = {"view_weight": 0.5, "class_weight": 1.0, "repulsion_weight": 1.0}
    costs = [pull_at(s, **weights) for s in (0.1, 0.4, 0.7, 0.99)]
    assert costs == sorted(costs, reverse=True)


def test_weights_of_anchors_multiply_their_part_of_the_mean() -> None:
    anchor, others = units(4, 0), units(7, 1)
    positive = torch.rand(4, 11, generator=torch.Generator().manual_seed(2)) < 0.4
    weight = torch.tensor([0.5, 0.1, 0.0, 2.0], dtype=torch.float64)

    def loss(of: Tensor) -> float:
        return float(
            supervised_contrastive_loss(anchor, others, positive, temperature=0.5, weight=of)
        )

    each = [loss(row) for row in torch.eye(4, dtype=torch.float64)]
    assert loss(weight) == pytest.approx(float(weight @ torch.tensor(each).double()))
    assert sum(each) == pytest.approx(slow_supervised(anchor, others, positive, 0.5))
