"""What a person is told while an estimator is trained, and what as a warning."""

import warnings

from onesided.engine.fit import Watcher
from onesided.engine.log import Row
from onesided.metrics.figure import PUEvaluation
from onesided.run.load import LoadedData


class DegenerateModelWarning(UserWarning):
    """The trained model calls everything, or nothing, positive, or does not separate."""


def tell_of_data(loaded: LoadedData, *, verbose: int) -> None:
    """Warn of files that could not be read; print what else is to be known about the data."""
    if loaded.skipped:
        name, reason = loaded.skipped[0]
        sentence = f"{len(loaded.skipped)} files of X were left out; the first: {name} {reason}."
        warnings.warn(sentence, UserWarning, stacklevel=3)
    if verbose > 0:
        for sentence in loaded.notices:
            print(sentence)


def watcher(*, verbose: int) -> Watcher:
    """Return who prints a line per epoch, or nobody."""
    return Watcher(epoch=_print_epoch) if verbose > 0 else Watcher()


def warn_of(evaluation: PUEvaluation | None) -> None:
    """Warn of a model whose decisions mean nothing, where that is known."""
    if evaluation is not None and evaluation.degenerate:
        warnings.warn(evaluation.degenerate, DegenerateModelWarning, stacklevel=3)


def _print_epoch(row: Row) -> None:
    losses = ", ".join(f"{name} {value:.4g}" for name, value in row["loss"].items())
    proxy = row["proxy_auc"]
    held_out = "" if proxy is None else f"; proxy AUC {proxy:.3f}"
    print(f"{row['stage']}, epoch {row['epoch'] + 1}: {losses}{held_out}")
