"""The presets and their summaries. Imports no torch: `onesided --help` must be fast."""

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from onesided.core.errors import ConfigError

PRESETS = Path(str(resources.files("onesided") / "presets"))


def preset_files() -> Mapping[str, Path]:
    """Return the file of every preset that comes with the library, the shortest first."""
    files = {path.stem: path for path in PRESETS.glob("*.toml")}
    return dict(sorted(files.items(), key=lambda item: (_cost(_content(item[1])), item[0])))


def preset_path(preset: str | Path) -> Path:
    """Return the file of a preset by its name, or the user's own file; refuse an unknown name."""
    known = preset_files()
    path = Path(preset) if str(preset).endswith(".toml") else known.get(str(preset))
    if path is None:
        from onesided.core.config import nearest  # it imports pydantic

        raise ConfigError(f"There is no preset '{preset}'.{nearest(str(preset), known)}")
    return path


def preset_words() -> str:
    """Return every preset with its summary, as one sentence for `--help`."""
    named = [f"{name} ({_content(path)['summary']})" for name, path in preset_files().items()]
    return f"{', '.join(named)}, or a TOML file of your own."


def _cost(content: Mapping[str, object]) -> tuple[float, float]:
    """Return steps and width of the backbone; a published recipe costs most."""
    backbone = content.get("backbone", {})
    assert isinstance(backbone, Mapping)
    return float(str(content.get("steps", "inf"))), float(backbone.get("width", 1))


def _content(path: Path) -> Mapping[str, object]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
