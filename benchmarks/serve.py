"""How many requests does the server answer, how fast, and what do bad ones do to it?

    python -m benchmarks.serve              measure both, and write the result file and the page
    python -m benchmarks.serve --part bad   bad input alone; the rows of load stay as they are
    python -m benchmarks.serve --docs       the page alone, from the result file

Load: a small network is trained on toy images for a moment, exported, and served twice: from its
run folder (torch) and from the exported file (onnxruntime). Several clients in a second process
post images of 32x32 pixels without a pause.

Bad input: the exported network and a linear model of a table are served with a token and a time
limit of ten seconds. They get what schemathesis makes of their OpenAPI document, and the requests
of `benchmarks.hostile`, eight at a time. After each kind a good request must get the score that it
got before.

Claims, written before the first run: no answer of 500 or above but 503; no hang; no request
without the right token gets an answer; the good request is always answered the same; memory stays
below `MOST_MB`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.command import REPOSITORY
from benchmarks.hostile import (
    HANG,
    OUTCOMES,
    Attack,
    Outcome,
    Target,
    attacks,
    hold,
    large_bodies,
    outcome_of,
    send,
)
from benchmarks.origin import Row, origin
from benchmarks.peak import peak_megabytes
from onesided.storage.atomic import read_json, write_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "serve.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "serve.md"
CLIENTS = (1, 8)
PORT = 8765
TOKEN = "a-token-of-the-benchmark"
TIMEOUT = 10
HELD = 600
"""Connections on which nothing is sent; the server takes 512."""
AT_ONCE = 8
MOST_MB = 2000
VERDICTS = {True: "It held.", False: "**It did not hold.**"}
TOKENS, GENERATED, IDLE = "missing or wrong token", "schemathesis", "many connections"
Found = tuple[Outcome, float]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, write the result file and the page."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.serve",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--seconds", type=float, default=15.0, help="for each row of load")
    options.add_argument("--examples", type=int, default=200, help="of schemathesis, for each kind")
    options.add_argument("--part", choices=("all", "load", "bad"), default="all")
    options.add_argument("--docs", action="store_true", help="write the page; measure nothing")
    given = options.parse_args(argv)
    if not given.docs:
        content = read_json(RESULT) if given.part != "all" else {}
        with tempfile.TemporaryDirectory() as folder:
            content |= measure(Path(folder), given.part, given.seconds, given.examples)
        write_json(RESULT, content)
    write_text(PAGE, page(read_json(RESULT)))
    return 0


def measure(work: Path, part: str, seconds: float, examples: int) -> Row:
    """Return the content of the result file, or the part of it that is asked for."""
    began, content = origin(), dict[str, object]()
    train_images(work)
    image = sample(work)
    if part != "bad":
        rows = [
            measured(work / model, engine, clients, image, seconds)
            for model, engine in (("run", "torch"), ("model.onnx", "onnxruntime"))
            for clients in CLIENTS
        ]
        content |= {"name": "serve", "origin": began, "seconds": seconds, "rows": rows}
    if part != "load":
        train_rows(work)
        numbers = json.dumps({"rows": [[0.5] * 6]}).encode()
        targets = {
            "model.onnx": Target(PORT, TOKEN, image, "image/png"),
            "linear.onnx": Target(PORT, TOKEN, numbers, "application/json"),
        }
        bad = [
            row
            for name, target in targets.items()
            for row in attacked(work / name, target, examples)
        ]
        head = {"origin": began, "seed": 0, "timeout": TIMEOUT, "held": HELD, "at_once": AT_ONCE}
        head |= {"examples": examples}
        content["bad_input"] = {**head, "rows": bad, "claims": claims(bad)}
    return content


def train_images(work: Path) -> None:
    """Train and export the network of images."""
    words = ("--data", "toy-images", "--method", "ce", "--epochs", "1", "-o", work / "run")
    command("fit", *words, "--quiet", "--allow-degenerate")
    command("export", work / "run", "-o", work / "model.onnx", "--quiet")


def train_rows(work: Path) -> None:
    """Train and export the linear model of a table."""
    write_table(work / "table.csv")
    words = ("--table", work / "table.csv", "--method", "linear", "-o", work / "linear")
    command("fit", *words, "--quiet", "--allow-degenerate")
    command("export", work / "linear", "-o", work / "linear.onnx", "--quiet")


def command(*words: object) -> None:
    """Run a command of onesided."""
    subprocess.run([sys.executable, "-m", "onesided", *map(str, words)], check=True)


def sample(work: Path) -> bytes:
    """Return an image as PNG."""
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(work / "image.png")
    return (work / "image.png").read_bytes()


def write_table(path: Path) -> None:
    """Write a table of two clouds of six numbers."""
    random = np.random.default_rng(0)
    positive = np.arange(400) < 160
    numbers = random.standard_normal((400, 6)) + positive[:, None]
    lines = ["a,b,c,d,e,f,label"]
    for row, number in enumerate(numbers.round(4)):
        label = "positive" if row < 80 else "unlabelled"
        lines.append(",".join([*map(str, number), label]))
    write_text(path, "\n".join([*lines, ""]))


@contextmanager
def serving(model: Path, *words: str, token: str = "") -> Iterator["subprocess.Popen[bytes]"]:
    """Serve a model in a process of its own."""
    line = [
        sys.executable,
        "-m",
        "onesided",
        "serve",
        str(model),
        "--port",
        str(PORT),
        "-q",
        *words,
    ]
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(line, env={**os.environ, "ONESIDED_TOKEN": token}, stderr=log)
        try:
            wait_until_up(server)
            yield server
        finally:
            server.terminate()
            server.wait(60)


def measured(model: Path, engine: str, clients: int, image: bytes, seconds: float) -> Row:
    """Return requests per second, percentiles and memory of one server."""
    with serving(model) as server, ThreadPoolExecutor(clients) as pool:
        end = time.perf_counter() + seconds
        each = list(pool.map(lambda _: client(image, end), range(clients)))
        peak = peak_megabytes(server.pid)
    times = np.array([one for found in each for one in found])
    row = {
        "engine": engine,
        "clients": clients,
        "requests": len(times),
        "per_second": round(len(times) / seconds, 1),
        "median_ms": round(1000 * float(np.median(times)), 2),
        "p99_ms": round(1000 * float(np.quantile(times, 0.99)), 2),
        "peak_mb": peak,
    }
    print(json.dumps(row), flush=True)
    return row


def attacked(model: Path, target: Target, examples: int) -> list[Row]:
    """Return what bad requests did to one server, kind by kind."""
    kinds: dict[str, list[Callable[[], Found]]] = {}
    for attack in attacks(target):
        kinds.setdefault(attack.kind, []).append(partial(send, attack, PORT))
    rows = []
    with serving(model, "--timeout", str(TIMEOUT), token=TOKEN) as server:
        before = score_of(target)

        def finish(kind: str, found: Sequence[Found]) -> None:
            same = score_of(target) == before
            row = {"model": "images" if target.is_image else "rows", "kind": kind}
            row |= counted(found) | {
                "peak_mb": peak_megabytes(server.pid),
                "good_request_after": same,
            }
            print(json.dumps(row), flush=True)
            rows.append(row)

        for kind, calls in kinds.items():
            finish(kind, together(calls, AT_ONCE))
        finish(GENERATED, generated(target, examples))
        large = [partial(send, one, PORT) for one in large_bodies(target, 64)]
        finish("large bodies at once", together(large, len(large)))
        finish(IDLE, crowd(target))
    return rows


def together(calls: Sequence[Callable[[], Found]], at_once: int) -> list[Found]:
    """Return what became of requests, some of which are sent at the same time."""
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda call: call(), calls))


def counted(found: Sequence[Found]) -> Row:
    """Return how many requests ended how, and the slowest of them."""
    counts = Counter(outcome for outcome, _ in found)
    slowest = max(seconds for _, seconds in found)
    each = {str(name): counts[name] for name in OUTCOMES}
    return {"requests": len(found), **each, "slowest_seconds": round(slowest, 2)}


def score_of(target: Target) -> float:
    """Return the score of the good request; nan where it is not answered."""
    connection = HTTPConnection("127.0.0.1", PORT, timeout=HANG)
    headers = {"content-type": target.content_type, "authorization": f"Bearer {target.token}"}
    connection.request("POST", "/score", target.body, headers)
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return float(body["results"][0]["score"]) if answer.status == 200 else float("nan")


def crowd(target: Target) -> list[Found]:
    """Hold more connections than there may be; ask meanwhile, and wait until all are let go."""
    began = time.monotonic()
    held = hold(PORT, HELD)
    good = target.post(target.body)
    found = together([partial(send, Attack(IDLE, (good,)), PORT)] * 50, AT_ONCE)
    for connection in held:
        try:
            ended = connection.recv(1) == b""
        except ConnectionError:
            ended = True
        except TimeoutError:
            ended = False
        found.append(("ended" if ended else "hang", time.monotonic() - began))
        connection.close()
    return found


def generated(target: Target, examples: int) -> list[Found]:
    """Send what schemathesis makes of the server's own OpenAPI document, fitting and not."""
    import requests
    import schemathesis
    from hypothesis import HealthCheck, given, settings
    from schemathesis import GenerationMode
    from schemathesis.core.result import Ok

    headers = {"authorization": f"Bearer {target.token}"}
    url = f"http://127.0.0.1:{PORT}"
    api = schemathesis.openapi.from_url(f"{url}/openapi.json", headers=headers)
    found: list[Found] = []

    def ask(case: "schemathesis.Case[Any]") -> None:
        began = time.monotonic()
        try:
            answer = case.call(base_url=url, headers=headers, timeout=HANG)
            outcome = outcome_of(answer.status_code, answer.content)
        except requests.Timeout:
            outcome = "hang"
        except requests.ConnectionError:
            outcome = "ended"
        found.append((outcome, time.monotonic() - began))

    few = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    for result in api.get_all_operations():
        assert isinstance(result, Ok), "the server's own document is right"
        operation = result.ok()
        modes = list(GenerationMode) if operation.method == "post" else [GenerationMode.POSITIVE]
        for mode in modes:
            few(given(operation.as_strategy(generation_mode=mode))(ask))()
    return found


