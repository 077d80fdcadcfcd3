"""Requests that a server must survive: what they send, and what became of each.

An attack is bytes on a connection, in parts with pauses between them. The HTTP in them is written
by hand, because libraries refuse to send most of it.
"""

import io
import json
import socket
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from PIL import Image

HANG = 90.0
"""Seconds after which a connection without answer or end counts as a hang."""
NONE: Mapping[str, str] = {}
Outcome = Literal["answered", "refused", "plain", "busy", "ended", "fault", "hang"]
OUTCOMES: dict[Outcome, str] = {
    "answered": "2xx",
    "refused": "4xx and one sentence as JSON",
    "plain": "3xx, or 4xx in plain text",
    "busy": "503, come later",
    "ended": "no answer, connection closed",
    "fault": "other 5xx",
    "hang": "hangs",
}
"""What may become of a request, in the words of the page."""


@dataclass(frozen=True)
class Attack:
    """One connection: parts that are sent with a pause after each, and when the client leaves."""

    kind: str
    parts: tuple[bytes, ...]
    pause: float = 0.0
    leaves: bool = False  # without reading


@dataclass(frozen=True)
class Target:
    """A server under attack: its port, its token, and a request that it should answer."""

    port: int
    token: str
    body: bytes
    content_type: str

    def head(
        self,
        length: int | str,
        *,
        path: str = "/score",
        method: str = "POST",
        headers: Mapping[str, str] = NONE,
    ) -> bytes:
        """Return the head of a request; `headers` replace its own, and empty ones are left out."""
        ordinary = {
            "host": "127.0.0.1",
            "authorization": f"Bearer {self.token}",
            "content-type": self.content_type,
            "content-length": str(length),
            "connection": "close",
        }
        lines = [f"{name}: {value}" for name, value in {**ordinary, **headers}.items() if value]
        return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1")

    def post(
        self,
        body: bytes,
        *,
        path: str = "/score",
        method: str = "POST",
        headers: Mapping[str, str] = NONE,
    ) -> bytes:
        """Return a whole request."""
        return self.head(len(body), path=path, method=method, headers=headers) + body

    @property
    def is_image(self) -> bool:
        """Whether the model takes images."""
        return self.content_type != "application/json"


def attacks(target: Target) -> Iterator[Attack]:
    """Yield all attacks, kind by kind."""
    bodies = image_bodies() if target.is_image else row_bodies()
    for kind, body in bodies:
        yield Attack(kind, (target.post(body),))
    for requests in (_types, _large, _tokens, _paths, _malformed, _slow, _leaving):
        yield from requests(target)


