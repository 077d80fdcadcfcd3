"""The page of method cards is made from the code alone."""

from pathlib import Path

from tests.cli.command import call

PAGE = Path(__file__).parents[2] / "docs" / "methods.md"


def test_the_page_says_what_the_code_says() -> None:
    made = call("methods", "--markdown").out
    assert PAGE.read_text(encoding="utf-8") == made, (
        "make it again: onesided methods --markdown > docs/methods.md"
    )
