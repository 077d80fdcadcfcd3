"""docs/theory.md claims nothing that no test checks."""

import ast
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "theory.md"
LINK = re.compile(r"\[`(test_\w+)`\]\(([^)]+)\)")
CLAIM = re.compile(r"^\*\*Claim (\d+)", re.MULTILINE)


def functions_in(path: Path) -> set[str]:
    module = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in module.body if isinstance(node, ast.FunctionDef)}


def named() -> list[tuple[str, Path]]:
    text = PAGE.read_text(encoding="utf-8")
    return [(name, (PAGE.parent / target).resolve()) for name, target in LINK.findall(text)]


def test_every_test_that_the_page_names_exists() -> None:
    assert named()
    missing = [name for name, path in named() if name not in functions_in(path)]
    assert not missing


def test_every_claim_is_numbered_and_names_a_test() -> None:
    paragraphs = PAGE.read_text(encoding="utf-8").split("\n\n")
    claims = [text for text in paragraphs if CLAIM.match(text)]
    numbers = [int(CLAIM.findall(text)[0]) for text in claims]
    assert numbers == list(range(1, len(claims) + 1))
    assert not [text for text in claims if not LINK.search(text)]


def test_every_test_of_the_theory_is_named_on_the_page() -> None:
    path = PAGE.parents[1] / "tests" / "losses" / "test_theory.py"
    own = {name for name in functions_in(path) if name.startswith("test_")}
    assert own == {name for name, where in named() if where == path}
