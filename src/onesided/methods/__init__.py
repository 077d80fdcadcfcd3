"""Every method by name."""

from collections.abc import Mapping

from onesided.core.config import nearest
from onesided.core.errors import ConfigError
from onesided.methods.auto import AutoConfig
from onesided.methods.average import AverageConfig
from onesided.methods.base import MethodConfig
from onesided.methods.distpu import DistPUConfig
from onesided.methods.forest import BoostingConfig, ForestConfig
from onesided.methods.holisticpu import HolisticPUConfig
from onesided.methods.lagam import LaGAMConfig
from onesided.methods.linear import LinearConfig
from onesided.methods.ncpu import NcPUConfig
from onesided.methods.pico import PiCOConfig
from onesided.methods.puet import PUETConfig
from onesided.methods.risk import CEConfig, ImbPUConfig, NNPUConfig, SupervisedConfig, UPUConfig
from onesided.methods.teacher import TeacherConfig
from onesided.methods.tedn import TEDnConfig
from onesided.methods.vpu import VPUConfig
from onesided.methods.wsc import WSCConfig

METHODS: Mapping[str, type[MethodConfig]] = {
    "teacher": TeacherConfig,
    "ncpu": NcPUConfig,
    "ce": CEConfig,
    "supervised": SupervisedConfig,
    "upu": UPUConfig,
    "nnpu": NNPUConfig,
    "imbpu": ImbPUConfig,
    "vpu": VPUConfig,
    "tedn": TEDnConfig,
    "puet": PUETConfig,
    "holisticpu": HolisticPUConfig,
    "distpu": DistPUConfig,
    "pico": PiCOConfig,
    "lagam": LaGAMConfig,
    "wsc": WSCConfig,
    "linear": LinearConfig,
    "forest": ForestConfig,
    "boosting": BoostingConfig,
    "average": AverageConfig,
}
AUTO = "auto"
"""The name that stands for a search among methods."""
CHOICES: Mapping[str, type[MethodConfig]] = {AUTO: AutoConfig, **METHODS}
"""What `--method` takes: the search, and every method."""


def method_named(name: str) -> type[MethodConfig]:
    """Return the settings class of a method; the error suggests the nearest name."""
    # Looked up now, not when this was imported: a method that is being written is patched in.
    known: dict[str, type[MethodConfig]] = {AUTO: AutoConfig, **METHODS}
    if name not in known:
        raise ConfigError(f"There is no method '{name}'.{nearest(name, known)}")
    return known[name]
