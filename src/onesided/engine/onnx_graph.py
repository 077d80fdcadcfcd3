"""An ONNX graph that is being written: parts that torch traced, and steps of direct methods.

Names of operators and attributes are those of the ONNX standard. Trees are `TreeEnsembleRegressor`
of its domain ai.onnx.ml, whose numbers are single precision: a cut is rounded down to the next such
number, which sends every single-precision feature the same way.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onesided.engine.exported import CHECKSUM, checksum_entry
from onesided.methods.graph import Value
from onesided.storage.optional import library
from onesided.trees.forest import LEAF
from onesided.trees.leaves import Leaves

OPSET, TREES_OPSET, IR_VERSION = 20, 3, 10
"""Versions of the standard that onnxruntime reads from 1.20 on."""
TREES = "ai.onnx.ml"
BATCH = "batch"
"""Name of the first axis, which has any length."""
TRACED = "part"
"""How the names of nodes begin that another graph brought along."""


class OnnxGraph:
    """Nodes, constants, inputs and outputs; see `methods.graph.Graph` for the words of methods."""

    def __init__(self) -> None:
        self.onnx: Any = library("onnx", "Exporting a model")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.notes: list[str] = []

    def input(self, name: str, kind: type, shape: Sequence[int | str]) -> Value:
        """Declare an input."""
        self.inputs.append(self._declared(name, np.dtype(kind), shape))
        return Value(name)

    def output(self, value: Value, name: str, kind: type, shape: Sequence[int | str]) -> None:
        """Declare an output."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name], name=name))
        self.outputs.append(self._declared(name, np.dtype(kind), shape))

    def add(
        self,
        operator: str,
        *values: Value,
        attributes: Mapping[str, Any] | None = None,
        domain: str = "",
    ) -> Value:
        """Add a node of one output."""
        name = f"{operator}_{len(self.nodes)}"
        node = self.onnx.helper.make_node(
            operator, list(values), [name], name=name, domain=domain, **(attributes or {})
        )
        self.nodes.append(node)
        return Value(name)

    def constant(self, values: object, kind: type = np.float64) -> Value:
        """Add an array that never changes."""
        name = f"constant_{len(self.constants)}"
        array: np.ndarray = np.asarray(values, kind)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return Value(name)

    def append(self, model: Any, given: Value) -> Value:  # noqa: ANN401 - of a library
        """Add all of another graph of one input and one output, under names of its own."""
        prefix = f"{TRACED}{len(self.nodes)}/"
        part = self.onnx.compose.add_prefix(model, prefix).graph
        start = self.onnx.helper.make_node("Identity", [given], [part.input[0].name])
        start.name = f"{prefix}start"
        self.nodes += [start, *part.node]
        self.constants += part.initializer
        return Value(part.output[0].name)

    def cast(self, value: Value, kind: type) -> Value:
        """Add a change of the type of numbers."""
        number = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        return self.add("Cast", value, attributes={"to": number})

    def weighted_sum(self, features: Value, weight: np.ndarray, bias: float) -> Value:
        """Add the sum of all features by weight, and the bias."""
        numbers = self.cast(features, np.float64)
        products = self.add("MatMul", numbers, self.constant(weight))
        return self.add("Add", products, self.constant(bias))

    def sum_of_leaves(self, features: Value, leaves: Leaves) -> Value:
        """Add the sum of the leaves that a sample falls into."""
        sums = self.add(
            "TreeEnsembleRegressor", features, attributes=tree_attributes(leaves), domain=TREES
        )
        return self.cast(self.add("Squeeze", sums, self.constant([1], np.int64)), np.float64)

    def line(self, value: Value, slope: float, intercept: float) -> Value:
        """Add slope * value + intercept."""
        product = self.add("Mul", value, self.constant(slope))
        return self.add("Add", product, self.constant(intercept)) if intercept else product

    def quotient(self, value: Value, divisor: float) -> Value:
        """Add the value divided by a number."""
        return self.add("Div", value, self.constant(divisor))

    def clip(self, value: Value, low: float, high: float) -> Value:
        """Add the value, at least `low` and at most `high`."""
        return self.add("Clip", value, self.constant(low), self.constant(high))

    def logistic(self, value: Value) -> Value:
        """Add 1 / (1 + exp(-value))."""
        return self.add("Sigmoid", value)

    def log(self, value: Value) -> Value:
        """Add the natural logarithm."""
        return self.add("Log", value)

    def curve(
        self, value: Value, corners: np.ndarray, heights: np.ndarray, slopes: np.ndarray
    ) -> Value:
        """Add straight lines between corners, as `numpy.interp` has them; level beyond the ends.

        The corner below is found by halving. A comparison with all corners would be one step, but
        take memory for each pair of a sample and a corner.
        """
        inside = self.clip(value, corners[0], corners[-1])
        steps = [2**bit for bit in reversed(range(max(1, (len(corners) - 1).bit_length())))]
        padding = np.full(2 * steps[0] - len(corners), np.inf)
        padded = self.constant(np.append(corners, padding))
        below: Value | None = None
        for step in steps:
            ahead = self.constant(step, np.int64)
            place = ahead if below is None else self.add("Add", below, ahead)
            reached = self.add("GreaterOrEqual", inside, self.add("Gather", padded, place))
            moved = self.add("Mul", self.cast(reached, np.int64), ahead)
            below = moved if below is None else self.add("Add", below, moved)
        assert below is not None, "there is a step at least"
        start, height, slope = (
            self.add("Gather", self.constant(each), below) for each in (corners, heights, slopes)
        )
        risen = self.add("Mul", self.add("Sub", inside, start), slope)
        return self.add("Add", risen, height)

    def total(self, *values: Value) -> Value:
        """Add the sum of several values."""
        return self.add("Sum", *values)

    def note(self, sentence: str) -> None:
        """Keep a sentence about what the graph does otherwise than the method."""
        self.notes.append(sentence)

    def model(self, words: str, metadata: Mapping[str, object]) -> Any:  # noqa: ANN401
        """Return the whole as a model of the library onnx, checked; metadata values are JSON."""
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, "onesided", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(TREES, TREES_OPSET)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="onesided"
        )
        model.doc_string = words
        plain = {key: json.dumps(value) for key, value in metadata.items()}
        helper.set_model_props(model, plain)
        self.onnx.checker.check_model(model)
        return model

    def _declared(self, name: str, kind: np.dtype[Any], shape: Sequence[int | str]) -> Any:  # noqa: ANN401
        number = self.onnx.helper.np_dtype_to_tensor_dtype(kind)
        return self.onnx.helper.make_tensor_value_info(name, number, list(shape))


