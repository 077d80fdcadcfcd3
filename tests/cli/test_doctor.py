import json
import re
from importlib import metadata
from unittest.mock import patch

import pytest

import onesided
from onesided.jobs import doctor
from onesided.jobs.doctor import Installed
from tests.cli.command import call


def test_the_doctor_tells_every_library_that_the_package_needs() -> None:
    told = call("doctor")
    assert told.exit_code == 0, told.out
    assert told.out.startswith(f"onesided {onesided.__version__}\n")
    for needed in metadata.requires("onesided") or ():
        if "extra" not in needed:
            (name,) = re.findall(r"^[\w-]+", needed)
            assert f"  {name} {metadata.version(name)} (needed: " in told.out
    assert "Traceback" not in told.out


def test_a_bug_report_names_no_folder_of_the_person() -> None:
    told = call("doctor", "--json")
    found = json.loads(told.out)
    assert found["backbones"]["small"].startswith("yes")
    home = onesided.__file__.rpartition("/onesided/")[0]
    assert home not in told.out


def test_a_missing_library_is_a_problem_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_requirements", lambda: ["onesided-lacks-this>=3"])
    told = call("doctor", "--quiet")
    assert told.exit_code == 2
    assert told.out == (
        "Problem: onesided-lacks-this is missing: onesided needs >=3. Install it with "
        "pip install --upgrade 'onesided-lacks-this>=3'.\n"
    )


def test_a_package_that_is_not_installed_is_told() -> None:
    with patch.object(metadata, "requires", side_effect=metadata.PackageNotFoundError):
        assert "is not installed" in call("doctor", "-q").out


@pytest.mark.parametrize(
    ("version", "fits"),
    [("2.13.0+cpu", True), ("2.14.0rc1", True), ("2.12.1", False), (None, False)],
)
def test_a_version_fits_also_as_a_local_build(version: str | None, fits: bool) -> None:
    assert Installed("torch", version, ">=2.13").fits == fits


def test_the_version_is_told_and_nothing_else() -> None:
    assert call("--version").out == f"onesided {onesided.__version__}\n"


def test_shells_can_complete_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    # Typer asks the process above for the shell otherwise, and tests may run below any.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert "complete_bash" in call("--show-completion", "bash").out
