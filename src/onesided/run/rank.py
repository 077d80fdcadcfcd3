"""Rank the items of a folder or table with a trained model; a stopped ranking is resumed.

Memory does not grow with the number of items: names, scores and the sort are on disk, a few
hundred bytes for each item. In memory are one chunk of items (see `chunk_length`), at most
`MOST_BYTES` of records that are being sorted, and the folders that are being walked.

Until the ranking is written, a folder `ranked.csv.partial` beside it holds the work:

    listing     a record for each item, in the order in which they are scored
    scores      a journal, one entry for each chunk; its header names the model and the items
"""

import hashlib
import shutil
import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from onesided.core.errors import DataError, OnesidedError
from onesided.data.problem.samples import CHUNK_ITEMS, chunk_length
from onesided.data.read.images import check_readable
from onesided.data.read.items import ItemChunk, Items, name_of, open_items
from onesided.data.read.parquet_rows import number_columns, parquet_items
from onesided.data.read.vectors import VectorItems, holds_vectors, read_vector_file
from onesided.metrics.reference import Comparison, Reference, compare
from onesided.metrics.stored import degenerate_reason
from onesided.run.columns import columns_of, numbers_of
from onesided.run.folder import RESULT, read_result
from onesided.run.opened import Opened, open_model
from onesided.run.ray_engine import Listed, RayEngine
from onesided.storage.atomic import replacing
from onesided.storage.journal import Journal
from onesided.storage.lock import alone
from onesided.storage.names import printable
from onesided.storage.parquet import is_parquet, open_parquet, write_parquet
from onesided.storage.progress import Progress
from onesided.storage.sorting import (
    read_records,
    record_offsets,
    sorted_on_disk,
    write_records,
)
from onesided.storage.table import csv_lines, named_lines
from onesided.storage.together import together

KINDS: Mapping[str, Literal["text", "number", "count"]] = {
    "score": "number",
    "probability": "number",
    "rank": "count",
}
"""Columns of a Parquet file that are no texts."""
MOST_RETURNED = 1000
"""Skipped items that are returned; the file of skipped items lists all."""
_LISTING, _SCORES = "listing", "scores"
_ALL_BITS = 2**64 - 1


@dataclass(frozen=True)
class Best:
    """One of the best items: printable name, score, and a picture (C, H, W), a text, or None."""

    name: str
    score: float
    picture: np.ndarray | str | None


@dataclass(frozen=True)
class Ranking:
    """The result of a ranking.

    Attributes:
        items: How many items have a score.
        called_positive: How many of them the model calls positive.
        written: How many rows the output has.
        skipped: How many items could not be read.
        first_skipped: The first of those, printable, with the reason.
        skipped_file: Lists all of those, if there are any.
        best: The best items, as many as were asked for.
        compared: How the items differ from those of training; None where that is not known.
    """

    items: int
    called_positive: int
    written: int
    skipped: int
    first_skipped: tuple[tuple[str, str], ...]
    skipped_file: Path | None
    best: tuple[Best, ...]
    compared: Comparison | None = None


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
    add: Callable[[Path, "Ranking"], object] = lambda new, ranking: None,
    engine: RayEngine | None = None,
) -> Ranking:
    """Score every item of a folder or table with the model of a run; write them best first.

    After a kill, the same command resumes; see `partial_scores`. The arguments are those of the
    job `rank`, but `best`: how many of the best to return with a picture, and `add`: what writes
    further files beside the output, into the folder of the change that all of them are.
    """
    model = open_model(run)
    items = items_for(path, model, notify)
    chunk = chunk_length(model.sample_shape)
    with partial_scores(output, model.identity, items, chunk=chunk) as partial:
        if engine is None:
            _score_rest(partial, items, model, progress, notify)
        else:
            _score_rest_by(engine, partial, run, path, progress, notify)
        tally = _tally(partial, model, items.prefix)
        _tell_unknown(partial, notify)
        first = tally.first_skipped[0] if tally.first_skipped else ("", "")
        unreadable, noun = tally.skipped, items.noun
        check_readable(
            items.shown, partial.count, [first], tolerate, unreadable=unreadable, noun=noun
        )
        with together(output.parent, output.name) as new:
            skipped_file = _write_skipped(new, output, partial, tally.skipped, items.prefix)
            ranked = islice(partial.ranked(), top)
            best_items = _write_ranked(
                new / output.name, ranked, model, keep=best, prefix=items.prefix
            )
            ranking = Ranking(
                items=tally.scored,
                called_positive=tally.called_positive,
                written=min(tally.scored, top or tally.scored),
                skipped=tally.skipped,
                first_skipped=tuple(tally.first_skipped),
                skipped_file=skipped_file,
                best=tuple(
                    Best(
                        printable(items.prefix + name_of(item.record)),
                        item.score,
                        items.picture(item.record),
                    )
                    for item in best_items
                    if item.score is not None
                ),
                compared=_compare(partial, model, tally),
            )
            add(new, ranking)
        return ranking