def row_bodies() -> Iterator[tuple[str, bytes]]:
    """Yield bodies that are no rows."""
    cells = ['"x"', "null", "true", "[]", "{}", "NaN", "Infinity", "-Infinity", "1e39", "1e999"]
    cells += [
        "9" * 400,
        '"1"',
        "[[[]]]",
        "0x10",
        "1_000",
        "--1",
        "\\u0000",
        '"\\ud800"',
        "01",
        "+1",
    ]
    for cell in cells:
        yield "wrong types", f'{{"rows": [[1, {cell}, 1, 1, 1, 1]]}}'.encode()
        yield "wrong types", f'{{"rows": {cell}}}'.encode()
        yield "wrong types", cell.encode()
    texts = ["", " ", "{", '{"rows": [[1]]}', '{"rows": []}', '{"rows": [{}]}', '{"rows": [[]]}']
    texts += ['{"rows": [[1,1,1,1,1,1]], "rows": 1}', '{"ROWS": []}', "[" * 10**5, '{"a":' * 10**5]
    yield from (("wrong types", text.encode()) for text in texts)
    yield "wrong types", b"\xff\xfe{}"
    yield "wrong types", '{"rows": [[1,1,1,1,1,1]]}'.encode("utf-16")
    many = b"[1,1,1,1,1,1]," * 10_001
    yield "huge bodies", b'{"rows": [' + many[:-1] + b"]}"
    for filling in (b"[],", b"{},", b"1.5,", b'"a",', b"9,"):
        yield "huge bodies", b'{"rows": [' + filling * (15_000_000 // len(filling)) + b"0]}"
    yield "huge bodies", b'{"rows": [[' + b"9" * 15_000_000 + b"]]}"


def image_bodies() -> Iterator[tuple[str, bytes]]:
    """Yield bodies that are no images, damaged ones, and small files of large images."""
    for text in (b"", b"x", b"{}", b"\0" * 1000, b"<svg/>", b"%!PS-Adobe-3.0 EPSF-3.0", b"GIF89a"):
        yield "wrong types", text
    for ending in ("PNG", "JPEG", "TIFF", "WEBP", "GIF", "BMP", "PPM"):
        whole = encoded(ending, (24, 31))
        random = np.random.default_rng(len(whole))
        for length in random.integers(1, len(whole), 12):
            yield "truncated images", whole[:length]
        for _ in range(12):
            yield "damaged images", flipped(whole, random)
    yield from (("decompression bombs", body) for body in bombs())


@cache
def encoded(ending: str, shape: tuple[int, int]) -> bytes:
    """Return a picture of noise as a file of some format."""
    pixels = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, ending)
    return file.getvalue()


def flipped(whole: bytes, random: np.random.Generator) -> bytes:
    """Return a file of which eight bytes are others."""
    content = np.frombuffer(whole, np.uint8).copy()
    content[random.integers(0, len(content), 8)] = random.integers(0, 256, 8)
    return content.tobytes()


def png(width: int, height: int, pixels: bytes, *chunks: tuple[bytes, bytes]) -> bytes:
    """Return a grey PNG file that claims a size, whatever pixels it holds."""

    def chunk(name: bytes, content: bytes) -> bytes:
        check = zlib.crc32(name + content).to_bytes(4, "big")
        return len(content).to_bytes(4, "big") + name + content + check

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x00\x00\x00\x00"
    parts = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def bombs() -> Iterator[bytes]:
    """Yield small files that are large once they are read, or claim to be."""
    small = bytes(9 * 8)
    for side in (8_001, 30_000, 2**20, 2**31 - 1):
        yield png(side, side, small)
    yield png(8_000, 8_000, bytes(8_001 * 8_000))  # just what is allowed
    yield png(8, 8, bytes(500_000_000))  # more pixels than it claims
    text = zlib.compress(bytes(200_000_000), 9)
    yield png(8, 8, small, (b"zTXt", b"a\0\0" + text))
    yield png(8, 8, small, (b"iCCP", b"a\0\0" + text))
    yield png(8, 8, small, (b"iTXt", b"a\0\1\0\0\0" + text))
    gif = b"GIF89a" + b"\xff" * 4 + b"\0\0\0,\0\0\0\0" + b"\xff" * 4 + b"\0\x02\x02D\x01\0;"
    yield gif
    yield b"BM" + bytes(12) + (40).to_bytes(4, "little") + b"\xff\xff\xff\x7f" * 2 + bytes(28)
    yield b"P6 2000000000 2000000000 255\n" + bytes(100)
    deflated = io.BytesIO()
    Image.new("L", (9_000, 9_000)).save(deflated, "TIFF", compression="tiff_adobe_deflate")
    yield deflated.getvalue()


def _types(target: Target) -> Iterator[Attack]:
    """Yield good bodies under the name of something else."""
    names = ["", "text/html", "application/xml", "multipart/form-data; boundary=x", "image/gif"]
    names += ["application/x-www-form-urlencoded", "*/*", "image", "a" * 5000, "\xe9/\xe9"]
    names.append("image/png" if not target.is_image else "application/json")
    for name in names:
        request = target.post(target.body, headers={"content-type": name})
        yield Attack("wrong content type", (request,))
    for coding in ("gzip", "br", "deflate"):
        bomb = zlib.compress(bytes(10**7))
        yield Attack(
            "wrong content type", (target.post(bomb, headers={"content-encoding": coding}),)
        )


