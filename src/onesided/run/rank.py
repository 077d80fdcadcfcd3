"""A trained model over a folder or table of any length, killed and started again at will.

Memory does not depend on the number of items: names, scores and the sort are on disk (a
few hundred bytes for each item while it lasts). In memory are a piece of items, of at most
`CHUNK_BYTES` (see `chunk_length`), and at most `MOST_BYTES` of records that are being sorted.
Folders within folders are remembered while they are walked.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from onesided.core.errors import CheckpointError, DataNotFound
from onesided.data.problem.samples import CHUNK_ITEMS, chunk_length
from onesided.data.read.images import check_readable
from onesided.data.read.items import Items, name_of, open_items
from onesided.engine.model_file import WEIGHTS, ModelDescription, load_model
from onesided.engine.predict import Predictor
from onesided.run.folder import RESULT, read_result
from onesided.run.scores_file import (
    PartialScores,
    ScoredItem,
    entry,
    partial_scores,
)
from onesided.storage.atomic import replacing
from onesided.storage.names import printable
from onesided.storage.progress import Progress
from onesided.storage.table import csv_lines, named_lines

COLUMNS = ("path", "score", "rank", "decision")
MOST_TOLD = 1000
"""Skipped items that are returned; all of them are in the file of skipped items."""


@dataclass(frozen=True)
class Best:
    """One of the first items: printable name, score, and (C, H, W) if there is a picture."""

    name: str
    score: float
    picture: np.ndarray | None


@dataclass(frozen=True)
class Ranking:
    """What was ranked, and where it is written.

    Attributes:
        items: How many items have a score.
        called_positive: How many of them the model calls positive.
        written: How many rows the output has.
        skipped: How many items could not be read.
        told: The first of those, printable, with the reason.
        skipped_file: Where all of those are listed, if there are any.
        best: The first items, as many as were asked for.
    """

    items: int
    called_positive: int
    written: int
    skipped: int
    told: tuple[tuple[str, str], ...]
    skipped_file: Path | None
    best: tuple[Best, ...]


def rank_items(
    run: Path,
    path: Path,
    output: Path,
    *,
    tolerate: float,
    top: int | None = None,
    best: int = 0,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
) -> Ranking:
    """Score every item of a folder or table with the model of a run; write them best first.

    The same command, after a kill, goes on where it was; see `partial_scores`.

    Args:
        run: Folder with the model.
        path: Folder of images, or CSV file with a column `path` or columns of numbers.
        output: CSV file to write.
        tolerate: Share of the items that may be unreadable.
        top: Only the best so many are written; None writes all.
        best: Of how many of the best to return a picture.
        progress: Called with how many items are done and how many there are.
        notify: Called with each sentence that a person should know.
    """
    if not run.is_dir():
        raise DataNotFound(
            f"There is no run folder {run}. Give the folder that onesided fit wrote with -o."
        )
    predictor, model = load_model(run)
    items = open_items(
        path,
        model.sample_shape,
        f"The model in {run}",
        feature_names=model.feature_names,
        notify=notify,
    )
    piece = chunk_length(model.sample_shape)
    with partial_scores(output, _hash_of(run, model), items, piece=piece) as partial:
        _score_rest(partial, items, predictor, run, progress, notify)
        tally = _tally(partial, predictor.threshold)
        check_readable(
            items.shown, partial.count, [tally.first], tolerate, unreadable=tally.skipped
        )
        skipped_file = _write_skipped(output, partial, tally.skipped)
        ranked = islice(partial.ranked(), top)
        first = _write_ranked(output, ranked, predictor.threshold, keep=best)
        return Ranking(
            items=tally.scored,
            called_positive=tally.called_positive,
            written=min(tally.scored, top or tally.scored),
            skipped=tally.skipped,
            told=tuple(tally.told),
            skipped_file=skipped_file,
            best=tuple(_as_seen(item, items) for item in first),
        )


def _hash_of(run: Path, model: ModelDescription) -> str:
    """Return a hash of all that decides about scores; the threshold does not."""
    with (run / WEIGHTS).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(model.model_dump_json(exclude={"threshold"}).encode())
    return digest.hexdigest()


def _score_rest(
    partial: PartialScores,
    items: Items,
    predictor: Predictor,
    run: Path,
    progress: Progress | None,
    notify: Callable[[str], None] | None,
) -> None:
    """Score the pieces that an earlier command did not."""
    done = partial.done()
    scored = min(done * partial.piece, partial.count)
    if done and notify:
        notify(f"Going on after {scored} of {partial.count} items, scored by a stopped command.")
    with partial.journal.writing() as append:
        for records in islice(partial.pieces(), done, None):
            piece = items.read(records)
            scores = predictor.scores(piece.values) if len(piece.values) else np.empty(0)
            append(entry(piece, _finite(scores, run)))
            scored += len(records)
            if progress:
                progress(scored, partial.count)


def _finite(scores: np.ndarray, run: Path) -> np.ndarray:
    if not np.isfinite(scores).all():
        raise CheckpointError(
            f"The model in {run} gives scores that are no numbers, so its weights are damaged. "
            "Restore them from a copy, or train again."
        )
    return scores


@dataclass
class _Tally:
    """Counts over all items, and the first that could not be read."""

    scored: int = 0
    called_positive: int = 0
    skipped: int = 0
    told: list[tuple[str, str]] = field(default_factory=list)

    @property
    def first(self) -> tuple[str, str]:
        return self.told[0] if self.told else ("", "")


def _tally(partial: PartialScores, threshold: float) -> _Tally:
    tally = _Tally()
    for item in partial.scored():
        if item.score is None:
            tally.skipped += 1
            if len(tally.told) < MOST_TOLD:
                tally.told.append((printable(name_of(item.record)), item.reason))
        else:
            tally.scored += 1
            tally.called_positive += item.score > threshold
    return tally


def _write_skipped(output: Path, partial: PartialScores, count: int) -> Path | None:
    """List what could not be read beside the output; empty a list of an earlier ranking."""
    path = output.with_name(f"{output.stem}.skipped.csv")
    if count or path.exists():
        rows = ((name_of(one.record), one.reason) for one in partial.scored() if one.reason)
        _write_table(path, ("path", "reason"), rows)
    return path if count else None


def _write_ranked(
    output: Path, ranked: Iterable[ScoredItem], threshold: float, keep: int
) -> list[ScoredItem]:
    """Write the ranking; return as many of its first items."""
    first: list[ScoredItem] = []

    def rows() -> Iterator[tuple[str, str, int, str]]:
        for place, item in enumerate(ranked, start=1):
            assert item.score is not None
            if len(first) < keep:
                first.append(item)
            decision = "positive" if item.score > threshold else "negative"
            yield name_of(item.record), f"{item.score:.9g}", place, decision

    _write_table(output, COLUMNS, rows())
    return first


def _write_table(path: Path, columns: tuple[str, ...], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file of any length, a piece at a time."""
    rows = iter(rows)
    with replacing(path) as file:
        file.write(csv_lines([columns]).encode())
        while piece := list(islice(rows, CHUNK_ITEMS)):
            file.write(named_lines(piece).encode())


def _as_seen(item: ScoredItem, items: Items) -> Best:
    assert item.score is not None
    return Best(printable(name_of(item.record)), item.score, items.picture(item.record))


def alarm_of(run: Path) -> str | None:
    """Return the sentence of a run whose model is degenerate; None also where nobody knows."""
    if not (run / RESULT).exists():
        return None  # model files alone rank as well; someone may have copied just these
    pu = read_result(run)["pu"]
    return None if pu is None else pu.get("degenerate")
