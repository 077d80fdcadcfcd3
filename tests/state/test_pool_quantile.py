"""The quantile of the pool: as many rows above it as the share says."""

import numpy as np
import pytest
import torch

from onesided.state.pool_quantile import PoolQuantile


@pytest.mark.parametrize("share", [0.001, 0.25, 0.4, 0.999])
def test_the_quantile_leaves_the_share_above_it(share: float) -> None:
    margins = torch.from_numpy(np.random.default_rng(1).normal(size=200))
    cut = PoolQuantile()
    assert float(cut.value) == 0
    cut.measure(margins, share=share)
    slow = sorted(margins.tolist(), reverse=True)
    count = min(max(round(share * 200), 1), 199)
    assert slow[count - 1] > float(cut.value) > slow[count]


def test_a_quantile_of_one_row_stays_where_it_is() -> None:
    cut = PoolQuantile()
    cut.measure(torch.tensor([3.0]), share=0.5)
    assert float(cut.value) == 0
