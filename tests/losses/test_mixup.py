"""Mixup: how shares are drawn, and how two samples are mixed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onesided.core.errors import ConfigError
from onesided.core.rng import numpy_generator
from onesided.losses.mixup import draw_share, mix, partner, partner_offset


def test_the_same_place_draws_the_same_share() -> None:
    draws = [
        draw_share(0.3, numpy_generator(7, "mixup", "train", 2, step)) for step in (0, 0, 1, 2)
    ]
    assert draws[0] == draws[1]
    assert len(set(draws)) == 3


@pytest.mark.parametrize("concentration", [0.3, 1.0, 6.0])
def test_shares_have_the_moments_of_the_beta_distribution(concentration: float) -> None:
    random = np.random.default_rng(0)
    shares = np.array([draw_share(concentration, random) for _ in range(20_000)])
    assert shares.min() >= 0
    assert shares.max() <= 1
    assert shares.mean() == pytest.approx(0.5, abs=0.01)
    assert shares.var() == pytest.approx(1 / (4 * (2 * concentration + 1)), rel=0.05)


@pytest.mark.parametrize("concentration", [0.0, -1.0, float("nan")])
def test_a_concentration_that_is_none_is_refused(concentration: float) -> None:
    with pytest.raises(ConfigError, match="above 0"):
        draw_share(concentration, np.random.default_rng(0))


def test_a_mixture_is_the_weighted_sum_pixel_by_pixel() -> None:
    random = np.random.default_rng(1)
    first, second = random.random((2, 3, 2, 4, 4))
    mixed = mix(torch.from_numpy(first), torch.from_numpy(second), 0.3)
    for place in np.ndindex(*first.shape):
        assert float(mixed[place]) == pytest.approx(0.3 * first[place] + 0.7 * second[place])


def test_the_ends_are_the_samples_themselves() -> None:
    first, second = torch.rand(2, 5, 3)
    assert torch.equal(mix(first, second, 1.0), first)
    assert torch.equal(mix(first, second, 0.0), second)


@given(st.floats(0, 1))
def test_standardising_before_or_after_mixing_is_the_same(share: float) -> None:
    first = torch.tensor([[0.1, 0.9], [0.4, 0.2]], dtype=torch.float64)
    second = torch.tensor([[0.7, 0.3], [0.0, 1.0]], dtype=torch.float64)

    def standardise(values: torch.Tensor) -> torch.Tensor:
        return (values - 0.47) / 0.25

    before = mix(standardise(first), standardise(second), share)
    after = standardise(mix(first, second, share))
    torch.testing.assert_close(before, after, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shards", [(6,), (2, 4), (3, 3), (1, 5)])
def test_partners_are_mutual_and_of_one_shard_also_when_shards_are_joined(
    shards: tuple[int, ...],
) -> None:
    offset = torch.cat([partner_offset(size, torch.device("cpu")) for size in shards])
    of_shard = torch.repeat_interleave(torch.arange(len(shards)), torch.tensor(shards))
    numbers = torch.arange(6.0)
    assert torch.equal(partner(partner(numbers, offset), offset), numbers)
    assert torch.equal(partner(of_shard.double(), offset), of_shard.double())
    alone = int((partner(numbers, offset) == numbers).sum())
    assert alone == sum(size % 2 for size in shards)
