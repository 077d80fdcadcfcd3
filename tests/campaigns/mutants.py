"""Small faults of a source file: one comparison, sign, number or condition that is another."""

import ast
import copy
import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

ROOT = Path(__file__).parents[2]
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


def mutated(source: str, number: int) -> ast.Module:
    """Return a file's tree with one place changed."""
    tree = ast.parse(source)
    assert changed(list(behaviour(tree))[number])
    return ast.fix_missing_locations(tree)


@dataclass(frozen=True)
class Function:
    """A function of a file, by its qualified name and its lines."""

    name: str
    lines: range


def function_of(source: str, number: int) -> Function | None:
    """Return the function whose body a place lies in; none for what runs when a file is imported.

    A function inside a function belongs to the outer one.
    """
    tree = ast.parse(source)
    place = list(behaviour(tree))[number]
    for name, function in _outermost(tree):
        if any(node is place for line in function.body for node in ast.walk(line)):
            last = function.end_lineno or function.lineno
            return Function(name, range(function.body[0].lineno, last + 1))
    return None


def _outermost(
    tree: ast.AST, of: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield of + node.name, node
        else:
            yield from _outermost(node, f"{node.name}." if isinstance(node, ast.ClassDef) else of)


def load(source: str, number: int, path: Path) -> bool:
    """Put a mutant's code into the loaded functions of a file; return whether that was possible.

    Every reference to a function sees it then, also one in a wrapper that checks shapes.
    """
    function = function_of(source, number)
    if function is None:
        return False
    whole = compile(mutated(source, number), str(path), "exec", dont_inherit=True)
    new = [code for code in _code_inside(whole) if code.co_qualname == function.name]
    old = [
        one
        for one in gc.get_objects()
        if type(one) is FunctionType
        and one.__code__.co_filename == str(path)
        and one.__code__.co_qualname == function.name
    ]
    alike = all(one.__code__.co_freevars == code.co_freevars for one in old for code in new)
    if len(new) != 1 or not old or not alike:
        return False
    for one in old:
        one.__code__ = new[0]
    return True


def _code_inside(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _code_inside(inner)
