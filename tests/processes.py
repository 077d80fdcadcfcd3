"""Processes of their own that start at once: each is forked from one that has imported our code.

A new interpreter imports torch and us for five seconds. Where a test needs a process to kill, or
one that nothing else was loaded into, Python's fork server imports once and runs nothing itself.
"""

import os
import sys
from collections.abc import Callable, Sequence
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess

PRELOADED = (
    *("tests.regression.runs", "onesided.report", "onesided.run.execute", "onesided.run.load"),
    "onesided.data.read.cache",
)


PATIENCE = 300
"""Seconds; a loaded machine may stand still for a while."""


def processes() -> BaseContext:
    """Return how to start a process: forked where the system can, else a new interpreter."""
    can_fork = "forkserver" in get_all_start_methods()
    context = get_context("forkserver" if can_fork else "spawn")
    context.set_forkserver_preload(list(PRELOADED))
    return context


def started(
    words: Sequence[str], work: Callable[[Sequence[str]], None] | None = None
) -> BaseProcess:
    """Start `onesided WORDS`, or a function that is given these words, in a process of its own."""
    process: BaseProcess = processes().Process(target=work or command, args=(words,))  # type: ignore[attr-defined]
    process.start()
    return process


def ended(process: BaseProcess) -> int | None:
    """Wait for a process; return its exit code, a negative number if a signal ended it."""
    process.join(PATIENCE)
    return process.exitcode


def command(words: Sequence[str]) -> None:
    """Run `onesided WORDS` silently with one thread, and leave with its exit code."""
    import torch

    from onesided.cli import main

    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    sys.argv = ["onesided", *words]
    with open(os.devnull, "w") as sys.stdout:
        main()
