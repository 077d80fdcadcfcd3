"""An exported model, run by onnxruntime. Imports no torch, and needs none.

The file says by itself what it takes and returns: see `Facts`, which is its metadata entry
`onesided`.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64
from pydantic import Field, ValidationError

from onesided.core.config import Config
from onesided.core.errors import CheckpointError, DataError, DataNotFound, first_line
from onesided.data.problem.samples import ImageKind
from onesided.metrics.calibration import Calibration
from onesided.storage.names import shown_path
from onesided.storage.optional import library

ENDING = ".onnx"
FACTS = "onesided"
"""Key of the metadata entry that says what the file is."""
SCORE, DECISION, THRESHOLD, FEATURES = "score", "decision", "threshold", "features"
PROBABILITY = "probability"
SAMPLES = {3: "images", 1: "vectors"}
"""Name of the input, by the number of axes of a sample."""
CHECKSUM = b"onesided_checksum"
"""Key of the last metadata entry: the SHA-256 of the file before it."""
ROWS_AT_ONCE = 128
MOST_NUMBERS = 2**22
"""Numbers of samples that go through the graph at once."""


class Facts(Config):
    """What an exported model is."""

    format: Literal[1] = 1
    """Version of this entry."""
    method: str
    """Name of the method."""
    sample_shape: tuple[int, ...] = Field(min_length=1, max_length=3)
    """(C, H, W) of an image or (D,) of a vector."""
    kind: ImageKind
    """What the samples are."""
    feature_names: tuple[str, ...] = ()
    """Names of the numbers of a vector, where they have some."""
    threshold: float = Field(ge=0, le=1)
    """A score above it means positive."""
    model_id: str
    """Hash of all that decides scores in the run it was exported from."""
    output: Literal["scores", "map"] = "scores"
    """scores, decisions and the threshold; or one map of the score for each image."""
    precision: Literal["float32", "int8"] = "float32"
    """Numbers inside the networks."""
    notes: tuple[str, ...] = ()
    """What the graph does otherwise than the method."""
    calibration: Calibration | None = None
    """From scores to probabilities; None where there are none. The graph computes the same."""


def is_exported(path: Path) -> bool:
    """Return whether a path is that of an exported model, by its ending."""
    return path.suffix.lower() == ENDING


@dataclass(frozen=True)
class ExportedModel:
    """An exported model that scores samples.

    Attributes:
        path: The file.
        facts: What it is.
        session: The graph in onnxruntime.
    """

    path: Path
    facts: Facts
    session: Any

    @property
    def threshold(self) -> float:
        """A score above it means positive."""
        return self.facts.threshold

    @cached_property
    def identity(self) -> str:
        """Hash of the file."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def scores(self, values: np.ndarray) -> Float64[np.ndarray, "n"]:
        """Return the score of every sample."""
        shape = self.facts.sample_shape
        if tuple(values.shape[1:]) != shape:
            raise DataError(
                f"{shown_path(self.path)} takes samples of the shape {shape}; got "
                f"{tuple(values.shape[1:])}."
            )
        values = np.ascontiguousarray(values, np.uint8 if len(shape) == 3 else np.float32)
        step = max(1, min(ROWS_AT_ONCE, MOST_NUMBERS // prod(shape)))
        if len(shape) == 1:
            step = max(1, MOST_NUMBERS // prod(shape))
        found = [
            self.run(values[start : start + step], SCORE) for start in range(0, len(values), step)
        ]
        scores = np.concatenate(found) if found else np.empty(0)
        if not np.isfinite(scores).all():
            raise DataError(
                f"{shown_path(self.path)} gives scores that are no numbers for "
                f"{(~np.isfinite(scores)).sum()} of {len(scores)} items. Look for NaN or infinity "
                "in them, or export the model again."
            )
        return scores

    def run(self, samples: np.ndarray, output: str) -> np.ndarray:
        """Return one output of the graph for some samples."""
        given = self.session.get_inputs()[0].name
        try:
            found: np.ndarray = self.session.run([output], {given: samples})[0]
        except Exception as error:  # onnxruntime's own errors have no common type
            raise DataError(
                f"onnxruntime cannot run {shown_path(self.path)} ({first_line(error)}). Export "
                "the model again."
            ) from None
        return found


def checksum_entry(digest: str) -> bytes:
    """Return the end of an exported file: the checksum of all before it, as one more entry.

    These are the bytes of entry 14 (metadata) of an ONNX model, with a key (1) and a value (2), in
    the encoding of protobuf; entries of a list may stand anywhere in a file.
    """
    return _encoded(14, _encoded(1, CHECKSUM) + _encoded(2, digest.encode()))


def _encoded(number: int, content: bytes) -> bytes:
    assert len(content) < 128, "longer ones have lengths of two bytes"
    return bytes([number << 3 | 2, len(content)]) + content


def _check_whole(path: Path) -> None:
    """Refuse a file whose checksum is another; onnxruntime takes flipped bits for weights."""
    length = len(checksum_entry("0" * 64))
    with path.open("rb") as file:
        left = path.stat().st_size - length
        digest = hashlib.sha256()
        while left > 0 and (block := file.read(min(left, 2**20))):
            digest.update(block)
            left -= len(block)
        end = file.read()
    # Files of earlier versions have none.
    if CHECKSUM in end and end != checksum_entry(digest.hexdigest()):
        raise CheckpointError(
            f"{shown_path(path)} is damaged, or was changed after onesided export wrote it: it "
            "does not have the checksum that it names. Export the model again."
        )


def load_exported(path: Path, *, threads: int = 0) -> ExportedModel:
    """Return an exported model; 0 threads leaves their number to onnxruntime."""
    if not path.is_file():
        raise DataNotFound(f"There is no file {shown_path(path)}. Check its name.")
    _check_whole(path)
    onnxruntime = library("onnxruntime", f"Running {shown_path(path)}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Threads that wait for work sleep: by default each keeps a core busy, see core.threads.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # errors; warnings are about the graph, not about the user
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's own errors have no common type
        raise CheckpointError(
            f"onnxruntime cannot read {shown_path(path)} ({first_line(error)}). Export the model "
            "again."
        ) from None
    return ExportedModel(path, _facts(path, session), session)


def _facts(path: Path, session: Any) -> Facts:  # noqa: ANN401 - of a library
    try:
        entry = session.get_modelmeta().custom_metadata_map.get(FACTS)
    except UnicodeDecodeError:
        raise CheckpointError(
            f"{shown_path(path)} is damaged: its metadata are no text. Export the model again."
        ) from None
    if entry is None:
        raise CheckpointError(
            f"{shown_path(path)} was not written by onesided export: it has no metadata entry "
            f"'{FACTS}'. As a frozen backbone it can be used by fit --backbone onnx:FILE --freeze."
        )
    try:
        return Facts.model_validate(json.loads(entry))
    except (ValueError, ValidationError) as error:
        raise CheckpointError(
            f"{shown_path(path)} is damaged, or of a later version of onesided: its metadata entry "
            f"'{FACTS}' cannot be used ({first_line(error)}). Export the model again."
        ) from None
