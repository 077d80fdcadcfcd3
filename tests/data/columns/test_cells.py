import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest

from onesided.data.columns.cells import Column, WrongCell, cell_value, day_of, number_of, plain


@pytest.mark.parametrize("gap", [None, "", " NA ", "NaN", math.nan, np.nan, np.datetime64("NaT")])
def test_every_way_to_say_nothing_is_a_gap(gap: object) -> None:
    assert plain(gap) is None


def test_gaps_of_data_frames_are_gaps() -> None:
    pd = pytest.importorskip("pandas", reason="its gaps are tested where it is installed")
    assert plain(pd.NA) is None
    assert plain(pd.NaT) is None


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (3, 3.0),
        (np.float32(0.5), 0.5),
        (Decimal("1.25"), 1.25),
        (10**400, math.inf),
        (True, "true"),
        (np.bool_(False), "false"),
        (" Ulm ", "Ulm"),
        (date(2024, 5, 3), "2024-05-03"),
        (datetime(2024, 5, 3, 12), "2024-05-03T12:00:00"),
    ],
)
def test_a_typed_cell_means_what_a_file_would_say(value: object, meant: object) -> None:
    assert plain(value) == meant


@pytest.mark.parametrize("value", [[1], {"a": 1}, 1j, object()])
def test_what_is_no_cell_is_refused(value: object) -> None:
    with pytest.raises(WrongCell, match="expected a number"):
        plain(value)


def test_days_are_counted_from_1970() -> None:
    start = datetime(1970, 1, 1, tzinfo=UTC)
    for days in (-400, 0, 1, 20000.25):
        when = start + timedelta(days=days)
        assert day_of(when.isoformat(), "iso") == days
    assert day_of("02.01.1970", "%d.%m.%Y") == 1
    assert day_of("1970-01-02", "%d.%m.%Y") is None
    assert day_of("31.02.2020", "%d.%m.%Y") is None


def test_a_category_of_counts_is_spelled_as_a_file_spells_it() -> None:
    column = Column(name="rooms", kind="category")
    assert cell_value(column, 3.0) == cell_value(column, "3") == "3"


@pytest.mark.parametrize(
    ("kind", "cell"), [("number", "tall"), ("number", "1e39"), ("boolean", "2"), ("date", "soon")]
)
def test_a_cell_of_another_kind_is_named(kind: str, cell: str) -> None:
    column = Column.model_validate({"name": "seen", "kind": kind})
    with pytest.raises(WrongCell, match=f"column 'seen' holds '{cell}'"):
        cell_value(column, cell)


def test_a_name_with_an_underscore_is_no_number() -> None:
    assert number_of("1_5") is None
    assert number_of("15") == 15
