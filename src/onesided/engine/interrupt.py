"""Ctrl-C and SIGTERM request a stop; the loop finishes its step, saves, and ends."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import torch
import torch.distributed as dist

from onesided.core.dist import world

STOPS: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM)
if sys.platform == "win32":
    # Nobody can send SIGTERM there: another process kills, or presses Ctrl-Break.
    STOPS = (*STOPS, signal.SIGBREAK)


@dataclass
class StopRequest:
    """Whether a stop was requested, and by which signal."""

    signal_number: int = 0

    def agreed(self) -> int:
        """Return the signal that stops all processes together, or 0.

        One process may get the signal a step before another. If it stopped alone, the others
        would wait for ever, so the processes exchange one number per step.
        """
        if world() == 1:
            return self.signal_number
        largest = torch.tensor([self.signal_number])
        dist.all_reduce(largest, op=dist.ReduceOp.MAX)
        return int(largest)


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Turn the first SIGINT or SIGTERM into a request; a second Ctrl-C stops at once."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread may install handlers
        return

    def note(number: int, frame: FrameType | None) -> None:
        if request.signal_number and number == signal.SIGINT:
            raise KeyboardInterrupt
        request.signal_number = number

    before = {number: signal.signal(number, note) for number in STOPS}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
