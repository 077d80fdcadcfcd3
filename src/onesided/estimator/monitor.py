"""Where notices and progress go for scikit-learn users: Python warnings, and print if verbose."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from onesided.core.monitor import Monitor, Phase


class DegenerateModelWarning(UserWarning):
    """The trained model calls everything, or nothing, positive, or does not separate."""


class DoubtfulFiguresWarning(UserWarning):
    """Figures of a trained model mean less than they seem to, or nothing."""


class UnfamiliarDataWarning(UserWarning):
    """Samples are unlike those that the model was trained on."""


@dataclass(frozen=True)
class EstimatorMonitor(Monitor):
    """Prints notices and one line per epoch where `verbose` is above 0; warns always."""

    verbose: int = 0

    def note(self, sentence: str) -> None:
        """Print the sentence, if verbose."""
        if self.verbose > 0:
            print(sentence)

    def warn(self, sentence: str, category: type[Warning] = UserWarning) -> None:
        """Warn at the line that called `fit`."""
        warnings.warn(sentence, category, stacklevel=3)

    @contextmanager
    def phase(self, title: str) -> Iterator[Phase]:
        """Print the epochs of this phase, if verbose."""
        yield _PrintedEpochs() if self.verbose > 0 else Phase()


class _PrintedEpochs(Phase):
    def epoch(self, row: Mapping[str, Any]) -> None:
        losses = ", ".join(f"{name} {value:.4g}" for name, value in row["loss"].items())
        proxy = row["proxy_auc"]
        held_out = "" if proxy is None else f"; proxy AUC {proxy:.3f}"
        print(f"{row['stage']}, epoch {row['epoch'] + 1}: {losses}{held_out}")
