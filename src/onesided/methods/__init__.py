"""Every method by name. Imports no torch: a wrong name is told before a network is loaded."""

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING

from onesided.core.config import nearest
from onesided.core.errors import ConfigError

if TYPE_CHECKING:
    from onesided.methods.base import MethodConfig


class Table(MutableMapping[str, "type[MethodConfig]"]):
    """Settings classes by the name of their method, imported when they are asked for.

    A method can be added while the program runs, as a class.
    """

    def __init__(self, homes: dict[str, str]) -> None:
        self.entries: dict[str, str | type[MethodConfig]] = dict(homes)

    def __getitem__(self, name: str) -> "type[MethodConfig]":
        """Return the settings class, imported now if it is the first time."""
        entry = self.entries[name]
        if isinstance(entry, str):
            module, _, settings = entry.partition(".")
            found: type[MethodConfig] = getattr(import_module(f"{__name__}.{module}"), settings)
            self.entries[name] = entry = found
        return entry

    def __setitem__(self, name: str, settings: "type[MethodConfig]") -> None:
        """Add a method."""
        self.entries[name] = settings

    def __delitem__(self, name: str) -> None:
        """Remove a method."""
        del self.entries[name]

    def __iter__(self) -> Iterator[str]:
        """Return the names, in order."""
        return iter(self.entries)

    def __len__(self) -> int:
        """Return how many methods there are."""
        return len(self.entries)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a method of this name, without importing it."""
        return name in self.entries


METHODS = Table(
    {
        "teacher": "teacher.TeacherConfig",
        "ncpu": "ncpu.NcPUConfig",
        "ce": "risk.CEConfig",
        "supervised": "risk.SupervisedConfig",
        "upu": "risk.UPUConfig",
        "nnpu": "risk.NNPUConfig",
        "imbpu": "risk.ImbPUConfig",
        "vpu": "vpu.VPUConfig",
        "tedn": "tedn.TEDnConfig",
        "puet": "puet.PUETConfig",
        "holisticpu": "holisticpu.HolisticPUConfig",
        "distpu": "distpu.DistPUConfig",
        "pico": "pico.PiCOConfig",
        "lagam": "lagam.LaGAMConfig",
        "wsc": "wsc.WSCConfig",
        "linear": "linear.LinearConfig",
        "forest": "forest.ForestConfig",
        "boosting": "forest.BoostingConfig",
        "average": "average.AverageConfig",
        "elkan-noto": "elkan_noto.ElkanNotoConfig",
        "bagging": "bagging.BaggingConfig",
        "pusb": "pusb.PUSBConfig",
        "lbe": "lbe.LBEConfig",
    }
)
"""Name to module and settings class."""
AUTO = "auto"
"""The name that stands for a search among methods."""


def names() -> tuple[str, ...]:
    """Return what `--method` takes: the search, and every method, also one added a moment ago."""
    return (AUTO, *METHODS)


def choices() -> dict[str, "type[MethodConfig]"]:
    """Return the settings class of the search and of every method, by name."""
    from onesided.methods.auto import AutoConfig

    return {AUTO: AutoConfig, **METHODS}


def check_name(name: str) -> None:
    """Refuse a name that no method has; the error suggests the nearest one."""
    if name not in names():
        raise ConfigError(f"There is no method '{name}'.{nearest(name, names())}")


def method_named(name: str) -> "type[MethodConfig]":
    """Return the settings class of a method; the error suggests the nearest name."""
    check_name(name)
    return choices()[name] if name == AUTO else METHODS[name]