def items_for(path: Path, model: Opened, notify: Callable[[str], None] | None = None) -> Items:
    """Return the items of a folder, table or file of vectors, for a trained model."""
    shape, names = model.sample_shape, model.feature_names
    if not holds_vectors(path):
        return open_items(
            path, shape, model.called, feature_names=names, columns=model.columns, notify=notify
        )
    if is_parquet(path) and path.is_file() and not model.columns:
        file = open_parquet(path)
        if columns := number_columns(file):
            called = model.called
            return parquet_items(file, columns, shape, called, feature_names=names, notify=notify)
    vectors = read_vector_file(path)
    if vectors.values.shape[1:] != shape or (names and vectors.feature_names not in ((), names)):
        raise DataError(
            f"{model.called} takes samples of the shape {shape}{' by name' if names else ''}, and "
            f"{path} holds vectors of {vectors.values.shape[1]} numbers that do not fit."
        )
    return VectorItems(vectors)


def alarm_of(run: Path) -> str | None:
    """Return why the model of a run is degenerate, None where nothing says so."""
    if not (run / RESULT).exists():
        return None  # model files alone are enough to rank: a copy may hold only these
    return degenerate_reason(read_result(run))


@dataclass(frozen=True)
class ScoredItem:
    """One item: its record, and either a score or the reason why there is none."""

    record: bytes
    score: float | None
    reason: str = ""


@dataclass(frozen=True)
class PartialScores:
    """The scores so far, in the order of the listing."""

    folder: Path
    count: int  # of all items
    chunk: int  # items that are scored at a time
    journal: Journal  # one entry for each scored chunk

    def chunks(self) -> Iterator[list[bytes]]:
        """Yield the records of all items, a chunk at a time."""
        records = read_records(self.folder / _LISTING)
        while chunk := list(islice(records, self.chunk)):
            yield chunk

    def done(self) -> int:
        """Return how many chunks are scored."""
        return sum(1 for _ in self.journal.entries())

    def scored(self) -> Iterator[ScoredItem]:
        """Yield every item; all chunks must be scored."""
        entries = self.journal.entries()
        for records in self.chunks():
            entry: Any = next(entries, None)
            if not _is_whole(entry, len(records)):
                raise self.journal.damaged("an entry does not fit its items")
            scores = iter(entry["scores"])
            for number, record in enumerate(records):
                reason = entry["reasons"].get(str(number), "")
                yield ScoredItem(record, None if reason else next(scores), reason)
        if next(entries, None) is not None:
            raise self.journal.damaged("it has more entries than there are chunks of items")

    def ranked(self) -> Iterator[ScoredItem]:
        """Yield the items that have a score, best first, equal scores in the order of names."""
        scored = ((item.score, item.record) for item in self.scored())
        keys = (_descending(score) + record for score, record in scored if score is not None)
        for key in sorted_on_disk(keys, self.folder):
            yield ScoredItem(key[8:], _from_descending(key[:8]))


def _is_whole(entry: object, items: int) -> bool:
    """Whether an entry has a score, or a reason why there is none, for each item of its chunk."""
    if not isinstance(entry, dict) or entry.keys() - {"counts", "unknown"} != {"scores", "reasons"}:
        return False
    scores, reasons, unknown = entry["scores"], entry["reasons"], entry.get("unknown", {})
    if not all(isinstance(one, dict) for one in (reasons, unknown)) or not isinstance(scores, list):
        return False
    return (
        len(scores) + len(reasons) == items
        and all(isinstance(score, float) and 0 <= score <= 1 for score in scores)
        and all(isinstance(reason, str) and reason for reason in reasons.values())
        and reasons.keys() <= set(map(str, range(items)))
        and all(type(rows) is int and 0 <= rows <= items for rows in unknown.values())
    )


def _descending(score: float) -> bytes:
    """Return bytes that sort before those of every smaller score; a score is at least 0."""
    bits = int.from_bytes(struct.pack(">d", score + 0.0))  # -0.0 becomes 0.0
    return (bits ^ _ALL_BITS).to_bytes(8)


