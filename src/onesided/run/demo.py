"""The settings of the demonstration: digits, a few labelled even ones, minutes on two cores.

The preset `quick` as it is: its values were chosen on photographs, and nothing here was chosen
on digits.
"""

from onesided.core.config import Settings
from onesided.run.presets import published_settings

DATA = "digits"


def demo_settings(method_name: str, seed: int) -> Settings:
    """Return the configuration of one run; both methods share data, network and training."""
    quick = published_settings("quick", data_name=DATA, given={})
    method = quick["method"] if method_name == "ncpu" else {}
    return {
        "seed": seed,
        "data": {"name": DATA},
        "backbone": quick["backbone"],
        "train": quick["train"],
        "method": {**method, "name": method_name},
    }
