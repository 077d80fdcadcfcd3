"""The short part of the fuzz campaign; `make campaigns` runs the long one."""

from pathlib import Path

import pytest

from tests.campaigns.fuzz import Found, fuzz, shares
from tests.campaigns.targets import COMMANDS, READERS

SEED = 0
INPUTS = 12
QUICK_COMMANDS = ("rank items", "evaluate result.json", "audit audit.csv", "audit audit_draw.json")


def assert_clean(found: Found) -> None:
    assert not found.faults, "\n".join(found.faults)
    assert found.inputs == found.refused + found.accepted


@pytest.mark.parametrize("name", READERS)
def test_a_reader_refuses_damaged_files_in_a_sentence(name: str, tmp_path: Path) -> None:
    found = fuzz(name, tmp_path, seed=SEED, numbers=range(INPUTS))
    assert_clean(found)
    assert found.accepted, "not even the sound file was read: the target is broken"


@pytest.mark.parametrize("name", QUICK_COMMANDS)
def test_a_command_refuses_damaged_files_in_a_sentence(name: str, tmp_path: Path) -> None:
    assert_clean(fuzz(name, tmp_path, seed=SEED, numbers=range(3)))


def test_an_input_is_a_function_of_seed_target_and_number(tmp_path: Path) -> None:
    def last(seed: int, place: str) -> bytes:
        (tmp_path / place).mkdir()
        fuzz("labels", tmp_path / place, seed=seed, numbers=range(9))
        return (tmp_path / place / "labels.csv").read_bytes()

    assert last(1, "a") == last(1, "b") != last(2, "c")


def test_a_campaign_spends_its_inputs_on_every_target() -> None:
    counts = shares(10_000)
    assert sum(counts.values()) >= 10_000
    assert counts.keys() == READERS.keys() | COMMANDS.keys()
    assert min(counts.values()) >= 10
