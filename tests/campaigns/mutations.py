"""Small faults put into losses, metrics, the split and priors: which of them does no test notice?

    python -m tests.campaigns.mutations                    # 150 faults, by the seed 0
    python -m tests.campaigns.mutations --again            # those that survived, with new tests
    python -m tests.campaigns.mutations --docs             # writes the page from the result file

A mutant is one file with one change: another comparison, another sign, a number one larger, a
condition turned round. It is written into a copy of the repository, where the tests of its module
run until the first fails. It is found if one fails, or if they take ten times the processor time.
Why not cosmic-ray or mutmut: the first starts an interpreter for every mutant, which imports torch
for seconds; the second draws no sample by a seed. Here a process that has imported torch forks.
"""

import argparse
import ast
import copy
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "benchmarks" / "results" / "mutation.json"
PAGE = ROOT / "docs" / "benchmarks" / "mutation.md"
REASONS = Path(__file__).with_name("mutations.toml")
CORE = ("losses/*.py", "metrics/*.py", "priors/*.py", "data/problem/split.py")
NEEDED = ("src", "tests", "docs", "benchmarks", "pyproject.toml", "README.md", "CONTRIBUTING.md")
"""What a copy of the repository needs for these tests."""
PATIENCE, LEAST = 10.0, 30.0
"""A mutant may take this multiple of the tests' processor time, and at least these seconds."""
OTHER: Mapping[type[ast.AST], type[ast.AST]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr},
}
NAMES = {"mean": "sum", "sum": "mean", "min": "max", "max": "min", "argmin": "argmax"}
NAMES |= {"argmax": "argmin", "floor": "ceil", "ceil": "floor", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """A file with one change."""

    file: str
    line: int
    before: str
    after: str
    number: int
    """Which of the file's places, to change it again."""


def changed(node: ast.AST) -> bool:
    """Change a node in place; return whether it is one that can be changed."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in OTHER:
            node.ops = [OTHER[type(operator)]()]  # type: ignore[list-item]
        case ast.BinOp(op=operator) if type(operator) in OTHER and not _of_text(node):
            node.op = OTHER[type(operator)]()  # type: ignore[assignment]
        case ast.BoolOp(op=operator):
            node.op = OTHER[type(operator)]()  # type: ignore[assignment]
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            node.operand = ast.UnaryOp(copy.deepcopy(node.op), node.operand)
        case ast.Constant(value=bool() as value):
            node.value = not value
        case ast.Constant(value=int() | float() as value):
            node.value = value + 1
        case ast.If() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Call(func=ast.Attribute(attr=name) as called) if name in NAMES:
            called.attr = NAMES[name]
        case ast.Call(func=ast.Name(id=name) as function) if name in NAMES:
            function.id = NAMES[name]
        case _:
            return False
    return True


def _of_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(side, ast.JoinedStr) for side in sides) or any(
        isinstance(side, ast.Constant) and isinstance(side.value, str | None) for side in sides
    )


def behaviour(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that decide what is computed: no annotation, no decorator, no message."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not isinstance(node, ast.Raise):
                yield node
                yield from behaviour(node)


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a file."""
    source = path.read_text(encoding="utf-8")
    for number, node in enumerate(list(behaviour(ast.parse(source)))):
        other = copy.deepcopy(node)
        if changed(other):
            line, file = getattr(node, "lineno", 0), path.relative_to(ROOT).as_posix()
            yield Mutant(file, line, _told(node), _told(other), number)


def _told(node: ast.AST) -> str:
    shown = node.test if isinstance(node, ast.If) else node
    return ast.unparse(shown) if isinstance(shown, ast.expr) else ""


def mutated(source: str, number: int) -> str:
    """Return a file's text with one place changed."""
    tree = ast.parse(source)
    assert changed(list(behaviour(tree))[number])
    return ast.unparse(ast.fix_missing_locations(tree))


def own_tests(file: str) -> list[str]:
    """Return the tests of a module: those of its name, and those of its room that import it."""
    module = Path(file).relative_to("src/onesided")
    room = ROOT / "tests" / module.parent
    dotted = ".".join(["onesided", *module.with_suffix("").parts])
    found = [
        path
        for path in sorted(room.glob("test_*.py"))
        if path.stem.startswith(f"test_{module.stem}")
        or f"from {dotted} import" in path.read_text()
    ]
    return [path.relative_to(ROOT).as_posix() for path in found]


def in_a_fork(work: Callable[[], int], limit: float | None) -> tuple[int, float]:
    """Return the exit status and the processor time of a function in a process of its own."""
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
        code = 70
        try:
            code = work()
        finally:
            os._exit(code)
    _, status, used = os.wait4(child, 0)
    return status, used.ru_utime + used.ru_stime


def tested(copied: Path, tests: Sequence[str]) -> int:
    """Run tests of the copy until one fails, in this process; return pytest's exit code."""
    import pytest

    os.chdir(copied)
    sys.path[:0] = [str(copied), str(copied / "src")]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("onesided", "tests")]:
        del sys.modules[name]
    words = ("-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:randomly")
    return int(pytest.main([*words, *tests]))