def claims(bad: Sequence[Row]) -> list[Row]:
    """Return what was claimed before the first run, and whether it held."""
    tokens = [row for row in bad if row["kind"] == TOKENS]
    held = {
        "No answer of 500 or above but 503.": all(row["fault"] == 0 for row in bad),
        "No hang.": all(row["hang"] == 0 for row in bad),
        "No request without the right token is answered.": all(
            row["answered"] == 0 for row in tokens
        ),
        "After each kind a good request gets the score of before.": all(
            row["good_request_after"] for row in bad
        ),
        f"Memory stays below {MOST_MB} MB.": max(row["peak_mb"] for row in bad) < MOST_MB,
    }
    return [{"claim": claim, "held": bool(is_so)} for claim, is_so in held.items()]


def wait_until_up(server: "subprocess.Popen[bytes]") -> None:
    """Wait until the server answers, or raise if it ended."""
    for _ in range(1200):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=5).close()
            return
        except urllib.error.URLError:
            if server.poll() is not None:
                raise SystemExit("the server ended") from None
            time.sleep(0.1)
    raise SystemExit("the server did not start in two minutes")


def client(image: bytes, end: float) -> list[float]:
    """Post images until the end; return how long each took."""
    connection = HTTPConnection("127.0.0.1", PORT, timeout=60)
    times = []
    while time.perf_counter() < end:
        began = time.perf_counter()
        connection.request("POST", "/score", image, {"content-type": "image/png"})
        answer = connection.getresponse()
        body = json.loads(answer.read())
        assert answer.status == 200, body
        assert 0 <= body["results"][0]["score"] <= 1, body
        times.append(time.perf_counter() - began)
    connection.close()
    return times


