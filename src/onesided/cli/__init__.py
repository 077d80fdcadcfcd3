"""One verb per job. Heavy imports happen inside commands, so that --help answers at once."""

import sys

import typer

from onesided.cli.data import data
from onesided.cli.demo import demo
from onesided.cli.evaluate import evaluate
from onesided.cli.fit import fit
from onesided.cli.methods import methods
from onesided.cli.rank import rank
from onesided.cli.report import report
from onesided.core.errors import OnesidedError

app = typer.Typer(
    name="onesided",
    help="A few positives, a big unlabelled pool, a model you can trust.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, fit, rank, evaluate, methods, report):
    app.command()(command)
app.add_typer(data, name="data")


def main() -> None:
    """Run a command; bad input gets one sentence and exit code 2, never a traceback."""
    try:
        app()
    except OnesidedError as error:
        print(f"onesided: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("onesided: stopped.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # `onesided data list | head` closes our output early; there is nobody to tell.
        sys.stderr.close()
        sys.exit(0)
