# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     name: python3
#     display_name: Python 3
# ---

# %% [markdown]
# # A method of your own in 60 lines
#
# A method is a class with four functions: `forward` runs networks, `loss` compares, `classify` and `embed` are for
# later use. Batches, views, checkpoints, resuming, several processes, figures and the report come from the
# library. This one takes the unlabelled as negative, but with some doubt.

# %%
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from onesided.core.batch import DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.losses.classification import positive_unlabelled_cross_entropy
from onesided.methods.base import Card, GradientMethod, MethodConfig
from onesided.methods.logged import logs
from onesided.nets.heads import classifier
from onesided.nets.standardise import Backbone


class SmoothedConfig(MethodConfig):
    """Settings of smoothed CE."""

    doubt: float = Field(default=0.1, ge=0, lt=0.5)
    """Share of an unlabelled row's target that is left to positive."""

    card: ClassVar[Card] = Card(
        title="Smoothed CE",
        summary="Takes the unlabelled as negative, with a doubt.",
        citation="A tutorial of onesided.",
        fidelity="There is no publication to be faithful to.",
        licence="A formula of textbooks; nobody's code.",
        good_at="Showing the contract.",
        bad_at="Everything else.",
        variants={},
        logs=logs("classification"),
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "Smoothed":
        """Return the untrained method."""
        return Smoothed(self, backbone)


class Smoothed(GradientMethod):
    """A classifier whose negatives are not quite negative."""

    def __init__(self, config: SmoothedConfig, backbone: Backbone) -> None:
        super().__init__()
        self.config, self.backbone = config, backbone
        self.classifier = classifier(backbone.width)

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return logits of the weak view."""
        return Outputs({"logits": self.classify(batch.views["classify"])})

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return the mean over P plus the mean over U."""
        logits = outputs["logits"]
        positive = batch.labelled.to(logits).clamp(min=self.config.doubt)
        target = torch.stack([1 - positive, positive], dim=1)  # columns NEGATIVE, POSITIVE
        cost = positive_unlabelled_cross_entropy(logits, target, batch.labelled)
        return Losses(total=cost, terms={"classification": cost})

    def classify(self, images: Tensor) -> Tensor:
        """Return logits."""
        return self.classifier(self.backbone(images))

    def embed(self, images: Tensor) -> Tensor:
        """Return the backbone's features."""
        return self.backbone(images)


# %% [markdown]
# ## Try it
#
# A name in `METHODS` is all that commands need; here it is there for as long as the block. Its setting `doubt` can
# be set like any other.

# %%
from unittest.mock import patch

import onesided
from onesided.methods import METHODS

results = {}
with patch.dict(METHODS, smoothed=SmoothedConfig):
    for doubt in (0.0, 0.1, 0.2, 0.3, 0.4):
        found = onesided.fit(
            data="digits", method="smoothed", epochs=6, output=f"runs/{doubt}", overwrite=True,
            settings={"method": {"doubt": doubt}},
        )  # fmt: skip
        results[doubt] = found.result

# %% [markdown]
# ## What doubt does
#
# The test part of `digits` has true classes; they are for this picture, and choose nothing.

# %%
import matplotlib.pyplot as plt

plt.figure(figsize=(7, 2.8))
for figure, colour in (("oa", "#0b6e63"), ("auc", "#c4572e")):
    plt.plot(
        list(results),
        [one["test"][figure] for one in results.values()],
        "o-",
        color=colour,
        label=figure,
    )
plt.xlabel("doubt")
plt.ylabel("on the test part")
plt.legend()
plt.tight_layout()

# %% [markdown]
# To add it to the library: one file in `methods/`, one line in `METHODS`, one test. The tests of the contract then
# run over it by themselves: that nothing peeks at the truth, that resuming is exact, that two processes equal
# one.
