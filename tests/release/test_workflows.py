import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml" for name in ("bug", "idea")]
TARGETS = set(re.findall(r"^([a-z-]+)(?: [a-z-]+)*:", (ROOT / "Makefile").read_text(), re.M))


@pytest.mark.parametrize("path", [*WORKFLOWS, *FORMS], ids=lambda path: path.name)
def test_a_workflow_is_what_its_schema_says(path: Path) -> None:
    if find_spec("check_jsonschema") is None:
        pytest.skip("check-jsonschema of the extra dev is not installed")
    kind = "github-workflows" if path in WORKFLOWS else "github-issue-forms"
    words = ("-m", "check_jsonschema", "--builtin-schema", f"vendor.{kind}", str(path))
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_make_targets_that_exist_and_nothing_else(path: Path) -> None:
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert commands or "publish" in jobs
    for command in commands:
        program, target = command.split()[:2]
        assert program == "make", command
        assert target in TARGETS, command


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_job_has_an_end_and_no_more_rights_than_it_needs(path: Path) -> None:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert content["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in content["jobs"].values())


def test_the_judge_of_merges_runs_ordinary_tests_slow_ones_and_checks() -> None:
    judge = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    order = [
        judge.index(step)
        for step in ("rm -rf .venv", "make test\n", "make test-slow", "make check")
    ]
    assert order == sorted(order)
