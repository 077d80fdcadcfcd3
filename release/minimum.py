"""Write the oldest versions that pyproject.toml allows, as a file of constraints.

python -m release.minimum > build/minimum.txt
"""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def oldest(project: Path = PROJECT) -> list[str]:
    """Return `name==version` for what every installation needs and for the extra `geo`."""
    table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    wanted = [*table["dependencies"], *table["optional-dependencies"]["geo"]]
    return sorted(f"{one.name}=={_lowest(one)}" for one in map(Requirement, wanted))


def _lowest(requirement: Requirement) -> str:
    (version,) = [part.version for part in requirement.specifier if part.operator == ">="]
    return version


if __name__ == "__main__":
    print("\n".join(oldest()))