def fate(mutant: Mutant, copied: Path, seconds: float) -> str:
    """Return what became of a mutant: found, too slow, or survived."""
    path, tests = copied / mutant.file, own_tests(mutant.file)
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    path.write_text(mutated(source, mutant.number), encoding="utf-8")
    try:
        limit = max(LEAST, PATIENCE * seconds)
        status, _ = in_a_fork(partial(tested, copied, tests), limit)
    finally:
        path.write_text(source, encoding="utf-8")
    if os.WIFSIGNALED(status):
        return "too slow"
    return "survived" if os.waitstatus_to_exitcode(status) == 0 else "found"


def campaign(chosen: Sequence[Mutant], minutes: float) -> Iterator[dict[str, Any]]:
    """Yield every mutant with its fate, as long as the processor time lasts."""
    clean = dict[str, float]()
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        copied = Path(name).resolve()
        for part in NEEDED:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, copied / part)
            else:
                shutil.copy(ROOT / part, copied / part)
        for mutant in chosen:
            if mutant.file not in clean:
                tests = own_tests(mutant.file)
                status, clean[mutant.file] = in_a_fork(partial(tested, copied, tests), None)
                assert os.waitstatus_to_exitcode(status) == 0, (mutant.file, tests, status)
            yield {**asdict(mutant), "fate": fate(mutant, copied, clean[mutant.file])}
            if sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) > 60 * minutes:
                return


def reasons() -> list[dict[str, Any]]:
    """Return why survivors survive, as people found."""
    found: list[dict[str, Any]] = tomllib.loads(REASONS.read_text(encoding="utf-8"))["survivor"]
    return found


