"""The files of a finished run, none of which is trusted.

Only `result.json` is needed. Every other file may be missing. One that cannot be read is
left out and named in `RunFiles.notes`. File names may hold anything, also bytes that are
not UTF-8.
"""

import csv
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Float, Float64, Int64, UInt8

from onesided.core.errors import CheckpointError, DataError, DataNotFound
from onesided.core.former import result_today
from onesided.metrics.result_schema import fault_in
from onesided.metrics.stored import Json, degenerate_reason, listed, number, numbers, table
from onesided.storage.json_files import parsed
from onesided.storage.own_file import digest_of, read_arrays, read_own

READ = (
    *("result.json", "report.npz", "compare.json", "log.jsonl", "manifest.json", "scores.csv"),
    *("review.json", "audit.json"),
)
"""Files that a page is made from."""
GROUPS = ("top", "threshold", "bottom", "doubted")
"""Groups of thumbnails in `report.npz`, in the order in which a page shows them."""

UNREADABLE = (OSError, ValueError, TypeError, AttributeError, RecursionError, csv.Error)
"""What the readers of JSON and CSV raise for a damaged file."""

Content = TypeVar("Content")

POSITIVE_DECISIONS = frozenset({"positive", "1", "true"})


@dataclass(frozen=True)
class Epoch:
    """One row of the log."""

    stage: str
    loss: Mapping[str, float]
    watched: Mapping[str, float]
    share_positive: float | None
    proxy_auc: float | None


@dataclass(frozen=True)
class RankedPool:
    """Names and scores of all unlabelled items, and how many of them were called positive."""

    scores: Float64[np.ndarray, "n"]
    called_positive: int
    names: tuple[str, ...] = ()

    def best(self, count: int) -> list[tuple[str, float]]:
        """Return name and score of the items that are most likely positive."""
        return self._items(np.argsort(-self.scores, kind="stable")[:count])

    def nearest(self, threshold: float, count: int) -> list[tuple[str, float]]:
        """Return name and score of the items whose decision is least sure."""
        return self._items(np.argsort(np.abs(self.scores - threshold), kind="stable")[:count])

    def _items(self, rows: np.ndarray) -> list[tuple[str, float]]:
        return [(self.names[row], float(self.scores[row])) for row in rows if self.names]


@dataclass(frozen=True)
class Thumbnails:
    """A few images, or texts, with their scores and names, in the order in which they are shown."""

    images: UInt8[np.ndarray, "n height width channels"] | tuple[str, ...]
    scores: Float64[np.ndarray, "n"]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Embedding:
    """Items as points in the plane; role 0 unlabelled, 1 labelled, 2 called positive."""

    points: Float[np.ndarray, "m 2"]
    roles: Int64[np.ndarray, "m"]


@dataclass(frozen=True)
class RunFiles:
    """Everything a page can be made from; what is missing is empty or None.

    Attributes:
        review: What a round of review changed, where the run learned from one.
        audit: What people said of a random sample of the pool.
        labelled: Figures on items whose true class became known after the run.
        made_from: Digest of the files; a page that names another one is stale.
        notes: Sentences about files that were there but could not be read.
    """

    name: str
    result: Json
    manifest: Json = field(default_factory=dict)
    epochs: tuple[Epoch, ...] = ()
    ranking: RankedPool | None = None
    positive_scores: Float64[np.ndarray, "p"] | None = None
    thumbnails: Mapping[str, Thumbnails] = field(default_factory=dict)
    embedding: Embedding | None = None
    comparison: tuple[Json, ...] = ()
    review: Json = field(default_factory=dict)
    audit: Json = field(default_factory=dict)
    labelled: Json = field(default_factory=dict)
    made_from: str = ""
    notes: tuple[str, ...] = ()

    @property
    def degenerate(self) -> str:
        """Why the decisions of this run are worthless, or nothing."""
        return str(degenerate_reason(self.result) or "")


Place = Callable[[str], Path]
"""Where a file of the run is, by its name."""


