"""`onesided serve` as a process: it answers with the scores of `rank`."""

import csv
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.cli.command import assert_refused, call


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.parametrize("missing", ["prometheus_client", "starlette", "uvicorn"])
def test_what_a_server_needs_is_asked_for_before_it_begins(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    outcome = call("serve", tmp_path)
    assert_refused(outcome, f"Serving a model takes the library {missing}", "onesided[serve]")


def test_a_served_run_gives_the_scores_of_rank(trained: Path, data: Path, tmp_path: Path) -> None:
    assert call("rank", trained, data / "P", "-o", tmp_path / "ranked.csv").exit_code == 0
    with (tmp_path / "ranked.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    address = f"http://127.0.0.1:{(port := free_port())}"
    words = ["serve", str(trained), "--port", str(port), "-q"]
    server = subprocess.Popen([sys.executable, "-m", "onesided", *words])
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{address}/health", timeout=5)
                break
            except urllib.error.URLError:
                assert server.poll() is None, "the server ended"
                time.sleep(0.1)
        request = urllib.request.Request(
            f"{address}/score",
            data=(data / row["item"]).read_bytes(),
            headers={"content-type": "application/octet-stream"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = json.load(answer)["results"][0]
    finally:
        server.terminate()
        server.wait(timeout=60)
    assert found["score"] == pytest.approx(float(row["score"]), abs=1e-6)
    assert found["decision"] == row["decision"]
