"""People's own texts: a folder of positive and one of unlabelled .txt files."""

from collections import Counter
from pathlib import Path

import numpy as np

from onesided.core.errors import DataError
from onesided.core.labels import NEGATIVE, POSITIVE, UNKNOWN
from onesided.data.columns.cells import Column
from onesided.data.problem.dataset import Scenario
from onesided.data.problem.samples import Samples
from onesided.data.read.files import Unreadable, describe, stream_files
from onesided.data.read.folder import CLASS_NAMES, OneSided, distinct_names
from onesided.data.read.images import check_readable
from onesided.data.read.texts import TEXT_ENDING, read_text
from onesided.storage.names import printable, shown_path

TEXT = Column(name="text", kind="text")


def read_text_folders(
    positives: Path,
    unlabelled: Path,
    negatives: Path | None = None,
    *,
    tolerate: float = 0.05,
    scenario: Scenario = "single-set",
) -> OneSided:
    """Read folders of texts, as `read_folders` reads folders of images."""
    folders = {POSITIVE: positives, UNKNOWN: unlabelled}
    if negatives is not None:
        folders[NEGATIVE] = negatives
    called = distinct_names(folders)
    texts: dict[int, dict[str, str]] = {}
    skipped: list[tuple[str, str]] = []
    notices: list[str] = []
    for label, folder in folders.items():
        others = Counter[str]()
        texts[label], unreadable, total = _read_folder(folder, f"{called[label]}/", others)
        check_readable(shown_path(folder), total, unreadable, tolerate, noun="text")
        skipped += unreadable
        if others:
            shown = shown_path(folder)
            notices.append(f"{shown}: other files were left out ({describe(others)}).")
    duplicates = _resolve_shared(texts, scenario, notices)
    labels = [label for label, files in texts.items() for _ in files]
    samples = Samples(
        values=np.array([text for files in texts.values() for text in files.values()], object)[
            :, None
        ],
        classes=np.array(labels, np.int64),
        names=tuple(name for files in texts.values() for name in files),
        class_names=CLASS_NAMES,
        kind="vector",
        skipped=tuple((printable(name), reason) for name, reason in skipped),
        feature_names=(TEXT.name,),
        columns=(TEXT,),
    )
    return OneSided(samples, samples.classes == POSITIVE, duplicates, tuple(notices))


def _read_folder(
    folder: Path, prefix: str, others: Counter[str]
) -> tuple[dict[str, str], list[tuple[str, str]], int]:
    """Return the texts by name, the unreadable files with reasons, and the number of files."""
    found = stream_files(folder, others, prefix, accepted=(TEXT_ENDING,), noun="text")
    texts: dict[str, str] = {}
    unreadable: list[tuple[str, str]] = []
    for file in sorted(found, key=lambda file: file.name):
        try:
            texts[file.name] = read_text(file.path)
        except Unreadable as error:
            unreadable.append((file.name, error.reason))
    return texts, unreadable, len(texts) + len(unreadable)


def _resolve_shared(
    texts: dict[int, dict[str, str]], scenario: Scenario, notices: list[str]
) -> int:
    """Drop unlabelled texts whose label is known; return how many are also positive."""
    positive = set(texts[POSITIVE].values())
    negative = set(texts.get(NEGATIVE, {}).values())
    both = [name for name, text in texts[POSITIVE].items() if text in negative]
    if both:
        raise DataError(
            f"{len(both)} texts are both positive and negative; the first is "
            f"{printable(both[0])}. Remove them from one of the two."
        )
    pool = texts[UNKNOWN]
    known = [name for name, text in pool.items() if text in positive or text in negative]
    duplicates = sum(text in positive for text in pool.values())
    if known and scenario == "single-set":
        texts[UNKNOWN] = {name: pool[name] for name in pool.keys() - set(known)}
        texts[UNKNOWN] = dict(sorted(texts[UNKNOWN].items()))
        notices.append(
            f"{len(known)} unlabelled texts are also among the labelled ones; they were dropped "
            "from the unlabelled, because their label is known."
        )
    return duplicates
