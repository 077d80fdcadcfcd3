"""Scores by Ray: workers on this machine or on a cluster read, decode and score chunks of items.

The driver lists the items once, as one process does, and keeps the scores in the same journal, in
the same order. So a stopped command is resumed by either engine, and the ranking is the same. A
chunk whose worker dies is given to another one.

Workers open model and items by their paths: on a cluster both, and the output's folder, lie on a
disk that all machines see.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from onesided.core.errors import ConfigError, OnesidedError, first_line
from onesided.storage.optional import library
from onesided.storage.sorting import read_records

OBJECT_STORE = 100 * 2**20
"""Bytes that Ray may keep of results on this machine: a chunk of scores is a few thousand."""


@dataclass(frozen=True)
class Work:
    """What every worker needs to know: model, items, their listing, and the length of a chunk."""

    run: Path
    items: Path
    listing: Path
    chunk: int


@dataclass(frozen=True)
class RayEngine:
    """Ray as the engine of a ranking.

    Attributes:
        workers: How many processes score; each has a core.
        address: Of a cluster that runs already, or auto; None starts Ray on this machine.
    """

    workers: int = 2
    address: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= 10_000:
            raise ConfigError(f"workers is {self.workers}; expected a number from 1 to 10000.")

    def scored(self, work: Work, offsets: Sequence[int]) -> Iterator[Mapping[str, Any]]:
        """Yield the journal's entry of each chunk that begins at one of these places, in order."""
        if not offsets:
            return
        ray = library("ray", "The engine ray")
        data = library("ray.data", "The engine ray")
        started = not ray.is_initialized()
        if started:
            self._start(ray)
        try:
            context = data.DataContext.get_current()
            context.execution_options.preserve_order = True
            context.enable_progress_bars = False
            context.max_errored_blocks = 0
            chunks = [{"offset": offset} for offset in offsets]
            blocks = min(len(chunks), 4 * self.workers + len(chunks) // 8)
            found = data.from_items(chunks, override_num_blocks=blocks).map_batches(
                _Scorer,
                fn_constructor_args=(work,),
                batch_size=1,
                num_cpus=1,
                concurrency=min(self.workers, len(chunks)),
            )
            try:
                for row in found.iter_rows():
                    yield json.loads(row["entry"])
            except ray.exceptions.RayError as error:
                raise OnesidedError(
                    f"Ray could not score all items ({_cause(error)}). Scores so far are kept; the "
                    "same command resumes."
                ) from None
        finally:
            if started:
                ray.shutdown()

    def _start(self, ray: Any) -> None:  # noqa: ANN401 - a library
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
            num_cpus=self.workers,
            object_store_memory=OBJECT_STORE,
            include_dashboard=False,
            **quiet,
        )


class _Scorer:
    """A worker: opens model and items once, then scores chunks."""

    def __init__(self, work: Work) -> None:
        # Here, not above: run.rank imports this module.
        from onesided.run.opened import open_model
        from onesided.run.rank import entry_of, items_for

        self.work = work
        self.model = open_model(work.run, threads=1)
        self.items = items_for(work.items, self.model)
        self.entry_of = entry_of

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[str]]:
        entries = []
        for offset in batch["offset"]:
            records = list(islice(read_records(self.work.listing, int(offset)), self.work.chunk))
            entries.append(json.dumps(self.entry_of(self.items.read(records), self.model)))
        return {"entry": entries}


def _cause(error: BaseException) -> str:
    """Return the last line of an error that went through several processes."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__