def _large(target: Target) -> Iterator[Attack]:
    """Yield bodies beyond the limit: told, sent, and without end."""
    for claimed in (10**8, 10**12, 10**18):
        yield Attack("huge bodies", (target.head(claimed) + bytes(1000),))
        yield Attack("huge bodies", (target.head(claimed), *[bytes(2**20)] * 40))
    chunked = target.head("", headers={"transfer-encoding": "chunked"})
    block = b"100000\r\n" + bytes(2**20) + b"\r\n"
    for _ in range(4):
        yield Attack("huge bodies", (chunked, *[block] * 40))
        yield Attack("huge bodies", (target.head(17_000_000), *[bytes(10**6)] * 17))


def _tokens(target: Target) -> Iterator[Attack]:
    """Yield good requests without the right token."""
    token = target.token
    wrong = ["", "Bearer", "Bearer ", token, f"Bearer {token}x", f"Bearer {token[:-1]}", "Basic x"]
    wrong += [f"bearer {token.upper()}", f"Bearer  {token}", "Bearer \xe9", f"Bearer {'x' * 8000}"]
    for one in wrong:
        for path in ("/score", "/score/", "/metrics", "/openapi.json"):
            method = "POST" if "score" in path else "GET"
            request = target.post(
                target.body, path=path, method=method, headers={"authorization": one}
            )
            yield Attack("missing or wrong token", (request,))
    yield Attack(
        "missing or wrong token", (target.head(10**9, headers={"authorization": ""}), bytes(10**6))
    )


def _paths(target: Target) -> Iterator[Attack]:
    """Yield paths, methods and names of hosts that there are not."""
    paths = [
        "/",
        "//score",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/score%00",
        "/SCORE",
    ]
    paths += ["/score/..;/metrics", "/docs", "/.env", "/static/../app.py", "*", "http://evil/score"]
    paths += ["/SCORE", "/score#x", "score"]
    paths += [
        "/\xff",
        "/%ff%fe",
        "/" + "a" * 30_000,
        "/score?" + "a=1&" * 5_000,
        "/score#x",
        "score",
    ]
    paths += ["/health/../score", "/;/score", "/score\\..\\x", "/%", "/%zz", "/{path}", "/[::1]"]
    for path in paths:
        for method in ("GET", "POST"):
            yield Attack("path tricks", (target.post(target.body, path=path, method=method),))
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "x"):
        yield Attack("path tricks", (target.post(target.body, method=method),))
    for host in ("evil.example", "127.0.0.1.evil.example", "", "127.0.0.1@evil", "[::1", "a" * 300):
        yield Attack("path tricks", (target.post(target.body, headers={"host": host}),))


def _malformed(target: Target) -> Iterator[Attack]:
    """Yield what is hardly HTTP."""
    good = target.post(target.body)
    first, _, rest = good.partition(b"\r\n")
    lines = [b"", b"GET", b"GET /", b"GET / HTTP/9.9", b"\x16\x03\x01\x02\x00\x01\x00", b"\0" * 64]
    lines += [b"PRI * HTTP/2.0", b"get /health http/1.1", b"POST  /score  HTTP/1.1", b"POST /score"]
    for line in lines:
        yield Attack("malformed HTTP", (line + b"\r\n" + rest,))
    length = str(len(target.body))
    for wrong in (
        "-1",
        "1e3",
        "0x10",
        "",
        " ",
        "9" * 40,
        f"{length}, {length}",
        f"{length},1",
        "+5",
    ):
        yield Attack("malformed HTTP", (target.head(wrong or "\t") + target.body,))
    extra = [b"content-length: 3", b"transfer-encoding: chunked", b"host: evil", b"x" * 100_000]
    extra += [b" folded: 1", b"a: \0", b"a\r: 1", b": 1", b"transfer-encoding: gzip", b"expect: x"]
    extra += [b"upgrade: websocket\r\nconnection: upgrade", b"\r\n".join([b"a: 1"] * 20_000)]
    for line in extra:
        yield Attack("malformed HTTP", (first + b"\r\n" + line + b"\r\n" + rest,))
    chunked = target.head("", headers={"transfer-encoding": "chunked"})
    for chunk in (
        b"zz\r\n",
        b"-1\r\n",
        b"ffffffffffffffff\r\n",
        b"5\r\nabc\r\n0\r\n\r\n",
        b"0\r\n",
    ):
        yield Attack("malformed HTTP", (chunked + chunk,))