def page(content: Mapping[str, Any], known: Sequence[Mapping[str, Any]]) -> str:
    """Return the page: the score of every round, and each survivor with its reason."""
    from scipy.stats import binomtest

    command = "python -m tests.campaigns.mutations --docs"
    lines = [
        f"<!-- Generated by `{command}` from benchmarks/results/mutation.json; changes here are "
        "overwritten. -->",
        "\n# Faults that no test noticed\n",
        "A test is worth what it can notice. Small faults were put into losses, metrics, the split "
        f"and priors, one at a time, drawn by the seed {content['seed']} from {content['places']} "
        "places; for each, the tests of its module ran until one failed.\n",
        "| round | commit | faults | noticed | survived | score | its interval (95 %) |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for number, one in enumerate(content["rounds"], 1):
        commit = f"`{str(one['origin']['commit'])[:10]}`"
        noticed = one["faults"] - len(one["survivors"])
        ends = binomtest(noticed, one["faults"]).proportion_ci()
        lines.append(
            f"| {number} | {commit} | {one['faults']} | {noticed} | {len(one['survivors'])} "
            f"| {100 * noticed / one['faults']:.1f} % "
            f"| {100 * ends.low:.0f} to {100 * ends.high:.0f} % |"
        )
    lines += [
        "\nA later round repeats the survivors of the first with the tests that were added for "
        "them; the others stay noticed, since no test was removed.\n",
        "| where | fault | afterwards | why |\n| --- | --- | --- | --- |",
    ]
    last = {_key(one) for one in content["rounds"][-1]["survivors"]}
    for one in content["rounds"][0]["survivors"]:
        why = next((row["why"] for row in known if _key(row) == _key(one)), "not looked into yet")
        state = "survives" if _key(one) in last else "noticed"
        fault = f"`{one['before']}` became `{one['after']}`".replace("|", "\\|")
        where = f"`{one['file'].removeprefix('src/onesided/')}:{one['line']}`"
        lines.append(f"| {where} | {fault} | {state} | {why} |")
    return "\n".join(lines) + "\n"


def _key(one: Mapping[str, Any]) -> tuple[str, str, str]:
    return one["file"], one["before"], one["after"]


def drawn(asked: int, seed: int) -> tuple[list[Mutant], int]:
    """Return so many mutants of the core, and of how many places they were drawn."""
    core = ROOT / "src" / "onesided"
    files = sorted(path for pattern in CORE for path in core.glob(pattern))
    every = [
        one
        for path in files
        if own_tests(path.relative_to(ROOT).as_posix())
        for one in mutants(path)
    ]
    return random.Random(seed).sample(every, min(asked, len(every))), len(every)


def main() -> None:
    """Run a round and write the result file, or write the page from it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=35.0, help="of processor time")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    given = parser.parse_args()
    if given.docs:
        content = json.loads(given.output.read_text(encoding="utf-8"))
        PAGE.write_text(page(content, reasons()), encoding="utf-8")
    else:
        measure(given)


def measure(given: argparse.Namespace) -> None:
    """Run a round; the result file is written after every mutant, so a later start goes on."""
    chosen, places = drawn(given.mutants, given.seed)
    content: dict[str, Any] = {"seed": given.seed, "places": places, "rounds": []}
    now = _origin()
    if given.output.exists():
        content = json.loads(given.output.read_text(encoding="utf-8"))
    first = content["rounds"][0] if content["rounds"] else None
    if given.again:
        assert first is not None, "there is no first round"
        wanted = {(one["file"], one["number"]) for one in first["survivors"]}
        chosen = [one for one in chosen if (one.file, one.number) in wanted]
        rows, one_round = list[dict[str, Any]](), {"origin": now, "faults": first["faults"]}
        content["rounds"] = [first, one_round]
    else:
        same = first is not None and first["origin"]["commit"] == now["commit"]
        rows, one_round = list(first["rows"]) if first and same else [], {"origin": now}
        content["rounds"] = [one_round]
    _import_others()
    for row in campaign(chosen[0 if given.again else len(rows) :], given.minutes):
        rows.append(row)
        survivors = [row for row in rows if row["fate"] == "survived"]
        one_round |= {"rows": rows, "survivors": survivors}
        one_round.setdefault("faults", 0)
        one_round["faults"] = one_round["faults"] if given.again else len(rows)
        given.output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        print(f"{len(rows)} of {len(chosen)}, {len(survivors)} survived: {row}", flush=True)


def _origin() -> dict[str, Any]:
    """Return where the numbers come from; in a process of its own, since it imports our code."""
    program = "import json; from benchmarks.origin import origin; print(json.dumps(origin()))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return {**found, "load": os.getloadavg()[0]}


def _import_others() -> None:
    """Import what tests need of others and nothing of ours: a forked process starts at once."""
    import hypothesis
    import jaxtyping
    import pydantic
    import pytest
    import scipy.stats
    import sklearn.metrics
    import torch

    assert all((hypothesis, jaxtyping, pydantic, pytest, scipy, sklearn))
    torch.set_num_threads(1)


if __name__ == "__main__":
    main()
