"""Bad inputs of `onesided map`: how many are refused, and in which sentence?

    python -m tests.campaigns.bad_maps

Runs `tests/cli/bad_input/test_map.py`, which holds every input to the same law: exit code 2, one
sentence, before anything is trained and with no file changed. The result file counts the inputs
and keeps the sentences, for people to read.
"""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from benchmarks.origin import origin
from onesided.storage.atomic import write_json
from tests.campaigns.kills import OUTPUT

TESTS = Path(__file__).parents[1] / "cli" / "bad_input" / "test_map.py"
SAID = "onesided: "


@dataclass
class Collector:
    """Listens to the tests; keeps the sentence of each input by its name."""

    folder: str
    said: dict[str, list[str]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of one test."""
        if report.when != "call":
            self.outcomes["failed"] += report.failed
            return
        self.outcomes[report.outcome] += 1
        lines = [line for line in report.capstdout.splitlines() if line.startswith(SAID)]
        sentences = [line.removeprefix(SAID).replace(self.folder, "FOLDER") for line in lines]
        self.said[report.nodeid.partition("::")[2]] = sentences


def main() -> None:
    """Run the tests and write the result file; exit code 1 if one input was not refused."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=OUTPUT.with_name("bad_maps.json"))
    parser.add_argument("--only", help="inputs whose names hold this")
    given, head = parser.parse_args(), origin()
    with TemporaryDirectory() as folder:
        listening = Collector(folder)
        words = [str(TESTS), "-q", "-p", "no:cacheprovider", f"--basetemp={folder}/tests"]
        pytest.main([*words, *(["-k", given.only] if given.only else [])], plugins=[listening])
    one_sentence = sum(len(sentences) == 1 for sentences in listening.said.values())
    found = {
        "inputs": len(listening.said),
        "refused_in_one_sentence": one_sentence,
        "outcomes": dict(listening.outcomes),
        "rows": [{"input": name, "said": sentences} for name, sentences in listening.said.items()],
    }
    write_json(given.output, {**head, **found})
    print(f"{one_sentence} of {len(listening.said)} bad inputs refused: {given.output}")
    passed = listening.outcomes["passed"]
    sys.exit(not passed or not one_sentence == passed == len(listening.said))


if __name__ == "__main__":
    main()
