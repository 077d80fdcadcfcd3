"""The review page on this machine: a small server that nobody else can talk to.

It listens on 127.0.0.1 alone. Every address starts with a random token. Another web page that the
same browser shows could send requests here too, so the headers Host and Origin must be our own
(which also ends DNS rebinding). Items are asked for by their number: no part of a request ever
becomes a path. The page is one file with a strict policy; whatever comes from files is data.
"""

import json
import secrets
import shlex
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from onesided.core.errors import ConfigError, OnesidedError
from onesided.core.monitor import Monitor, Phase
from onesided.pages.document import document
from onesided.pages.render import visible
from onesided.review.formats import export_text
from onesided.review.session import BROWSED, SHOWN, Pick, Session, Wanted
from onesided.review.strategies import DIVERSE, STRATEGIES
from onesided.storage.json_files import parsed
from onesided.storage.names import without_surrogates
from onesided.storage.optional import library

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

HOST = "127.0.0.1"
TEMPLATE, STYLE = "review/web/page.html", "review/web/style.css"
SCRIPTS = (
    "geo/output/web/elements.js",
    *(f"review/web/{name}.js" for name in ("server", "viewer", "main")),
)
MOST_BYTES = 2**16
"""Bytes of a request: an answer has a hundred."""
MOST_ITEMS = 50
"""Items that are handed out at once."""
HEADERS = {
    b"cache-control": b"no-store",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}
PURPOSE = "The review page"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def check_libraries() -> None:
    """Raise how to install what the server needs, where it is missing."""
    library("starlette.applications", PURPOSE)
    library("uvicorn", PURPOSE)


@dataclass(frozen=True)
class Guard:
    """Lets requests of our own page through, without the token in their path; refuses others.

    Attributes:
        app: Gets what is let through.
        token: First part of every path.
        port: On which the server listens.
    """

    app: App
    token: str
    port: int

    @cached_property
    def hosts(self) -> frozenset[str]:
        """What the header Host may say."""
        return frozenset(f"{name}:{self.port}" for name in (HOST, "localhost"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets
        headers = {key: value.decode("latin-1") for key, value in scope["headers"]}
        first, _, rest = scope["path"].removeprefix("/").partition("/")
        if not self._is_ours(scope["method"], headers):
            await _refuse(send, 403, "This server answers its own page on this machine only.")
        elif not secrets.compare_digest(first.encode("utf-8", "replace"), self.token.encode()):
            await _refuse(send, 403, "The token in this address is wrong. Use the address shown.")
        elif _length(headers) > MOST_BYTES:
            await _refuse(send, 413, "This request is too long to be an answer.")
        else:
            inner = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode(), "root_path": ""}
            await self.app(inner, receive, _with_headers(send))

    def _is_ours(self, method: str, headers: Mapping[bytes, str]) -> bool:
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        if host not in self.hosts:
            return False
        # A browser names the origin of every POST; one that changes something must have it.
        if origin is None:
            return method in ("GET", "HEAD") and headers.get(b"sec-fetch-site", "none") in (
                "none",
                "same-origin",
            )
        return origin == f"http://{host}"


def _length(headers: Mapping[bytes, str]) -> int:
    if b"transfer-encoding" in headers:
        return MOST_BYTES + 1  # of unknown length
    text = headers.get(b"content-length", "0")
    return int(text) if text.isdecimal() and len(text) < 20 else MOST_BYTES + 1


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *HEADERS.items()]
        await send(message)

    return sending


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = sentence.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        *HEADERS.items(),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@dataclass
class Applying(Monitor):
    """A training of the next round in the background, as the page shows it."""

    running: bool = False
    sentence: str = ""
    error: str = ""
    done: float = 0.0
    warnings: list[str] = field(default_factory=list)

    def note(self, sentence: str) -> None:
        """Show a notice."""
        super().note(sentence)
        self.sentence = sentence

    def warn(self, sentence: str) -> None:
        """Keep a warning until the training ends."""
        super().warn(sentence)
        self.warnings.append(sentence)

    @contextmanager
    def phase(self, title: str) -> Iterator[Phase]:
        """Show a phase and its progress."""
        self.sentence, self.done = f"{title[:1].upper()}{title[1:]}.", 0.0
        yield _Progress(self)

    def to_json(self) -> dict[str, object]:
        """Return what the page shows."""
        names = ("running", "sentence", "error", "done", "warnings")
        return {name: getattr(self, name) for name in names}


