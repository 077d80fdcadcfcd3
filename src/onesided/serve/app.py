"""The HTTP application: one model, POST /score, and what operators need around it."""

import asyncio
import hmac
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from onesided.core.errors import DataError
from onesided.run.opened import Opened
from onesided.serve.batching import Batcher, Busy
from onesided.serve.openapi import document, sentence_for
from onesided.serve.samples import IMAGE_TYPES, JSON, image_in, rows_in
from onesided.storage.optional import library

OPEN = "/health"
"""The path that needs no token."""
DECODERS = 2
"""Bodies that are read at a time: a small file can claim 64 million pixels."""


@dataclass(frozen=True)
class Limits:
    """What a server accepts.

    Attributes:
        bytes: Of a body.
        seconds: For a body to come, and for its scores.
        batch: Samples that are scored at once.
        waiting: Samples that may wait.
        held: Bytes of all bodies that are in memory at a time; one of `bytes` always may.
    """

    bytes: int = 16 * 2**20
    seconds: float = 30.0
    batch: int = 64
    waiting: int = 20_000
    held: int = 256 * 2**20


def version() -> str:
    """Return the version of this library."""
    try:
        return metadata.version("onesided")
    except metadata.PackageNotFoundError:
        return "source"


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, sentence: str = "") -> None:
        self.code, self.sentence = code, sentence or sentence_for(code)
        super().__init__(self.sentence)


class Room:
    """Bytes of bodies in memory: many slow clients with large bodies would fill it."""

    def __init__(self, most: int) -> None:
        self.most, self.taken = most, 0

    @contextmanager
    def body(self) -> Iterator[Callable[[int], None]]:
        """Give what takes room for the next part of one body, or raises `Busy`; free it after."""
        mine = 0

        def take(size: int) -> None:
            nonlocal mine
            if self.taken + size > self.most:
                raise Busy
            self.taken, mine = self.taken + size, mine + size

        try:
            yield take
        finally:
            self.taken -= mine


def build_app(
    model: Opened,
    limits: Limits,
    *,
    token: str | None = None,
    hosts: tuple[str, ...] = ("*",),
) -> Any:  # noqa: ANN401 - of a library
    """Return the application for a model.

    Args:
        model: What scores.
        limits: What is accepted.
        token: The bearer token that requests must bear; None asks for none.
        hosts: Names by which the server may be called. Pages of other sites cannot use one that is
            bound to this machine then.
    """
    applications = library("starlette.applications", "Serving a model")
    routing = library("starlette.routing", "Serving a model")
    trusted = library("starlette.middleware.trustedhost", "Serving a model")
    middleware = library("starlette.middleware", "Serving a model").Middleware
    http_error = library("starlette.exceptions", "Serving a model").HTTPException
    service = Service(model, limits, token)
    app = applications.Starlette(
        routes=[
            routing.Route("/score", service.answering(service.score), methods=["POST"]),
            routing.Route("/health", service.answering(service.health)),
            routing.Route("/metrics", service.answering(service.metrics)),
            routing.Route("/openapi.json", service.answering(service.openapi)),
        ],
        middleware=[middleware(trusted.TrustedHostMiddleware, allowed_hosts=list(hosts))],
        exception_handlers={http_error: service.not_ours, Exception: service.failed},
        lifespan=service.lifespan,
    )
    app.router.redirect_slashes = False  # a redirection is no answer, and needs no token
    return app


