"""One verb per job. Heavy imports happen inside commands, so that --help answers at once."""

import io
import re
import signal
import sys
from typing import Annotated

import typer

from onesided import __version__
from onesided.cli.answers import answers
from onesided.cli.audit import audit
from onesided.cli.bench import bench
from onesided.cli.data import data
from onesided.cli.demo import demo
from onesided.cli.doctor import doctor
from onesided.cli.embed import embed
from onesided.cli.evaluate import evaluate
from onesided.cli.export import export
from onesided.cli.fit import fit
from onesided.cli.map import map
from onesided.cli.methods import methods
from onesided.cli.prior import prior
from onesided.cli.rank import rank
from onesided.cli.report import report
from onesided.cli.review import review
from onesided.cli.serve import serve
from onesided.core.errors import OnesidedError
from onesided.core.freed_memory import keep_freed_memory
from onesided.core.threads import wait_passively

STOPPED = 128 + signal.SIGINT
LONGEST_WORD = 1000
"""Letters of a word that is shown as a whole; paths may be long."""

app = typer.Typer(
    name="onesided",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
VERBS = (demo, fit, rank, map, review, answers, evaluate, audit, prior, embed, methods, report)
for command in VERBS:
    app.command()(command)
for further in (export, serve, doctor):
    app.command()(further)
app.add_typer(data, name="data")
app.add_typer(bench, name="bench")


def _tell_version(wanted: bool) -> None:
    if wanted:
        print(f"onesided {__version__}")
        raise typer.Exit


@app.callback()
def onesided(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Print the version, and stop."
        ),
    ] = False,
) -> None:
    """A few positives, a big unlabelled pool, a model you can trust."""


def main() -> None:
    """Run a command; bad input gets one sentence and exit code 2, never a traceback."""
    _print_anything()
    keep_freed_memory()
    wait_passively()
    try:
        app(prog_name="onesided")
    except OnesidedError as error:
        _fail(str(error), error.exit_code)
    except OSError as error:
        # A full disk, a missing permission: nothing that a traceback would explain better.
        place = f" {error.filename}" if error.filename is not None else ""
        _fail(
            f"The system refused{place}: {error.strerror or error}. Make room or allow it, and "
            "give the same command again: it goes on from what was saved.",
            OnesidedError.exit_code,
        )
    except SystemExit as leaving:
        # Ctrl-C outside training arrives as typer's own exit, which says nothing.
        if leaving.code == STOPPED:
            _fail("Stopped. The same command starts again from what was saved.", STOPPED)
        raise


def _fail(sentence: str, exit_code: int) -> None:
    from onesided.cli.show import visible

    print(f"onesided: {visible(_shortened(sentence))}", file=sys.stderr)
    sys.exit(exit_code)


def _shortened(sentence: str) -> str:
    """Return a sentence without the middle of endless words: a file may hold a cell of any size."""
    return re.sub(
        rf"\S{{{LONGEST_WORD},}}", lambda word: f"{word[0][:80]}...{word[0][-40:]}", sentence
    )


def _print_anything() -> None:
    """Let no terminal's encoding stop a command: what it lacks is shown as an escape."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
