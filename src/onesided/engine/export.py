"""A trained model as one file that other programs run: an ONNX graph, or torch.export's.

The graph takes what the model takes (uint8 images of its size, or vectors), and holds all that
follows: preprocessing, frozen backbone, network or trees, score, probability where the model has a
curve, threshold, decision. Every file is run once before it gets its name, and its scores are
compared with the model's.
"""

import io
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from onesided.core.errors import ConfigError, ContractError
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.data.problem.dataset import Selection
from onesided.engine.exported import (
    DECISION,
    FACTS,
    FEATURES,
    PROBABILITY,
    SAMPLES,
    SCORE,
    THRESHOLD,
    ExportedModel,
    Facts,
    load_exported,
)
from onesided.engine.model_file import ModelDescription
from onesided.engine.onnx_graph import BATCH, IR_VERSION, OPSET, OnnxGraph
from onesided.engine.predict import Predictor
from onesided.engine.sweep import features_of
from onesided.methods.base import GradientMethod
from onesided.methods.graph import ExpressibleMethod, Value
from onesided.metrics.calibration import ORDER, Calibration
from onesided.nets.external import ExternalBackbone
from onesided.nets.pair import PairBackbone
from onesided.nets.standardise import Backbone
from onesided.storage.optional import library

Output = Literal["scores", "map"]
TOLERANCE = 1e-4
"""Scores of the file and of the model may differ by so much, and features by this share."""
PROBES = 16
"""Random samples on which that is checked."""


@dataclass(frozen=True)
class Model:
    """A trained model to export."""

    predictor: Predictor
    description: ModelDescription
    identity: str  # hash of all that decides scores

    @property
    def facts(self) -> Facts:
        """What the file will say of itself."""
        about = self.description
        return Facts(
            method=about.method,
            sample_shape=about.sample_shape,
            kind=about.kind,
            feature_names=about.feature_names,
            threshold=self.predictor.threshold,
            model_id=self.identity,
            calibration=self.predictor.calibration,
        )


def check_exportable(model: Model, output: Output = "scores") -> None:
    """Refuse what no graph can hold, in one sentence."""
    about, predictor = model.description, model.predictor
    if predictor.encoder is not None:
        raise ConfigError(
            "This model takes rows of a table with categories, dates, gaps or texts; a graph takes "
            "numbers, and what turns cells into numbers stays in the run folder. Rank with that."
        )
    method = predictor.method
    if not isinstance(method, GradientMethod | ExpressibleMethod):
        raise ConfigError(
            f"The method {about.method} does not say how it scores in the words of a graph "
            "(`express`), so it cannot be exported. Rank with the run folder."
        )
    shape = about.sample_shape
    if output == "map" and (len(shape) != 3 or shape[1] != shape[2]):
        raise ConfigError(
            f"A file for Deepness takes square images, and this model takes samples of the shape "
            f"{shape}. Export it without --deepness."
        )


def build_graph(model: Model, output: Output, extra: Mapping[str, object]) -> tuple[Any, Facts]:
    """Return the model as an ONNX model, and what it says of itself."""
    predictor, shape = model.predictor, model.description.sample_shape
    graph = OnnxGraph()
    is_map = output == "map"
    kind = np.uint8 if len(shape) == 3 and not is_map else np.float32
    samples = graph.input(SAMPLES[len(shape)], kind, (1 if is_map else BATCH, *shape))
    value, embedder = samples, predictor.embedder
    if embedder is not None and len(shape) == 3:
        value = _features(graph, embedder, samples, shape, pixels=not is_map)
        if not is_map:
            graph.output(value, FEATURES, np.float32, (BATCH, embedder.width))
    score = _score(graph, predictor, value, shape, raw=value is samples, pixels=not is_map)
    if is_map:
        _add_map(graph, score, shape)
    else:
        limit = graph.constant(predictor.threshold)
        graph.output(score, SCORE, np.float64, (BATCH,))
        if predictor.calibration is not None:
            probability = _probability(graph, score, predictor.calibration)
            graph.output(probability, PROBABILITY, np.float64, (BATCH,))
        graph.output(graph.add("Greater", score, limit), DECISION, np.bool_, (BATCH,))
        graph.output(limit, THRESHOLD, np.float64, ())
    facts = model.facts.model_copy(update={"output": output, "notes": tuple(graph.notes)})
    if is_map:
        facts = facts.model_copy(update={"calibration": None})
    # Without a curve there is no entry for it, so that earlier versions read the file.
    left_out = {"calibration"} if facts.calibration is None else set()
    metadata = {FACTS: facts.model_dump(mode="json", exclude=left_out), **extra}
    if not is_map:
        metadata |= {"threshold": facts.threshold, "classes": ["negative", "positive"]}
    return graph.model(_words(facts), metadata), facts


