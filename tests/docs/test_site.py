"""The documentation site: navigation, generated references, links; its build and its tutorials."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from website.build import faults
from website.places import OUTSIDE
from website.reference import api, command_names, commands, glossary, moved, settings

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted(path.stem for path in (ROOT / "docs" / "tutorials").glob("*.py"))
MISSING = "the extra docs is not installed"


def test_every_page_of_the_documents_is_in_the_navigation() -> None:
    if find_spec("mkdocs") is None or find_spec("latex2mathml") is None:
        pytest.skip(MISSING)
    from website.hooks import navigation

    named = str(navigation())
    for page in (ROOT / "docs").rglob("*.md"):
        assert repr(page.relative_to(ROOT / "docs").as_posix()) in named
    for outside in OUTSIDE.values():
        assert repr(outside) in named
    for name in TUTORIALS:
        assert f"'tutorials/{name}.md'" in named
    assert "{\"The paper's ablation, small\": 'tutorials/ablation.md'}" in named


def test_the_reference_names_every_command_and_every_setting_of_training() -> None:
    from onesided.engine.train_config import TrainConfig

    shown, told = commands(), settings()
    assert ["data", "get"] in list(command_names())
    for words in command_names():
        assert f"## onesided {' '.join(words)}\n" in shown
    for name in TrainConfig.model_fields:
        assert f"| `train.{name}` |" in told


def test_the_api_and_the_glossary_are_made_from_the_code_and_the_design() -> None:
    assert "::: onesided.jobs.fit.fit\n" in api()
    assert "| backbone |" in glossary()


def test_links_of_a_moved_page_lead_to_the_same_files() -> None:
    text = "[a](docs/quickstart.md#x) [b](SECURITY.md) [c](LICENSE) [d](https://e.org/f)"
    assert moved(text, "CONTRIBUTING.md", "project/contributing.md") == (
        "[a](../quickstart.md#x) [b](security.md) "
        "[c](https://github.com/onesided/onesided/blob/main/LICENSE) [d](https://e.org/f)"
    )


def test_broken_links_missing_anchors_and_lonely_pages_are_found(tmp_path: Path) -> None:
    site = tmp_path.resolve()
    (site / "index.html").write_text(
        '<a href="b.html#here">1</a> <a href="b.html#gone">2</a> <a href="c.html">3</a>'
        '<a href="https://elsewhere.org">4</a>'
    )
    (site / "b.html").write_text('<p id="here">')
    (site / "lonely.html").write_text("")
    assert list(faults(site)) == [
        "index.html leads to b.html#gone, which has no such anchor.",
        "index.html leads to c.html, which is not there.",
        "Nothing leads to lonely.html.",
    ]


def test_output_is_shown_with_its_date_and_not_after_the_tutorial_changed(tmp_path: Path) -> None:
    if any(find_spec(one) is None for one in ("jupytext", "nbclient", "nbformat")):
        pytest.skip(MISSING)
    import jupytext
    import nbformat

    from website.tutorials import how_it_ran, shown

    source, ran = tmp_path / "one.py", tmp_path / "one.ipynb"
    source.write_text("# %%\nprint(1)\n")
    notebook = jupytext.read(source)
    notebook.cells[0].outputs = [nbformat.v4.new_output("stream", text="1\n")]
    notebook.metadata["onesided"] = {"ran": "2026-01-02", "commit": "0123456789ab", "dirty": False}
    nbformat.write(notebook, ran)
    assert shown(source, ran).cells[0].outputs
    assert how_it_ran(shown(source, ran)) == "Its output is from 2026-01-02, by commit 0123456789"

    source.write_text("# %%\nprint(2)\n")
    assert not shown(source, ran).cells[0].outputs
    assert how_it_ran(shown(source, ran)) == "Run it to see what it prints and draws"


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    if any(find_spec(name) is None for name in ("mkdocs_gen_files", "mkdocstrings", "jupytext")):
        pytest.skip(MISSING)
    words = ("-m", "website.build", "--output", str(tmp_path / "site"))
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "<math" in (tmp_path / "site" / "evaluation.html").read_text(encoding="utf-8")
    assert (tmp_path / "site" / "assets" / "scar.svg").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_runs_from_a_clean_kernel(name: str, tmp_path: Path) -> None:
    if any(find_spec(one) is None for one in ("jupytext", "nbclient", "ipykernel")):
        pytest.skip(MISSING)
    from website.tutorials import SOURCES, execute

    notebook = execute(SOURCES / f"{name}.py", tmp_path)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs), "it draws something"
