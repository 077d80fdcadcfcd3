from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onesided.storage import sorting
from onesided.storage.sorting import read_records, sorted_on_disk, write_records


@given(st.lists(st.binary(max_size=20), max_size=60), st.integers(1, 400))
def test_records_come_in_the_order_of_their_bytes_whatever_fits_into_memory(
    tmp_path_factory: pytest.TempPathFactory, records: list[bytes], memory: int
) -> None:
    folder = tmp_path_factory.mktemp("sort")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "MOST_BYTES", memory)
        assert list(sorted_on_disk(iter(records), folder)) == sorted(records)
    assert not list(folder.iterdir())


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_records_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, records: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("records") / "file"
    write_records(path, records)
    assert list(read_records(path)) == records


def test_no_more_is_held_than_fits_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorting, "MOST_BYTES", 10 * (100 + 41))
    runs = sorted_on_disk((b"%0100d" % number for number in range(55)), tmp_path)
    next(runs)
    assert len(list(tmp_path.iterdir())) == 5
    assert sum(1 for _ in runs) == 54
