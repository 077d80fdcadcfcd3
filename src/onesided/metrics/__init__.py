"""How good a model is: figures with true labels, and figures without a single negative."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onesided.metrics.pu import evaluate_pu as evaluate_pu

__all__ = ["evaluate_pu"]


def __getattr__(name: str) -> object:
    # A page that only puts figures into words must not wait for torch.
    if name == "evaluate_pu":
        from onesided.metrics.pu import evaluate_pu

        return evaluate_pu
    raise AttributeError(f"module 'onesided.metrics' has no attribute '{name}'")
