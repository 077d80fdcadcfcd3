"""What callers may catch, and what the shell sees."""

import signal

import pytest

from onesided.core import errors
from onesided.core.errors import (
    CheckpointError,
    ConfigError,
    ContractError,
    DataError,
    DataNotFound,
    DegenerateModel,
    Interrupted,
    OnesidedError,
    TrainingFailed,
)

EVERY_ERROR = [value for value in vars(errors).values() if isinstance(value, type)]


@pytest.mark.parametrize("kind", EVERY_ERROR)
def test_one_except_clause_catches_everything_of_ours(kind: type[Exception]) -> None:
    assert issubclass(kind, OnesidedError)


@pytest.mark.parametrize(
    "kind", [DataNotFound, DataError, ConfigError, CheckpointError, TrainingFailed, ContractError]
)
def test_bad_input_exits_with_2(kind: type[OnesidedError]) -> None:
    assert kind("what came").exit_code == 2


def test_a_degenerate_model_exits_with_3() -> None:
    assert DegenerateModel("everything is positive").exit_code == 3


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_exits_as_the_shell_expects(number: int, code: int) -> None:
    assert Interrupted("saved", number).exit_code == code


def test_the_code_of_one_interruption_is_not_that_of_the_next() -> None:
    first, second = Interrupted("saved", signal.SIGINT), Interrupted("saved", signal.SIGTERM)
    assert (first.exit_code, second.exit_code) == (130, 143)


@pytest.mark.parametrize("kind", [DataError, ConfigError])
def test_bad_values_are_value_errors_to_those_who_do_not_know_us(
    kind: type[OnesidedError],
) -> None:
    with pytest.raises(ValueError, match="what came"):
        raise kind("what came")


def test_a_broken_contract_is_a_type_error() -> None:
    assert issubclass(ContractError, TypeError)