def _from_descending(key: bytes) -> float:
    bits = int.from_bytes(key) ^ _ALL_BITS
    return float(struct.unpack(">d", bits.to_bytes(8))[0])


@contextmanager
def partial_scores(
    output: Path, model: str, items: Items, *, chunk: int
) -> Iterator[PartialScores]:
    """Give the scores that a killed command left for this output; none where there are none.

    Scores of another model (`model` is its hash), or of items that changed since, are
    discarded. The folder is deleted at the end, and also after an error if nothing was scored.
    """
    folder = output.with_name(f"{output.name}.partial")
    shown = printable(folder.as_posix())
    busy = OnesidedError(f"Another command is ranking into {shown}. Wait for it to end.")
    digest, count = hashlib.sha256(), 0

    def listed() -> Iterator[bytes]:
        nonlocal count
        for record in items.records(folder):
            count += 1
            digest.update(len(record).to_bytes(4, "little") + record)
            yield record

    # Beside the folder: it is deleted while the lock is held, and Windows deletes no open file.
    with alone(folder.with_name(f"{folder.name}.lock"), otherwise=busy):
        _make(folder)
        journal = Journal(folder / _SCORES, {})
        finished = False
        try:
            write_records(folder / _LISTING, listed())
            header = {"format": 1, "piece": chunk, "model": model, "items": digest.hexdigest()}
            journal = Journal(folder / _SCORES, header)
            yield PartialScores(folder, count, chunk, journal)
            finished = True
        finally:
            if finished or next(journal.entries(), None) is None:
                shutil.rmtree(folder)


def _make(folder: Path) -> None:
    """Make the folder; refuse one that holds other files, and a file of this name."""
    if not folder.exists():
        folder.mkdir()
        return
    ours = (_LISTING, _SCORES)
    if not folder.is_dir() or any(
        path.name not in ours and path.stem[:4] != "run-" for path in folder.iterdir()
    ):
        raise OnesidedError(
            f"Scores are kept in {printable(folder.as_posix())} until the ranking is written, but "
            "it holds something that is not ours. Move it, or choose another output with -o."
        )


def _score_rest(
    partial: PartialScores,
    items: Items,
    model: Opened,
    progress: Progress | None,
    notify: Callable[[str], None] | None,
) -> None:
    """Score the chunks that an earlier command did not."""
    done = partial.done()
    scored = min(done * partial.chunk, partial.count)
    if done and notify:
        notify(f"Resuming after {scored} of {partial.count} items, scored by a stopped command.")
    with partial.journal.writing() as append:
        for records in islice(partial.chunks(), done, None):
            append(entry_of(items.read(records), model))
            scored += len(records)
            if progress:
                progress(scored, partial.count)


def entry_of(chunk: ItemChunk, model: Opened) -> dict[str, Any]:
    """Return the journal's entry of a chunk; JSON keeps every bit of its scores."""
    scores, counts = np.empty(0), None
    if len(chunk.values):
        scores, counts = model.scores_and_counts(chunk.values)
    reasons = {str(number): reason for number, reason in chunk.reasons.items()}
    entry = {"scores": scores.tolist(), "reasons": reasons}
    if counts is not None:
        entry["counts"] = counts.tolist()
    if model.unknown is not None and len(chunk.values):
        entry["unknown"] = dict(model.unknown(chunk.values))
    return entry


@dataclass(frozen=True)
class ScoringWork:
    """What a worker of Ray does for a ranking: it opens model and items, and scores chunks."""

    run: Path
    items: Path

    def open(self) -> Callable[[list[bytes]], dict[str, Any]]:
        """Return what scores a chunk."""
        model = open_model(self.run, threads=1)
        items = items_for(self.items, model)
        return lambda records: entry_of(items.read(records), model)


def _score_rest_by(
    engine: RayEngine,
    partial: PartialScores,
    run: Path,
    path: Path,
    progress: Progress | None,
    notify: Callable[[str], None] | None,
) -> None:
    """Score the chunks that an earlier command did not, by workers of Ray."""
    done = partial.done()
    if done and notify:
        scored = min(done * partial.chunk, partial.count)
        notify(f"Resuming after {scored} of {partial.count} items, scored by a stopped command.")
    listing = partial.folder / _LISTING
    offsets = list(islice(record_offsets(listing, partial.chunk), done, None))
    work, listed = (
        ScoringWork(run.resolve(), path.resolve()),
        Listed(listing, partial.chunk, offsets),
    )
    with partial.journal.writing() as append:
        for number, entry in enumerate(engine.entries(work, listed), start=done + 1):
            append(entry)
            if progress:
                progress(min(number * partial.chunk, partial.count), partial.count)


