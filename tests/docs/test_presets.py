"""What the documents say about presets agrees with the files."""

import re
import tomllib
from pathlib import Path

from onesided.run.preset_files import preset_files, preset_words
from onesided.run.presets import Preset, read_preset
from tests.cli.command import call

DOCS = Path(__file__).parents[2] / "docs"


def test_the_quickstart_lists_every_preset_with_its_summary() -> None:
    page = (DOCS / "quickstart.md").read_text(encoding="utf-8")
    for name in preset_files():
        assert f"\n| `{name}` | {read_preset(name).summary} |" in page


def test_the_quickstart_says_how_long_a_search_takes() -> None:
    page = (DOCS / "quickstart.md").read_text(encoding="utf-8")
    said = re.findall(r"^\| `(\w+)` \|.*\| (\d+) (minutes|hours) \|$", page, re.MULTILINE)
    assert len(said) == 3
    for name, number, unit in said:
        minutes = int(number) * {"minutes": 1, "hours": 60}[unit]
        assert read_preset(name).method["auto"]["minutes"] == minutes


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