def _slow(target: Target) -> Iterator[Attack]:
    """Yield clients that take their time, and such that send nothing."""
    good = target.post(target.body)
    for size, pause in ((7, 0.5), (1, 0.2), (40, 1.0)):
        for start in (0, len(good) - len(target.body)):
            parts = tuple(good[at : at + size] for at in range(start, len(good), size))
            head = () if start == 0 else (good[:start],)
            yield Attack("slow clients", (*head, *parts[:100]), pause=pause)
    for _ in range(3):
        yield Attack("slow clients", ())
        yield Attack("slow clients", (good[:20],))
        yield Attack("slow clients", (target.head(1000) + b"{",))


def _leaving(target: Target) -> Iterator[Attack]:
    """Yield clients that leave before they are answered."""
    for number in range(50):
        yield Attack("clients that leave", (target.post(target.body),), leaves=True)
        yield Attack("clients that leave", (target.head(10_000) + b"x" * number,), leaves=True)


def send(attack: Attack, port: int) -> tuple[Outcome, float]:
    """Return what became of an attack, and after how many seconds."""
    began = time.monotonic()
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=HANG) as connection:
            _give(connection, attack)
            if attack.leaves:
                return "ended", time.monotonic() - began
            while part := connection.recv(2**16):
                answer += part
    except TimeoutError:
        return "hang", time.monotonic() - began
    except ConnectionError:
        pass  # the server has closed it: what came before that counts
    return judged(answer), time.monotonic() - began


def _give(connection: socket.socket, attack: Attack) -> None:
    """Send all parts, or as many as the server takes: it may answer before it has read all."""
    for part in attack.parts:
        try:
            connection.sendall(part)
        except ConnectionError:
            return
        time.sleep(attack.pause)


def judged(answer: bytes) -> Outcome:
    """Return what an answer is."""
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if len(words) < 2 or not words[1].isdigit():
        return "ended"
    return outcome_of(int(words[1]), body)


def outcome_of(code: int, body: bytes) -> Outcome:
    """Return what an answer of this status is."""
    if code == 503:
        return "busy"
    if code >= 500:
        return "fault"
    if code >= 300:
        return "refused" if code >= 400 and is_one_sentence(body) else "plain"
    return "answered"


def is_one_sentence(body: bytes) -> bool:
    """Return whether a body is {"error": "one sentence"}."""
    try:
        content = json.loads(body)
    except ValueError:
        return False
    sentence = content.get("error") if isinstance(content, dict) and len(content) == 1 else None
    return isinstance(sentence, str) and sentence.endswith(".") and "\n" not in sentence


def large_bodies(target: Target, count: int) -> list[Attack]:
    """Return requests of 15 MB each, to be sent at the same time."""
    body = bytes(15_000_000)
    parts = (target.head(len(body)), *[body[:1_000_000]] * 15)
    return [Attack("large bodies at once", parts)] * count


def hold(port: int, count: int) -> Sequence[socket.socket]:
    """Return so many connections on which nothing is sent."""
    return [socket.create_connection(("127.0.0.1", port), timeout=HANG) for _ in range(count)]