def write_graph(model: Any, path: Path) -> None:  # noqa: ANN401 - of a library
    """Write an ONNX model with its checksum as the last entry of its metadata."""
    entries = [entry for entry in model.metadata_props if entry.key != CHECKSUM.decode()]
    del model.metadata_props[:]
    model.metadata_props.extend(entries)
    content = model.SerializeToString()
    path.write_bytes(content + checksum_entry(hashlib.sha256(content).hexdigest()))


def tree_attributes(leaves: Leaves) -> dict[str, Any]:
    """Return trees as the attributes of a TreeEnsembleRegressor of one target."""
    lengths = np.diff([*leaves.roots, len(leaves.feature)])
    tree = np.repeat(np.arange(len(leaves.roots)), lengths)
    node = np.arange(len(leaves.feature)) - leaves.roots[tree]
    split = leaves.feature != LEAF
    ends = np.flatnonzero(~split)
    return {
        "n_targets": 1,
        "aggregate_function": "SUM",
        "nodes_treeids": tree.tolist(),
        "nodes_nodeids": node.tolist(),
        "nodes_featureids": np.where(split, leaves.feature, 0).tolist(),
        "nodes_modes": np.where(split, "BRANCH_LEQ", "LEAF").tolist(),
        "nodes_values": _rounded_down(leaves.cut).tolist(),
        "nodes_truenodeids": np.where(split, node + 1, 0).tolist(),
        "nodes_falsenodeids": np.where(split, leaves.right - leaves.roots[tree], 0).tolist(),
        "target_treeids": tree[ends].tolist(),
        "target_nodeids": node[ends].tolist(),
        "target_ids": np.zeros(len(ends), np.int64).tolist(),
        "target_weights": leaves.value[ends].astype(np.float32).tolist(),
    }


def _rounded_down(cuts: np.ndarray) -> np.ndarray:
    """Return the largest single-precision numbers that are not above these."""
    near = cuts.astype(np.float32)
    lower: np.ndarray = np.where(near > cuts, np.nextafter(near, np.float32(-np.inf)), near)
    return lower
