"""One verb per job. Heavy imports happen inside commands, so that --help answers at once."""

import io
import signal
import sys

import typer

from onesided.cli.bench import bench
from onesided.cli.data import data
from onesided.cli.demo import demo
from onesided.cli.embed import embed
from onesided.cli.evaluate import evaluate
from onesided.cli.fit import fit
from onesided.cli.map import map
from onesided.cli.methods import methods
from onesided.cli.prior import prior
from onesided.cli.rank import rank
from onesided.cli.report import report
from onesided.core.errors import OnesidedError
from onesided.core.freed_memory import keep_freed_memory
from onesided.core.threads import wait_passively

STOPPED = 128 + signal.SIGINT

app = typer.Typer(
    name="onesided",
    help="A few positives, a big unlabelled pool, a model you can trust.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, fit, rank, map, evaluate, prior, embed, methods, report):
    app.command()(command)
app.add_typer(data, name="data")
app.add_typer(bench, name="bench")


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
        _fail(f"The system refused{place}: {error.strerror or error}.", OnesidedError.exit_code)
    except SystemExit as leaving:
        # Ctrl-C outside training arrives as typer's own exit, which says nothing.
        if leaving.code == STOPPED:
            _fail("Stopped. The same command starts again from what was saved.", STOPPED)
        raise


def _fail(sentence: str, exit_code: int) -> None:
    from onesided.cli.show import visible

    print(f"onesided: {visible(sentence)}", file=sys.stderr)
    sys.exit(exit_code)


def _print_anything() -> None:
    """Let no terminal's encoding stop a command: what it lacks is shown as an escape."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
