"""Ray as the engine: the one place that starts it, gives it work, and words its errors.

All work is tasks of Ray, each of which may end in any order and on any machine (`results`): a piece
of a map, a run of a benchmark. Chunks of a long listing are tasks too, whose entries come back in
order (`entries`), so the driver keeps them in the same journal as one process. Either way the
driver plans and finishes as one process does, so a stopped command is resumed by either engine. A
task whose worker or node dies is given to another one.

Tasks and not Ray Data, which starts three processes of its own before the first item, and brings
nothing that a task lacks: a worker opens its model once either way.

Workers open inputs and outputs by their paths: on a cluster they lie on a disk that all machines
see.
"""

import os
import socket
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar

from onesided.core.errors import ConfigError, OnesidedError, first_line
from onesided.storage.optional import library
from onesided.storage.sorting import read_records

OBJECT_STORE = 100 * 2**20
"""Bytes that Ray may keep of results on this machine: a chunk of scores is a few thousand."""
RETRIES = 5
"""How often a task may lose its worker. One that always does would else be tried for ever."""
PATIENCE = 20.0
"""Seconds that a cluster may take to accept a connection."""
SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0"}
"""Variables by which Ray is set, where the user has not set them: it would tell its makers that it
was started."""
ENGINES = ("local", "ray")
_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


class ChunkWork(Hashable, Protocol):
    """Work on chunks of a listing: a frozen dataclass, of which every worker gets a copy."""

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

    def entries(self, work: ChunkWork, listed: Listed) -> Iterator[Mapping[str, Any]]:
        """Yield the entry of each chunk, in order."""
        path, chunk = listed.path.resolve(), listed.chunk
        tasks = [_ChunkTask(work, path, chunk, offset) for offset in listed.offsets]
        # Entries that come before their turn wait here: while a chunk is done again because its
        # node died, that is some ten kilobytes for each chunk that others finish.
        early: dict[int, Mapping[str, Any]] = {}
        turns = iter(listed.offsets)
        turn = next(turns, None)
        for task, entry in self.results(_entry_of, tasks):
            early[task.offset] = entry
            while turn in early:
                yield early.pop(turn)
                turn = next(turns, None)

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
        ray = ray_library()
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
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if self.address is not None:
                _check_listening(self.address)
                ray.init(address=self.address, **quiet)
                return
            ray.init(
                num_cpus=self.workers * cpus,
                object_store_memory=OBJECT_STORE,
                include_dashboard=False,
                **quiet,
            )
        # Ray raises a plain Exception where its own processes are late on a busy machine.
        except Exception as error:
            if self.address is None:
                raise OnesidedError(
                    f"Ray could not be started on this machine ({first_line(error)}). Give the "
                    "same command again, or leave out --engine."
                ) from None
            raise ConfigError(
                f"There is no Ray cluster at {self.address} that lets this command in "
                f"({first_line(error)}). Start one with ray start --head, pass on its token if it "
                "asks for one, or leave out --address."
            ) from None


def _check_listening(address: str) -> None:
    """Raise OSError where nobody listens at an address; Ray itself would try for many minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()


def engine_named(engine: str, *, workers: int, address: str | None) -> RayEngine | None:
    """Return the engine of a name; None is this process."""
    if engine not in ENGINES:
        raise ConfigError(f"engine is {engine}; expected {' or '.join(ENGINES)}.")
    if engine == "local" and address is not None:
        raise ConfigError("--address is that of a Ray cluster; add --engine ray.")
    if engine == "local":
        return None
    ray_library()  # or say how to install it, before anything is read
    return RayEngine(workers, address)


def ray_library() -> ModuleType:
    """Return Ray, set as `SETTINGS` says: it reads them when it is imported."""
    os.environ.update({name: os.environ.get(name, ours) for name, ours in SETTINGS.items()})
    return library("ray", "The engine ray")


@dataclass(frozen=True)
class _ChunkTask:
    """A chunk that begins at a place of a listing, and what is to be done with it."""

    work: ChunkWork
    listing: Path
    chunk: int
    offset: int


def _entry_of(task: _ChunkTask) -> Mapping[str, Any]:
    return _opened(task.work)(list(islice(read_records(task.listing, task.offset), task.chunk)))


@lru_cache(maxsize=1)
def _opened(work: ChunkWork) -> Callable[[list[bytes]], Mapping[str, Any]]:
    """Open what the work needs once in a process, for its first chunk."""
    return work.open()


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