class _Progress(Phase):
    def __init__(self, applying: Applying) -> None:
        self._applying = applying

    def __call__(self, done: int, total: int | None) -> None:
        self._applying.done = done / total if total else 0.0


@dataclass
class Page:
    """The answers of the server, each a function of the session.

    Attributes:
        session: The review.
        train: Trains the next round and returns a sentence about it; None where it cannot.
        applying: The state of that training.
    """

    session: Session
    train: Callable[[Monitor], str] | None = None
    applying: Applying = field(default_factory=Applying)
    _one: threading.Lock = field(default_factory=threading.Lock)
    _reading: threading.Thread | None = None

    def read_features(self) -> None:
        """Begin to read the features of all items, so that the first item need not wait for them.

        Until they are there, an item is shown without those that look alike.
        """
        self._reading = threading.Thread(target=lambda: self.session.features, daemon=True)
        self._reading.start()

    @property
    def _is_reading(self) -> bool:
        return self._reading is not None and self._reading.is_alive()

    def html(self) -> str:
        """Return the page."""
        session = self.session
        facts = {
            "run": visible(session.run.resolve().name),
            "reviewer": session.reviewer,
            "audit": session.drawn is not None,
            "blind": session.blind,
            "strategies": ["mixed", *self._strategies()],
            "answered": list(SHOWN),
            "threshold": session.threshold,
            "round": session.round,
            "may_train": self.train is not None,
            "at_the_end": self._at_the_end(),
        }
        return document(
            TEMPLATE,
            title=f"{visible(session.run.resolve().name)}: onesided review",
            style=STYLE,
            scripts=SCRIPTS,
            talks_to_server=True,
            facts=_for_script(facts),
            run_name=session.run.resolve().name,
            audit=session.drawn is not None,
        )

    def _at_the_end(self) -> str:
        """Return what is shown when no item is left: what to do next."""
        run = visible(shlex.quote(str(self.session.run)), 300)
        if self.session.drawn is not None:
            return f"All drawn items are answered. For the figures: onesided audit {run} estimate"
        return f"No item is left to answer. To train again: onesided review {run} --apply"

    def _strategies(self) -> list[str]:
        has_features = self._is_reading or self.session.features is not None
        return [name for name in STRATEGIES if name != DIVERSE or has_features]

    def state(self, query: Mapping[str, str]) -> dict[str, object]:
        """Return progress, agreement, and what a training in the background does."""
        session = self.session
        done = session.progress(query.get("reviewer"))
        return {
            "items": done.items,
            "answered": done.answered,
            "counts": dict(done.counts),
            "contested": done.contested,
            "own": done.own,
            "per_hour": done.found_per_hour,
            # Not in a blind audit: what came before must not influence what is said next.
            "recent": [0, 0] if session.blind else list(done.recent),
            "agreement": [visible(f"{pair}.") for pair in session.agreement()[:10]],
            "applying": self.applying.to_json(),
        }

    def next(self, query: Mapping[str, str]) -> dict[str, object]:
        """Return the next items to look at."""
        wanted = Wanted(
            low=_number(query, "low", 0.0),
            high=_number(query, "high", 1.0),
            text=query.get("text", ""),
            answered=query.get("answered", SHOWN[0]),
        )
        picks = self.session.next(
            int(min(max(_number(query, "count", 10), 1), MOST_ITEMS)),
            strategy=query.get("strategy", "mixed"),
            reviewer=query.get("reviewer"),
            wanted=wanted,
            second_opinion=query.get("second") == "yes",
        )
        who = query.get("reviewer") or self.session.reviewer
        return {"items": [self.described(pick, who) for pick in picks]}

    def item(self, query: Mapping[str, str]) -> dict[str, object]:
        """Return one item that the reviewer chose."""
        row = int(min(max(_number(query, "row", -1), -1), len(self.session.items)))
        self._item(row)
        pick = self.session.pick(row, BROWSED)
        return {"item": self.described(pick, query.get("reviewer") or self.session.reviewer)}

    def described(self, pick: Pick, reviewer: str) -> dict[str, object]:
        """Return an item as the page shows it; nothing in it is trusted as markup."""
        session = self.session
        shown = session.shown_items.show(pick.item)
        # Neighbours would tell a blind reviewer nothing, but their place in the ranking would.
        alike = [] if session.blind or self._is_reading else session.similar(pick.row)
        return {
            **asdict(pick),
            "item": visible(pick.item),
            "pictures": list(shown.pictures),
            "text": without_surrogates(shown.text),
            "cells": [[visible(name), visible(value, 2000)] for name, value in shown.cells],
            "missing": visible(shown.missing),
            "own": session.own_answer(pick.item, " ".join(reviewer.split())),
            "alike": [self._alike(row) for row in alike],
        }

    def _alike(self, row: int) -> dict[str, object]:
        session = self.session
        item = session.items[row]
        shown = session.shown_items.show(item)
        return {
            "row": row,
            "item": visible(item),
            "picture": bool(shown.pictures),
            "text": visible(shown.text, 120),
            "answer": session.settled_answer(item),
        }

    def answer(self, body: Mapping[str, Any]) -> dict[str, object]:
        """Store an answer; it is on the disk when this returns."""
        item = self._item(body.get("row"))
        strategy, reviewer = str(body.get("strategy", ""))[:40], _reviewer(body)
        given = self.session.answer(
            item, str(body.get("answer")), reviewer=reviewer, strategy=strategy
        )
        return {"saved": given.answer, **self.state({"reviewer": given.reviewer})}

    def undo(self, body: Mapping[str, Any]) -> dict[str, object]:
        """Take back the last answer of a reviewer, and return its item."""
        reviewer = _reviewer(body) or self.session.reviewer
        last = self.session.undo(reviewer)
        state = self.state({"reviewer": reviewer})
        if last is None:
            return {"item": None, **state}
        pick = self.session.pick(self.session.row_of[last.item], last.strategy)
        return {"item": self.described(pick, reviewer), "was": last.answer, **state}

    def _item(self, row: object) -> str:
        if type(row) is not int or not 0 <= row < len(self.session.items):
            raise ConfigError(f"There is no item number {str(row)[:20]}.")
        return self.session.items[row]

    def apply(self, body: Mapping[str, Any]) -> dict[str, object]:
        """Begin to train the next round, unless it is being trained."""
        train = self.train
        if train is None:
            raise ConfigError("The next round of this run is trained by a command.")
        with self._one:
            if not self.applying.running:
                self.applying = Applying(running=True, sentence="Preparing.")
                threading.Thread(
                    target=self._train, args=(train, self.applying), daemon=True
                ).start()
        return self.state({})

    def _train(self, train: Callable[[Monitor], str], applying: Applying) -> None:
        try:
            applying.sentence = train(applying)
        except OnesidedError as error:
            applying.error = str(error)
        except Exception as error:  # a thread has nobody above it who would say so
            applying.error = f"Training failed ({type(error).__name__}: {error})."
            raise
        finally:
            applying.running = False


