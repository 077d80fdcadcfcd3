"""Simulated power loss: what a disk may hold after a cut at any moment, as in ALICE.

A `Recorder` notes what a block of code does below a folder: names that appear, vanish or move,
contents that change, and what is flushed. `crash_states` replays it. A content is on the disk for
sure once its file was flushed, and a name once its folder was. Before that any part may be there:

- of several names, any subset, as long as a name's own changes are in order;
- of a content, the old one, the new one, or the first half of it; where something was appended,
  the old one and the first half of what was added.

Real disks do less: most keep the order of names. What survives here survives there.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch

MOST_SUBSETS = 8
"""Up to so many unflushed changes of names are combined freely; of more, what is in order."""

Content = bytes | None
"""Of a file; None is a folder."""


@dataclass(frozen=True)
class Change:
    """One thing that happened.

    `kind` is create, remove, move, write or flush. `path` is where, `to` the target of a move;
    `node` is the file or folder, whatever its name.
    """

    kind: str
    path: str
    node: int
    to: str = ""
    content: Content = None


@dataclass
class Recorder:
    """Changes below a folder, by asking the disk around every call that flushes or renames.

    So it sees what C libraries write, too.
    """

    root: Path
    changes: list[Change] = field(default_factory=list)
    nodes: dict[str, int] = field(default_factory=dict)
    contents: dict[int, Content] = field(default_factory=dict)
    stamps: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    count: int = 0
    silent: bool = False

    def start(self) -> None:
        """Take what is there now for flushed."""
        self.scan()
        self.changes.clear()
        self.before = {path: self.contents[node] for path, node in self.nodes.items()}
        self.first = dict(self.nodes)

    def scan(self) -> None:
        """Note what changed since the last look."""
        here = {path.relative_to(self.root).as_posix(): path for path in self.root.rglob("*")}
        for name in sorted(set(self.nodes) - set(here), reverse=True):
            self.changes.append(Change("remove", name, self.nodes.pop(name)))
        for name, path in sorted(here.items()):
            try:
                status = path.lstat()
            except FileNotFoundError:
                continue
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            if name not in self.nodes:
                self.count += 1
                self.nodes[name] = self.count
                self.contents[self.count] = None if path.is_dir() else b""
                content = self.contents[self.count]
                self.changes.append(Change("create", name, self.count, content=content))
            elif self.stamps.get(name) == stamp:
                continue
            self.stamps[name] = stamp
            if path.is_file():
                node, content = self.nodes[name], path.read_bytes()
                if content != self.contents[node]:
                    self.contents[node] = content
                    self.changes.append(Change("write", name, node, content=content))

    def flushed(self, path: str) -> None:
        """Note that a file or folder was flushed."""
        name = self._name(path)
        if name == "" or name in self.nodes:
            self.changes.append(Change("flush", name or "", self.nodes.get(name or "", 0)))

    def moved(self, source: str, target: str) -> None:
        """Note a rename, of a folder with all that is in it."""
        one, other = self._name(source), self._name(target)
        if one is None or other is None:
            return
        self.changes.append(Change("move", one, self.nodes[one], to=other))
        for table in (self.nodes, self.stamps):
            _rename(table, one, other)

    def _name(self, path: str) -> str | None:
        try:
            return "" if Path(path) == self.root else Path(path).relative_to(self.root).as_posix()
        except ValueError:
            return None


def _rename(table: dict[str, Any], one: str, other: str) -> None:
    below = [name for name in table if name == one or name.startswith(f"{one}/")]
    moved = {other + name[len(one) :]: table.pop(name) for name in below}
    table.update(moved)


@contextmanager
def recorded(root: Path) -> Iterator[Recorder]:
    """Record what the block does below a folder."""
    recorder = Recorder(root.resolve())
    recorder.start()
    fsync, replace, rename = os.fsync, os.replace, os.rename

    def flush(number: int) -> None:
        recorder.scan()
        fsync(number)
        recorder.flushed(os.readlink(f"/proc/self/fd/{number}"))

    def around(call: Callable[..., None]) -> Callable[..., None]:
        def move(source: Any, target: Any) -> None:  # noqa: ANN401 - as os declares it
            recorder.scan()
            call(source, target)
            recorder.moved(os.path.abspath(os.fspath(source)), os.path.abspath(os.fspath(target)))

        return move

    def looking(call: Callable[..., None]) -> Callable[..., None]:
        def look(*given: Any, **named: Any) -> None:  # noqa: ANN401 - as os declares it
            call(*given, **named)
            recorder.scan()

        return look

    with (
        patch.object(os, "fsync", flush),
        patch.object(os, "replace", around(replace)),
        patch.object(os, "rename", around(rename)),
        patch.object(os, "unlink", looking(os.unlink)),
        patch.object(os, "rmdir", looking(os.rmdir)),
        patch.object(os, "mkdir", looking(os.mkdir)),
    ):
        yield recorder
    recorder.scan()


State = dict[str, Content]
"""A tree of files, by path."""


def crash_states(recorder: Recorder) -> Iterator[State]:
    """Yield every different tree that a cut during the recorded block may leave."""
    seen: set[frozenset[tuple[str, Content]]] = set()
    for cut in range(len(recorder.changes) + 1):
        for state in _states_at(recorder, recorder.changes[:cut]):
            key = frozenset(state.items())
            if key not in seen:
                seen.add(key)
                yield state


def _states_at(recorder: Recorder, changes: list[Change]) -> Iterator[State]:
    loose = [place for place, one in enumerate(changes) if not _is_safe(changes, place)]
    names = [place for place in loose if changes[place].kind != "write"]
    writes = [place for place in loose if changes[place].kind == "write"]
    for kept in _choices(names):
        lost = set(names) - set(kept)
        if not _in_order(changes, kept, lost):
            continue
        for written in ("old", "half", "new"):
            yield _replayed(recorder, changes, lost, set(writes), written)
            if not writes:
                break


def _choices(names: list[int]) -> Iterator[tuple[int, ...]]:
    if len(names) <= MOST_SUBSETS:
        for count in range(len(names) + 1):
            yield from combinations(names, count)
        return
    for count in range(len(names) + 1):
        yield tuple(names[:count])
    for place in names:
        yield tuple(one for one in names if one != place)


def _is_safe(changes: list[Change], place: int) -> bool:
    """Whether a change was flushed later on."""
    one, later = changes[place], changes[place + 1 :]
    if one.kind == "flush":
        return True
    if one.kind == "write":
        return any(each.kind == "flush" and each.node == one.node for each in later)
    folder = os.path.dirname(one.to or one.path)
    for each in later:
        if each.kind == "move" and (folder == each.path or folder.startswith(f"{each.path}/")):
            folder = each.to + folder[len(each.path) :]
        if each.kind == "flush" and each.path == folder:
            return True
    return False


def _in_order(changes: list[Change], kept: tuple[int, ...], lost: set[int]) -> bool:
    """Whether nothing is kept that needs a change that was lost."""
    for place in kept:
        paths = {path for path in (changes[place].path, changes[place].to) if path}
        for before in lost:
            if before > place:
                continue
            touched = {path for path in (changes[before].path, changes[before].to) if path}
            if changes[before].node == changes[place].node or paths & touched:
                return False
            if any(path.startswith(f"{each}/") for path in paths for each in touched):
                return False
            if any(each.startswith(f"{path}/") for path in paths for each in touched):
                return False
    return True


def _replayed(
    recorder: Recorder, changes: list[Change], lost: set[int], loose: set[int], written: str
) -> State:
    nodes, contents = dict(recorder.first), dict[int, Content]()
    for path, node in nodes.items():
        contents[node] = recorder.before[path]
    for place, one in enumerate(changes):
        if one.kind == "write":
            content = one.content or b""
            if place in loose and written != "new":
                if written == "old":
                    continue
                kept = contents.get(one.node) or b""
                # What was appended may be cut; what stood before it is not touched by an append.
                whole = len(kept) if content.startswith(kept) else 0
                content = content[: (whole + len(content)) // 2]
            contents[one.node] = content
        elif place in lost or one.kind == "flush":
            continue
        elif one.kind == "create":
            nodes[one.path] = one.node
            contents.setdefault(one.node, one.content)
        elif one.kind == "remove":
            nodes.pop(one.path, None)
        elif one.path in nodes:
            nodes.pop(one.to, None)
            _rename(nodes, one.path, one.to)
    return {path: contents[node] for path, node in nodes.items()}


def laid_out(state: State, folder: Path) -> Path:
    """Write a tree into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in sorted(state.items()):
        path = folder / name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return folder
