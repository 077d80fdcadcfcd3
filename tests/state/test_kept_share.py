import torch

from onesided.state.kept_share import KeptShare


def margins(share: float, *, shift: float = 0.0, count: int = 400, seed: int = 0) -> torch.Tensor:
    """Two clouds of logits, the upper one holding `share` of them."""
    draw = torch.Generator().manual_seed(seed)
    upper = torch.arange(count) < share * count
    return torch.randn(count, generator=draw) + torch.where(upper, 3.0, -3.0) + shift


def test_the_share_called_positive_is_stored() -> None:
    kept = KeptShare()
    for step in range(200):
        kept.remember(margins(0.3, seed=step), momentum=0.9)
    assert abs(float(kept.share) - 0.3) < 0.01
    assert float(kept.line) == 0


def test_the_line_follows_scores_that_all_rose() -> None:
    kept = KeptShare()
    kept.remember(margins(0.3), momentum=0.0)
    remembered = float(kept.share)
    for step in range(1000):
        kept.keep(margins(0.3, shift=2.0, seed=step))
    called = kept.positive(margins(0.3, shift=2.0, seed=1000)).float().mean()
    assert float(kept.share) == remembered, "what is kept does not drift with what it keeps"
    assert abs(float(called) - 0.3) < 0.05
    assert (
        kept.positive(margins(0.3, shift=2.0)).float().mean()
        < (margins(0.3, shift=2.0) > 0).float().mean()
    )


def test_a_batch_without_unlabelled_rows_changes_nothing() -> None:
    kept = KeptShare()
    kept.remember(torch.empty(0), momentum=0.0)
    kept.keep(torch.empty(0))
    assert (float(kept.share), float(kept.line)) == (0.5, 0.0)


def test_share_and_line_are_part_of_the_state() -> None:
    kept, other = KeptShare(), KeptShare()
    kept.remember(margins(0.2), momentum=0.0)
    kept.keep(margins(0.6))
    other.load_state_dict(kept.state_dict())
    assert torch.equal(other.share, kept.share)
    assert torch.equal(other.line, kept.line)
    assert float(kept.share) != 0.5
    assert float(kept.line) != 0
