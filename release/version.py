"""Check that a tag, the package, CITATION.cff, the recipe and the changelog say one version.

python -m release.version v0.1.0
"""

import re
import sys
from pathlib import Path

import onesided

ROOT = Path(__file__).parents[1]
PLACES = {
    "CITATION.cff": r"^version: (\S+)$",
    "recipe/meta.yaml": r'set version = "([^"]+)"',
    "CHANGELOG.md": r"^## \[(\d[^\]]*)\]",
}


def told() -> dict[str, str]:
    """Return the version that each file names."""
    found = {"src/onesided/__init__.py": onesided.__version__}
    for name, pattern in PLACES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        match = re.search(pattern, text, re.MULTILINE)
        found[name] = match[1] if match else "no version"
    return found


def main(tag: str) -> None:
    """Stop with a sentence where a file names another version than the tag."""
    for name, version in told().items():
        if f"v{version}" != tag:
            sys.exit(f"The tag is {tag}, and {name} says {version}.")
    if "unreleased" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("###")[0]:
        sys.exit("CHANGELOG.md calls this version unreleased: give it a date.")


if __name__ == "__main__":
    main(sys.argv[1])
