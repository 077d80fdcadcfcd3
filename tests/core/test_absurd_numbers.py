"""Numbers that nothing can be made of are refused where they are given, in every setting."""

import pytest

from onesided.core.config import shortened
from onesided.core.errors import ConfigError
from onesided.engine.model_file import ModelDescription
from onesided.engine.train_config import TrainConfig
from onesided.methods import METHODS

MODEL = {
    **{"method": "ce", "settings": {}, "backbone": {"name": "small"}, "kind": "photograph"},
    **{"sample_shape": [3, 8, 8], "mean": [0.5] * 3, "std": [0.2] * 3},
}


@pytest.mark.parametrize("name", ["epochs", "batch_size", "positives_per_batch", "learning_rate"])
@pytest.mark.parametrize("digits", [19, 400, 5000])
def test_a_number_beyond_sixty_four_bits_is_refused(name: str, digits: int) -> None:
    with pytest.raises(ConfigError, match=f"train: {name}: "):
        TrainConfig.from_settings({name: 10**digits}, "train")


@pytest.mark.parametrize("name", [name for name in METHODS if name != "auto"])
def test_no_method_builds_a_network_of_absurd_size(name: str) -> None:
    sizes = {"projector_width", "queue_length", "trees", "clusters"}
    for field in sizes & METHODS[name].model_fields.keys():
        with pytest.raises(ConfigError, match="less than or equal"):
            METHODS[name].from_settings({field: 10**9})


@pytest.mark.parametrize(
    "change",
    [
        {"sample_shape": [3, 10**12, 8]},
        {"sample_shape": [10**6, 8, 8]},
        {"std": [0.2]},
        {"mean": []},
        {"sample_shape": [10**400, 8, 8]},
    ],
)
def test_a_model_of_absurd_samples_is_not_built(change: dict[str, object]) -> None:
    ModelDescription.from_settings(MODEL)
    with pytest.raises(ConfigError, match=r"\w"):
        ModelDescription.from_settings({**MODEL, **change})


def test_a_number_that_python_does_not_spell_is_still_shown() -> None:
    assert shortened(10**5000) == "a number of thousands of digits"
    assert len(shortened("x" * 10_000)) < 300
