"""A trained estimator on disk and in a pickle: the model files of a run, and nothing else.

`estimator.json` adds what only Python needs: parameters, classes, names of features. A
folder without it, as `onesided fit` writes them, is read as well.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from onesided.core.config import read_toml
from onesided.core.errors import CheckpointError, OnesidedError
from onesided.engine.model_file import (
    DESCRIPTION,
    WEIGHTS,
    ModelDescription,
    load_model,
    save_model,
)
from onesided.engine.predict import Predictor
from onesided.metrics.figure import PUEvaluation
from onesided.metrics.stored import read_figures
from onesided.run.config import OwnConfig, RunConfig
from onesided.run.folder import CONFIG, RESULT, read_result
from onesided.storage.atomic import read_json, write_json, write_text

ESTIMATOR = "estimator.json"

Files = dict[str, bytes]


@dataclass(frozen=True)
class Saved:
    """What a folder says about an estimator.

    Attributes:
        parameters: Of its constructor.
        classes: Words for negative and positive.
        feature_names: Names of the features, where the training data had some.
    """

    parameters: dict[str, Any]
    classes: list[Any]
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
    # The result goes first and comes back last: beside it, the model is complete.
    (folder / RESULT).unlink(missing_ok=True)
    save_model(folder, predictor.method, model, embedder=predictor.embedder)
    text = json.dumps(vars(saved), indent=2, default=_as_plain)
    write_text(folder / ESTIMATOR, text + "\n")
    if result:
        write_json(folder / RESULT, result)


def read_folder(folder: Path, model: ModelDescription) -> Saved:
    """Return what a folder says, whether `save` or `onesided fit` wrote it."""
    if not (folder / ESTIMATOR).exists():
        names = list(model.feature_names) or None
        return Saved(_parameters_of_run(folder, model), [0, 1], names)
    content = read_json(folder / ESTIMATOR)
    try:
        saved = Saved(**content)
    except TypeError as error:
        raise CheckpointError(f"{folder / ESTIMATOR} is damaged ({error}).") from None
    _check_saved(saved, folder / ESTIMATOR)
    return saved


def _check_saved(saved: Saved, path: Path) -> None:
    names = saved.feature_names
    sound = {
        "parameters": isinstance(saved.parameters, dict),
        "classes": isinstance(saved.classes, list) and len(saved.classes) == 2,
        "feature_names": names is None
        or (isinstance(names, list) and all(isinstance(name, str) for name in names)),
    }
    for entry, is_sound in sound.items():
        if not is_sound:
            raise CheckpointError(
                f"{path} is damaged: '{entry}' is not what an estimator saves. Restore it, or fit "
                "and save again."
            )


def read_evaluation(folder: Path) -> tuple[dict[str, Any], PUEvaluation | None]:
    """Return `result.json` and the evaluation in it; nothing, where there is none."""
    if not (folder / RESULT).exists():
        return {}, None
    result = read_result(folder)
    if result["pu"] is None:
        return result, None
    alarm, warnings = result["pu"]["degenerate"], tuple(result["warnings"])
    figures = read_figures({**result, "known_negatives": None})  # which are not held-out P and U
    return result, PUEvaluation(figures, alarm, warnings)


def packed(predictor: Predictor, model: ModelDescription) -> Files:
    """Return the model files as bytes: a pickle that any device and version can open."""
    with TemporaryDirectory() as folder:
        save_model(Path(folder), predictor.method, model, embedder=predictor.embedder)
        return {name: (Path(folder) / name).read_bytes() for name in (WEIGHTS, DESCRIPTION)}


def unpacked(files: Files, device: str) -> Predictor:
    """Return the predictor of packed model files."""
    with TemporaryDirectory() as folder:
        for name in (WEIGHTS, DESCRIPTION):
            (Path(folder) / name).write_bytes(files[name])
        return load_model(Path(folder), device)[0]


def _parameters_of_run(folder: Path, model: ModelDescription) -> dict[str, Any]:
    """Return parameters that would repeat a run of `onesided fit` on data like its own."""
    kind = None if model.kind == "vector" else model.kind
    if not (folder / CONFIG).exists():
        # Model files alone predict as well; someone may have copied just these.
        settings = {"method": model.settings, "backbone": model.backbone.model_dump(mode="json")}
        settings["backbone"].pop("name")
        return {
            "method": model.method,
            "backbone": model.backbone.name,
            "settings": settings,
            "kind": kind,
        }
    config = RunConfig.from_settings(read_toml(folder / CONFIG), CONFIG)
    settings = {part: config.to_settings()[part] for part in ("method", "backbone", "train")}
    for part, key in (("method", "name"), ("backbone", "name"), ("train", "epochs")):
        settings[part].pop(key)
    settings["train"].pop("device")
    parameters = {
        "method": config.method_name,
        "prior": config.prior,
        "threshold": str(config.threshold),
        "epochs": config.train.epochs,
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
        "words, or pickle the estimator."
    )
