import re
import subprocess
import sys

import pytest

from tests.cli.command import call

COMMANDS = (
    *("demo", "fit", "rank", "map", "answers", "evaluate", "prior", "embed", "methods"),
    *("export", "serve", "report"),
    *("data list", "data get", "data check"),
    *("audit", "review", "doctor"),
    *("bench list", "bench run", "bench show", "bench page"),
)
every_command = pytest.mark.parametrize("command", COMMANDS)

HEAVY = {"torch", "numpy", "scipy", "sklearn", "PIL", "matplotlib", "pydantic"}


@every_command
def test_help_shows_an_example_whose_options_exist(command: str) -> None:
    shown = call(*command.split(), "--help")
    assert shown.exit_code == 0
    (example,) = re.findall(rf"Example: (onesided {command}\b.*)", shown.out)
    options = shown.out.partition("Options:")[2]
    for option in re.findall(r"(?<= )-{1,2}[a-z]+", example):
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", options), option


@every_command
def test_every_command_has_a_form_for_machines_and_a_quiet_one(command: str) -> None:
    options = call(*command.split(), "-h").out.partition("Options:")[2]
    assert "--json" in options
    assert "-q, --quiet" in options


def test_the_list_of_commands_names_them_all() -> None:
    listed = call("--help")
    assert listed.exit_code == 0
    named = re.findall(r"^  ([a-z]+) ", listed.out.partition("Commands:")[2], re.MULTILINE)
    assert len(named) == len(set(named))
    assert set(named) == {command.split()[0] for command in COMMANDS}


def test_help_is_told_without_loading_what_takes_long() -> None:
    program = (
        "import sys; from onesided.cli import main\n"
        "try: main()\n"
        f"finally: print(sorted({HEAVY} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=True
    )
    assert "Usage: onesided" in done.stdout
    assert done.stderr == "[]\n"


def test_no_command_at_all_shows_the_help() -> None:
    assert "Commands:" in call().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fit -p P -u U", "Missing option '-o'"),
        ("fit --overwritte -o runs/x", "No such option: --overwritte"),
        ("fit --epochs many -o runs/x", "Invalid value for '--epochs'"),
        ("fit --seed", "--seed"),
        ("rank runs/x", "Missing argument"),
        ("rank runs/x pool --top 0", "Invalid value for '--top'"),
        ("rank runs/x pool --tolerate 7", "Invalid value for '--tolerate'"),
        ("data check cifar10", "Missing option '--root'"),
        ("fitt", "No such command 'fitt'. Did you mean 'fit'?"),
    ],
)
def test_a_mistyped_command_gets_a_short_answer(words: str, said: str) -> None:
    outcome = call(*words.split())
    assert outcome.exit_code == 2
    assert outcome.out == ""
    assert said in outcome.err
    assert len(outcome.err.splitlines()) <= 4
    assert "Traceback" not in outcome.err


def test_what_the_system_refuses_is_told_in_one_sentence() -> None:
    outcome = call("rank", "x" * 300, "pool")
    assert outcome.exit_code == 2
    assert "File name too long" in outcome.err
    assert outcome.err.count("\n") == 1
