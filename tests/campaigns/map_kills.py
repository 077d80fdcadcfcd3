"""A map of a town and of a region, killed in every phase: does it end with the very same rows?

    python -m tests.campaigns.map_kills                     # ten kills in each phase
    python -m tests.campaigns.map_kills --kills 1 --only region --phases page,layers

A phase begins when the command first touches a file of it. The kill comes at the n-th time that it
opens, flushes, renames or removes something in that phase, or after a share of the processor time
that the phase takes; n and share are drawn from the seed. The command is given again and killed in
the same phase, and so on; a command that was through before its moment came ends, and the next one
starts where the phase before was left. Every series of kills ends with a command that is left
alone, and all files and all rows are compared with those of a command that was never killed.
"""

import argparse
import json
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.origin import origin
from onesided.geo.scene import pieces
from onesided.storage.atomic import write_json
from tests.campaigns.kills import (
    BY_EVENT,
    OUTPUT,
    QUIET,
    Counting,
    Words,
    command,
    differences,
    files,
    import_everything,
    town,
)

PHASES: Mapping[str, str] = {
    "footprints": r"",
    "cutting": r"^/out-run/chips",
    "embedding": r"^/out-run/(checksums\.txt|\.?manifest)",
    "search": r"^/out-run/search",
    "scoring": r"^/out-run/region/(\.region|\.marks|scores)",
    "merging": r"^/out-run/region/region\.json",
    "layers": r"^/\.out\.",
    "page": r"map-files|map\.html",
}
"""In their order, and which path of the folder begins them. Marks and footprints are read first."""

IN_A_PIECE = 8
"""Buildings, so that the region has several pieces."""


@dataclass
class InPhase(Counting):
    """Counts in one phase only, and kills there: at the n-th event, or after some seconds."""

    phase: str = ""
    seconds: float | None = None
    log: Path | None = None
    """Receives events and processor seconds of every phase, if the command is not killed."""
    entered: list[tuple[str, int, float]] = field(default_factory=list)

    def begin(self) -> None:
        """Watch this process from now on."""
        self._enter("")
        super().begin()

    def _enter(self, path: str) -> None:
        names, current = list(PHASES), self.entered[-1][0] if self.entered else ""
        later = names[names.index(current) + 1 :] if current else names
        for name in later:
            if re.search(PHASES[name], path):
                self.entered.append((name, 0, time.process_time()))
                self._set_alarm(name)
                return

    def _set_alarm(self, name: str) -> None:
        """Let the system end this process after some processor time in the phase, and not later."""
        if self.seconds is not None:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, self.seconds if name == self.phase else 0)

    def _count(self) -> None:
        name, events, began = self.entered[-1]
        self.entered[-1] = name, events + 1, began
        if name == self.phase:
            super()._count()

    def end(self) -> None:
        """Write what every phase took."""
        if self.log is None:
            return
        ends = [*(began for _, _, began in self.entered[1:]), time.process_time()]
        spent = {
            name: {"events": events, "seconds": end - began}
            for (name, events, began), end in zip(self.entered, ends, strict=True)
        }
        self.log.write_text(json.dumps(spent))


def map_words(folder: Path, *further: object) -> Words:
    """Return the command that maps the town by default, with the fastest of all candidates."""
    place = folder / "town"
    scene = ("--image", place / "post.tif", "--footprints", place / "buildings.gpkg")
    marks = ("--positives", place / "ids.csv", "--size", "16", "-o", folder / "out.gpkg")
    return ("map", *scene, *marks, "--set", 'method.candidates=["linear"]', *QUIET, *further)


MAPS: Mapping[str, Sequence[object]] = {
    "town": (),
    "region": ("--region", "--formats", "parquet", "--cells", "50"),
}


