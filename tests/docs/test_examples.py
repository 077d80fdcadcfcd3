"""What the documents show works as it is printed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "docs/review.md", "docs/audit.md"]


def python_blocks(document: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.slow
def test_the_python_of_a_document_runs_from_top_to_bottom(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(document)
    assert blocks
    exec(compile("\n".join(blocks), document, "exec"), {"__name__": "document"})


@pytest.mark.parametrize(
    "document", [*DOCUMENTS[:2], *(f"docs/{n.name}" for n in (ROOT / "docs").glob("*.md"))]
)
def test_links_of_a_document_lead_to_files_that_exist(document: str) -> None:
    path = ROOT / document
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_the_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme


def test_every_command_of_the_readme_exists() -> None:
    from onesided.cli import app

    known = {command.callback.__name__ for command in app.registered_commands if command.callback}
    known |= {group.name for group in app.registered_groups if group.name}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"(?<!from )\bonesided ([a-z]+)", readme)) <= known
