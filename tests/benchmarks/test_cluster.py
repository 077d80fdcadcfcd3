"""The exercise on paper: its numbers are those of the result files, and Amdahl's law holds."""

import pytest

from benchmarks.cluster import CORES, Costs, costs, hours


def test_unit_costs_are_those_of_the_result_files() -> None:
    regions = {
        "rows": [
            {"name": "5", "buildings": 5, "cpu_seconds": 9.0, "peak_megabytes": 1},
            {"name": "100", "buildings": 100, "cpu_seconds": 2.0, "peak_megabytes": 600},
            {"name": "200 part 1/4", "buildings": 200, "cpu_seconds": 1.0, "peak_megabytes": 2},
        ]
    }
    embedding = {"rows": [{"threads": 1, "per_processor_second": {"folded": 50.0}}]}
    table = {
        "rows": [
            {"rows": 10, "seconds": 9.0, "peak_mb": 3},
            {"rows": 1000, "seconds": 2.0, "peak_mb": 700},
        ]
    }
    found = costs(regions, embedding, table)
    assert found == Costs(cut=0.02, features=0.02, driver=0.002, worker_mb=600, driver_mb=700)


def test_more_machines_shorten_the_workers_and_never_the_driver() -> None:
    unit = Costs(cut=0.01, features=0.03, driver=0.001, worker_mb=1, driver_mb=1)
    workers, driver = hours(3600 * 1000, 10, unit)
    assert workers == pytest.approx(0.04 * 1000 / (10 * CORES))
    assert driver == pytest.approx(1.0)
    fewer, same = hours(3600 * 1000, 20, unit)
    assert (fewer, same) == pytest.approx((workers / 2, driver))
