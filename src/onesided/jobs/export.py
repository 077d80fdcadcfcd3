"""A trained model as one file for other programs: the job of `onesided export`."""

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import numpy as np

from onesided.core.errors import ConfigError, DataNotFound, OnesidedError
from onesided.core.monitor import Monitor
from onesided.engine.export import (
    Model,
    build_graph,
    check_exportable,
    deepness_metadata,
    export_torch,
    verify,
)
from onesided.engine.exported import FACTS
from onesided.engine.model_file import load_model
from onesided.engine.onnx_graph import write_graph
from onesided.engine.quantise import Loss, quantise
from onesided.jobs.settings import PathLike
from onesided.run.opened import Opened, identity_of, open_model
from onesided.run.rank import items_for
from onesided.storage.atomic import replacing_by_name
from onesided.storage.lock import writing_alone
from onesided.storage.optional import library
from onesided.storage.together import settle

Format = Literal["onnx", "torch"]
ENDINGS = {"onnx": ".onnx", "torch": ".pt2"}
MOST_SAMPLES = 512
"""Items that calibrate and measure int8."""


@dataclass(frozen=True)
class Exported:
    """What `export` wrote.

    Attributes:
        output: The file.
        bytes: Its size.
        difference: Largest difference to the model's scores on random samples; None for int8, of
            which the loss tells more, and for torch's format.
        loss: What int8 costs, if it was asked for.
        notes: What the graph does otherwise than the method.
        probability: Whether the file gives probabilities, because the model has a curve for them.
    """

    output: Path
    bytes: int
    difference: float | None
    loss: Loss | None
    notes: tuple[str, ...]
    probability: bool


def export(
    run: PathLike,
    output: PathLike,
    *,
    format: Format = "onnx",
    int8: bool = False,
    sample: PathLike | None = None,
    deepness: bool = False,
    resolution: float | None = None,
    monitor: Monitor | None = None,
) -> Exported:
    """Write a trained model as one file that other programs run; check its scores.

    Examples:
        >>> import onesided
        >>> written = onesided.export("runs/toy", "toy.onnx")
        >>> written.difference < 1e-4  # from the model's own scores
        True

    Args:
        run: Folder of a finished run.
        output: File to write, .onnx or, for torch's format, .pt2.
        format: onnx, or torch for what torch.export writes.
        int8: Whether layers of networks hold eight-bit integers. The loss is measured on `sample`.
        sample: Folder or table of items that calibrate int8 and measure its loss.
        deepness: Whether the file is for the QGIS plug-in Deepness: one image in, one map out.
        resolution: Centimetres per pixel for Deepness, where the model has one.
        monitor: Receives notices.
    """
    run, output, monitor = Path(run), Path(output), monitor or Monitor()
    _check(output, format, int8=int8, sample=sample, deepness=deepness, resolution=resolution)
    for name in ("onnx", "onnxruntime") if format == "onnx" else ():
        library(name, "Exporting a model", extra="export")
    if not run.is_dir():
        raise DataNotFound(
            f"There is no run folder {run}. Give the folder that onesided fit wrote with -o."
        )
    settle(run)
    predictor, description = load_model(run, "cpu")
    model = Model(predictor, description, identity_of(run, description))
    check_exportable(model, "map" if deepness else "scores")
    loss: Loss | None = None
    difference: float | None = None
    notes: tuple[str, ...] = ()
    with (
        writing_alone(output),
        monitor.phase("exporting"),
        replacing_by_name(output) as part,
    ):
        if format == "torch":
            export_torch(model, part)
        else:
            extra = deepness_metadata(model, resolution=resolution) if deepness else {}
            graph, facts = build_graph(model, "map" if deepness else "scores", extra)
            notes = facts.notes
            write_graph(graph, part)
            difference = verify(part, model)
            if int8:
                assert sample is not None, "checked before"
                loss, difference = _to_int8(part, _samples(Path(sample), open_model(run))), None
    for sentence in (*notes, *([loss.sentence] if loss else [])):
        monitor.note(sentence)
    probability = predictor.calibration is not None and not deepness
    return Exported(output, output.stat().st_size, difference, loss, notes, probability)


def _check(
    output: Path,
    format: str,
    *,
    int8: bool,
    sample: PathLike | None,
    deepness: bool,
    resolution: float | None,
) -> None:
    """Refuse what does not go together, before anything is loaded."""
    if format not in get_args(Format):
        raise ConfigError(f"--format is {format}; expected onnx or torch.")
    if output.suffix.lower() != ENDINGS[format]:
        raise ConfigError(
            f"-o is {output}; a file of the format {format} ends in {ENDINGS[format]}."
        )
    if output.is_dir() or not output.parent.is_dir():
        raise OnesidedError(
            f"{output} cannot be written: it is a folder, or its folder is missing."
        )
    if format == "torch" and (int8 or deepness):
        raise ConfigError("--int8 and --deepness are for ONNX files; leave out --format torch.")
    if int8 and (sample is None or deepness):
        raise ConfigError(
            "--int8 needs items to calibrate it and to measure its loss: add --sample FOLDER, and "
            "leave out --deepness."
        )
    if sample is not None and not int8:
        raise ConfigError("--sample calibrates int8; add --int8, or leave it out.")
    if resolution is not None and not (deepness and 0 < resolution < 1e6):
        raise ConfigError("--resolution is centimetres per pixel above 0, for --deepness.")


def _samples(path: Path, model: Opened) -> np.ndarray:
    """Return some items of a folder or table, spread over all of them."""
    items = items_for(path, model)
    with TemporaryDirectory() as work:
        count = sum(1 for _ in items.records(Path(work)))
        wanted = set(np.linspace(0, count - 1, min(count, MOST_SAMPLES)).astype(int).tolist())
        numbered = enumerate(items.records(Path(work)))
        records = [record for number, record in numbered if number in wanted]
    return items.read(records).values


def _to_int8(path: Path, samples: np.ndarray) -> Loss:
    """Replace the file by one with eight-bit integers, which says so and what it costs."""
    onnx: Any = library("onnx", "Writing an int8 model")
    with TemporaryDirectory(dir=path.parent) as work:
        small = Path(work) / "int8.onnx"
        loss = quantise(path, small, samples)
        model = onnx.load(small)
    entries = {entry.key: entry.value for entry in model.metadata_props}
    facts = json.loads(entries[FACTS])
    facts |= {"precision": "int8", "notes": [*facts["notes"], loss.sentence]}
    onnx.helper.set_model_props(model, entries | {FACTS: json.dumps(facts)})
    write_graph(model, path)
    return loss