def _reviewer(body: Mapping[str, Any]) -> str | None:
    given = body.get("reviewer")
    return given if isinstance(given, str) and given.strip() else None


def _number(query: Mapping[str, str], name: str, otherwise: float) -> float:
    text = query.get(name, "").strip()
    try:
        number = float(text) if text else otherwise
    except ValueError:
        raise ConfigError(f"'{text[:20]}' is no number.") from None
    if number != number:
        raise ConfigError(f"'{text[:20]}' is no number.")
    return number


def _for_script(facts: Mapping[str, object]) -> Markup:
    """Return JSON that cannot end the script element it is in."""
    return Markup(json.dumps(facts).replace("<", "\\u003c"))


def application(page: Page, *, token: str, port: int) -> App:
    """Return the server's application: its routes behind the guard."""
    check_libraries()
    return Guard(_routes(page), token, port)


def _routes(page: Page) -> "Starlette":
    from starlette.applications import Starlette
    from starlette.responses import HTMLResponse, PlainTextResponse, Response
    from starlette.routing import Route

    def html(request: "Request") -> Response:
        return HTMLResponse(page.html())

    def picture(request: "Request") -> Response:
        row, which = request.path_params["row"], request.path_params["which"]
        session = page.session
        inside = row < len(session.items)
        found = session.shown_items.picture(session.items[row], which) if inside else None
        if found is None:
            return PlainTextResponse("There is no such picture.", status_code=404)
        return Response(found.content, media_type=found.media_type)

    def saved(request: "Request") -> Response:
        named = {"content-disposition": 'attachment; filename="answers.csv"'}
        content = export_text(page.session, ".csv")
        return Response(content, media_type="text/csv; charset=utf-8", headers=named)

    get, post = ["GET"], ["POST"]
    return Starlette(
        routes=[
            Route("/", html, methods=get),
            Route("/state", _reading(page.state), methods=get),
            Route("/next", _reading(page.next), methods=get),
            Route("/item", _reading(page.item), methods=get),
            Route("/picture/{row:int}/{which:int}", picture, methods=get),
            Route("/answers.csv", saved, methods=get),
            Route("/answer", _changing(page.answer), methods=post),
            Route("/undo", _changing(page.undo), methods=post),
            Route("/apply", _changing(page.apply), methods=post),
        ]
    )


