"""What a method logs, in words for people who have not read its paper."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Logged:
    """Title and meaning of one number that a method logs after every epoch."""

    title: str
    note: str


SHARED = {
    "classification": Logged(
        "Classification loss", "How far the predictions are from the training targets."
    ),
    "alignment": Logged(
        "Alignment loss", "Distance of two views that should look alike to the model."
    ),
    "entropy": Logged("Entropy", "How undecided the predictions are, with its weight in the loss."),
    "mixup": Logged("Mixup loss", "The classification loss on blends of two samples."),
    "contrast": Logged(
        "Contrastive loss", "How hard it is to tell samples of one class from the others."
    ),
    "consistency": Logged(
        "Consistency loss", "How much the prediction changes between views of one sample."
    ),
    "called_positive": Logged("Called positive", "Share of the pool called positive in training."),
    "mean_positive": Logged("Mean score", "Mean score of the pool in training."),
    "taught_positive": Logged("Mean target", "Mean training target of the pool; 1 is positive."),
    "positive_votes": Logged(
        "Positive votes", "Share of the pool whose nearest class average is the positive one."
    ),
    "prototype_cosine": Logged(
        "Similarity of the class averages",
        "How alike the two class averages are: 1 means equal, -1 means opposite.",
    ),
}
"""What several methods log with the same meaning."""


def logs(
    shared: str, own: Mapping[str, str] | None = None, titles: Mapping[str, str] | None = None
) -> dict[str, Logged]:
    """Return what a card says of the log.

    Args:
        shared: Names in `SHARED`, separated by spaces.
        own: The other names, each with one sentence.
        titles: Titles of `own`, where the name in words is not enough.
    """
    words = {name: name.replace("_", " ").capitalize() for name in own or {}} | dict(titles or {})
    known = {name: SHARED[name] for name in shared.split()}
    return known | {name: Logged(words[name], note) for name, note in (own or {}).items()}
