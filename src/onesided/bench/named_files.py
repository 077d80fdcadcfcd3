"""TOML files of the package that are found by their names: suites and scales."""

from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Generic, TypeVar

from onesided.core.config import Config, Settings, merge, nearest, read_toml
from onesided.core.errors import ConfigError

Kind = TypeVar("Kind", bound=Config)
BASE = "base"
"""Key of a file that lies over another one of its folder."""


@dataclass(frozen=True)
class NamedFiles(Generic[Kind]):
    """A folder of TOML files, each of which describes one thing.

    Attributes:
        noun: What a file describes, for messages.
        kind: The model that checks it.
        folder: Where the files are.
    """

    noun: str
    kind: type[Kind]
    folder: Path

    @classmethod
    def of_package(cls, noun: str, kind: type[Kind], folder: str) -> "NamedFiles[Kind]":
        """Return the files of a folder of `onesided.bench`."""
        return cls(noun, kind, Path(str(resources.files("onesided") / "bench" / folder)))

    def names(self) -> list[str]:
        """Return the names of all files."""
        return sorted(path.stem for path in self.folder.glob("*.toml"))

    @cache  # noqa: B019 - there are two of these, for the whole life of the program
    def read(self, name: str) -> Kind:
        """Return what the file of this name describes; all of it is checked."""
        return self.kind.from_settings(self._settings(name), str(self._path(name)))

    def base_of(self, name: str) -> str | None:
        """Return the file that this one lies over, None if it stands alone."""
        base = read_toml(self._path(name)).get(BASE)
        return None if base is None else str(base)

    def _settings(self, name: str) -> Settings:
        own = dict(read_toml(self._path(name)))
        base = own.pop(BASE, None)
        return own if base is None else merge(self._settings(str(base)), own)

    def _path(self, name: str) -> Path:
        if name not in self.names():
            raise ConfigError(f"There is no {self.noun} '{name}'.{nearest(name, self.names())}")
        return self.folder / f"{name}.toml"