@dataclass(frozen=True)
class Campaign:
    """One map in a folder, how it ends if it is never killed, and what each phase takes."""

    words: Words
    folder: Path
    wanted: Mapping[str, object]
    spent: Mapping[str, Mapping[str, float]]

    @classmethod
    def begun(cls, name: str, place: Path) -> "Campaign":
        """Draw the town and map it once, undisturbed."""
        folder, log = place / "work", place / "log.json"
        folder.mkdir(parents=True)
        town(folder)
        shutil.copytree(folder, place / "before")
        words = map_words(folder, *MAPS[name])
        watched = InPhase(str(folder), log=log)
        ended = command(words, folder, event=None, seconds=None, counting=watched)
        assert ended.code == 0, (name, ended)
        return cls(words, folder, files(folder), json.loads(log.read_text()))

    def restore(self, state: Path) -> None:
        """Put the folder back to a state."""
        shutil.rmtree(self.folder)
        shutil.copytree(state, self.folder)

    def killed(self, phase: str, random: np.random.Generator) -> bool:
        """Give the command and kill it in a phase; return whether it was through before."""
        spent = self.spent[phase]
        event, share = int(random.integers(1, int(spent["events"]) + 1)), float(random.random())
        by_event = bool(random.random() < BY_EVENT) and spent["events"] > 1
        watched = InPhase(
            str(self.folder),
            event if by_event else None,
            phase=phase,
            seconds=None if by_event else max(0.001, share * spent["seconds"]),
        )
        ended = command(self.words, self.folder, event=None, seconds=None, counting=watched)
        assert ended.code in (None, 0), (phase, ended)
        return ended.code is None

    def is_exact(self) -> list[str]:
        """Let the command end; return the files that differ from those of the undisturbed one."""
        ended = command(self.words, self.folder, event=None, seconds=None)
        wrong = differences(self.wanted, files(self.folder))
        return wrong if ended.code == 0 else [f"exit code {ended.code}", *wrong]

    def row(self, phase: str, kills: int, state: Path, random: np.random.Generator) -> Any:  # noqa: ANN401
        """Kill in a phase so many times; return its row. `state` becomes that after a kill."""
        done, through, differ, after = 0, 0, list[dict[str, object]](), state.with_name("after")
        while done < kills:
            self.restore(state)
            series = 0
            while done + series < kills and self.killed(phase, random):
                series += 1
                shutil.rmtree(after, ignore_errors=True)
                shutil.copytree(self.folder, after)
            through += done + series < kills
            wrong = self.is_exact()
            if wrong:
                differ.append({"kills": series, "files": wrong[:8]})
            done += series
        shutil.rmtree(state)
        after.rename(state)
        exact = done - sum(int(str(each["kills"])) for each in differ)
        return {
            "phase": phase,
            **{key: round(value, 3) for key, value in self.spent[phase].items()},
            "kills": done,
            "exact": exact,
            "ended_before_the_kill": through,
            "differ": differ,
        }


def campaign(
    name: str, kills: int, seed: int, place: Path, phases: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Kill a map so many times in each phase; yield a row for each."""
    random = np.random.default_rng([seed, *name.encode()])
    begun = Campaign.begun(name, place)
    for phase in PHASES:
        if phase in phases and phase in begun.spent:
            yield {"map": name, **begun.row(phase, kills, place / "before", random)}


def main() -> None:
    """Run the campaign and write its result file; exit code 1 if one kill was not exact."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10, help="in each phase")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(MAPS))
    parser.add_argument("--phases", default=",".join(PHASES))
    parser.add_argument("--output", type=Path, default=OUTPUT.with_name("map_kills.json"))
    given = parser.parse_args()
    import_everything()
    pieces.IN_A_PIECE = IN_A_PIECE
    head, rows = origin(), list[dict[str, Any]]()
    asked = {"seed": given.seed, "in_each_phase": given.kills}
    kills = exact = 0
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        for each in given.only.split(","):
            place, phases = Path(name).resolve() / each, given.phases.split(",")
            for row in campaign(each, given.kills, given.seed, place, phases):
                print(json.dumps(row), flush=True)
                rows.append(row)
                kills, exact = kills + row["kills"], exact + row["exact"]
                # After each row: a campaign that is cut short leaves what it has measured.
                found = {"kills": kills, "exact": exact, "rows": rows}
                write_json(given.output, {**head, **asked, **found})
    print(f"{exact} of {kills} kills exact: {given.output}")
    sys.exit(exact != kills)


if __name__ == "__main__":
    main()
