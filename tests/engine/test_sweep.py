"""Sweeps: every row once, in order, and only as many at a time as fit into memory."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from onesided.core.errors import ContractError
from onesided.data.problem import samples
from onesided.data.problem.dataset import Selection
from onesided.engine.sweep import chunks, run_over


@pytest.mark.parametrize(
    ("shape", "lengths"),
    [((3, 2, 2), [128] * 5 + [60]), ((7,), [128] * 5 + [60])],
)
def test_small_samples_go_through_by_128(shape: tuple[int, ...], lengths: list[int]) -> None:
    values = Selection(np.zeros((700, *shape), np.uint8), np.arange(700))
    assert [len(rows) for rows in chunks(values)] == lengths


def test_large_images_go_through_in_smaller_pieces_with_the_same_outputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(samples, "CHUNK_BYTES", 3 * (3 * 4 * 4) + 1)
    random = np.random.default_rng(0)
    pool = random.integers(0, 256, (10, 3, 4, 4), dtype=np.uint8)
    values = Selection(pool, np.array([9, 2, 2, 5, 0, 7, 1]))
    assert [rows.tolist() for rows in chunks(values)] == [[0, 1, 2], [3, 4, 5], [6]]
    sums = run_over(lambda images: images.sum(dim=(1, 2, 3)), values, torch.device("cpu"))
    assert sums.numpy() == pytest.approx(pool[values.index].sum(axis=(1, 2, 3)) / 255, rel=1e-5)


def test_a_sweep_over_no_rows_is_refused() -> None:
    nothing = Selection(np.zeros((3, 7), np.uint8), np.arange(0))
    with pytest.raises(ContractError, match="no rows"):
        run_over(lambda rows: rows.sum(dim=1), nothing, torch.device("cpu"))


@pytest.mark.parametrize("function", [torch.mean, lambda rows: rows.mean(dim=0, keepdim=True)])
def test_a_sweep_whose_outputs_are_not_one_per_row_is_refused(
    function: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    values = Selection(np.zeros((300, 2), np.float32), np.arange(300))
    with pytest.raises(ContractError, match="one output per row"):
        run_over(function, values, torch.device("cpu"))
