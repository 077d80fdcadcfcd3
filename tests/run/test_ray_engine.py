"""The engine ray: entries in order, bad input in its own words, and addresses that are wrong."""

import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from onesided.core.errors import DataError
from onesided.run.ray_engine import Listed, RayEngine, _check_listening, _in_words, ray_library
from onesided.storage.sorting import record_offsets, write_records


@dataclass(frozen=True)
class Numbers:
    """Work whose first chunk takes longest, and that refuses one record."""

    refused: str = ""

    def open(self) -> Callable[[list[bytes]], dict[str, Any]]:
        """Return what lists the records of a chunk."""

        def entry_of(records: list[bytes]) -> dict[str, Any]:
            words = [record.decode() for record in records]
            if self.refused in words:
                raise DataError(f"{self.refused} is refused. Give another.")
            time.sleep(1.0 if words[0] == "0" else 0.0)
            return {"records": words}

        return entry_of


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    if find_spec("ray") is None:
        pytest.skip("pip install 'onesided[ray]'")
    ray = ray_library()
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20)
    yield ray
    ray.shutdown()


def listed(folder: Path) -> Listed:
    path = folder / "listing"
    write_records(path, (str(number).encode() for number in range(40)))
    return Listed(path, 4, list(record_offsets(path, 4)))


@pytest.mark.slow
def test_entries_come_in_order_whichever_chunk_ends_first(ray: Any, tmp_path: Path) -> None:  # noqa: ANN401
    found = [entry["records"] for entry in RayEngine(2).entries(Numbers(), listed(tmp_path))]
    assert [word for words in found for word in words] == [str(number) for number in range(40)]
    assert ray.is_initialized(), "Ray that was running before is left running"


@pytest.mark.slow
def test_bad_input_on_a_worker_keeps_its_sentence(ray: Any, tmp_path: Path) -> None:  # noqa: ANN401
    with pytest.raises(DataError, match=r"^17 is refused. Give another.$"):
        list(RayEngine(2).entries(Numbers("17"), listed(tmp_path)))


def test_an_error_of_ray_itself_says_that_the_command_resumes() -> None:
    told = str(_in_words(RuntimeError("a\n\nThe node was lost.\n")))
    assert told.startswith("Ray could not do all of the work (The node was lost.).")
    assert "the same command resumes" in told


def test_an_address_is_tried_before_ray_tries_it_for_minutes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}", "auto"):
            _check_listening(address)
    with pytest.raises(OSError, match="refused"):
        _check_listening(f"127.0.0.1:{port}")
