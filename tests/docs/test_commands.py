"""Commands in the documents: they exist with these options, and the quickstart works."""

import re
import shlex
from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest

from release.quickstart import steps
from tests.cli.command import call

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *("README.md", "docs/quickstart.md", "docs/faq.md", "docs/evaluation.md"),
    "docs/review.md",
    "benchmarks/README.md",
]

SHORT = ("--epochs", "1", "--device", "cpu", "--budget", "20s")
"""With these, a training of the documents takes seconds."""


def commands(document: str) -> list[list[str]]:
    """Return every onesided command of a document, in order, as words."""
    text = (ROOT / document).read_text(encoding="utf-8")
    fenced = re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for kind, block in fenced if kind in ("", "sh") for line in block.splitlines()]
    inline = re.findall(r"`([^`\n]*onesided [^`\n]*)`", text)
    found = [*lines, *inline]
    words = [shlex.split(line, comments=True) for line in found]
    starts = [(line, line.index("onesided")) for line in words if "onesided" in line]
    return [line[start + 1 :] for line, start in starts if line[start + 1 :]]


@cache
def options(command: str) -> set[str]:
    """Return the options that a command's own help shows."""
    shown = call(*command.split(), "--help")
    assert shown.exit_code == 0, f"there is no command {command}"
    return set(re.findall(r"(?<!\S)(--?[a-z][a-z-]*)\b", shown.out.partition("Options:")[2]))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_exists_and_has_the_options_it_is_shown_with(document: str) -> None:
    shown = commands(document)
    assert shown
    for words in shown:
        verbs = list(takewhile(re.compile(r"[a-z]+$").match, words))
        command = " ".join(verbs[: 2 if verbs[:1] in (["data"], ["bench"]) else 1])
        given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert given <= options(command) | {"--help"}, f"onesided {' '.join(words)}"


@pytest.mark.parametrize("document", ["docs/quickstart.md", "docs/faq.md"])
def test_options_that_are_mentioned_alone_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    known = options("fit") | options("evaluate") | {"--help"}
    mentioned = re.findall(r"`(-[a-z]|--[a-z-]+)(?: [^`]*)?`", text)
    assert mentioned
    assert set(mentioned) <= known


@pytest.mark.slow
def test_the_quickstart_works_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    taken = list(steps())
    assert [step.language for step in taken].count("python") == 2
    assert len(taken) > 10
    for step in taken:
        if step.language == "python":
            exec(compile(step.text, "quickstart", "exec"), {"__name__": "document"})
            continue
        program, *words = shlex.split(step.text)
        assert program == "onesided"
        # A model of one epoch may be degenerate; that does not matter here.
        extra = (*SHORT, "--allow-degenerate") if words[0] == "fit" else ()
        outcome = call(*words, *extra)
        assert outcome.exit_code == 0, (step.text, outcome.err)
    ranked = Path("ranked.csv").read_text().splitlines()
    # The column probability is there where the scores allow a curve.
    assert ranked[0].replace(",probability", "") == "item,score,rank,decision"
    assert len(ranked) == 101
    assert "labelled items" in Path("runs/first/report.html").read_text()
    assert "nnPU on the features" in Path("runs/compared/report.html").read_text()
