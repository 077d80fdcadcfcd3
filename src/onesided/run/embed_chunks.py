"""Features by several processes: each reads, decodes and embeds chunks of images.

The driver reads the headers, from which size and channels follow, and lists the files. A worker
puts the features of a chunk into the store and returns the keys by which they are found there; the
driver keeps these in a journal. So what a stopped command computed is neither decoded nor embedded
again, and the order of the rows is that of the files.

    listing     the path of each file that can be opened, in order
    embedded    a journal, one entry for each chunk; its header names the files and the backbone
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onesided.core.errors import ConfigError, OnesidedError
from onesided.data.problem.dataset import Selection
from onesided.data.problem.samples import chunk_length
from onesided.data.read.cache import DecodeCache, Outcome
from onesided.data.read.files import Found
from onesided.data.read.images import Survey, decode_surveyed
from onesided.data.read.picture import reading_up_to
from onesided.nets.build import BackboneConfig
from onesided.nets.external import is_external, place_of
from onesided.nets.standardise import Backbone
from onesided.run.embed import fill_store, frozen_backbone, keys_of
from onesided.run.ray_engine import Listed, RayEngine
from onesided.storage.features import FeatureStore, StoredRows
from onesided.storage.journal import Journal
from onesided.storage.names import shown_path
from onesided.storage.progress import Progress
from onesided.storage.sorting import record_offsets, write_records

LISTING, EMBEDDED = "listing", "embedded"


@dataclass(frozen=True)
class EmbeddingWork:
    """What a worker does: it opens backbone and store, and embeds chunks of image files."""

    backbone: BackboneConfig
    shape: tuple[int, ...]
    store: Path
    largest_image: float | None

    def embedder(self) -> Backbone:
        """Return the frozen backbone."""
        return embedder_without_data(self.backbone, self.shape)

    def open(self) -> Callable[[list[bytes]], dict[str, Any]]:
        """Return what embeds the files of a chunk and says how they are found in the store."""
        torch.set_num_threads(1)
        embedder = self.embedder()
        store = FeatureStore(self.store, embedder.identity(), embedder.width)

        def entry_of(records: list[bytes]) -> dict[str, Any]:
            with reading_up_to(self.largest_image):
                files = [Path(os.fsdecode(record)) for record in records]
                values, outcomes = decode_surveyed(files, self.shape)
            images = Selection(values, np.arange(len(values)))
            keys = keys_of(images)
            fill_store(store, embedder, images, keys, torch.device("cpu"), lambda done, total: None)
            return {
                "keys": [key.hex() for key in keys],
                "reasons": [outcome.reason for outcome in outcomes],
                "brightest": [outcome.brightest for outcome in outcomes],
            }

        return entry_of


@dataclass(frozen=True)
class EmbeddedChunks:
    """Features of all files that can be read, in order, and the outcome of every surveyed file."""

    rows: StoredRows
    outcomes: list[Outcome]


def embed_chunks(
    engine: RayEngine,
    work: EmbeddingWork,
    found: Sequence[Found],
    survey: Survey,
    folder: Path,
    progress: Progress,
) -> EmbeddedChunks:
    """Compute the features that the store lacks, by workers of Ray; resume what was stopped.

    Args:
        engine: Ray.
        work: What every worker does.
        found: All files.
        survey: What their headers say; files that cannot be opened are not read again.
        folder: Where the listing and the journal are kept until the features are written.
        progress: Called with how many images are done and how many there are.
    """
    embedder, chunk = work.embedder(), chunk_length(work.shape)
    identity, width = embedder.identity(), embedder.width
    opened = [found[row] for row in survey.headers]
    folder.mkdir(parents=True, exist_ok=True)
    listing = folder / LISTING
    write_records(listing, (os.fsencode(os.path.abspath(file.location)) for file in opened))
    files = DecodeCache(folder).entry(opened, {"shape": work.shape})
    header = {"format": 1, "chunk": chunk, "backbone": identity, "files": files.key}
    journal, places = Journal(folder / EMBEDDED, header), list(record_offsets(listing, chunk))
    done = _known(journal, len(opened), chunk)
    store = FeatureStore(work.store, identity, width)
    # A damaged chunk of the store is gone, though the journal names its features.
    lost = [number for number, entry in enumerate(done) if not _is_in(store, entry)]
    left = [*lost, *range(len(done), len(places))]
    listed = Listed(listing, chunk, [places[number] for number in left])
    progress(min((len(places) - len(left)) * chunk, len(opened)), len(opened))
    with journal.writing() as append:
        for number, entry in zip(left, engine.entries(work, listed), strict=True):
            if number == len(done):
                append(entry)
                done.append(entry)
            progress(min(len(done) * chunk, len(opened)), len(opened))
    return _gathered(done, FeatureStore(work.store, identity, width), work.store)


def embedder_without_data(backbone: BackboneConfig, shape: Sequence[int]) -> Backbone:
    """Return a frozen backbone whose weights say how images are standardised.

    Others take the mean and deviation of the images at hand, which are known once all are decoded.
    """
    first, second = (
        frozen_backbone(backbone, shape, (level,) * shape[0], (level,) * shape[0])
        for level in (0.25, 0.5)
    )
    if first.identity() != second.identity():
        raise ConfigError(
            "The weights of the backbone do not say how images are standardised, and --engine ray "
            "reads each image once. Leave out --engine, or give weights that hold standardise.mean "
            "and standardise.std."
        )
    return first


def with_absolute_paths(backbone: BackboneConfig) -> BackboneConfig:
    """Return the settings as a process in another folder can use them."""
    change: dict[str, str] = {}
    if is_external(backbone.name):
        change["name"] = place_of(backbone.name)
    if Path(backbone.weights).is_file():
        change["weights"] = str(Path(backbone.weights).resolve())
    return backbone.model_copy(update=change)


def _known(journal: Journal, files: int, chunk: int) -> list[Mapping[str, Any]]:
    """Return the entries of a stopped command, each of which must fit its chunk."""
    done: list[Mapping[str, Any]] = []
    for entry in journal.entries():
        length = min(chunk, files - len(done) * chunk)
        try:
            keys, reasons = _keys(entry), entry["reasons"]
            fits = len(reasons) == len(entry["brightest"]) == length
            fits = fits and len(keys) == sum(not reason for reason in reasons)
        except (KeyError, TypeError, ValueError):
            fits = False
        if not fits:
            raise journal.damaged("an entry does not fit its files")
        done.append(entry)
    return done


def _keys(entry: Mapping[str, Any]) -> list[bytes]:
    return [bytes.fromhex(key) for key in entry["keys"]]


def _is_in(store: FeatureStore, entry: Mapping[str, Any]) -> bool:
    return all(key in store for key in _keys(entry))


def _gathered(
    entries: Sequence[Mapping[str, Any]], store: FeatureStore, folder: Path
) -> EmbeddedChunks:
    missing = sum(not _is_in(store, entry) for entry in entries)
    if missing:
        raise OnesidedError(
            f"Features of {missing} of {len(entries)} chunks of images are not in "
            f"{shown_path(folder)}. Give the same command again; on a cluster, choose an output "
            "or --cache on a disk that all machines see under the same path."
        )
    outcomes = [
        Outcome(reason=reason, brightest=brightest)
        for entry in entries
        for reason, brightest in zip(entry["reasons"], entry["brightest"], strict=True)
    ]
    return EmbeddedChunks(store.rows([key for one in entries for key in _keys(one)]), outcomes)
