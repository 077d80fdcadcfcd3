"""Training over two hosts: equal to one process, and resumed after a killed worker?

    python -m tests.campaigns.two_hosts

Two network namespaces on this machine, joined by a cable (veth), stand for two hosts: each has its
own address and reaches the other through it alone. They share the disk. `torchrun` starts one
process on each. The network has no batch normalisation, whose statistics are those of a process's
share of a batch. Needs Linux, root and iproute2.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from benchmarks.origin import origin
from onesided.core.dist import join_if_launched, rank
from onesided.storage.atomic import write_json
from tests.campaigns.ray_kills import is_below, scores_in
from tests.cli.pictures import draw_data
from tests.contract.cases import Case
from tests.contract.test_two_processes import trained

OUTPUT = Path(__file__).parents[2] / "benchmarks" / "results" / "two_hosts.json"
SETTINGS = (
    *("--method", "nnpu", "--prior", "0.4", "--epochs", "4", "--seed", "0", "--device", "cpu"),
    *("--set", "backbone.normalisation=none", "--set", "backbone.width=0.25"),
    *("--set", "train.batch_size=16", "--set", "train.save_minutes=0.00001"),
    *("--quiet", "--allow-degenerate"),
)
PORT, PATIENCE = 29517, 600.0
Process = subprocess.Popen[str]


@dataclass(frozen=True)
class Host:
    """A network namespace with one address."""

    name: str
    address: str
    cable: str

    def start(self, words: Sequence[object]) -> Process:
        """Start a command on this host."""
        # gloo would else look up the machine's name, which is not an address of the namespace.
        there = {**os.environ, "GLOO_SOCKET_IFNAME": self.cable, "OMP_NUM_THREADS": "1"}
        given = ["ip", "netns", "exec", self.name, *map(str, words)]
        return subprocess.Popen(
            given, env=there, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )


def ip(*words: str) -> None:
    """Change the network."""
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def why_not() -> str:
    """Return why this machine cannot make hosts; empty where it can."""
    if sys.platform != "linux" or shutil.which("ip") is None:
        return "needs Linux with iproute2"
    try:
        with two_hosts():
            return ""
    except subprocess.CalledProcessError as error:
        return f"network namespaces cannot be made ({error.stderr.strip()})"


@contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """Give two hosts that are joined by a cable; both are removed at the end."""
    own = os.getpid()
    hosts = tuple(
        Host(f"onesided-{own}-{number}", f"10.77.0.{number}", f"os{number}-{own}"[:15])
        for number in (1, 2)
    )
    try:
        for host in hosts:
            ip("netns", "add", host.name)
        first, second = hosts
        ip("link", "add", first.cable, "type", "veth", "peer", "name", second.cable)
        for host in hosts:
            ip("link", "set", host.cable, "netns", host.name)
            inside = ("-n", host.name)
            ip(*inside, "addr", "add", f"{host.address}/24", "dev", host.cable)
            ip(*inside, "link", "set", host.cable, "up")
            ip(*inside, "link", "set", "lo", "up")
        yield first, second
    finally:
        for host in hosts:  # a cable goes with its namespace
            subprocess.run(["ip", "netns", "del", host.name], check=False, capture_output=True)


def fit_words(data: Path, run: Path) -> tuple[object, ...]:
    """Return the module and the words of the training."""
    folders = ("-p", data / "P", "-u", data / "U", "-o", run)
    return ("-m", "onesided", "fit", *folders, *SETTINGS)


def on_both(hosts: tuple[Host, Host], words: Sequence[object]) -> list[Process]:
    """Start torchrun on both hosts."""
    first = hosts[0].address
    started = []
    for host in hosts:
        # torchrun looks itself up by the machine's name, which both hosts share here.
        keeps = f"is_host={'true' if host.address == first else 'false'}"
        meeting = (
            *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"{first}:{PORT}"),
            *("--rdzv-id", "0", "--rdzv-conf", keeps),
        )
        size = ("--nnodes", 2, "--nproc-per-node", 1, "--local-addr", host.address)
        torchrun = (sys.executable, "-m", "torch.distributed.run", *size, *meeting)
        started.append(host.start((*torchrun, *words)))
    return started


def end(processes: Sequence[Process]) -> list[tuple[int, str]]:
    """Wait for processes; return exit code and messages of each."""
    found = []
    for process in processes:
        try:
            _, told = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            _, told = process.communicate()
        found.append((process.returncode, told))
    return found


def kill_one(torchrun: Process, run: Path) -> int:
    """Kill the worker below a torchrun after its first epoch; return the epochs that were done."""
    until = time.monotonic() + PATIENCE
    while torchrun.poll() is None and time.monotonic() < until:
        log = run / "log.jsonl"
        epochs = log.read_bytes().count(b"\n") if log.exists() else 0
        if epochs and (run / "last.pt").exists():
            for pid in workers_below(torchrun.pid):
                os.kill(pid, signal.SIGKILL)
                return epochs
        time.sleep(0.01)
    raise AssertionError("the training ended before its worker could be killed")


def workers_below(root: int) -> list[int]:
    """Return the processes below a torchrun that train."""
    found = []
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        pid = int(status.parent.name)
        try:
            words = status.read_bytes().split(b"\0")
        except OSError:
            continue  # it ended meanwhile
        trains = b"torch.distributed.run" not in words and b"fit" in words
        if pid != root and trains and is_below(pid, root):
            found.append(pid)
    return found


def difference(one: Path, other: Path) -> dict[str, float]:
    """Return the largest difference of a weight, and of a score."""
    weights = [load_file(run / "model.safetensors") for run in (one, other)]
    assert weights[0].keys() == weights[1].keys()
    scores = [scores_in(run / "scores.csv") for run in (one, other)]
    assert scores[0].keys() == scores[1].keys()
    return {"weights": _largest(*weights), "scores": _largest(*scores)}


def _largest(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> float:
    return max(float(np.abs(one[name] - other[name]).max()) for name in one)


def train_in_double(output: Path) -> None:
    """Train one method in double precision, also as one of several processes; keep its state."""
    join_if_launched()
    state = trained(Case("nnpu"))
    if rank() == 0:
        save_file({name: value.numpy() for name, value in state.items()}, output)


def difference_in_double(folder: Path) -> float:
    """Return the largest difference of a weight between two hosts and one process.

    In double precision: single precision rounds sums of a shared batch in another order.
    """
    words = ("-m", "tests.campaigns.two_hosts", "--double")
    alone, both = folder / "alone.safetensors", folder / "both.safetensors"
    subprocess.run([sys.executable, *words, str(alone)], check=True)
    with two_hosts() as hosts:
        ended = end(on_both(hosts, (*words, both)))
    assert [code for code, _ in ended] == [0, 0], ended
    return _largest(load_file(alone), load_file(both))


def measured(folder: Path) -> dict[str, Any]:
    """Train alone, on two hosts, and on two hosts of which one is killed; compare."""
    data = draw_data(folder, positives=32, unlabelled=96)
    alone, both, killed = (folder / name for name in ("alone", "both", "killed"))
    one = subprocess.run(
        [sys.executable, *map(str, fit_words(data, alone))],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert one.returncode == 0, one.stderr
    with two_hosts() as hosts:
        whole = end(on_both(hosts, fit_words(data, both)))
        assert [code for code, _ in whole] == [0, 0], whole
        started = on_both(hosts, fit_words(data, killed))
        epochs = kill_one(started[1], killed)
        stopped = [code for code, _ in end(started)]
        was_finished = (killed / "result.json").exists()
        again = end(on_both(hosts, fit_words(data, killed)))
        assert [code for code, _ in again] == [0, 0], again
    return {
        "two_hosts_against_one_process": difference(alone, both),
        "killed_against_never_killed": difference(both, killed),
        "epochs_before_the_kill": epochs,
        "exit_codes_after_the_kill": stopped,
        "finished_before_the_resume": was_finished,
    }


def main() -> int:
    """Measure, and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--double", type=Path, help="train in double precision into this file")
    given = parser.parse_args()
    if given.double:
        train_in_double(given.double)
        return 0
    if reason := why_not():
        print(reason, file=sys.stderr)
        return 2
    with TemporaryDirectory() as name:
        found = measured(Path(name).resolve())
    settings = [str(word) for word in SETTINGS]
    write_json(
        given.output, {"name": "two_hosts", "origin": origin(), "settings": settings, **found}
    )
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
