"""Tutorials: jupytext files that become notebooks, are run from a clean kernel, and become pages.

    python -m website.tutorials --output build/tutorials    # runs all of them

The site shows what they printed and drew if they were run as they are now, and says when and by
which commit; otherwise it shows them without output.
"""

import argparse
import base64
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "docs" / "tutorials"
RUN = ROOT / "build" / "tutorials"
LONGEST = 900
"""Seconds that one cell may take on a busy machine."""


def execute(source: Path, place: Path) -> NotebookNode:
    """Return a tutorial as a notebook that was run from a clean kernel in a folder."""
    from onesided.bench.origin import commit  # imports torch, which the site is built without

    place.mkdir(parents=True, exist_ok=True)
    notebook = jupytext.read(source)
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    # ROOT is not on the kernel's path: a tutorial needs the package only.
    os.environ.setdefault("PYTHONPATH", str(ROOT / "src"))
    client = NotebookClient(
        notebook,
        timeout=LONGEST,
        kernel_name="python3",
        resources={"metadata": {"path": str(place)}},
    )
    client.execute()
    notebook.metadata["onesided"] = {"ran": f"{datetime.now(UTC):%Y-%m-%d}", **commit(SOURCES)}
    return notebook


def pages(root: Path) -> dict[str, str | bytes]:
    """Return the pages of all tutorials, their pictures, and the notebooks to download."""
    made: dict[str, str | bytes] = {}
    for source in sorted(SOURCES.glob("*.py")):
        notebook = shown(source, root / "build" / "tutorials" / f"{source.stem}.ipynb")
        made[f"tutorials/{source.stem}.ipynb"] = nbformat.writes(notebook)
        made.update(_page(source.stem, notebook))
    return made


def shown(source: Path, ran: Path) -> NotebookNode:
    """Return the notebook that was run, or one without output if the tutorial changed since."""
    now = jupytext.read(source)
    if not ran.exists():
        return now
    before = nbformat.read(ran, as_version=4)
    same = [cell.source for cell in before.cells] == [cell.source for cell in now.cells]
    return before if same and "onesided" in before.metadata else now


def how_it_ran(notebook: NotebookNode) -> str:
    """Return when a notebook was run and by which code, or that it was not."""
    run = notebook.metadata.get("onesided")
    if run is None:
        return "Run it to see what it prints and draws"
    changed = " with changes that are in no commit" if run["dirty"] else ""
    return f"Its output is from {run['ran']}, by commit {str(run['commit'])[:10]}{changed}"


def _page(name: str, notebook: NotebookNode) -> dict[str, str | bytes]:
    made: dict[str, str | bytes] = {}
    text = []
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            text += [cell.source, ""]
            continue
        text += ["```python", cell.source, "```", ""]
        for place, output in enumerate(cell.get("outputs", [])):
            picture = output.get("data", {}).get("image/png")
            if picture:
                file = f"{name}-{number}-{place}.png"
                made[f"tutorials/{file}"] = base64.b64decode(picture)
                text += [f"![What the code above draws]({file})", ""]
            elif output.get("name") != "stderr":
                shown = output.get("text") or output.get("data", {}).get("text/plain", "")
                text += ["```text", shown.rstrip(), "```", ""]
    text += [f"---\n\n{how_it_ran(notebook)}: [download the notebook]({name}.ipynb)."]
    made[f"tutorials/{name}.md"] = "\n".join(text)
    return made


def main() -> None:
    """Run the tutorials that were named, or all, and keep them as notebooks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="Tutorials, without .py; none means all.")
    parser.add_argument("--output", type=Path, default=RUN)
    asked = parser.parse_args()
    sources = [SOURCES / f"{name}.py" for name in asked.names] or sorted(SOURCES.glob("*.py"))
    for source in sources:
        started = time.monotonic()
        notebook = execute(source, asked.output / "work" / source.stem)
        nbformat.write(notebook, asked.output / f"{source.stem}.ipynb")
        print(f"{source.name}: ran in {time.monotonic() - started:.0f} s", flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
