"""The command as a person gives it: words in, exit code and both outputs back."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from onesided.cli import main
from onesided.storage.own_file import CHECKSUMS

TINY = (
    *("--method", "ce", "--epochs", "1", "--device", "cpu"),
    *("--set", "backbone.width=0.125", "--set", "train.batch_size=16"),
)
"""Settings of a training that takes a second."""


@dataclass(frozen=True)
class Outcome:
    """What a command left in the terminal."""

    exit_code: int
    out: str
    err: str


def call(*words: object) -> Outcome:
    """Run `onesided WORDS` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        _arguments(*words),
        pytest.raises(SystemExit) as leaving,
    ):
        main()
    assert isinstance(leaving.value.code, int)
    return Outcome(leaving.value.code, out.getvalue(), err.getvalue())


def fit(data: Path, output: Path, *words: object) -> Outcome:
    """Train on the folders P and U of `data` for a second, accepting a poor model."""
    folders = ("-p", data / "P", "-u", data / "U", "-o", output)
    return call("fit", *folders, *TINY, "--quiet", "--allow-degenerate", *words)


def assert_refused(outcome: Outcome, *words: object) -> None:
    """Check for exit code 2 and one line that holds these words, after what had begun by then."""
    assert outcome.exit_code == 2, outcome
    assert outcome.out == ""
    said = [line for line in outcome.err.splitlines() if not line.endswith(" ...")]
    print(*said, sep="\n")  # for whoever collects refusals: tests/campaigns/bad_maps.py
    assert len(said) == 1, outcome.err
    assert said[0].startswith("onesided: "), outcome.err
    assert "Traceback" not in outcome.err
    for word in words:
        assert str(word) in outcome.err, (word, outcome.err)


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder by its path, to see whether anything changed."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def unlisted(run: Path) -> Path:
    """Remove the list of checksums from a run, as one of an earlier version has none."""
    (run / CHECKSUMS).unlink(missing_ok=True)
    return run


@contextmanager
def _arguments(*words: object) -> Iterator[None]:
    before = sys.argv
    sys.argv = ["onesided", *map(str, words)]
    try:
        yield
    finally:
        sys.argv = before
