"""Exported files give the model's scores: every method, every backbone, every kind of sample."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from onesided.core.batch import DataFacts
from onesided.core.errors import ConfigError, ContractError
from onesided.core.rng import generator
from onesided.data.problem.dataset import PUSplit
from onesided.engine.export import (
    Curve,
    Model,
    build_graph,
    check_equal,
    check_exportable,
    deepness_metadata,
    export_torch,
    probes_of,
    traced,
    verify,
)
from onesided.engine.exported import load_exported
from onesided.engine.model_file import ModelDescription
from onesided.engine.onnx_graph import tree_attributes
from onesided.engine.predict import Predictor
from onesided.methods import METHODS
from onesided.methods.bagging import Bagging
from onesided.methods.base import GradientMethod
from onesided.metrics.calibration import Calibration
from onesided.nets.build import BackboneConfig, build_backbone, load_initial_weights, seeded
from onesided.nets.pair import PairBackbone
from onesided.nets.standardise import Backbone
from onesided.trees.leaves import Leaves
from tests.contract.cases import CASES, Case, build, toy_split, train
from tests.nets.test_external import saved

CPU = torch.device("cpu")
CURVE = Calibration(
    scores=(0.1, 0.3, 0.45, 0.46, 0.9), probabilities=(0.0, 0.05, 0.05, 0.6, 0.97), basis="prior"
)
"""Two steps with a cliff between them, and ends that scores lie beyond."""


def described(case: Case, shape: tuple[int, ...], **changes: Any) -> ModelDescription:  # noqa: ANN401
    return ModelDescription.from_settings(
        {
            "method": case.name,
            "settings": case.config().stored(),
            "backbone": {"width": 0.125},
            "sample_shape": shape,
            "mean": [0.5] * shape[0],
            "std": [0.25] * shape[0],
            "kind": "photograph" if len(shape) == 3 else "vector",
            **changes,
        },
        "test",
    )


def written(model: Model, path: Path, **words: Any) -> Path:  # noqa: ANN401
    graph, _ = build_graph(model, words.get("output", "scores"), words.get("extra", {}))
    onnx.save(graph, path)
    return path


@pytest.fixture(scope="module")
def split() -> PUSplit:
    return toy_split()


def trained(case: Case, split: PUSplit) -> Predictor:
    """Direct methods are fitted; of networks new weights are as good as any."""
    method = build(case, split)
    if isinstance(method, GradientMethod):
        return Predictor(method, CPU, 0.4)
    return Predictor(train(method, split).method, CPU, 0.4)


def ways_to_classify() -> list[Case]:
    """Return the direct methods, and one method for each way from samples to logits."""
    kept: dict[str, Case] = {}
    for case in CASES:
        method, way = build(case, toy_split()), str(case)
        if isinstance(method, GradientMethod):
            variant = "" if type(method).classify is GradientMethod.classify else case.settings
            way = f"{type(method).classify.__qualname__} {variant}"
        kept.setdefault(way, case)
    return list(kept.values())


@pytest.mark.parametrize("case", ways_to_classify(), ids=str)
def test_every_method_is_exported_with_its_scores(
    case: Case, split: PUSplit, tmp_path: Path
) -> None:
    predictor = replace(trained(case, split), calibration=CURVE)
    model = Model(predictor, described(case, split.sample_shape, threshold=0.4), "id")
    check_exportable(model)
    path = written(model, tmp_path / "model.onnx")
    assert verify(path, model) <= 1e-4
    exported = load_exported(path)
    assert split.held_out is not None
    images = split.held_out.values.take(slice(0, 20))
    found = exported.scores(images)
    np.testing.assert_allclose(found, predictor.scores(images), atol=1e-4)
    decided = exported.run(images, "decision")
    np.testing.assert_array_equal(decided, found > 0.4)
    assert exported.run(images, "threshold") == 0.4
    likely = exported.run(images, "probability")
    np.testing.assert_allclose(likely, CURVE.of(predictor.scores(images)), atol=1e-4)
    np.testing.assert_allclose(likely, CURVE.of(found), atol=1e-12)
    assert exported.facts.calibration == CURVE


def test_items_that_bagging_was_trained_on_are_as_new_ones_and_the_file_says_so(
    split: PUSplit, tmp_path: Path
) -> None:
    predictor = trained(Case("bagging"), split)
    model = Model(predictor, described(Case("bagging"), split.sample_shape), "id")
    exported = load_exported(written(model, tmp_path / "model.onnx"))
    assert "get the score of a new item" in exported.facts.notes[0]
    images = split.train.values.take(~split.train.labelled)
    assert isinstance(predictor.method, Bagging)
    mean = predictor.method.mean.scores(images.reshape(len(images), -1))
    np.testing.assert_allclose(exported.scores(images), mean, atol=1e-6)
    assert np.abs(predictor.scores(images) - mean).max() > 1e-3


def on_backbone(
    name: str, shape: tuple[int, ...], *, frozen: Backbone | None = None
) -> tuple[Predictor, ModelDescription]:
    """Return an untrained network, or a head on a frozen one."""
    with seeded(1, "test"):
        settings = BackboneConfig(name=name)
        width = shape if frozen is None else (frozen.width,)
        mean, std = [0.4] * width[0], [0.3] * width[0]
        backbone = build_backbone(settings, width, mean, std, generator(5, "net"))
        facts = DataFacts(rows=1, labelled=1, sample_shape=width)
        method = METHODS["ce"]().build(facts, backbone)
    return Predictor(method, CPU, 0.3, frozen), described(Case("ce"), shape)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("small", (1, 12, 9)),
        ("mlp", (3, 6, 6)),
        ("mlp", (7,)),
        ("resnet18", (3, 16, 16)),
        pytest.param("resnet34", (6, 16, 16), marks=pytest.mark.slow),
        pytest.param("efficientnet_lite0", (3, 40, 33), marks=pytest.mark.slow),
        pytest.param("efficientnet_lite0", (4, 250, 230), marks=pytest.mark.slow),
    ],
)
def test_every_network_is_exported_with_its_scores(
    name: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    predictor, about = on_backbone(name, shape)
    model = Model(replace(predictor, calibration=CURVE), about, "id")
    path = written(model, tmp_path / "model.onnx")
    assert verify(path, model) <= 1e-4
    exported, probes = load_exported(path), probes_of(about)
    likely = CURVE.of(predictor.scores(probes))
    np.testing.assert_allclose(exported.run(probes, "probability"), likely, atol=1e-4)


def frozen_backbone(kind: str, folder: Path) -> Backbone:
    shape, numbers = (3, 20, 20), [0.5] * 3
    match kind:
        case "efficientnet":
            settings = BackboneConfig(name="efficientnet_lite0", freeze=True)
        case "several":
            settings = BackboneConfig(name="efficientnet_lite0", freeze=True, layers="several")
        case "hf":
            saved(folder / "net", "vit")
            settings = BackboneConfig(name=f"hf:{folder / 'net'}", freeze=True)
        case "onnx":
            other = torch.nn.Sequential(torch.nn.Conv2d(3, 5, 3), torch.nn.ReLU())
            onnx.save(traced(other, torch.zeros(2, 3, 28, 28)), folder / "net.onnx")
            settings = BackboneConfig(name=f"onnx:{folder / 'net.onnx'}", freeze=True)
        case _:
            single = build_backbone(
                BackboneConfig(name="small", width=0.125), shape, numbers, numbers
            )
            return PairBackbone(single, 6).eval()
    backbone = build_backbone(settings, shape, numbers, numbers)
    load_initial_weights(settings, backbone)
    return backbone.eval()


@pytest.mark.parametrize(
    "kind",
    ["hf", "onnx", "pair", "efficientnet", pytest.param("several", marks=pytest.mark.slow)],
)
def test_the_frozen_backbone_goes_along(kind: str, tmp_path: Path) -> None:
    frozen = frozen_backbone(kind, tmp_path)
    shape = (6 if kind == "pair" else 3, 20, 20)
    predictor, about = on_backbone("mlp", shape, frozen=frozen)
    predictor = replace(predictor, calibration=CURVE)
    model = Model(predictor, about, "id")
    path = written(model, tmp_path / "model.onnx")
    assert verify(path, model) <= 1e-4
    images = np.random.default_rng(1).integers(0, 256, (3, *shape), dtype=np.uint8)
    features = torch.from_numpy(images).float() / 255
    with torch.no_grad():
        expected = frozen(features).numpy()
    exported = load_exported(path)
    found = exported.run(images, "features")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    likely = CURVE.of(predictor.scores(images))
    np.testing.assert_allclose(exported.run(images, "probability"), likely, atol=1e-4)


def test_trees_on_features_are_exported(tmp_path: Path) -> None:
    frozen = frozen_backbone("pair", tmp_path)
    random = np.random.default_rng(2)
    images = random.integers(0, 256, (60, 6, 20, 20), dtype=np.uint8)
    with torch.no_grad():
        features = frozen(torch.from_numpy(images).float() / 255).numpy()
    facts = DataFacts(rows=60, labelled=20, sample_shape=(frozen.width,))
    forest = METHODS["forest"](trees=9).build(facts, frozen)  # type: ignore[call-arg]
    forest.fit(features, np.arange(60) < 20, random)  # type: ignore[operator]
    predictor = Predictor(forest, CPU, 0.5, frozen, calibration=CURVE)
    model = Model(predictor, described(Case("forest"), (6, 20, 20)), "id")
    path = written(model, tmp_path / "model.onnx")
    verify(path, model)
    exported = load_exported(path)
    ours = exported.run(images, "features")
    expected = forest.scores(ours)  # type: ignore[operator]
    np.testing.assert_allclose(exported.scores(images), expected, atol=1e-6)
    likely = exported.run(images, "probability")
    np.testing.assert_allclose(likely, CURVE.of(expected), atol=1e-4)


def test_a_tie_of_the_votes_of_puet_stays_negative(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = random.standard_normal((300, 4)).astype(np.float32)
    facts = DataFacts(rows=300, labelled=100, sample_shape=(4,), prior=0.4)
    backbone = build_backbone(BackboneConfig(name="mlp"), (4,), (0.0,) * 4, (1.0,) * 4)
    puet = METHODS["puet"](trees=100).build(facts, backbone)  # type: ignore[call-arg]
    puet.fit(rows, np.arange(300) < 100, random)  # type: ignore[operator]
    model = Model(Predictor(puet, CPU, 0.5), described(Case("puet"), (4,)), "id")
    exported = load_exported(written(model, tmp_path / "model.onnx"))
    new = random.standard_normal((3000, 4)).astype(np.float32)
    expected = puet.scores(new)  # type: ignore[operator]
    assert (expected == 0.5).sum() > 10
    np.testing.assert_array_equal(exported.scores(new), expected)
    np.testing.assert_array_equal(exported.run(new, "decision"), expected > 0.5)


def test_a_model_without_a_curve_has_no_probabilities(split: PUSplit, tmp_path: Path) -> None:
    model = Model(trained(Case("linear"), split), described(Case("linear"), (3, 8, 8)), "id")
    path = written(model, tmp_path / "model.onnx")
    names = [one.name for one in onnx.load(path).graph.output]
    assert names == ["score", "decision", "threshold"]
    entry = {one.key: json.loads(one.value) for one in onnx.load(path).metadata_props}
    assert "calibration" not in entry["onesided"]


@settings(max_examples=200)
@given(st.floats(-(2.0**99), 2.0**99), st.floats(-(2.0**99), 2.0**99, width=32))
def test_a_rounded_cut_sends_every_feature_the_same_way(cut: float, feature: float) -> None:
    leaves = Leaves(
        np.zeros(1, np.int64),
        np.array([0, -1, -1], np.int32),
        np.array([cut, 0, 0]),
        np.array([2, 0, 0]),
        np.array([0.0, 1.0, 2.0]),
    )
    rounded = np.float32(tree_attributes(leaves)["nodes_values"][0])
    for near in (feature, np.float32(cut), np.nextafter(np.float32(cut), np.float32(np.inf))):
        assert (np.float32(near) <= rounded) == (np.float32(near).astype(np.float64) <= cut)


def test_a_file_for_deepness_has_what_the_plug_in_reads(tmp_path: Path) -> None:
    predictor, about = on_backbone("mlp", (3, 8, 8))
    model = Model(predictor, about, "id")
    extra = deepness_metadata(model, resolution=30)
    path = written(model, tmp_path / "map.onnx", output="map", extra=extra)
    assert verify(path, model) <= 1e-4
    session = onnxruntime.InferenceSession(str(path))
    (given,), (output,) = session.get_inputs(), session.get_outputs()
    assert (given.shape, given.type) == ([1, 3, 8, 8], "tensor(float)")
    assert output.shape == [1, 1, 8, 8]
    about_file = session.get_modelmeta().custom_metadata_map
    told = {key: json.loads(value) for key, value in about_file.items()}
    assert told["model_type"] == "Regressor"
    assert told["class_names"] == {"0": "score of positive"}
    assert (told["resolution"], told["tile_size"], told["tiles_overlap"]) == (30, 8, 0)
    tile = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    image = (tile.astype("float32") / 255).transpose(2, 0, 1)[None]
    found = session.run(None, {given.name: image})[0]
    np.testing.assert_allclose(
        found[0, 0], predictor.scores(tile.transpose(2, 0, 1)[None])[0], atol=1e-6
    )


def test_torch_export_writes_the_same_scores_and_says_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    predictor, about = on_backbone("small", (1, 12, 9))
    predictor = replace(predictor, calibration=CURVE)
    export_torch(Model(predictor, about, "id"), tmp_path / "model.pt2.part")
    assert capfd.readouterr() == ("", ""), "torch remarks on names that are not the last one"
    (tmp_path / "model.pt2.part").rename(tmp_path / "model.pt2")
    images = torch.from_numpy(probes_of(about))
    found = torch.export.load(tmp_path / "model.pt2").module()(images)
    expected = predictor.scores(images.numpy())
    np.testing.assert_allclose(found["score"].numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(found["probability"].numpy(), CURVE.of(expected), atol=1e-4)


def test_torchs_curve_is_the_models_at_corners_ends_and_between() -> None:
    corners = np.array(CURVE.scores)
    scores = np.concatenate([corners, np.nextafter(corners, 0), [0, 1], np.linspace(0, 1, 99)])
    found = Curve(CURVE)(torch.from_numpy(scores)).numpy()
    np.testing.assert_allclose(found, CURVE.of(scores), rtol=0, atol=1e-12)


def test_torchs_file_of_a_model_without_a_curve_has_no_probabilities(tmp_path: Path) -> None:
    predictor, about = on_backbone("mlp", (7,))
    export_torch(Model(predictor, about, "id"), tmp_path / "model.pt2")
    found = torch.export.load(tmp_path / "model.pt2").module()(torch.zeros(1, 7))
    assert found.keys() == {"score", "decision"}


def test_what_no_graph_holds_is_refused_in_one_sentence(split: PUSplit, tmp_path: Path) -> None:
    predictor = trained(Case("linear"), split)
    model = Model(predictor, described(Case("linear"), split.sample_shape), "id")
    with pytest.raises(ConfigError, match="torch has no operator for the method linear"):
        export_torch(model, tmp_path / "model.pt2")
    oblong = Model(predictor, described(Case("linear"), (3, 8, 9)), "id")
    with pytest.raises(ConfigError, match="takes square images"):
        check_exportable(oblong, "map")


def test_a_file_that_differs_is_not_kept() -> None:
    with pytest.raises(ContractError, match=r"differs from the model by up to 0\.01"):
        check_equal(np.array([0.5, 0.6]), np.array([0.5, 0.61]))
