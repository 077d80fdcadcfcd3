"""Review a run: what to look at next, answers, files of them, and the next round of training.

The jobs of `onesided review`. `ReviewSession` is the review itself; the page (`review/server.py`)
and simulated reviewers use it too.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onesided.core.config import Settings, merge, read_toml
from onesided.core.errors import ConfigError, DataError
from onesided.core.monitor import Monitor
from onesided.engine.model_file import WEIGHTS, load_model
from onesided.jobs.answers import LAYERS, answers_of_layer, write_answers_layer
from onesided.jobs.audit import items_to_audit
from onesided.jobs.fit import fit_settings
from onesided.jobs.map import map_settings, run_of
from onesided.jobs.map_request import MapRequest
from onesided.jobs.settings import PathLike
from onesided.jobs.words import count
from onesided.methods import AUTO
from onesided.methods.base import GradientMethod
from onesided.report import write_report
from onesided.review import rounds
from onesided.review.formats import checked_import, ending_of, export_text, import_answers
from onesided.review.session import Session, decided
from onesided.run.answers import answers_in
from onesided.run.config import ChipsConfig, with_new_names
from onesided.run.evaluate import read_pool
from onesided.run.folder import (
    APPLIED,
    CACHE,
    CONFIG,
    MANIFEST,
    REPORT,
    RESULT,
    STORE,
    make_folder,
    read_result,
    working_in,
)
from onesided.run.load import stored_path
from onesided.storage.answer_journal import now
from onesided.storage.answers import ANSWERS, MergedAnswers
from onesided.storage.atomic import read_json, write_json, write_text
from onesided.storage.names import shown_path, spreadsheet_safe
from onesided.storage.table import csv_lines
from onesided.storage.together import together, write_checksums

_ROUND = re.compile(r"-round\d+$")


@dataclass(frozen=True)
class RoundResult:
    """The next round.

    Attributes:
        folder: The run folder of the new model.
        result: The content of its `result.json`.
        changes: What changed since the run before: the content of its `review.json`.
        report: The page for people, which shows the changes.
        files: Of a map: what was written, the file for other programs first.
    """

    folder: Path
    result: dict[str, Any]
    changes: dict[str, Any]
    report: Path
    files: tuple[Path, ...] = ()


class ReviewSession(Session):
    """A review of a finished run, from the next item to the next model.

    Example:
        >>> import onesided
        >>> review = onesided.ReviewSession("runs/toy", reviewer="Anna")
        >>> (first,) = review.next(strategy="likely")
        >>> review.answer(first.item, "positive", strategy=first.strategy).reviewer
        'Anna'
        >>> review.undo().answer
        'positive'
        >>> review.agreement()
        []

    Args:
        run: Folder of a finished run.
        reviewer: Who answers, where no other is named.
        audit: Answer what `audit_draw` drew, in its order.
        blind: Hide scores; None hides them in an audit.
        seed: Of the random order.
        monitor: Receives notices and progress.
    """

    def __init__(
        self,
        run: PathLike,
        *,
        reviewer: str = "me",
        audit: bool = False,
        blind: bool | None = None,
        seed: int = 0,
        monitor: Monitor | None = None,
    ) -> None:
        super().__init__(
            run,
            reviewer=reviewer,
            drawn=items_to_audit(Path(run)) if audit else None,
            blind=audit if blind is None else blind,
            seed=seed,
            monitor=monitor,
        )

    def export(self, file: PathLike, *, map_file: PathLike | None = None) -> Path:
        """Write the answers, in the format that the file's name asks for.

        Args:
            file: .csv, .jsonl, .json (Label Studio), .coco.json, .geojson or .gpkg.
            map_file: The map whose buildings get the answers, for .geojson and .gpkg; None takes
                the one that lies beside the run.
        """
        path = Path(file)
        if path.suffix.lower() not in LAYERS:
            write_text(path, export_text(self, ending_of(path)))
            return path
        layer = _map_of(self.run) if map_file is None else Path(map_file)
        lacking = write_answers_layer(layer, self.merged(), path)
        if lacking:
            self.monitor.warn(f"The map does not have the buildings of {count(lacking, 'answer')}.")
        return path

    def import_file(self, file: PathLike) -> int:
        """Add the answers of a file, all of them or none; return how many were new.

        Args:
            file: CSV, JSON Lines, Label Studio JSON, COCO, or a map with answers.
        """
        path = Path(file)
        is_layer = path.suffix.lower() in LAYERS
        found = answers_of_layer(path) if is_layer else import_answers(path)
        new = checked_import(
            found, self, source=shown_path(path), otherwise=path.stem[:60] or "file", time=now()
        )
        before = self.merged()
        if new:
            self.add(new)
        self._warn_of(before, self.merged())
        return len(new)

    def apply(
        self, output: PathLike | None = None, *, monitor: Monitor | None = None
    ) -> RoundResult:
        """Train again with the answers, in a new run folder that names this one as its parent.

        The same call resumes a training that was stopped.

        Args:
            output: The new run folder, or of a map the file to write (.gpkg, .geojson); None takes
                this run's name with -round2, -round3 and so on, and for a map a folder of that
                name beside the first one.
            monitor: Receives notices and progress; None tells the session's.
        """
        told = monitor or self.monitor
        if isinstance(self.config.data, ChipsConfig):
            return _apply_to_map(self, None if output is None else Path(output), told)
        place = _next_folder(self.run, self.round) if output is None else Path(output)

        def train(settings: Settings) -> Mapping[str, Any]:
            return fit_settings(settings, place, preset=None, monitor=told).result

        return _apply(self, place, train, told)

    def _warn_of(self, before: MergedAnswers, after: MergedAnswers) -> None:
        new = len(after.conflicts) - len(before.conflicts)
        if new > 0:
            self.monitor.warn(
                f"Reviewers contradict each other on {count(new, 'more item')}, such as "
                f"{after.conflicts[-1]}. What they dispute is left out of the next training until "
                "one of them changes."
            )


def _map_of(run: Path) -> Path:
    """Return the map that `onesided map` wrote beside its run folder."""
    stem = run.resolve().name.removesuffix("-run")
    for ending in (".gpkg", ".geojson"):
        if (found := run.resolve().with_name(f"{stem}{ending}")).exists():
            return found
    raise ConfigError(
        "Answers alone have no place on Earth, and no map lies beside this run. Name the map that "
        "has the buildings: --map damage.gpkg."
    )


def _next_folder(run: Path, round_number: int) -> Path:
    name = _ROUND.sub("", run.resolve().name)
    return run.with_name(f"{name}-round{round_number + 1}")


def _apply_to_map(session: ReviewSession, output: Path | None, monitor: Monitor) -> RoundResult:
    """Train on the same buildings again, and write the next map in a folder of its own."""
    asked = MapRequest.of(session.run)
    before = asked.path("output")
    assert before is not None, "every map has a file"
    after = next_map(before, session.round) if output is None else output
    if after.resolve() == before.resolve():
        raise ConfigError(f"{after} is the map that was reviewed. Choose another file with -o.")
    place, files = run_of(after), list[Path]()

    def train(settings: Settings) -> Mapping[str, Any]:
        done = map_settings(asked.beside(after), settings, preset=None, run=place, monitor=monitor)
        files.extend(done.files)
        return read_result(place)

    found = _apply(session, place, train, monitor)
    return replace(found, files=tuple(files))


def next_map(before: Path, round_number: int) -> Path:
    """Return the file of the next map: map.html and summary.csv beside it have names of their own.

    So each round has a folder, beside the first map.
    """
    above = before.parent
    is_round = _ROUND.sub("", above.name) == before.stem and above.name != before.stem
    beside = above.parent if is_round else above
    return beside / f"{before.stem}-round{round_number + 1}" / before.name


def _apply(
    session: ReviewSession,
    output: Path,
    train: Callable[[Settings], Mapping[str, Any]],
    monitor: Monitor,
) -> RoundResult:
    """Train with the answers in a new run folder; `train` takes settings and returns the result."""
    if output.resolve() == session.run.resolve():
        raise ConfigError(f"{output} is the run that was reviewed. Choose another folder with -o.")
    _freeze_answers(session, output, monitor)
    settings = with_new_names(read_toml(session.run / CONFIG))
    settings = merge(settings, {"data": {"answers": str(output / APPLIED)}})
    settings, start = _warm_start(session.run, settings)
    monitor.note(start)
    _share_features(session.run, output)
    result = train(settings)
    changed = {
        "round": session.round + 1,
        "parent": _parent(session.run),
        "start": start,
        **rounds.changes(session, session.result, result, read_pool(output)),
    }
    with working_in(output):
        if not (output / rounds.FILE).exists():
            _write_changes(output, changed)
        else:
            changed = read_json(output / rounds.FILE)
    return RoundResult(output, dict(result), changed, output / REPORT)


def _freeze_answers(session: ReviewSession, output: Path, monitor: Monitor) -> None:
    """Write the answers that the next round learns from, unless it has begun with others."""
    merged = session.merged()
    said = decided(merged.settled())
    if not said:
        raise DataError(
            f"Nobody has called an item of {session.run} positive or negative yet, so there is "
            "nothing to learn from. Answer some items first: onesided review RUN"
        )
    if merged.conflicts:
        monitor.warn(
            f"Reviewers contradict each other on {count(len(merged.conflicts), 'item')}, such as "
            f"{merged.conflicts[0]}. What they dispute stays in the pool."
        )
    earlier = stored_path(getattr(session.config.data, "answers", None))
    if earlier is not None:
        words = {1: "positive", 0: "negative"}
        before = {
            item: words[meant]
            for item, meant in answers_in(earlier, column=None).meant.items()
            if meant in words
        }
        said = {**before, **said}
    rows = [(spreadsheet_safe(item), answer) for item, answer in sorted(said.items())]
    text = csv_lines([("item", "answer"), *rows])
    file = output / APPLIED
    if not file.exists():
        make_folder(output, instead="Choose another with -o.")
        if any(output.iterdir()) and not (output / MANIFEST).exists():
            raise ConfigError(
                f"{output} is not empty and holds no run. Choose a new folder with -o."
            )
        write_text(file, text)
        return
    if file.read_text(encoding="utf-8") == text:
        return
    if (output / RESULT).exists():
        raise ConfigError(
            f"{output} holds a round with other answers, and it is finished. Choose another "
            "folder with -o, or review that run: it has a ranking of its own."
        )
    monitor.note(
        f"The round in {output} goes on with the answers it began with; newer ones count in the "
        "next."
    )


def _warm_start(run: Path, settings: Settings) -> tuple[Settings, str]:
    """Return settings that start from the weights of a run where they can, and a sentence on it.

    Only the backbone's weights are taken, as initial weights: they are a part of the new run's
    identity, so it resumes to the bit like any other.
    """
    anew = "The next model is trained anew: "
    if settings["method"]["name"] == AUTO:
        return settings, (
            f"{anew}a search compares methods on folds, and a model that had seen all items would "
            "not be fair to the others. Stored features are used again."
        )
    if settings["backbone"]["freeze"]:
        return settings, (
            f"{anew}its backbone is frozen, so only the head learns, in little time. Stored "
            "features are used again."
        )
    predictor, _ = load_model(run)
    if predictor.encoder is not None:
        return settings, (
            f"{anew}the encoder of its table is fitted to other rows, so old weights would read "
            "other numbers."
        )
    if not isinstance(predictor.method, GradientMethod):
        return settings, f"{anew}this method is fitted in one go and has no weights to go on from."
    warm = merge(settings, {"backbone": {"weights": str(run / WEIGHTS)}})
    return warm, (
        f"Warm start: the backbone begins with the weights of {run}; the classifier, the method's "
        "memory and the optimizer begin anew."
    )


def _share_features(run: Path, output: Path) -> None:
    """Give the new run the stored features of its parent, by links where the disk has them."""
    for chunk in sorted((run / CACHE / STORE).glob("*/*.chunk")):
        target = output / CACHE / STORE / chunk.parent.name / chunk.name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(chunk, target)
            except OSError:  # another disk, or one without links
                shutil.copyfile(chunk, target)


def _parent(run: Path) -> dict[str, Any]:
    identity = read_json(run / MANIFEST).get("identity") if (run / MANIFEST).exists() else None
    return {"folder": shown_path(run), "identity": identity}


def _write_changes(output: Path, changed: dict[str, Any]) -> None:
    manifest = read_json(output / MANIFEST)
    with together(output) as new:
        write_json(new / rounds.FILE, changed)
        write_json(
            new / MANIFEST,
            {**manifest, "parent": changed["parent"], "round": changed["round"]},
        )
        write_report(output, new=new)
        write_checksums(new, output)


def summary_lines(session: Session) -> Sequence[str]:
    """Return what was done so far, in sentences."""
    done = session.progress()
    counts = ", ".join(f"{done.counts[word]} {word}" for word in ANSWERS if done.counts[word])
    what = "drawn items" if session.drawn is not None else "items"
    lines = [f"{done.answered} of {done.items:,} {what} answered{f': {counts}' if counts else ''}."]
    if done.contested:
        lines.append(f"Reviewers disagree on {count(done.contested, 'item')}.")
    if done.found_per_hour is not None:
        lines.append(f"{done.found_per_hour:.0f} positives found per hour of work.")
    return [*lines, *(f"{pair}." for pair in session.agreement())]
