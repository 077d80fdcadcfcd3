"""Pages that are made while the site is built: references, pictures, tutorials, the root's files.

mkdocs-gen-files runs this; nothing is written into docs/.
"""

import sys
from pathlib import Path

import mkdocs_gen_files

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from website import pictures, reference, tutorials  # noqa: E402 - after the path that leads to them
from website.places import OUTSIDE  # noqa: E402


def write(path: str, content: str | bytes) -> None:
    """Give the site a file."""
    with mkdocs_gen_files.open(path, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)


for source, page in OUTSIDE.items():
    text = (ROOT / source).read_text(encoding="utf-8")
    write(page, reference.moved(text, source, page))
write("reference/commands.md", reference.commands())
write("reference/settings.md", reference.settings())
write("reference/api.md", reference.api())
write("reference/glossary.md", reference.glossary())
write("assets/site.css", (Path(__file__).parent / "site.css").read_bytes())
for name, svg in pictures.draw_all().items():
    write(f"assets/{name}.svg", svg)
for path, content in tutorials.pages(ROOT).items():
    write(path, content)
