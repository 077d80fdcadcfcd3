"""Eight-bit integers inside an exported network: a quarter of the size, faster on some processors.

Static quantisation by onnxruntime: the ranges of all layers are measured on some items, and what
the rounding costs is measured on others.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onesided.core.errors import ConfigError
from onesided.engine.exported import ExportedModel, load_exported
from onesided.engine.onnx_graph import TRACED, write_graph
from onesided.storage.optional import library

QUANTISED = ("Conv", "Gemm", "MatMul")
"""Operators whose numbers become bytes."""
FEWEST = 8
"""Items that are needed: half of them calibrate, the others measure."""


@dataclass(frozen=True)
class Loss:
    """What rounding to bytes costs, on items that did not calibrate it.

    Attributes:
        items: How many there were.
        largest: Largest difference of a score.
        mean: Mean difference of a score.
        changed: How many decisions are other ones.
        probability: Largest difference of a probability; None where the model gives none.
    """

    items: int
    largest: float
    mean: float
    changed: int
    probability: float | None = None

    @property
    def sentence(self) -> str:
        """The loss for a person."""
        likely = ""
        if self.probability is not None:
            likely = f", probabilities by {self.probability:.2g} at most"
        return (
            f"Rounding to int8 changes scores by {self.mean:.2g} on average and by "
            f"{self.largest:.2g} at most{likely}, and {self.changed} of {self.items} decisions; "
            "measured on items that did not calibrate it."
        )


def quantise(path: Path, output: Path, samples: np.ndarray) -> Loss:
    """Write the graph with eight-bit integers; return what that costs.

    Args:
        path: An exported model in single precision.
        output: File to write.
        samples: Of the kind that the model takes; every second one calibrates.
    """
    if len(samples) < FEWEST:
        raise ConfigError(
            f"int8 needs {FEWEST} readable items at least, half to calibrate and half to measure "
            f"the loss; there are {len(samples)}. Give more with --sample."
        )
    exported = load_exported(path)
    onnx = library("onnx", "Writing an int8 model")
    nodes = onnx.load(path).graph.node
    if not any(node.op_type in ("Conv", "Gemm") for node in nodes):
        raise ConfigError(
            f"The method {exported.facts.method} is no network: there are no layers to round to "
            "int8. Export it without --int8."
        )
    tools = library("onnxruntime.quantization", "Writing an int8 model")
    with _quietly():
        tools.quantize_static(
            str(path),
            str(output),
            _Calibration(exported, samples[::2]),
            quant_format=tools.QuantFormat.QDQ,
            per_channel=True,
            op_types_to_quantize=list(QUANTISED),
            # Double precision stays: scores are compared with the threshold there. Only parts that
            # torch traced are networks.
            nodes_to_exclude=[node.name for node in nodes if not node.name.startswith(TRACED)],
            extra_options={"ActivationSymmetric": False},
        )
    write_graph(onnx.load(output), output)
    rest = samples[1::2]
    return _loss(exported, exported.scores(rest), load_exported(output).scores(rest))


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep onnxruntime's advice about the graph, which nobody asked for, from the terminal."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _loss(exported: ExportedModel, before: np.ndarray, after: np.ndarray) -> Loss:
    threshold, curve = exported.threshold, exported.facts.calibration
    differences = np.abs(after - before)
    changed = (before > threshold) != (after > threshold)
    likely = None if curve is None else float(np.abs(curve.of(after) - curve.of(before)).max())
    largest, mean = float(differences.max()), float(differences.mean())
    return Loss(len(before), largest, mean, int(changed.sum()), likely)


class _Calibration:
    """Batches of samples, as onnxruntime's calibration asks for them."""

    def __init__(self, exported: ExportedModel, samples: np.ndarray) -> None:
        self.name = exported.session.get_inputs()[0].name
        self.batches: Iterator[np.ndarray] = iter(np.array_split(samples, -(-len(samples) // 16)))

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Return the next batch, or None at the end."""
        batch = next(self.batches, None)
        return None if batch is None else {self.name: batch}

    def __len__(self) -> int:
        return 0