class Service:
    """What the paths do."""

    def __init__(self, model: Opened, limits: Limits, token: str | None) -> None:
        self.model, self.limits, self.token = model, limits, token
        self.responses = library("starlette.responses", "Serving a model")
        self.left = library("starlette.requests", "Serving a model").ClientDisconnect
        self.room = Room(max(limits.held, limits.bytes))
        self.decoders: ThreadPoolExecutor | None = None
        self.prometheus = prometheus = library("prometheus_client", "Serving a model")
        self.registry = registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=registry)
        words = "Requests, by path and status."
        self.requests = prometheus.Counter(
            "onesided_requests", words, ["path", "status"], registry=registry
        )
        self.items = prometheus.Counter("onesided_items", "Samples scored.", registry=registry)
        self.seconds = prometheus.Histogram(
            "onesided_request_seconds", "Time from request to answer.", registry=registry
        )
        self.batches = prometheus.Histogram(
            "onesided_batch_items",
            "Samples that were scored at once.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 1024),
            registry=registry,
        )
        batcher = Batcher(
            model.scores, most=limits.batch, waiting=limits.waiting, observe=self.batches.observe
        )
        waiting = prometheus.Gauge("onesided_waiting_items", "Samples waiting.", registry=registry)
        waiting.set_function(lambda: batcher.waiting)
        self.batcher = batcher

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        """Score while the server runs."""
        self.decoders = ThreadPoolExecutor(DECODERS, "bodies")
        await self.batcher.start()
        yield
        await self.batcher.stop()
        self.decoders.shutdown(wait=False, cancel_futures=True)

    def answering(self, answer: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        """Return the answer with checks before it, and errors as JSON."""

        async def endpoint(request: Any) -> Any:  # noqa: ANN401 - of a library
            began = time.perf_counter()
            try:
                self._check_token(request)
                response = await answer(request)
            except Refused as error:
                headers = {"WWW-Authenticate": "Bearer"} if error.code == 401 else {}
                headers |= {"Retry-After": "1"} if error.code == 503 else {}
                response = self._error(error.code, error.sentence, headers)
            self.requests.labels(request.url.path, response.status_code).inc()
            self.seconds.observe(time.perf_counter() - began)
            return response

        return endpoint

    def _error(self, code: int, sentence: str, headers: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401
        return self.responses.JSONResponse({"error": sentence}, code, headers=headers)

    async def not_ours(self, request: object, error: Any) -> Any:  # noqa: ANN401 - of a library
        """Answer a request for a path or method that there is not."""
        self.requests.labels("other", error.status_code).inc()
        return self._error(error.status_code, sentence_for(error.status_code), error.headers)

    async def failed(self, request: Any, error: Exception) -> Any:  # noqa: ANN401 - of a library
        """Answer where the model or this code failed; the log has the details."""
        self.requests.labels(request.url.path, 500).inc()
        return self._error(500, sentence_for(500))

    async def score(self, request: Any) -> Any:  # noqa: ANN401 - of a library
        """Answer POST /score."""
        is_image = len(self.model.sample_shape) == 3
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in (IMAGE_TYPES if is_image else (JSON,)):
            raise Refused(415)
        read = image_in if is_image else rows_in
        try:
            with self.room.body() as take:
                body = await self._body(request, take)
                async with asyncio.timeout(self.limits.seconds):
                    samples = await self._in_thread(read, body)
            async with asyncio.timeout(self.limits.seconds):
                scores: np.ndarray = await self.batcher.score(samples)
        except DataError as error:
            raise Refused(400, str(error)) from None
        except Busy:
            raise Refused(503) from None
        except TimeoutError:
            raise Refused(504) from None
        self.items.inc(len(scores))
        about = {"model_id": self.model.identity, "threshold": self.model.threshold}
        return self.responses.JSONResponse(about | {"results": self._results(scores)})

    async def _in_thread(self, read: Callable[[bytes, Opened], np.ndarray], body: bytes) -> Any:  # noqa: ANN401
        """Return samples. In a thread: decoding a large image would hold up other requests."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.decoders, read, body, self.model)

    def _results(self, scores: np.ndarray) -> list[dict[str, float | str]]:
        threshold, curve = self.model.threshold, self.model.calibration
        results: list[dict[str, float | str]] = [
            {"score": float(score), "decision": "positive" if score > threshold else "negative"}
            for score in scores
        ]
        if curve is not None:
            for result, probability in zip(results, curve.of(scores), strict=True):
                result["probability"] = float(probability)
        return results

    async def health(self, request: object) -> Any:  # noqa: ANN401 - of a library
        """Answer GET /health."""
        about = {"status": "ok", "model_id": self.model.identity, "version": version()}
        return self.responses.JSONResponse(about)

    async def metrics(self, request: object) -> Any:  # noqa: ANN401 - of a library
        """Answer GET /metrics."""
        text = self.prometheus.generate_latest(self.registry)
        return self.responses.PlainTextResponse(text)

    async def openapi(self, request: object) -> Any:  # noqa: ANN401 - of a library
        """Answer GET /openapi.json."""
        about = document(self.model, version(), token=self.token is not None)
        return self.responses.JSONResponse(about)

    def _check_token(self, request: Any) -> None:  # noqa: ANN401 - of a library
        if self.token is None or request.url.path == OPEN:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        # The scheme is a word in any case (RFC 9110, 11.1), the token is not.
        right = hmac.compare_digest(given.encode(), self.token.encode())
        if scheme.lower() != "bearer" or not right:
            raise Refused(401)

    async def _body(self, request: Any, take: Callable[[int], None]) -> bytes:  # noqa: ANN401
        """Return the body; refuse one that is too large before all of it has come."""
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.limits.seconds):
                async for part in request.stream():
                    size += len(part)
                    if size > self.limits.bytes:
                        raise Refused(413)
                    take(len(part))
                    parts.append(part)
        except TimeoutError:
            raise Refused(408) from None
        except self.left:
            raise Refused(400, "The client left before all of its body had come.") from None
        return b"".join(parts)
