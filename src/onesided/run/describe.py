"""What a trained method is, and what it found: the contents of `model.json` and `result.json`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from onesided.engine.model_file import ModelDescription
from onesided.engine.predict import Predictor
from onesided.engine.train_config import choose_device, choose_precision
from onesided.run.config import RunConfig
from onesided.run.load import LoadedData
from onesided.run.prior import PriorUsed


@dataclass(frozen=True)
class Trained:
    """What training gives: the predictor, the prior it was told, the seconds it took."""

    predictor: Predictor
    prior: PriorUsed | None
    seconds: float


def describe_model(config: RunConfig, loaded: LoadedData, trained: Trained) -> ModelDescription:
    """Return what `model.json` says: how to rebuild the method, and how to feed it."""
    source = loaded.source
    return ModelDescription(
        method=config.method_name,
        settings=config.method.model_dump(mode="json"),
        backbone=config.backbone.for_samples(source.split.sample_shape),
        sample_shape=source.split.sample_shape,
        mean=source.mean,
        std=source.std,
        kind=source.split.kind,
        feature_names=source.feature_names,
        threshold=trained.predictor.threshold,
        prior=trained.prior.value if trained.prior else None,
    )


def describe_result(
    config: RunConfig, loaded: LoadedData, trained: Trained, judged: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what `result.json` says: what was trained, on what, and how well it works.

    Args:
        config: The run.
        loaded: Its data.
        trained: What training gave.
        judged: The entries that depend on the threshold, see `entries_at`.
    """
    prior, split, device = trained.prior, loaded.split, choose_device(config.train.device)
    half = choose_precision(config.train.precision, device) == torch.bfloat16
    return {
        "method": config.method_name,
        "variant": getattr(config.method, "variant", "published"),
        "logs": {name: asdict(logged) for name, logged in config.method.card.logs.items()},
        "data": config.data.name,
        "seed": config.seed,
        "epochs": config.train.epochs,
        "seconds": round(trained.seconds, 3),
        "device": str(device),
        "precision": "bf16" if half else "fp32",
        "n_positive": int(split.train.labelled.sum()),
        "n_unlabelled": int((~split.train.labelled).sum()),
        "scenario": split.scenario,
        "prior": prior.to_json() if prior else None,
        **judged,
        "notices": list(loaded.notices),
        "skipped": [list(item) for item in loaded.skipped[:1000]],
    }
