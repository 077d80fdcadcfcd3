"""What a method writes into its log, in words for people who have not read its paper."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Logged:
    """One number that a method logs after every epoch.

    Attributes:
        title: Its name above a plot.
        note: What it says, in one sentence; where it helps, what a good course looks like.
    """

    title: str
    note: str


# What several methods log, and all mean the same by.
CLASSIFICATION = Logged(
    "Classification loss", "How far the predictions are from what the samples are taught to be."
)
ALIGNMENT = Logged(
    "Alignment loss", "How far apart two views that should look alike to the model are."
)
ENTROPY = Logged("Entropy", "How undecided the predictions are; weighted as it enters the loss.")
MIXUP = Logged("Mixup loss", "The classification loss on blends of two samples.")
CALLED_POSITIVE = Logged("Called positive", "Share of the pool called positive while learning.")
MEAN_POSITIVE = Logged("Mean score", "Mean score of the pool while learning.")
TAUGHT_POSITIVE = Logged("Taught as positive", "How positive the pool is taught to be, on average.")
POSITIVE_VOTES = Logged(
    "Positive votes", "Share of the pool whose nearest class average is the positive one."
)
PROTOTYPE_COSINE = Logged(
    "Similarity of the class averages",
    "How alike the two class averages are: 1 the same, -1 opposite.",
)
