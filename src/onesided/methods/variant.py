"""Variants: named bundles of switches, each of which can still be set alone."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import model_validator

from onesided.methods.base import MethodConfig


class VariantConfig(MethodConfig):
    """Settings of a method that comes in several named forms."""

    switches: ClassVar[Mapping[str, Mapping[str, Any]]] = {"published": {}}
    """Variant name to the settings it fills where none is given."""
    variant: str = "published"
    """Which bundle of switches to start from."""

    @model_validator(mode="before")
    @classmethod
    def _fill_switches_of_the_variant(cls, settings: Any) -> Any:  # noqa: ANN401 - pydantic's
        if not isinstance(settings, Mapping):
            return settings
        return {**cls.switches.get(str(settings.get("variant", "published")), {}), **settings}