def places(run: Path, new: Path | None) -> Place:
    """Return where each file is: in the folder of a change if it is there, else in the run's."""

    def place(name: str) -> Path:
        return new / name if new is not None and (new / name).exists() else run / name

    return place


def made_from(run: Path, new: Path | None = None) -> str:
    """Return a digest of all files that a page is made from."""
    place, digest = places(run, new), hashlib.sha256()
    for name in READ:
        try:
            content = digest_of(place(name))
        except OSError:
            content = "none"  # missing, or no file: left out of the page
        digest.update(f"{name} {content}\n".encode())
    return digest.hexdigest()


def read_run(run: Path, new: Path | None = None) -> RunFiles:
    """Read the folder of a finished run, with the files of a change where one is given.

    Raises:
        DataNotFound: There is no such folder, or its run is not finished.
        DataError: `result.json` is there but damaged.
    """
    place = places(run, new)
    raw = _read_result(run, place)
    result = result_today(raw)
    notes: list[str] = []
    arrays = _optional(place("report.npz"), read_arrays, dict[str, np.ndarray](), notes)
    comparison = _optional(place("compare.json"), _read_json, None, notes)
    log = _optional(place("log.jsonl"), read_own, b"", notes)
    return RunFiles(
        name=run.resolve().name,
        result=result,
        manifest=table(_optional(place("manifest.json"), _read_json, None, notes)),
        epochs=_epochs(log.splitlines(), notes),
        ranking=_optional(place("scores.csv"), read_ranking, None, notes),
        positive_scores=_positive_scores(arrays),
        thumbnails=_thumbnails(arrays, notes),
        embedding=_embedding(arrays, notes),
        comparison=_compared(run, listed(comparison), raw),
        review=table(_optional(place("review.json"), _read_json, None, notes)),
        audit=table(_optional(place("audit.json"), _read_json, None, notes)),
        made_from=made_from(run, new),
        notes=tuple(notes),
    )


def _read_result(run: Path, place: Place) -> Json:
    path = place("result.json")
    again = "this run is not finished: run the same fit command again."
    if not run.is_dir():
        raise DataNotFound(f"There is no run folder {run}. Make one with onesided fit -o {run}.")
    try:
        result = _read_json(path)
    except FileNotFoundError:
        raise DataNotFound(f"{run} has no result.json; {again}") from None
    except UNREADABLE as error:
        raise DataError(f"{path} cannot be read ({error}); {again}") from None
    if not isinstance(result, dict):
        raise DataError(f"{path} should hold a JSON object and holds something else; {again}")
    if "method" not in result:
        raise DataError(f"{path} lacks 'method', so it is not the result of a run; {again}")
    if problem := fault_in(result, may_lack=True):
        raise DataError(f"{path} {problem}, so it was changed or damaged; {again}")
    return result


def _optional(
    path: Path, read: Callable[[Path], Content], otherwise: Content, notes: list[str]
) -> Content:
    """Return what a file holds; `otherwise` without the file, or with a note if it is damaged."""
    try:
        return read(path)
    except FileNotFoundError:
        return otherwise
    except CheckpointError as error:
        notes.append(f"{path.name} could not be read; what is made from it is left out. {error}")
        return otherwise
    except UNREADABLE as error:
        notes.append(f"{path.name} could not be read ({error}); what is made from it is left out.")
        return otherwise


def _compared(run: Path, rows: Sequence[object], own: Json) -> tuple[Json, ...]:
    """Return the rows of a comparison under the names that their methods have today."""
    compared = []
    for row in rows:
        if not isinstance(row, dict):
            continue
        if "variant" not in row:  # as early versions wrote it: the run itself knows
            beside = run / "compare" / str(row.get("method")).replace("/", "") / "result.json"
            same = all(row.get(key) == own.get(key) for key in ("method", "seed"))
            result = own if same else table(_optional(beside, _read_json, None, []))
            row = {**row, "variant": result.get("variant")}
        compared.append(result_today(row))
    return tuple(compared)


