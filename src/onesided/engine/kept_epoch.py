"""The epoch that held-out P and U prefer, kept beside the one in training.

It is chosen by the proxy AUC of held-out items, or by their proxy accuracy, which needs the prior;
never by true classes. What is kept is what inference needs; it goes into the checkpoint among the
method's own tensors, so a resumed run keeps the same epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from onesided.methods.base import GradientMethod

PREFIX = "kept_epoch."
CHOSEN_BY: Mapping[str, str] = {"best": "proxy_auc", "best-accuracy": "proxy_accuracy"}
"""The figure of held-out P and U in the log that each value of `train.keep` goes by."""

State = dict[str, Tensor]


def delivers_last(method: object) -> bool:
    """Whether a method is delivered as its last epoch left it: it has no rule of its own."""
    return isinstance(method, GradientMethod) and not method.chooses_epoch


@dataclass
class KeptEpoch:
    """The best epoch so far; number -1 before the first.

    Attributes:
        number: The epoch within the last stage, from 0.
        figure: Proxy AUC or proxy accuracy of held-out P and U after it.
        weights: The method's `inference_state` then.
    """

    number: int = -1
    figure: float = 0.0
    weights: State = field(default_factory=dict)

    def offer(self, method: GradientMethod, number: int, figure: float | None) -> None:
        """Keep this epoch if it is better than every earlier one."""
        if figure is not None and (self.number < 0 or figure > self.figure):
            self.number, self.figure = number, figure
            self.weights = {
                name: tensor.detach().cpu().clone()
                for name, tensor in method.inference_state().items()
            }

    def restore(self, method: GradientMethod) -> None:
        """Give the method the weights of the kept epoch; without one it stays as it is."""
        if self.number >= 0:
            method.load_state_dict({**method.state_dict(), **self.weights})

    def to_state(self) -> State:
        """Return it as tensors of a checkpoint."""
        if self.number < 0:
            return {}
        facts = torch.tensor([float(self.number), self.figure], dtype=torch.float64)
        weights = {f"{PREFIX}weights.{name}": each for name, each in self.weights.items()}
        return {f"{PREFIX}facts": facts, **weights}

    @classmethod
    def taken_from(cls, state: State) -> tuple["KeptEpoch", State]:
        """Return the kept epoch of a checkpoint, and the method's own tensors without it."""
        own = {name: each for name, each in state.items() if not name.startswith(PREFIX)}
        if f"{PREFIX}facts" not in state:
            return cls(), own
        number, figure = state[f"{PREFIX}facts"].tolist()
        start = f"{PREFIX}weights."
        weights = {
            name.removeprefix(start): each for name, each in state.items() if name.startswith(start)
        }
        return cls(int(number), float(figure), weights), own
