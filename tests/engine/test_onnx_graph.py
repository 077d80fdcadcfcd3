"""Steps of a graph that other programs run: curves, and the file's checksum."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from hypothesis import given, settings
from hypothesis import strategies as st

from onesided.core.errors import CheckpointError
from onesided.engine.exported import CHECKSUM, Facts, checksum_entry, load_exported
from onesided.engine.onnx_graph import BATCH, OnnxGraph, write_graph
from onesided.metrics.calibration import Calibration
from tests.engine.fuzz import mutated

share = st.floats(0, 1)


@st.composite
def curves(draw: st.DrawFn) -> Calibration:
    corners = sorted(set(draw(st.lists(share, min_size=1, max_size=20))))
    gaps = np.diff(corners)
    # Isotonic regression joins scores that are nearer.
    corners = [corners[0], *(np.array(corners[1:])[gaps > 1e-15]).tolist()]
    heights = sorted(draw(st.lists(share, min_size=len(corners), max_size=len(corners))))
    return Calibration(scores=tuple(corners), probabilities=tuple(heights), basis="prior")


def curve_alone(curve: Calibration) -> onnxruntime.InferenceSession:
    graph = OnnxGraph()
    given = graph.input("score", np.float64, (BATCH,))
    corners, heights = np.array(curve.scores), np.array(curve.probabilities)
    graph.output(graph.curve(given, corners, heights, curve.slopes), "height", np.float64, (BATCH,))
    return onnxruntime.InferenceSession(graph.model("a curve", {}).SerializeToString())


def places(curve: Calibration) -> np.ndarray:
    """Return the corners, their neighbours on either side, both ends, and all between."""
    corners = np.array(curve.scores)
    near = [corners, np.nextafter(corners, 2), np.nextafter(corners, -1)]
    every = np.concatenate([*near, [0, 1], np.linspace(0, 1, 50)])
    inside: np.ndarray = np.clip(every, 0, 1)
    return inside


@settings(max_examples=60, deadline=None)
@given(curves())
def test_a_curve_is_what_numpy_interpolates_at_corners_ends_and_between(curve: Calibration) -> None:
    scores = places(curve)
    (found,) = curve_alone(curve).run(None, {"score": scores})
    expected = np.interp(scores, curve.scores, curve.probabilities)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_a_curve_of_thousands_of_corners_takes_a_step_for_each_doubling() -> None:
    corners = np.linspace(0, 1, 5000)
    curve = Calibration(
        scores=tuple(corners.tolist()), probabilities=tuple((corners**2).tolist()), basis="answers"
    )
    session = curve_alone(curve)
    scores = np.random.default_rng(0).random(100_000)
    (found,) = session.run(None, {"score": scores})
    np.testing.assert_allclose(found, np.interp(scores, corners, corners**2), atol=1e-12)


def test_what_is_no_number_stays_none() -> None:
    curve = Calibration(scores=(0.2, 0.8), probabilities=(0.1, 0.9), basis="prior")
    (found,) = curve_alone(curve).run(None, {"score": np.array([np.nan, 0.5])})
    np.testing.assert_allclose(found, [np.nan, 0.5])


def test_the_checksum_is_an_entry_that_every_reader_of_onnx_takes(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    graph = OnnxGraph()
    value = graph.input("score", np.float64, (BATCH,))
    graph.output(graph.logistic(value), "score_again", np.float64, (BATCH,))
    write_graph(graph.model("words", {"a": 1}), path)
    write_graph(onnx.load(path), path)  # twice leaves one
    keys = [entry.key for entry in onnx.load(path).metadata_props]
    assert keys == ["a", CHECKSUM.decode()]
    onnx.checker.check_model(onnx.load(path))
    session = onnxruntime.InferenceSession(str(path))
    assert CHECKSUM.decode() in session.get_modelmeta().custom_metadata_map


def test_damage_is_refused_or_is_none(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    graph = OnnxGraph()
    value = graph.input("vectors", np.float32, (BATCH, 4))
    summed = graph.weighted_sum(value, np.linspace(0, 1, 4), 0.5)
    graph.output(summed, "score", np.float64, (BATCH,))
    facts = Facts(method="x", sample_shape=(4,), kind="vector", threshold=0.5, model_id="id")
    write_graph(graph.model("words", {"onesided": facts.model_dump(mode="json")}), path)
    whole, random = path.read_bytes(), np.random.default_rng(0)
    assert load_exported(path).scores(np.ones((1, 4))) == 2.5
    accidents = [_flipped(whole, place) for place in range(0, len(whole), 7)]
    refused = 0
    for content in [*accidents, *(mutated(whole, random) for _ in range(100))]:
        path.write_bytes(content)
        try:
            found = load_exported(path)
        except CheckpointError:
            refused += 1
        else:  # only the checksum itself is damaged, or gone
            assert found.facts == facts
            assert found.scores(np.ones((1, 4))) == 2.5
            assert content[: -len(checksum_entry("0" * 64))] in whole
    assert refused > 0.9 * (len(accidents) + 100)


def _flipped(content: bytes, place: int) -> bytes:
    raw = bytearray(content)
    raw[place] ^= 1 << place % 8
    return bytes(raw)
