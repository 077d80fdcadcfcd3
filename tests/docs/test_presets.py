"""What the documents say about presets agrees with the files."""

import re
import tomllib
from pathlib import Path

from onesided.run.preset_files import preset_files, preset_words
from onesided.run.presets import Preset, read_preset
from tests.cli.command import call

DOCS = Path(__file__).parents[2] / "docs"


def test_the_quickstart_lists_every_preset_with_its_summary() -> None:
    rows = [f"| `{name}` | {read_preset(name).summary} |" for name in preset_files()]
    assert "\n".join(rows) in (DOCS / "quickstart.md").read_text(encoding="utf-8")


def test_help_lists_every_preset_with_its_summary() -> None:
    shown = " ".join(call("fit", "--help").out.split())
    assert preset_words() in shown
    for name in preset_files():
        assert f"{name} ({read_preset(name).summary})" in shown


def test_the_preset_of_the_faq_is_one() -> None:
    (example,) = re.findall(
        r"```toml\n(summary.*?)```", (DOCS / "faq.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert Preset.from_settings(tomllib.loads(example)).steps == 5000
