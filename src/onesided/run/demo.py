"""The settings of the demonstration: digits, a few labelled even ones, minutes on two cores."""

from onesided.core.config import Settings, merge

EPOCHS = 60


def demo_settings(method_name: str, seed: int) -> Settings:
    """Return the configuration of one run; both methods share data, network and training."""
    shared: Settings = {
        "seed": seed,
        "data": {"name": "digits"},
        "network": {"name": "small", "width": 0.25},
        "train": {"epochs": EPOCHS, "batch_size": 64, "learning_rate": 0.005},
        "method": {"name": method_name},
    }
    return merge(shared, {"method": NCPU} if method_name == "ncpu" else {})


NCPU: Settings = {
    "alignment_weight": 5.0,
    "entropy_weight": 0.5,
    "warmup_epochs": 20,
    "target_momentum": 0.9,
}