def _words(facts: Facts) -> str:
    what = "vectors of numbers"
    if len(facts.sample_shape) == 3:
        scale = "from 0 to 1" if facts.output == "map" else "as bytes"
        what = f"images (batch, channels, height, width), {scale}"
    words = (
        f"A model of onesided, method {facts.method}. Input: {what}. Output: score from 0 to 1; a "
        f"score above {facts.threshold:g} means positive."
    )
    if facts.calibration is None:
        return words
    return f"{words} The probability of being positive is about items like those of the pool."


def deepness_metadata(model: Model, *, resolution: float | None) -> dict[str, object]:
    """Return the metadata by which the QGIS plug-in Deepness sets itself.

    Its documentation calls the size of tiles `tiles_size`, its code reads `tile_size`.
    """
    side = model.description.sample_shape[-1]
    about: dict[str, object] = {
        "model_type": "Regressor",
        "class_names": {"0": "score of positive"},
        "tile_size": side,
        "tiles_size": side,
        "tiles_overlap": 0,
        "reg_output_scaling": 1.0,
    }
    return about if resolution is None else about | {"resolution": resolution}


def _score(
    graph: OnnxGraph,
    predictor: Predictor,
    value: Value,
    shape: tuple[int, ...],
    *,
    raw: bool,
    pixels: bool,
) -> Value:
    """Add the steps from samples, or features of a frozen backbone, to scores."""
    method = predictor.method
    if isinstance(method, GradientMethod):
        width = None if raw or predictor.embedder is None else predictor.embedder.width
        example = _example(shape, pixels=pixels) if width is None else torch.zeros(2, width)
        return graph.logistic(graph.append(traced(_Margin(method), example), value))
    assert isinstance(method, ExpressibleMethod), "checked before"
    if raw and len(shape) == 3 and not pixels:
        # Deepness divides pixels by 255; trees know them as they are stored.
        scaled = graph.add("Mul", value, graph.constant(255, np.float32))
        value = graph.add("Round", scaled)
    flat = graph.add("Flatten", value, attributes={"axis": 1})
    return method.express(graph, graph.cast(flat, np.float32))


def _probability(graph: OnnxGraph, score: Value, curve: Calibration) -> Value:
    """Add the steps from scores to probabilities; see `Calibration.of`."""
    corners, heights = np.array(curve.scores), np.array(curve.probabilities)
    steps = graph.curve(score, corners, heights, curve.slopes)
    return graph.total(graph.line(steps, 1 - ORDER, 0), graph.line(score, ORDER, 0))


def _add_map(graph: OnnxGraph, score: Value, shape: tuple[int, ...]) -> None:
    """Declare the only output: for one image, its score at every pixel."""
    one = graph.add("Reshape", score, graph.constant([1, 1, 1, 1], np.int64))
    size = (1, 1, *shape[1:])
    spread = graph.add("Expand", graph.cast(one, np.float32), graph.constant(size, np.int64))
    graph.output(spread, "score_map", np.float32, size)


def _features(
    graph: OnnxGraph, embedder: Backbone, samples: Value, shape: tuple[int, ...], *, pixels: bool
) -> Value:
    """Add the steps from images to features of a frozen backbone."""
    example = _example(shape, pixels=pixels)
    file = onnx_file_of(embedder)
    if file is None:
        return graph.append(traced(_Frozen(embedder), example), samples)
    assert isinstance(embedder, ExternalBackbone), "only those are files"
    prepared = graph.append(traced(_Prepared(embedder), example), samples)
    found = graph.append(_converted(graph, file), prepared)
    axes = len(_output_shape(graph, file))
    if axes == 4:
        over = graph.constant([2, 3], np.int64)
        return graph.add("ReduceMean", found, over, attributes={"keepdims": 0})
    if axes == 3:
        return graph.add("Gather", found, graph.constant(0, np.int64), attributes={"axis": 1})
    return graph.add("Flatten", found, attributes={"axis": 1})


def onnx_file_of(embedder: Backbone | None) -> Path | None:
    """Return the file of a backbone onnx:FILE; None for others."""
    if isinstance(embedder, PairBackbone) and onnx_file_of(embedder.single):
        raise ConfigError(
            "The backbone onnx:FILE sees before and after one by one, and such a graph cannot be "
            "joined twice. Rank with the run folder."
        )
    if not isinstance(embedder, ExternalBackbone) or not embedder.name.startswith("onnx:"):
        return None
    return Path(embedder.name.partition(":")[2])


