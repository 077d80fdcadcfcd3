"""Features of the items of a run, where it has them stored: for batches of unlike items.

Nothing is computed by a network here: a person waits. Numbers are features themselves, rows of a
table are encoded as the model does it, and images have features if a frozen backbone left them in
the run's own store.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from onesided.data.problem.dataset import Selection
from onesided.engine.model_file import ModelDescription, load_model
from onesided.geo.scene.chips import stored_chips
from onesided.nets.build import BackboneConfig, build_backbone, load_initial_weights
from onesided.run.config import ChipsConfig, DataConfig, RunConfig
from onesided.run.embed import keys_of
from onesided.run.folder import CACHE, CHIPS, STORE
from onesided.run.load import load_data
from onesided.storage.features import FeatureStore
from onesided.storage.names import printable
from onesided.storage.progress import Progress

Features = Float32[np.ndarray, "n d"]


def stored_features(
    run: Path, config: RunConfig, items: Sequence[str], progress: Progress | None = None
) -> Features | None:
    """Return the features of these items, each of equal weight; None where there are none.

    The samples are read again, in seconds for ten thousand images.
    """
    predictor, description = load_model(run)
    shape = description.sample_shape
    if len(shape) == 3 and not (config.backbone.freeze and (run / CACHE / STORE).is_dir()):
        return None
    values = _values(run, config.data, shape, items, progress)
    if values is None:
        return None
    if len(shape) == 3:
        return _of_images(run, config.backbone, description, values)
    rows = values.take(slice(None))
    return scaled(predictor.encoder.transform(rows) if predictor.encoder else rows)


def _values(
    run: Path,
    data: DataConfig,
    sample_shape: tuple[int, ...],
    items: Sequence[str],
    progress: Progress | None,
) -> Selection | None:
    """Return the samples of these items, in their order."""
    if isinstance(data, ChipsConfig):
        row_of, chips = stored_chips(run / CHIPS, sample_shape)
        if not all(item in row_of for item in items):
            return None
        return Selection(chips, np.array([row_of[item] for item in items], np.int64))
    split = load_data(data.model_copy(update={"answers": None}), progress, run / CACHE).split
    place: dict[str, int] = {}
    for part in (split.train, split.held_out):
        if part is not None:
            names = map(printable, part.names)
            place.update(zip(names, part.values.index.tolist(), strict=True))
    if not all(item in place for item in items):
        return None
    return Selection(split.train.values.pool, np.array([place[item] for item in items], np.int64))


def _of_images(
    run: Path, backbone: BackboneConfig, description: ModelDescription, values: Selection
) -> Features | None:
    """Return what the run's frozen backbone made of these images; None where some are missing.

    A search may have chosen a model that looks at pixels, so the backbone is that of the settings.
    """
    embedder = build_backbone(backbone, values.sample_shape, description.mean, description.std)
    load_initial_weights(backbone, embedder)
    store = FeatureStore(run / CACHE / STORE, embedder.eval().identity(), embedder.width)
    keys = keys_of(values)
    return scaled(store.rows(keys)[:]) if all(key in store for key in keys) else None


def scaled(features: Features) -> Features:
    """Return features of which each number has mean 0 and standard deviation 1, or 0 if constant.

    Else one column in metres would decide which rows are alike.
    """
    centred = features.astype(np.float64) - features.mean(axis=0, dtype=np.float64)
    spread = centred.std(axis=0)
    found: np.ndarray = (centred / np.where(spread > 0, spread, 1.0)).astype(np.float32)
    return found
