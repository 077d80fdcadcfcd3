"""Tables with columns of several kinds: the method trains on vectors, encoded from raw rows."""

from dataclasses import replace

import numpy as np

from onesided.data.columns.encoder import Encoder, fit_encoder
from onesided.data.problem.dataset import Selection
from onesided.run.embed import with_selections
from onesided.run.load import LoadedData, channel_statistics
from onesided.run.problem import Problem


def encode(problem: Problem) -> Problem:
    """Return the problem with vectors for raw rows, or as it is where there are none.

    The encoder is fitted to the rows that this problem trains on, and to no others: what is held
    out, in a run or in a fold of one, must not decide how it is seen.
    """
    if not problem.data.columns:
        return problem
    encoding = _Encoding(problem.data, problem.training.train.values, problem.config.seed)
    training = with_selections(problem.training, encoding.of)
    unseen = with_selections(problem.unseen_negatives, encoding.of)
    data = encoding.applied(problem.data)
    return replace(problem, data=data, training=training, unseen_negatives=unseen)


def encode_data(data: LoadedData, seed: int) -> LoadedData:
    """Return data with vectors for raw rows, fitted to its training rows; see `encode`."""
    if not data.columns:
        return data
    return _Encoding(data, data.split.train.values, seed).applied(data)


class _Encoding:
    """A fitted encoder, and the vectors of every row that was asked for; each is made once."""

    def __init__(self, data: LoadedData, training: Selection, seed: int) -> None:
        self.encoder = fit_encoder(
            data.columns, training.take(slice(None)), seed=seed, sentences=data.sentences
        )
        self.vectors: dict[int, np.ndarray] = {}  # by identity of the pool

    def of(self, selection: Selection) -> Selection:
        pool = selection.pool
        if id(pool) not in self.vectors:
            every = Selection(pool, np.arange(pool.shape[0]))
            self.vectors[id(pool)] = self.encoder.transform(every.take(slice(None)))
        return Selection(self.vectors[id(pool)], selection.index)

    def applied(self, data: LoadedData) -> LoadedData:
        split = with_selections(data.split, self.of)
        mean, std = channel_statistics(split.train.values)
        return replace(
            data,
            split=split,
            mean=mean,
            std=_scales(self.encoder, np.array(std)),
            known_negatives=with_selections(data.known_negatives, self.of),
            feature_names=self.encoder.names,
            columns=(),
            encoder=self.encoder,
            images=data,
        )


def _scales(encoder: Encoder, std: np.ndarray) -> tuple[float, ...]:
    """Return by what each number is divided; the directions of a text share one scale.

    Divided each by its own, the directions that hardly vary would count as much as the first.
    """
    for index, column in enumerate(encoder.columns):
        if column.kind == "text":
            part = encoder.column_of == index
            std[part] = np.sqrt(np.mean(std[part] ** 2)) if part.any() else 0.0
    return tuple(std.tolist())
