"""Connections that end: uvicorn waits for the first request of one as long as a client likes."""

import asyncio
import socket
from typing import Any

from onesided.storage.optional import library


def impatient(seconds: float) -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP protocol with two limits that it lacks.

    A client has `seconds` to send the head of a request, and three times as long for all that
    follows: body, scores, and taking the answer. Without the first, a few hundred connections on
    which nothing is sent keep everybody else out; without the last, a client that does not read
    keeps its answer in memory.
    """
    base: Any = library("uvicorn.protocols.http.h11_impl", "Serving a model").H11Protocol

    class Impatient(base):  # type: ignore[misc]  # an optional library has no type here
        """One connection."""

        seen: tuple[object, bool] | None = None
        limit: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            # An answer is two packets, head and body. By Nagle's rule the second waits until the
            # client acknowledges the first: 40 ms a request. asyncio turns it off only where a
            # socket names its protocol, and socket.create_server makes one that does not.
            connection = transport.get_extra_info("socket")
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.watch()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.watch()

        def connection_lost(self, error: Exception | None) -> None:
            if self.limit is not None:
                self.limit.cancel()
            super().connection_lost(error)

        def watch(self) -> None:
            """Start the limit anew where a request began or ended, and only there."""
            busy = self.cycle is not None and not self.cycle.response_complete
            if self.seen == (self.cycle, busy):
                return
            self.seen = self.cycle, busy
            if self.limit is not None:
                self.limit.cancel()
            self.limit = self.loop.call_later(seconds * (3 if busy else 1), self.transport.abort)

    return Impatient
