"""How many requests does the server answer, how fast, and with how much memory?

    python -m benchmarks.serve

A small network is trained on toy images for a moment, exported, and served twice: from its run
folder (torch) and from the exported file (onnxruntime). Several clients in a second process post
images of 32x32 pixels without a pause.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.command import REPOSITORY
from benchmarks.origin import Row, origin
from onesided.storage.atomic import write_json, write_text

RESULT = REPOSITORY / "benchmarks" / "results" / "serve.json"
PAGE = REPOSITORY / "docs" / "benchmarks" / "serve.md"
CLIENTS = (1, 8)
PORT = 8765


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, write the result file and the page."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.serve",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--seconds", type=float, default=15.0, help="for each row")
    given = options.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        command(
            "fit",
            "--data",
            "toy-images",
            "--method",
            "ce",
            "--epochs",
            "1",
            "--quiet",
            "--allow-degenerate",
            "-o",
            work / "run",
        )
        command("export", work / "run", "-o", work / "model.onnx", "--quiet")
        image = sample(work)
        rows = [
            measured(work / model, engine, clients, image, given.seconds)
            for model, engine in (("run", "torch"), ("model.onnx", "onnxruntime"))
            for clients in CLIENTS
        ]
    content = {"name": "serve", "origin": origin(), "seconds": given.seconds, "rows": rows}
    write_json(RESULT, content)
    write_text(PAGE, page(content))
    return 0


def command(*words: object) -> None:
    """Run a command of onesided."""
    subprocess.run([sys.executable, "-m", "onesided", *map(str, words)], check=True)


def sample(work: Path) -> bytes:
    """Return an image as PNG."""
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(work / "image.png")
    return (work / "image.png").read_bytes()


def measured(model: Path, engine: str, clients: int, image: bytes, seconds: float) -> Row:
    """Return requests per second, percentiles and memory of one server."""
    words = [sys.executable, "-m", "onesided", "serve", str(model), "--port", str(PORT), "-q"]
    server = subprocess.Popen(words)
    try:
        wait_until_up(server)
        with ThreadPoolExecutor(clients) as pool:
            end = time.perf_counter() + seconds
            each = list(pool.map(lambda _: client(image, end), range(clients)))
        memory = Path(f"/proc/{server.pid}/status").read_text(encoding="utf-8")
    finally:
        server.terminate()
        server.wait(60)
    times = np.array([one for found in each for one in found])
    peak = next(line for line in memory.splitlines() if line.startswith("VmHWM"))
    row = {
        "engine": engine,
        "clients": clients,
        "requests": len(times),
        "per_second": round(len(times) / seconds, 1),
        "median_ms": round(1000 * float(np.median(times)), 2),
        "p99_ms": round(1000 * float(np.quantile(times, 0.99)), 2),
        "peak_mb": round(int(peak.split()[1]) / 1024),
    }
    print(json.dumps(row), flush=True)
    return row


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
    machine = content["origin"]["machine"]
    lines = [
        "<!-- Generated by `python -m benchmarks.serve` from benchmarks/results/serve.json; do not "
        "edit. -->",
        "# The server under load",
        "",
        "`onesided serve`, a small network, PNG images of 32x32 pixels one by one over kept "
        f"connections, {content['seconds']:g} seconds for each row. Clients and server shared "
        f"{machine['cores']} cores ({machine['cpu']}) with other work, so compare rows with each "
        "other.",
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
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
