"""A trained estimator on disk and in a pickle: the model files of a run.

`estimator.json` adds what only Python needs: parameters, classes, names of features. A folder
of `onesided fit` has no such file and is read as well.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from onesided.core.config import read_toml
from onesided.core.errors import CheckpointError, OnesidedError
from onesided.core.former import NCPU, TEACHER, method_today
from onesided.engine.model_file import (
    DESCRIPTION,
    REFERENCE,
    WEIGHTS,
    ModelDescription,
    load_model,
    save_model,
)
from onesided.engine.predict import Predictor
from onesided.metrics.figure import PUEvaluation
from onesided.metrics.stored import read_figures
from onesided.run.config import OwnConfig, RunConfig, with_new_names
from onesided.run.folder import CONFIG, RESULT, read_result, working_in
from onesided.storage.atomic import read_json, write_json, write_text
from onesided.storage.own_file import CHECKSUMS
from onesided.storage.together import together, write_checksums

ESTIMATOR = "estimator.json"

Files = dict[str, bytes]


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class Saved:
    """The content of `estimator.json`: parameters of the constructor, and fitted attributes."""

    parameters: dict[str, Any]
    classes: Annotated[list[Any], Field(min_length=2, max_length=2)]
    feature_names: list[str] | None = None


def write_folder(
    folder: Path,
    predictor: Predictor,
    model: ModelDescription,
    result: Mapping[str, Any],
    saved: Saved,
    *,
    overwrite: bool,
) -> None:
    """Write the files of a trained estimator into a new folder."""
    if folder.exists() and not folder.is_dir():
        raise OnesidedError(f"{folder} is a file, and an estimator is saved in a folder.")
    if not overwrite and folder.exists() and any(folder.iterdir()):
        raise OnesidedError(
            f"{folder} is not empty. Choose a new folder, or replace the model in it with "
            "overwrite=True."
        )
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(vars(saved), indent=2, default=_as_plain)
    with working_in(folder):
        if not result:
            (folder / RESULT).unlink(missing_ok=True)
        (folder / CHECKSUMS).unlink(missing_ok=True)  # it lists what is replaced
        if predictor.reference is None:
            (folder / REFERENCE).unlink(missing_ok=True)
        with together(folder) as new:
            _save(new, predictor, model)
            write_text(new / ESTIMATOR, text + "\n")
            if result:
                write_json(new / RESULT, result)
            write_checksums(new, folder)


def read_folder(folder: Path, model: ModelDescription) -> Saved:
    """Return the estimator's parameters, whether `save` or `onesided fit` wrote the folder."""
    if not (folder / ESTIMATOR).exists():
        names = list(model.feature_names) or None
        return Saved(_parameters_of_run(folder, model), [0, 1], names)
    try:
        saved = Saved(**read_json(folder / ESTIMATOR))
    except ValidationError as error:
        entry = error.errors(include_url=False)[0]["loc"][0]
        raise CheckpointError(
            f"{folder / ESTIMATOR} is damaged: '{entry}' is not what an estimator saves. Restore "
            "it, or fit and save again."
        ) from None
    return replace(saved, parameters=_parameters_today(saved.parameters, model))


def _parameters_today(parameters: dict[str, Any], model: ModelDescription) -> dict[str, Any]:
    """Return the parameters of an estimator under the name that its model's method has today."""
    if (parameters.get("method"), model.method) != (NCPU, TEACHER):
        return parameters
    settings = dict(parameters.get("settings") or {})
    if isinstance(own := settings.get("method"), Mapping):
        settings["method"] = method_today(NCPU, own)[1]
    return {**parameters, "method": TEACHER, "settings": settings or None}


def read_evaluation(folder: Path) -> tuple[dict[str, Any], PUEvaluation | None]:
    """Return `result.json` and the evaluation in it; {} and None where there is none."""
    if not (folder / RESULT).exists():
        return {}, None
    result = read_result(folder)
    if result["pu"] is None:
        return result, None
    alarm, warnings = result["pu"]["degenerate"], tuple(result["warnings"])
    figures = read_figures({**result, "known_negatives": None})  # not of held-out P and U
    return result, PUEvaluation(figures, alarm, warnings)


def packed(predictor: Predictor, model: ModelDescription) -> Files:
    """Return the model files as bytes, so that any device and version can open the pickle."""
    with TemporaryDirectory() as folder:
        _save(Path(folder), predictor, model)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def unpacked(files: Files, device: str) -> tuple[Predictor, ModelDescription]:
    """Return the predictor of packed model files, and its description."""
    with TemporaryDirectory() as folder:
        for name in (WEIGHTS, DESCRIPTION, REFERENCE):
            if name in files:  # earlier versions packed no reference
                (Path(folder) / name).write_bytes(files[name])
        return load_model(Path(folder), device)


def _save(folder: Path, predictor: Predictor, model: ModelDescription) -> None:
    save_model(
        folder,
        predictor.method,
        model,
        embedder=predictor.embedder,
        encoder=predictor.encoder,
        reference=predictor.reference,
    )


def _parameters_of_run(folder: Path, model: ModelDescription) -> dict[str, Any]:
    """Return parameters that would repeat a run of `onesided fit` on data like its own."""
    kind = None if model.kind == "vector" else model.kind
    if not (folder / CONFIG).exists():
        # Model files alone are enough to predict: a copy may hold only these.
        backbone = model.backbone.model_dump(mode="json", exclude={"name"})
        return {
            "method": model.method,
            "backbone": model.backbone.name,
            "settings": {"method": model.settings, "backbone": backbone},
            "kind": kind,
        }
    config = RunConfig.from_settings(with_new_names(read_toml(folder / CONFIG)), CONFIG)
    settings = {part: config.to_settings()[part] for part in ("method", "backbone", "train")}
    settings["method"].pop("name")
    settings["backbone"].pop("name")
    epochs = settings["train"].pop("epochs", None)  # a search holds only what was asked for
    settings["train"].pop("device", None)
    parameters = {
        "method": config.method_name,
        "prior": config.prior,
        "threshold": str(config.threshold),
        "epochs": epochs,
        "backbone": config.backbone.name,
        "settings": settings,
        "kind": kind,
        "random_state": config.seed,
    }
    if isinstance(config.data, OwnConfig):
        parameters["held_out"] = config.data.held_out
        settings["data"] = {"scenario": config.data.scenario, "seed": config.data.seed}
    return parameters


def _as_plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise OnesidedError(
        f"The parameter value {value!r} cannot be written to {ESTIMATOR}. Use plain numbers and "
        "words."
    )
