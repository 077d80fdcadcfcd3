"""The report's data on samples: a few pictures, all scores, a map of features."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from onesided.data.columns.cells import Column, shown_row
from onesided.data.problem.dataset import PUSplit, Selection
from onesided.data.read.picture import shown_channels
from onesided.engine.predict import Predictor
from onesided.storage.atomic import write_arrays
from onesided.storage.names import printable, without_surrogates

GROUP_SIZE = 24
MAP_ROWS = 1000
MOST_NUMBERS = 6
"""Numbers of a vector that the report shows beside the name of its item."""
MOST_LETTERS = 400
"""Letters of a text that the report may show."""


def save_report_data(
    path: Path,
    split: PUSplit,
    scores: np.ndarray,
    held_out: np.ndarray | None,
    predictor: Predictor,
    *,
    feature_names: Sequence[str] = (),
) -> None:
    """Write pictures and numbers for the report, without pickled objects.

    `scores` are of every training row, `held_out` of every held-out row; `feature_names` are those
    of vectors.
    """
    train = split.train
    arrays: dict[str, np.ndarray] = {"positive_scores": scores[train.labelled]}
    if split.held_out is not None and held_out is not None:
        arrays["positive_scores"] = held_out[split.held_out.labelled]
    arrays |= _map_of_features(split, scores, predictor)
    encoder = predictor.encoder
    for group, rows in _groups(train.labelled, scores, predictor.threshold).items():
        if encoder is not None:
            arrays[f"{group}_texts"] = passages(encoder.columns, train.values, rows)
        elif len(split.sample_shape) == 3:
            arrays[f"{group}_images"] = thumbnails(train.values, rows)
        else:
            arrays[f"{group}_texts"] = numbers_in_words(train.values, rows, feature_names)
        arrays[f"{group}_scores"] = scores[rows]
        arrays[f"{group}_names"] = np.array([printable(train.names[row]) for row in rows])
    write_arrays(path, arrays)


def _groups(labelled: np.ndarray, scores: np.ndarray, threshold: float) -> dict[str, np.ndarray]:
    """Return the rows to show: of U the best, nearest the threshold and worst; of P the worst."""
    unlabelled = np.flatnonzero(~labelled)
    by_score = unlabelled[np.argsort(-scores[unlabelled], kind="stable")]
    nearest = unlabelled[np.argsort(np.abs(scores[unlabelled] - threshold), kind="stable")]
    positives = np.flatnonzero(labelled)
    doubted = positives[np.argsort(scores[positives], kind="stable")]
    groups = {"top": by_score, "threshold": nearest, "bottom": by_score[::-1], "doubted": doubted}
    return {name: rows[:GROUP_SIZE] for name, rows in groups.items()}


def thumbnails(values: Selection, rows: np.ndarray) -> np.ndarray:
    """Return (n, H, W, C) pictures of the channels that are shown."""
    images = values.take(rows)
    shown = shown_channels(images.shape[1])
    return np.ascontiguousarray(images[:, shown].transpose(0, 2, 3, 1))


def passages(columns: Sequence[Column], values: Selection, rows: np.ndarray) -> np.ndarray:
    """Return the beginning of each row of a table, as people read it."""
    shown = (shown_row(columns, cells) for cells in values.take(rows).tolist())
    return np.array([without_surrogates(text)[:MOST_LETTERS] for text in shown])


def numbers_in_words(
    values: Selection, rows: np.ndarray, feature_names: Sequence[str]
) -> np.ndarray:
    """Return the first numbers of each vector, with the names of their columns if there are any."""
    names = [f"{name} " for name in feature_names[:MOST_NUMBERS]] or [""] * MOST_NUMBERS
    texts = []
    for vector in values.take(rows):
        shown = [f"{name}{number:.4g}" for name, number in zip(names, vector, strict=False)]
        more = ["…"] if len(vector) > len(shown) else []
        texts.append(without_surrogates(", ".join([*shown, *more]))[:MOST_LETTERS])
    return np.array(texts)


def _map_of_features(
    split: PUSplit, scores: np.ndarray, predictor: Predictor
) -> dict[str, np.ndarray]:
    """Return a t-SNE of some rows' features, {} for too few; 1000 rows take seconds."""
    rows = map_rows(len(split.train))
    features = predictor.embeddings(
        Selection(split.train.values.pool, split.train.values.index[rows])
    )
    if features is None or len(rows) < 50 or not _spread_out(features):
        return {}
    from sklearn.manifold import TSNE  # a second to import, and only finished runs need it

    points = TSNE(init="pca", perplexity=30, random_state=0).fit_transform(features)
    role = map_roles(split.train.labelled, scores, predictor.threshold)
    return {"embedding": points.astype(np.float32), "embedding_role": role}


def map_roles(labelled: np.ndarray, scores: np.ndarray, threshold: float) -> np.ndarray:
    """Return 1 for labelled rows of the map, 2 for others called positive, 0 for the rest."""
    rows = map_rows(len(scores))
    roles = np.where(labelled[rows], 1, np.where(scores[rows] > threshold, 2, 0))
    return roles.astype(np.int64)


def map_rows(count: int) -> np.ndarray:
    """Return the training rows that the map of features shows."""
    return np.unique(np.linspace(0, count - 1, MAP_ROWS).astype(np.int64))


def _spread_out(features: np.ndarray) -> bool:
    """Whether the features differ; t-SNE crashes the process where they do not."""
    spread, largest = np.ptp(features, axis=0).max(), np.abs(features).max()
    return bool(np.isfinite(features).all() and spread > 1e-6 * largest)
