"""What a table costs is said in advance: by finished cells, else by timed steps."""

import json
from pathlib import Path

import pytest

from onesided.bench.cells import Cell, planned
from onesided.bench.progress import Estimate, kind_of, samples
from onesided.bench.suite import tables_named
from onesided.bench.timing import kinds, seconds_per_sample
from onesided.jobs.bench import list_tables
from tests.cli.command import call

NCPU = Cell("ncpu", "table2", "ncpu", "toy-images", "smoke", 0)
SMOKE = kinds(planned(tables_named("ncpu"), "smoke", [0]))


@pytest.mark.parametrize("kind", SMOKE, ids=lambda kind: f"{kind.method}-{kind.alignment}")
def test_every_kind_of_run_can_be_timed(kind: object) -> None:
    cell = next(cell for known, cell in SMOKE.items() if known is kind)
    seconds = seconds_per_sample(cell)
    assert (seconds is None) == (cell.what.method == "puet")
    assert seconds is None or seconds > 0


def test_finished_cells_count_more_than_timed_steps(tmp_path: Path) -> None:
    rate = {**kind_of(NCPU)._asdict(), "seconds": 2.0}
    (tmp_path / "costs.json").write_text(json.dumps({"rates": [rate]}))
    estimate = Estimate(tmp_path)
    assert estimate.hours(NCPU) == pytest.approx(2.0 * samples(NCPU) / 3600)
    estimate.learn(NCPU, {"seconds": 3600.0})
    assert estimate.hours(NCPU) == pytest.approx(1.0)
    assert "About 1.0 hours left" in estimate.words([NCPU])


def test_a_shorter_schedule_costs_as_much_for_each_sample() -> None:
    def hours(scale: str) -> float:
        found = Estimate().hours(Cell("ncpu", "table2", "ncpu", "digits", scale, 0))
        assert found is not None
        return found

    assert hours("small-100") == pytest.approx(hours("small") * 100 / 1300)


def test_an_epoch_of_fixed_length_does_not_grow_with_the_data() -> None:
    def of(data: str) -> int:
        return samples(Cell("ncpu", "table1", "holisticpu", data, "small", 0))

    assert of("digits") == of("cifar10") == 40 * 512 * 64


def test_the_list_has_every_table_with_its_cells() -> None:
    found = {one.name: one for one in list_tables("ncpu")}
    assert found["table2"].cells["paper"] == 7
    assert found["table2"].cells["small"] == 14
    assert found["figure1"].cells["paper"] == 0
    assert call("bench", "list", "ncpu", "-q").out.splitlines()[0] == "ncpu/table1"


def test_measured_steps_are_written_with_their_machine(tmp_path: Path) -> None:
    outcome = call("bench", "list", "ncpu/table7", "--measure", "smoke", "-o", tmp_path, "--json")
    assert outcome.exit_code == 0, outcome.err
    content = json.loads((tmp_path / "costs.json").read_text())
    assert content["machine"]["cpu"]
    assert {one["method"] for one in content["rates"]} == {"ncpu"}
    refused = call("bench", "list", "ncpu", "--measure", "smoke")
    assert refused.exit_code == 2
