"""A server on a real port: connections end, clients may leave, and a taken port is told."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
import uvicorn
from uvicorn.server import ServerState

from onesided.jobs.serve import bound_to
from onesided.run.opened import Opened
from onesided.serve.app import Limits, build_app
from onesided.serve.connections import impatient
from tests.cli.command import assert_refused, call

PATIENCE = 60.0
"""Seconds after which a test fails; a loaded machine may stand still for a while."""
MODEL = Opened(
    "A test", "linear", lambda rows: np.full(len(rows), 0.25), 0.5, (2,), (), (), "an-id"
)
BODY = json.dumps({"rows": [[1, 2]]}).encode()
HEAD = (
    b"POST /score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n"
)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Serve with short limits in a thread of this process."""
    (listener,) = bound_to("127.0.0.1", 0)
    app = build_app(MODEL, Limits(seconds=0.5))
    settings = uvicorn.Config(app, http=impatient(0.5), ws="none", log_level="critical")
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join(PATIENCE)


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        yield connection


def rest_of(connection: socket.socket) -> bytes:
    """Return all that the server sends until it closes the connection."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(2**16):
            parts.append(part)
    return b"".join(parts)


def test_the_body_of_an_answer_does_not_wait_for_the_clients_acknowledgement() -> None:
    """Read from the server's end of a connection: a test by the clock would fail on a busy day."""
    (listener,) = bound_to("127.0.0.1", 0)
    settings = uvicorn.Config(build_app(MODEL, Limits()), ws="none")
    settings.load()

    async def end_of_server() -> int:
        made: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        class Seen(impatient(30)):  # type: ignore[misc]  # a class made by a function
            def connection_made(self, transport: asyncio.Transport) -> None:
                super().connection_made(transport)
                end = transport.get_extra_info("socket")
                made.set_result(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

        server = await asyncio.get_running_loop().create_server(
            lambda: Seen(config=settings, server_state=ServerState(), app_state={}), sock=listener
        )
        async with server:
            with connected(listener.getsockname()[1]):
                return await asyncio.wait_for(made, PATIENCE)

    assert asyncio.run(end_of_server()) == 1


@pytest.mark.parametrize("sent", [b"", b"GET /hea", b"GET /health HTTP/1.1\r\nHost: x\r\nX: "])
def test_a_client_that_sends_no_whole_head_is_let_go(port: int, sent: bytes) -> None:
    with connected(port) as connection:
        connection.sendall(sent)
        assert rest_of(connection) == b""


def test_a_body_that_does_not_come_is_told_and_the_connection_ends(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(HEAD % 500 + b"{")
        assert rest_of(connection).startswith(b"HTTP/1.1 408 ")


def test_a_kept_connection_takes_several_requests_and_a_slow_head_ends_it(port: int) -> None:
    with connected(port) as connection:
        for _ in range(3):
            connection.sendall(HEAD % len(BODY) + BODY)
            found = connection.recv(2**16)
            while b'"score":0.25' not in found:
                found += connection.recv(2**16)
        connection.sendall(b"GET /hea")
        assert rest_of(connection) == b""


def test_a_client_that_leaves_is_no_fault_of_the_server(port: int) -> None:
    def counted(status: int) -> bool:
        answers = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        answers.request("GET", "/metrics")
        text = answers.getresponse().read().decode()
        answers.close()
        return f'path="/score",status="{status}"' in text

    with connected(port) as connection:
        connection.sendall(HEAD % 500 + b"{")
    end = time.monotonic() + PATIENCE
    while not counted(400) and time.monotonic() < end:
        time.sleep(0.05)
    assert counted(400)
    assert not counted(500)


def test_a_port_that_is_taken_is_told_before_the_model_is_loaded(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "run").mkdir()
        outcome = call("serve", tmp_path / "run", "--port", port, "--json")
    assert_refused(outcome, f"Nothing can listen at 127.0.0.1, port {port}", "--port")


def test_an_address_of_another_machine_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONESIDED_TOKEN", "a-token-that-nobody-guesses")
    (tmp_path / "run").mkdir()
    outcome = call("serve", tmp_path / "run", "--host", "192.0.2.7")
    assert_refused(outcome, "192.0.2.7 is no address of this machine")
