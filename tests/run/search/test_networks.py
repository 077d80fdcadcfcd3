"""Which networks a search tries in which time."""

from dataclasses import replace

import pytest

from onesided.methods.auto import AutoConfig
from onesided.run.config import RunConfig
from onesided.run.presets import Amount, steps_of
from onesided.run.search.candidates import TUNED_STEP_SECONDS, Candidate, Menu

FOLDS = 5


def networks(
    minutes: float, *, side: int = 32, rows: int = 3300, backbone: dict[str, object] | None = None
) -> list[Candidate]:
    """The networks for images of this side, of which a tenth is labelled."""
    settings = {
        "data": {"name": "toy-images"},
        "method": {"name": "auto"},
        "backbone": backbone or {"name": "efficientnet_lite0", "freeze": True},
    }
    config = RunConfig.from_settings(settings)
    config = replace(config, method=AutoConfig(minutes=minutes))
    amount = Amount(rows, rows // 10, pixels=side * side)
    return Menu(config, amount, amount, 1280, FOLDS).third(prior=0.3)


def tuned(candidates: list[Candidate]) -> Candidate | None:
    return next((one for one in candidates if one.name == "teacher-tuned"), None)


def test_blocks_are_tuned_only_in_long_searches() -> None:
    assert tuned(networks(60)) is None
    found = tuned(networks(24 * 60))
    assert found is not None
    assert found.on_images
    assert found.config.backbone.tune == 3
    assert not found.config.backbone.freeze


def test_a_tuned_network_wins_no_tie() -> None:
    candidates = networks(24 * 60)
    found = tuned(candidates)
    assert found is not None
    assert found.rank == max(one.rank for one in candidates)


@pytest.mark.parametrize("rows", [3300, 60_000])
def test_the_estimate_is_that_of_the_steps_it_takes(rows: int) -> None:
    found = tuned(networks(10_000, rows=rows))
    assert found is not None
    assert found.config.train.batch_size == 128
    steps = steps_of(found.config, Amount(rows, rows // 10))
    assert found.seconds == pytest.approx(TUNED_STEP_SECONDS * steps)


def test_larger_images_cost_more() -> None:
    small, large = tuned(networks(10_000)), tuned(networks(10_000, side=192))
    assert small is not None
    assert large is not None
    assert large.seconds == pytest.approx(4 * small.seconds)


def test_networks_that_cannot_be_tuned_are_not() -> None:
    weights = {"name": "small", "weights": "mine.safetensors", "freeze": True}
    assert tuned(networks(24 * 60, backbone=weights)) is None
