"""Tests that are imported once: a process collects those of a file and forks for every mutant.

In the fork, the mutant's code is put into the functions that are loaded, and the tests that execute
the function run, the quickest first, until one fails. That is exact for a fault that is found. One
that nothing noticed, or that runs when the file is imported, meets all tests of its file once more
in a fork that imports everything anew, so that nothing computed earlier hides it.
"""

import ast
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests.campaigns.mutants import ROOT, Function, Mutant, function_of, load, mutated

PATIENCE, LEAST = 10.0, 30.0
"""A mutant may take this multiple of the tests' processor time, and at least these seconds."""
BUSY = 20
"""Seconds on the clock for a second of processor time; a process that waits for ever ends too."""
MEMORY = 8 * 2**30
"""Bytes; a fault can ask for an absurd array."""
WORDS = ("-x", "-q", "-m", "not slow", "-p", "no:cacheprovider")
SURROUNDINGS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CI": "1"}
"""No plugin is imported for seconds, and what hypothesis draws is the same for every mutant."""


def in_a_fork(work: Callable[[], int], limit: float | None = None) -> tuple[int, float]:
    """Return the exit status and the processor time of a function in a process of its own."""
    child = os.fork()
    if child == 0:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            signal.alarm(int(BUSY * limit))
        _leave_with(work)
    _, status, used = os.wait4(child, 0)
    return status, used.ru_utime + used.ru_stime


def _leave_with(work: Callable[[], int]) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    code = 70
    try:
        code = work()
    finally:
        os._exit(code)


def fates(
    copied: Path, file: str, tests: Sequence[str], wanted: Sequence[Mutant]
) -> Iterator[dict[str, Any]]:
    """Yield the mutants of one file with what became of each: found, too slow or survived."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        mutants = _Mutants(copied, file, wanted, sink)
        _leave_with(partial(_collected, copied, tests, [mutants]))
    os.close(sink)
    with open(source, encoding="utf-8") as lines:
        for mutant, line in zip(wanted, lines, strict=False):  # fewer if the tests fail anyway
            status, spent, limit = json.loads(line)
            if status == 0:
                status, more = _from_the_start(copied, tests, mutant, limit)
                spent += more
            yield {**asdict(mutant), "fate": _fate(status), "seconds": round(spent, 2)}
    _, status = os.waitpid(child, 0)
    assert status == 0, f"The tests of {file} fail, or do not start, without a fault: {tests}."


def _from_the_start(
    copied: Path, tests: Sequence[str], mutant: Mutant, limit: float
) -> tuple[int, float]:
    """Return status and time of all tests of a mutant's file, imported anew with the fault."""
    path, source = copied / mutant.file, (ROOT / mutant.file).read_text(encoding="utf-8")
    path.write_text(ast.unparse(mutated(source, mutant.number)), encoding="utf-8")
    try:
        return in_a_fork(partial(_collected, copied, tests), limit)
    finally:
        path.write_text(source, encoding="utf-8")


def _fate(status: int) -> str:
    if os.WIFSIGNALED(status):
        return "too slow"
    return "survived" if os.waitstatus_to_exitcode(status) == 0 else "found"


def _collected(copied: Path, tests: Sequence[str], plugins: Sequence[object] = ()) -> int:
    """Import and collect tests of the copy in this process, then run them or let a plugin do so."""
    os.chdir(copied)
    os.environ.update(SURROUNDINGS)
    sys.path[:0] = [str(copied), str(copied / "src")]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("onesided", "tests")]:
        del sys.modules[name]
    return int(pytest.main([*WORDS, *tests], plugins=list(plugins)))


class _Mutants:
    """Instead of running the tests once: once without a fault, then in a fork for each mutant."""

    def __init__(self, copied: Path, file: str, wanted: Sequence[Mutant], sink: int) -> None:
        self.notes, self.path = copied / "clean.json", copied / file
        self.source = self.path.read_text(encoding="utf-8")
        self.wanted, self.sink = wanted, sink

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Write a line for every mutant; true tells pytest that nothing is left to run."""
        if session.testsfailed:
            return True  # collecting failed, which is pytest's exit code
        status, _ = in_a_fork(partial(_clean_run, session, self.path, self.notes))
        if status != 0:
            session.testsfailed += 1
            return True
        clean = json.loads(self.notes.read_text(encoding="utf-8"))
        limit = max(LEAST, PATIENCE * sum(one["seconds"] for one in clean.values()))
        for mutant in self.wanted:
            chosen = _that_execute(function_of(self.source, mutant.number), clean)
            status, spent = in_a_fork(partial(self._run, mutant, session, chosen), limit)
            os.write(self.sink, f"{json.dumps([status, spent, limit])}\n".encode())
        return True

    def _run(self, mutant: Mutant, session: pytest.Session, chosen: Sequence[str]) -> int:
        if not load(self.source, mutant.number, self.path):
            return 0  # as if it had survived: tests that are imported anew decide
        items = {item.nodeid: item for item in session.items}
        for _ in _run(session, [items[name] for name in chosen]):
            pass
        return int(session.testsfailed > 0)


def _that_execute(function: Function | None, clean: Mapping[str, Any]) -> list[str]:
    """Return the tests that execute a function, the quickest first."""
    if function is None:
        return []
    found = [name for name, one in clean.items() if set(one["lines"]) & set(function.lines)]
    return sorted(found, key=lambda name: float(clean[name]["seconds"]))


def _clean_run(session: pytest.Session, path: Path, notes: Path) -> int:
    """Run every test without a fault; note its processor time and the lines of a file it runs."""
    watched = coverage.Coverage(data_file=None, include=[str(path)], config_file=False)
    seconds = dict[str, float]()
    watched.start()
    for name, spent in _run(session, session.items, watched.switch_context):
        seconds[name] = spent
    watched.stop()
    lines = dict[str, list[int]]()
    for line, names in watched.get_data().contexts_by_lineno(str(path)).items():
        for name in names:
            lines.setdefault(name, []).append(line)
    found = {name: {"seconds": seconds[name], "lines": lines.get(name, [])} for name in seconds}
    notes.write_text(json.dumps(found), encoding="utf-8")
    return int(session.testsfailed > 0)


def _run(
    session: pytest.Session,
    items: Sequence[pytest.Item],
    begin: Callable[[str], object] = lambda name: None,
) -> Iterator[tuple[str, float]]:
    """Run tests until one fails; yield each name with its processor time."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        begin(item.nodeid)
        start = sum(os.times()[:4])
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        yield item.nodeid, sum(os.times()[:4]) - start
        if session.testsfailed:
            return
