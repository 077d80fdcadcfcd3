from pathlib import Path

import pytest
import torch

from tests.cli.command import assert_refused, call, fit

EMPTY = str(Path(__file__).parent)
"""A folder without images: whoever looks into it says so."""
NOWHERE = ("-p", EMPTY, "-u", EMPTY, "--quiet")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--method ncpo", "There is no method 'ncpo'. Did you mean 'ncpu'?"),
        ("--preset quik", "There is no preset 'quik'. Did you mean 'quick'?"),
        ("--backbone resnet19", "resnet18"),
        (
            "--method teacher --set method.align=none",
            "unknown setting 'align'. Did you mean 'alignment'?",
        ),
        ("--set method.minute=5", "unknown setting 'minute'. Did you mean 'minutes'?"),
        ("--set train.epoch=5", "unknown setting 'epoch'. Did you mean 'epochs'?"),
        ("--set trains.epochs=5", "unknown setting 'trains'. Did you mean 'train'?"),
        ("--set train.epochs=many", "epochs: Input should be a valid integer"),
        ("--set train.batch_size=0", "batch_size"),
        ("--set train.schedule=linear", "'seven-sixteenths', 'constant'"),
        ("--set data.scenario=cohort", "'case-control' or 'single-set'"),
        ("--set data.held_out=1", "held_out"),
        ("--set train=5", "train is 5, but it is a table of settings"),
        ("--set method=nnpu", "method.name=nnpu"),
        ("--set data=5", "data is 5, but it is a table"),
        ("--set data.name=[1]", "such as digits. Got [1]"),
        ("--set train.epochs", "--set takes KEY=VALUE"),
        ("--epochs 0", "greater than or equal to 1. Got 0"),
        ("--seed -1", "The seed is -1"),
        ("--tolerate 1.5", "tolerate"),
        ("--precision fp8", "'fp32' or 'bf16'"),
        ("--device tpu", "'cpu' or 'cuda'"),
        ("--prior 1.5", "The prior is 1.5. It is the share of positives among the unlabelled"),
        ("--prior 0", "The prior is 0. "),
        ("--prior 1", "The prior is 1. "),
        ("--prior nan", "The prior is nan. "),
        ("--prior km3", "expected a number between 0 and 1, or auto, km2, km1"),
        ("--set prior=true", "The prior is True; expected a number"),
    ],
)
def test_a_wrong_setting_is_told_before_any_file_is_read(words: str, said: str) -> None:
    assert_refused(call("fit", *NOWHERE, "-o", "no-such-run", *words.split()), said)


def test_an_unknown_data_set_gets_the_nearest_name() -> None:
    outcome = call("fit", "--data", "cifar11", "-o", "no-such-run")
    assert_refused(outcome, "no data set called 'cifar11'. Did you mean 'cifar10'?")


def test_no_data_at_all_is_told_with_the_three_ways_to_give_some() -> None:
    assert_refused(call("fit", "-o", "no-such-run"), "-p and -u", "--table", "--data")


def test_a_published_set_without_its_files_says_how_to_get_them(tmp_path: Path) -> None:
    outcome = call("fit", "--data", "cifar10", "--root", tmp_path, "-o", tmp_path / "run")
    assert outcome.exit_code == 2
    assert f"onesided data get cifar10 --root {tmp_path}" in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--data digits --table x.csv", "Give one kind of data"),
        ("--data digits -p P -u U", "Give one kind of data"),
        ("-p P", "-u FOLDER of unlabelled items is missing"),
        ("-u U", "-p FOLDER of positives is missing"),
        ("-p P -u U --root DATA", "--root goes with --data, not with -p and -u"),
        ("--data digits --test T", "--test goes with --table or -p and -u, not with --data"),
        ("--data digits --tolerate 0.1", "--tolerate goes with"),
        ("--table x.csv -n N", "-n goes with -p and -u, not with --table"),
    ],
)
def test_flags_that_contradict_each_other_are_named(words: str, said: str) -> None:
    assert_refused(call("fit", "-o", "no-such-run", *words.split()), said)


def test_a_graphics_card_that_is_not_there_is_told(shared_data: Path, tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU, so asking for one is no mistake here")
    outcome = fit(shared_data, tmp_path / "run", "--device", "cuda")
    assert_refused(outcome, "torch finds no GPU", "--device auto")
    assert not (tmp_path / "run").exists()


def test_a_configuration_file_that_is_none_is_named(tmp_path: Path) -> None:
    missing, broken = tmp_path / "no.toml", tmp_path / "broken.toml"
    broken.write_text("[train\nepochs = 5")
    assert_refused(call("fit", "--config", missing, "-o", tmp_path / "run"), missing, "no config")
    assert_refused(call("fit", "--config", broken, "-o", tmp_path / "run"), broken, "valid TOML")
    assert_refused(call("fit", "--config", tmp_path, "-o", tmp_path / "run"), tmp_path)


def test_the_older_of_two_configurations_gives_way(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text('data.name = "digits"\nmethod.name = "ncpu"\nmethod.entropy_weight = 1e400\n')
    assert_refused(call("fit", "--config", file, "-o", tmp_path / "run"), "entropy_weight")
    # Another method: what the file says of NcPU, right or wrong, is not for nnPU.
    words = ("--config", file, "--method", "nnpu", "--set", "train.epoch=1")
    assert_refused(call("fit", *words, "-o", tmp_path / "run"), "unknown setting 'epoch'")