def _read_json(path: Path) -> object:
    return parsed(read_own(path))


def read_ranking(path: Path) -> RankedPool | None:
    """Return what `scores.csv` of a run holds; None where it has no row."""
    scores, names, called_positive = list[float](), list[str](), 0
    # surrogateescape: a file name that is not UTF-8 must not cost the whole table.
    text = io.StringIO(read_own(path).decode("utf-8", "surrogateescape"), newline="")
    reader = csv.DictReader(text, strict=True)
    if not {"score", "decision"} <= set(reader.fieldnames or ()):
        raise ValueError("it has no columns score and decision")
    for row in reader:
        scores.append(float(row["score"]))
        names.append(row.get("item") or "")
        called_positive += row["decision"].strip().lower() in POSITIVE_DECISIONS
    if not np.isfinite(scores).all():
        raise ValueError("it holds scores that are not finite numbers")
    return RankedPool(np.array(scores), called_positive, tuple(names)) if scores else None


def _epochs(lines: Sequence[bytes], notes: list[str]) -> tuple[Epoch, ...]:
    # A run that was killed after logging an epoch, but before saving it, logs that epoch
    # again when it resumes. The later row belongs to the model that was kept.
    epochs, broken = dict[tuple[str, str], Epoch](), 0
    for line in lines:
        try:
            row = json.loads(line)
            epochs[str(row["stage"]), str(row["epoch"])] = Epoch(
                stage=str(row["stage"]),
                loss=numbers(row.get("loss")),
                watched=numbers(row.get("watched")),
                share_positive=number(row.get("share_positive")),
                proxy_auc=number(row.get("proxy_auc")),
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            broken += 1
    if broken:
        notes.append(f"log.jsonl: {broken} of {len(lines)} lines could not be read.")
    return tuple(epochs.values())


def _positive_scores(arrays: Mapping[str, np.ndarray]) -> Float64[np.ndarray, "p"] | None:
    scores = arrays.get("positive_scores")
    if scores is None or scores.dtype.kind not in "fiu":
        return None
    finite = scores[np.isfinite(scores)]
    return finite.astype(np.float64) if finite.size else None


def _thumbnails(arrays: Mapping[str, np.ndarray], notes: list[str]) -> dict[str, Thumbnails]:
    found = {}
    for group in GROUPS:
        images, scores, names = (arrays.get(f"{group}_{x}") for x in ("images", "scores", "names"))
        images = arrays.get(f"{group}_texts") if images is None else images
        if images is None or scores is None or names is None or images.size == 0:
            continue
        if not _are_thumbnails(images, scores, names):
            notes.append(
                f"report.npz is damaged: the pictures of the group {group} are left out. The same "
                "fit command with --overwrite makes them again."
            )
            continue
        shown = tuple(map(str, images)) if images.dtype.kind == "U" else images
        found[group] = Thumbnails(shown, scores.astype(np.float64), tuple(map(str, names)))
    return found


def _are_thumbnails(images: np.ndarray, scores: np.ndarray, names: np.ndarray) -> bool:
    pictures = images.dtype == np.uint8 and images.ndim == 4 and images.shape[3] in (1, 3)
    pictures = pictures or (images.dtype.kind == "U" and images.ndim == 1)
    labelled = scores.dtype.kind in "fiu" and names.dtype.kind == "U"
    return pictures and labelled and scores.shape == names.shape == images.shape[:1]


def _embedding(arrays: Mapping[str, np.ndarray], notes: list[str]) -> Embedding | None:
    points, roles = arrays.get("embedding"), arrays.get("embedding_role")
    if points is None or roles is None or points.size == 0:
        return None
    if points.shape != (roles.size, 2) or points.dtype.kind != "f" or roles.dtype.kind not in "iu":
        notes.append(
            "report.npz is damaged: the picture of items as points is left out. The same fit "
            "command with --overwrite makes it again."
        )
        return None
    finite = np.isfinite(points).all(axis=1)
    return Embedding(points[finite], roles.ravel()[finite].astype(np.int64))
