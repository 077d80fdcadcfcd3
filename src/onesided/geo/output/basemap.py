"""A map from the network under the buildings; only where a person asks for it."""

import re
from dataclasses import dataclass

from onesided.core.errors import ConfigError

KNOWN = {
    "osm": ("https://tile.openstreetmap.org/{z}/{x}/{y}.png", "© OpenStreetMap contributors"),
}
"""Servers by a short name: address of a tile, and whom to credit."""
_ADDRESS = re.compile(r"(https://[a-z0-9.-]+(?::\d{1,5})?)/[^\s'\";,<>\\]*")


@dataclass(frozen=True)
class Basemap:
    """Where tiles of the base map come from, and whom the page credits."""

    template: str
    credit: str

    @property
    def host(self) -> str:
        """The only address that the page may load pictures from."""
        found = _ADDRESS.fullmatch(self.template)
        assert found is not None, "checked by `basemap_of`"
        return found[1]

    def to_json(self) -> dict[str, str]:
        """Return what the page needs."""
        return {"template": self.template, "credit": self.credit, "host": self.host}


def basemap_of(given: str) -> Basemap:
    """Return the base map of a short name, or of an address with {z}, {x} and {y}."""
    template, credit = KNOWN.get(given, (given, ""))
    found = _ADDRESS.fullmatch(template)
    if found is None or not all(part in template for part in ("{z}", "{x}", "{y}")):
        raise ConfigError(
            f"--basemap takes {', '.join(KNOWN)} or the address of a tile server with {{z}}, {{x}} "
            f"and {{y}}, such as https://tiles.example.org/{{z}}/{{x}}/{{y}}.png; got {given!r}."
        )
    return Basemap(template, credit or found[1].removeprefix("https://"))