def _reading(
    find: Callable[[Mapping[str, str]], object],
) -> Callable[["Request"], "Response"]:
    # Not a coroutine: Starlette runs it in a thread, since it reads files.
    return lambda request: _answered(find, dict(request.query_params))


def _changing(
    change: Callable[[Mapping[str, Any]], object],
) -> Callable[["Request"], Awaitable["Response"]]:
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse

    async def handle(request: "Request") -> "Response":
        body = await _body(request)
        if body is None:
            return JSONResponse({"error": "Expected a JSON object."}, status_code=400)
        return await run_in_threadpool(_answered, change, body)

    return handle


def _answered(make: Callable[[Any], object], given: Mapping[str, Any]) -> "Response":
    """Return what a function says as JSON; bad input gets its sentence."""
    from starlette.responses import JSONResponse

    try:
        return JSONResponse(make(given))
    except OnesidedError as error:
        return JSONResponse({"error": visible(str(error), 1000)}, status_code=400)


async def _body(request: "Request") -> dict[str, Any] | None:
    try:
        content = parsed(await request.body())
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def serve(page: Page, *, port: int, announce: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C.

    Args:
        page: What to serve.
        port: On 127.0.0.1; 0 takes a free one.
        announce: Called with the address, once the server accepts requests.
    """
    check_libraries()
    uvicorn = library("uvicorn", PURPOSE)
    token = secrets.token_urlsafe(24)
    # The protocol by name, or asyncio leaves Nagle's rule on: 40 ms for each answer.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
        except OSError as error:
            raise ConfigError(
                f"Port {port} of this machine cannot be used ({error.strerror}). Choose another "
                "with --port, or leave it out."
            ) from None
        listening.listen(64)
        taken = listening.getsockname()[1]
        server = uvicorn.Server(
            uvicorn.Config(
                application(page, token=token, port=taken),
                log_level="warning",
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                timeout_graceful_shutdown=2,
            )
        )
        page.read_features()
        # The server has stopped in order when it hands Ctrl-C on.
        with suppress(KeyboardInterrupt):
            announce(f"http://{HOST}:{taken}/{token}/")
            server.run(sockets=[listening])