def _converted(graph: OnnxGraph, file: Path) -> Any:  # noqa: ANN401 - of a library
    """Return others' ONNX model in our version of the standard."""
    model = graph.onnx.load(file)
    batch = model.graph.input[0].type.tensor_type.shape.dim[0]
    if batch.HasField("dim_value") and not batch.HasField("dim_param"):
        raise ConfigError(
            f"The backbone onnx:{file} takes exactly {batch.dim_value} images at a time, so no "
            "graph around it can take any number. Export it with a dynamic batch, and train again."
        )
    versions = {entry.domain: entry.version for entry in model.opset_import}
    if versions.get("", OPSET) != OPSET:
        model = graph.onnx.version_converter.convert_version(model, OPSET)
    model.ir_version = IR_VERSION
    return model


def _output_shape(graph: OnnxGraph, file: Path) -> list[Any]:
    model = graph.onnx.load(file, load_external_data=False)
    return list(model.graph.output[0].type.tensor_type.shape.dim)


def _example(shape: tuple[int, ...], *, pixels: bool) -> Tensor:
    if len(shape) == 3 and pixels:
        return torch.zeros(2, *shape, dtype=torch.uint8)
    return torch.zeros(2, *shape)


class _Frozen(nn.Module):
    """A frozen backbone on images of either scale; weights of others are registered here."""

    def __init__(self, embedder: Backbone) -> None:
        super().__init__()
        self.embedder = embedder
        single = embedder.single if isinstance(embedder, PairBackbone) else embedder
        self.others = single._network[0].module if isinstance(single, ExternalBackbone) else None

    def forward(self, samples: Tensor) -> Tensor:
        """Return features."""
        features: Tensor = self.embedder(in_unit_scale(samples))
        return features


class _Prepared(nn.Module):
    """What comes before the graph of a backbone onnx:FILE."""

    def __init__(self, embedder: ExternalBackbone) -> None:
        super().__init__()
        self.embedder = embedder

    def forward(self, samples: Tensor) -> Tensor:
        """Return images as that graph takes them."""
        return self.embedder.prepared(in_unit_scale(samples))


class _Margin(nn.Module):
    """A trained network from samples or features to log odds, in double precision."""

    def __init__(self, method: GradientMethod) -> None:
        super().__init__()
        self.method = method

    def forward(self, samples: Tensor) -> Tensor:
        """Return the difference of both logits."""
        logits = self.method.classify(in_unit_scale(samples)).double()
        return logits[:, POSITIVE] - logits[:, NEGATIVE]


class Curve(nn.Module):
    """Scores to probabilities; see `Calibration.of`."""

    corners: Tensor
    heights: Tensor
    slopes: Tensor

    def __init__(self, curve: Calibration) -> None:
        super().__init__()
        arrays = {"corners": curve.scores, "heights": curve.probabilities, "slopes": curve.slopes}
        for name, values in arrays.items():
            self.register_buffer(name, torch.tensor(values, dtype=torch.float64))

    def forward(self, score: Tensor) -> Tensor:
        """Return probabilities."""
        inside = score.clamp(self.corners[0], self.corners[-1])
        below = torch.searchsorted(self.corners, inside, right=True) - 1
        steps = self.heights[below] + (inside - self.corners[below]) * self.slopes[below]
        return (1 - ORDER) * steps + ORDER * score


class Scoring(nn.Module):
    """The whole model for torch.export: samples to score, decision, and probability."""

    def __init__(self, predictor: Predictor) -> None:
        super().__init__()
        assert isinstance(predictor.method, GradientMethod)
        self.front = None if predictor.embedder is None else _Frozen(predictor.embedder)
        self.margin = _Margin(predictor.method)
        self.threshold = predictor.threshold
        curve = predictor.calibration
        self.probability = None if curve is None else Curve(curve)

    def forward(self, samples: Tensor) -> dict[str, Tensor]:
        """Return scores and decisions, and probabilities where the model has them."""
        score = torch.sigmoid(self.margin(samples if self.front is None else self.front(samples)))
        score = score.detach()  # whoever loads it wants numbers, not gradients
        found = {SCORE: score, DECISION: score > self.threshold}
        if self.probability is not None:
            found[PROBABILITY] = self.probability(score)
        return found


def in_unit_scale(samples: Tensor) -> Tensor:
    """Return images of bytes in the scale from 0 to 1, and numbers as they are."""
    return samples.float() / 255 if samples.dtype == torch.uint8 else samples


def traced(module: nn.Module, example: Tensor) -> Any:  # noqa: ANN401 - of a library
    """Return a network as an ONNX model of one input and one output, for any batch."""
    library("onnxscript", "Exporting a model")
    with _evaluated(module), _quietly():
        program = torch.onnx.export(
            module,
            (example,),
            dynamo=True,
            verbose=False,
            opset_version=OPSET,
            dynamic_shapes=({0: torch.export.Dim.DYNAMIC},),
        )
    if program is None:
        raise ContractError("torch traced the network and returned no graph.")
    return program.model_proto