def page(content: Row) -> str:
    """Return the page."""
    return "\n".join([*load_lines(content), *bad_lines(content), ""])


def load_lines(content: Row) -> list[str]:
    """Return what the page says of load."""
    machine = content["origin"]["machine"]
    lines = [
        "<!-- Generated by `python -m benchmarks.serve` from benchmarks/results/serve.json; do not "
        "edit. -->",
        "# The server under load and under attack",
        "",
        "## Load",
        "",
        "`onesided serve`, a small network, PNG images of 32x32 pixels one by one over kept "
        f"connections, {content['seconds']:g} seconds for each row. Clients and server shared "
        f"{machine['cores']} cores ({machine['cpu']}), so compare rows with each "
        f"other. Commit {content['origin']['commit'][:7]}.",
        "",
        "| engine | clients | requests per second | median in ms | 99th percentile in ms | "
        "peak memory in MB |",
        "|---|---|---|---|---|---|",
    ]
    for row in content["rows"]:
        lines.append(
            f"| {row['engine']} | {row['clients']} | {row['per_second']:g} | {row['median_ms']:g} "
            f"| {row['p99_ms']:g} | {row['peak_mb']} |"
        )
    return lines


def bad_lines(content: Row) -> list[str]:
    """Return what the page says of bad input."""
    content = content["bad_input"]
    lines = [
        "",
        "## Bad input",
        "",
        "Two exported models, one of images and one of rows of numbers, were served with a token "
        f"and `--timeout {content['timeout']}`, and got bad requests, {content['at_once']} at a "
        f"time: what schemathesis makes of `/openapi.json` ({content['examples']} examples that "
        "fit and as many that do not, at most), and hostile ones (`benchmarks/hostile.py`). Some "
        "of them may be answered: a picture of 64 million pixels, or `/score?a=1`. "
        f"*Many connections* are {content['held']} on which nothing is sent, more than the server "
        "takes, and good requests meanwhile; *slow clients* get 408, or are let go. Answers in "
        "plain text are those of the HTTP library, to what is no HTTP or names another host. "
        f"Commit {content['origin']['commit'][:7]}.",
        "",
        "| model | kind | requests | " + " | ".join(OUTCOMES.values()) + " | slowest in s | "
        "peak memory so far in MB |",
        "|---|---" + "|---" * (len(OUTCOMES) + 3) + "|",
    ]
    bad = content["rows"]
    for row in bad:
        counts = " | ".join(str(row[name]) for name in OUTCOMES)
        lines.append(
            f"| {row['model']} | {row['kind']} | {row['requests']} | {counts} | "
            f"{row['slowest_seconds']:g} | {row['peak_mb']} |"
        )
    totals = " | ".join(str(sum(row[name] for row in bad)) for name in OUTCOMES)
    lines.append(
        f"| both | all | {sum(row['requests'] for row in bad)} | {totals} | "
        f"{max(row['slowest_seconds'] for row in bad):g} | {max(row['peak_mb'] for row in bad)} |"
    )
    lines += [
        "",
        "Claimed before the first try, which is in no file and broke two of them: `/score/` was "
        "redirected without a token, and with a limit of three seconds a picture of 64 million "
        "pixels got 504 on a busy machine. There are no redirections now, and the limit is ten "
        "seconds. In this run:",
        "",
    ]
    return [*lines, *(f"- {one['claim']} {VERDICTS[one['held']]}" for one in content["claims"])]


if __name__ == "__main__":
    sys.exit(main())
