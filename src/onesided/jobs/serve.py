"""A trained model behind HTTP: the job of `onesided serve`."""

import errno
import ipaddress
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from onesided.core.errors import ConfigError, DataNotFound, OnesidedError, first_line
from onesided.core.monitor import Monitor
from onesided.jobs.settings import PathLike
from onesided.run.opened import open_model
from onesided.serve.app import Limits, build_app
from onesided.serve.connections import impatient
from onesided.storage.optional import library

TOKEN = "ONESIDED_TOKEN"
"""Variable of the environment that may hold the bearer token."""
SHORTEST_TOKEN = 16
MOST_CONNECTIONS = 512
ABSENT = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def serve(
    run: PathLike,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token_file: PathLike | None = None,
    largest_mb: float = 16.0,
    seconds: float = 30.0,
    batch: int = 64,
    started: Callable[[str], object] = lambda url: None,
    monitor: Monitor | None = None,
) -> None:
    """Serve a trained model until the process is stopped.

    Args:
        run: Folder of a finished run, or a file that `export` wrote as ONNX.
        host: Address to bind to. Any but this machine's own needs a token.
        port: Port to bind to.
        token_file: File with the bearer token that requests must bear; the environment variable
            ONESIDED_TOKEN may hold it instead.
        largest_mb: Largest body of a request, in megabytes.
        seconds: Time for the head of a request to come, for its body, and for its scores.
        batch: Samples that are scored at once.
        started: Called with the address of /score once the port is ours and the model is loaded.
        monitor: Receives notices.
    """
    monitor = monitor or Monitor()
    if not 0 < largest_mb <= 1024 or not 0 < seconds <= 3600 or not 1 <= batch <= 10_000:
        raise ConfigError(
            "largest_mb is from 0 to 1024, seconds from 0 to 3600, batch from 1 to 10000; got "
            f"{largest_mb}, {seconds} and {batch}."
        )
    token = read_token(token_file)
    local = is_loopback(host)
    if not local and token is None:
        raise ConfigError(
            f"--host {host} lets other machines in, so a token is needed: write one of "
            f"{SHORTEST_TOKEN} characters or more into a file and give --token-file, or set "
            f"{TOKEN}."
        )
    for name in ("prometheus_client", "starlette"):  # before a port is taken and a model opened
        library(name, "Serving a model", extra="serve")
    uvicorn = library("uvicorn", "Serving a model", extra="serve")
    sockets = bound_to(host, port)
    model = open_model(Path(run))
    limits = Limits(bytes=int(largest_mb * 1e6), seconds=seconds, batch=batch)
    names = ("127.0.0.1", "localhost", "[::1]", "::1", host) if local else ("*",)
    app = build_app(model, limits, token=token, hosts=names)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/score"
    monitor.note(f"{model.called} is served on {url} until Ctrl-C.")
    started(url)
    settings = uvicorn.Config(
        app,
        http=impatient(seconds),
        ws="none",
        log_level="warning",
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=10,
    )
    with suppress(KeyboardInterrupt):  # which uvicorn raises again after a graceful end
        uvicorn.Server(settings).run(sockets=sockets)


def bound_to(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen at an address, one for each that its name stands for."""
    sockets = []
    try:
        for family, *_, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            try:
                sockets.append(socket.create_server(place, family=family))
            except OSError as error:
                # localhost may stand for ::1 too, on a machine that has no such address.
                if error.errno not in ABSENT:
                    raise
    except (OSError, UnicodeError) as error:
        for one in sockets:
            one.close()
        reason = first_line(error).partition(" (while")[0]
        raise OnesidedError(
            f"Nothing can listen at {host}, port {port}: {reason}. Give another --port, or as "
            "--host an address of this machine."
        ) from None
    if not sockets:
        raise OnesidedError(f"{host} is no address of this machine. Give another --host.")
    return sockets


def read_token(file: PathLike | None) -> str | None:
    """Return the token of a file or of the environment; refuse a short one."""
    if file is None:
        token = os.environ.get(TOKEN, "").strip()
    else:
        try:
            token = Path(file).read_text(encoding="ascii").strip()
        except FileNotFoundError:
            raise DataNotFound(f"There is no file {file}. Check --token-file.") from None
        except ValueError:
            raise ConfigError(f"{file} holds characters that no token has; use ASCII.") from None
    if not token and file is None:
        return None
    if len(token) < SHORTEST_TOKEN or any(mark.isspace() for mark in token):
        raise ConfigError(
            f"A token is one word of {SHORTEST_TOKEN} characters or more, so that nobody guesses "
            "it; this one is shorter, or has spaces in it."
        )
    return token


def is_loopback(host: str) -> bool:
    """Return whether an address is reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