@contextmanager
def _evaluated(module: nn.Module) -> Iterator[None]:
    """Put a network into evaluation mode without gradients; then restore the mode of every part.

    The modules above are new and in training mode, and must not hand that on to the model.
    """
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, mode in modes:
            part.training = mode


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep torch's remarks about libraries that it does not find to ourselves."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def export_torch(model: Model, path: Path) -> None:
    """Write what torch.export makes of the whole model."""
    predictor, shape = model.predictor, model.description.sample_shape
    if not isinstance(predictor.method, GradientMethod):
        raise ConfigError(
            f"torch has no operator for the method {model.description.method}, which is no "
            "network. Export it as ONNX."
        )
    if onnx_file_of(predictor.embedder) is not None:
        raise ConfigError(
            "The frozen backbone is an ONNX file, which torch cannot hold. Export as ONNX."
        )
    scoring = Scoring(predictor)
    with _evaluated(scoring), _quietly():
        program = torch.export.export(
            scoring,
            (_example(shape, pixels=True),),
            dynamic_shapes=({0: torch.export.Dim("batch")},),
        )
        # In memory: torch warns about the name that a file has until it is complete.
        content = io.BytesIO()
        torch.export.save(program, content)
        path.write_bytes(content.getvalue())
        loaded = torch.export.load(io.BytesIO(path.read_bytes())).module()
        probes = probes_of(model.description)
        found = {name: one.numpy() for name, one in loaded(torch.from_numpy(probes)).items()}
    check_equal(found[SCORE], predictor.scores(probes))
    if predictor.calibration is not None:
        check_equal(found[PROBABILITY], predictor.calibration.of(found[SCORE]))


def probes_of(description: ModelDescription) -> np.ndarray:
    """Return random samples of the kind that a model takes."""
    random = np.random.default_rng(0)
    shape = description.sample_shape
    if len(shape) == 3:
        return random.integers(0, 256, (PROBES, *shape), dtype=np.uint8)
    spread = random.standard_normal((PROBES, *shape))
    probes: np.ndarray = np.array(description.mean) + spread * np.array(description.std)
    return probes.astype(np.float32)


def verify(path: Path, model: Model) -> float:
    """Run the file by onnxruntime; return the largest difference of scores, or refuse it.

    Trees ask on which side of a cut a feature lies, so a difference in the seventh digit of a
    backbone's feature may change a vote. Their scores are compared for the file's own features,
    and those with the backbone's. A curve may be as steep, so probabilities are compared for the
    file's own scores.
    """
    exported, predictor = load_exported(path), model.predictor
    probes = probes_of(model.description)
    if (curve := exported.facts.calibration) is not None:
        check_equal(exported.run(probes, PROBABILITY), curve.of(exported.run(probes, SCORE)))
    if exported.facts.output == "map":
        found = np.concatenate([_of_map(exported, probe) for probe in probes])
    else:
        # One sample and several: the batch is dynamic.
        found = np.concatenate([exported.scores(probes[:1]), exported.scores(probes[1:])])
    expected = predictor.scores(probes)
    largest = float(np.abs(found - expected).max())
    if largest <= TOLERANCE or predictor.embedder is None or exported.facts.output == "map":
        check_equal(found, expected)
        return largest
    features = exported.run(probes, FEATURES)
    ours = np.concatenate(list(_backbone_features(predictor, probes)))
    scale = max(1.0, float(np.abs(ours).max()))
    check_equal(features / scale, ours / scale)
    check_equal(found, predictor.scores(features))
    return largest


def _backbone_features(predictor: Predictor, probes: np.ndarray) -> Iterator[np.ndarray]:
    assert predictor.embedder is not None
    rows = Selection(probes, np.arange(len(probes)))
    return features_of(predictor.embedder, rows, predictor.device)


def _of_map(exported: ExportedModel, probe: np.ndarray) -> np.ndarray:
    found = exported.run(probe[None].astype(np.float32) / 255, "score_map")
    return found.reshape(1, -1)[:, 0].astype(np.float64)


def check_equal(found: np.ndarray, expected: np.ndarray) -> None:
    """Refuse a file whose numbers are not the model's."""
    largest = float(np.abs(found - expected).max())
    if not largest <= TOLERANCE:
        raise ContractError(
            f"The exported file differs from the model by up to {largest:.2g}, more than "
            f"{TOLERANCE:g}, so it is not kept. Please report this with the versions of torch and "
            "onnxruntime."
        )