def _compare(partial: PartialScores, predictor: Opened, tally: "_Tally") -> Comparison | None:
    """Return how all items differ from those of training; None without a reference."""
    reference = predictor.reference
    if reference is None:
        return None
    total = np.zeros(_shape_of_counts(reference), np.int64)
    for entry in partial.journal.entries():
        assert isinstance(entry, dict), "`scored` has looked at every entry"
        counts = np.array(entry.get("counts", np.zeros_like(total)))
        if counts.shape != total.shape or counts.dtype.kind != "i" or (counts < 0).any():
            raise partial.journal.damaged("its counts do not fit the model")
        total += counts
    scores = None if reference.scores is None else np.array([tally.between])
    return compare(reference, total, scores)


def _shape_of_counts(reference: Reference) -> tuple[int, int]:
    directions, edges = reference.edges.values.shape
    return directions, edges + 1


def _tell_unknown(partial: PartialScores, notify: Callable[[str], None] | None) -> None:
    """Tell of values that the model does not know, whichever command or worker met them."""
    unknown = Counter[str]()
    for entry in partial.journal.entries():
        assert isinstance(entry, dict), "`scored` has looked at every entry"
        unknown.update(entry.get("unknown", {}))
    for column, rows in unknown.items():
        if notify and rows:
            notify(unknown_values(column, rows))


def unknown_values(column: str, rows: int) -> str:
    """Return the notice about values of a category that have no place of their own."""
    return printable(
        f"Column '{column}': {rows} rows hold values that the model does not know or has seldom "
        "seen; they count as other values."
    )


@dataclass
class _Tally:
    """Counts over all items, and the first that could not be read."""

    scored: int = 0
    called_positive: int = 0
    skipped: int = 0
    first_skipped: list[tuple[str, str]] = field(default_factory=list)
    between: list[int] = field(default_factory=list)
    """Scores between the edges of the model's reference."""


def _tally(partial: PartialScores, predictor: Opened, prefix: str) -> _Tally:
    tally, threshold, reference = _Tally(), predictor.threshold, predictor.reference
    edges = [] if reference is None or reference.scores is None else reference.scores.values[0]
    tally.between = [0] * (len(edges) + 1)
    for item in partial.scored():
        if item.score is None:
            tally.skipped += 1
            if len(tally.first_skipped) < MOST_RETURNED:
                name = printable(prefix + name_of(item.record))
                tally.first_skipped.append((name, item.reason))
        else:
            tally.scored += 1
            tally.between[bisect_left(edges, item.score)] += 1
            tally.called_positive += item.score > threshold
    return tally


def _write_skipped(
    new: Path, output: Path, partial: PartialScores, count: int, prefix: str
) -> Path | None:
    """List unreadable items beside the output; empty the list of an earlier ranking."""
    path = output.with_name(f"{output.stem}.skipped.csv")
    if count or path.exists():
        skipped = (one for one in partial.scored() if one.reason)
        rows = ((prefix + name_of(one.record), one.reason) for one in skipped)
        _write_table(new / path.name, ("item", "reason"), rows)
    return path if count else None


def _write_ranked(
    output: Path, ranked: Iterable[ScoredItem], predictor: Opened, *, keep: int, prefix: str
) -> list[ScoredItem]:
    """Write the ranking, as `scores.csv` of a run has it; return its first `keep` items.

    Names too: an item of a folder starts with the folder's name.
    """
    threshold, curve = predictor.threshold, predictor.calibration
    first: list[ScoredItem] = []

    def rows() -> Iterator[tuple[object, ...]]:
        for number, item in enumerate(ranked, start=1):
            assert item.score is not None
            if len(first) < keep:
                first.append(item)
            decision = "positive" if item.score > threshold else "negative"
            numbers = numbers_of(item.score, curve)
            yield prefix + name_of(item.record), *numbers, number, decision

    _write_table(output, columns_of(curve), rows())
    return first


def _write_table(path: Path, columns: tuple[str, ...], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV or Parquet file of any length, a chunk at a time."""
    if is_parquet(path):
        named = ((printable(str(name)), *others) for name, *others in rows)
        write_parquet(path, {name: KINDS.get(name, "text") for name in columns}, named)
        return
    rows = iter(rows)
    with replacing(path) as file:
        file.write(csv_lines([columns]).encode())
        while chunk := list(islice(rows, CHUNK_ITEMS)):
            file.write(named_lines(chunk).encode())
