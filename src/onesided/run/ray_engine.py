"""Ray as the engine: the one place that starts it, gives it work, and words its errors.

Work comes in two forms. A listing of many small items is a Ray Data pipeline (`entries`): workers
open what they need once and then take chunks of items; entries come back in order, so the driver
keeps them in the same journal as one process. A few large pieces are Ray tasks (`results`), each of
which writes its own file or folder, and may end in any order. Either way the driver plans and
finishes as one process does, so a stopped command is resumed by either engine; and work whose
worker or node dies is given to another one.

Workers open inputs and outputs by their paths: on a cluster they lie on a disk that all machines
see.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from onesided.core.errors import ConfigError, OnesidedError, first_line
from onesided.storage.optional import library
from onesided.storage.sorting import read_records

OBJECT_STORE = 100 * 2**20
"""Bytes that Ray may keep of results on this machine: a chunk of scores is a few thousand."""
RETRIES = 5
"""How often a task may lose its worker. One that always does would else be tried for ever."""
ENGINES = ("local", "ray")
_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


class ChunkWork(Protocol):
    """Work on chunks of a listing; every worker gets a copy."""

    def open(self) -> "Callable[[list[bytes]], Mapping[str, Any]]":
        """Open what the work needs; return what makes an entry of a chunk's records."""
        ...


@dataclass(frozen=True)
class Listed:
    """A listing on disk, the length of a chunk, and where the chunks to do begin in it."""

    path: Path
    chunk: int
    offsets: Sequence[int]


@dataclass(frozen=True)
class RayEngine:
    """Ray as the engine of a job.

    Attributes:
        workers: How many processes work at a time.
        address: Of a cluster that runs already, or auto; None starts Ray on this machine.
    """

    workers: int = 2
    address: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= 10_000:
            raise ConfigError(f"workers is {self.workers}; expected a number from 1 to 10000.")

    def entries(self, work: ChunkWork, listed: Listed) -> Iterator[dict[str, Any]]:
        """Yield the entry of each chunk, in order."""
        offsets = listed.offsets
        if not offsets:
            return
        data = library("ray.data", "The engine ray")
        with self._running(cpus=1):
            context = data.DataContext.get_current()
            context.execution_options.preserve_order = True
            context.enable_progress_bars = False
            context.max_errored_blocks = 0
            blocks = min(len(offsets), 4 * self.workers + len(offsets) // 8)
            places = [{"offset": offset} for offset in offsets]
            found = data.from_items(places, override_num_blocks=blocks).map_batches(
                _ChunkWorker,
                fn_constructor_args=(work, listed.path.resolve(), listed.chunk),
                batch_size=1,
                num_cpus=1,
                concurrency=min(self.workers, len(offsets)),
            )
            for row in found.iter_rows():
                yield json.loads(row["entry"])

    def results(
        self, function: Callable[[_Task], _Result], tasks: Sequence[_Task], *, cpus: int = 1
    ) -> Iterator[tuple[_Task, _Result]]:
        """Yield each task with the function's result, as they end.

        Args:
            function: Of a module, since workers import it. Done twice it must give the same: a
                task whose worker dies is given to another one.
            tasks: What it is given, one by one.
            cpus: Cores that Ray keeps for each of them.
        """
        if not tasks:
            return
        with self._running(cpus=cpus) as ray:
            remote = ray.remote(num_cpus=cpus, max_retries=RETRIES)(function)
            left, running = iter(tasks), dict[Any, _Task]()
            # No more than there are workers: a cluster may have more cores than are asked for.
            for task in islice(left, self.workers):
                running[remote.remote(task)] = task
            while running:
                (done,), _ = ray.wait(list(running), num_returns=1)
                task, result = running.pop(done), ray.get(done)
                for following in islice(left, 1):
                    running[remote.remote(following)] = following
                yield task, result

    @contextmanager
    def _running(self, *, cpus: int) -> Iterator[Any]:
        """Give Ray, started where it was not; word its errors."""
        ray = library("ray", "The engine ray")
        started = not ray.is_initialized()
        if started:
            self._start(ray, cpus)
        try:
            yield ray
        except ray.exceptions.RayError as error:
            raise _in_words(error) from None
        finally:
            if started:
                ray.shutdown()

    def _start(self, ray: Any, cpus: int) -> None:  # noqa: ANN401 - a library
        # Ray would tell its makers that it was started; nobody asked the user.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        if self.address is not None:
            try:
                ray.init(address=self.address, **quiet)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise ConfigError(
                    f"There is no Ray cluster at {self.address} ({first_line(error)}). Start one "
                    "with ray start --head, or leave out --address."
                ) from None
            return
        ray.init(
            num_cpus=self.workers * cpus,
            object_store_memory=OBJECT_STORE,
            include_dashboard=False,
            **quiet,
        )


def engine_named(engine: str, *, workers: int, address: str | None) -> RayEngine | None:
    """Return the engine of a name; None is this process."""
    if engine not in ENGINES:
        raise ConfigError(f"engine is {engine}; expected {' or '.join(ENGINES)}.")
    if engine == "local" and address is not None:
        raise ConfigError("--address is that of a Ray cluster; add --engine ray.")
    if engine == "local":
        return None
    library("ray.data", "The engine ray")
    return RayEngine(workers, address)


class _ChunkWorker:
    """A worker: opens what its work needs once, then makes entries of chunks."""

    def __init__(self, work: ChunkWork, listing: Path, chunk: int) -> None:
        self.listing, self.chunk, self.entry_of = listing, chunk, work.open()

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[str]]:
        entries = []
        for offset in batch["offset"]:
            records = list(islice(read_records(self.listing, int(offset)), self.chunk))
            entries.append(json.dumps(self.entry_of(records)))
        return {"entry": entries}


def _in_words(error: BaseException) -> OnesidedError:
    """Return what to tell about an error of Ray; bad input keeps its own sentence."""
    cause: BaseException | None = getattr(error, "cause", None)
    while cause is not None and not isinstance(cause, OnesidedError):
        cause = cause.__cause__
    if cause is not None:
        return cause
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    last = lines[-1][:300] if lines else type(error).__name__
    return OnesidedError(
        f"Ray could not do all of the work ({last}). What is done is kept; the same command "
        "resumes."
    )
