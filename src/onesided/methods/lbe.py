"""LBE: the class and the habit of labelling, by EM (Gong et al. 2021).

Gong, Wang, Liu, Han, You, Yang, Tao, Instance-Dependent Positive and Unlabeled Learning With
Labeling Bias Estimation, TPAMI 2021.

| paper               | here                                 | paper     | here                    |
|---------------------|--------------------------------------|-----------|-------------------------|
| P(y=1 | x), h       | `classifier`                         | E-step    | `begin_epoch`           |
| P(s=1 | y=1, x), eta| `propensity`                         | M-step    | `loss`, for an epoch    |
| P(y | x, s)         | `posterior`, a number for each row   |           |                         |

A positive is labelled with a probability that depends on what it looks like; a negative never is.
EM maximises the likelihood of the labels: the E-step says how likely each unlabelled row is
positive, the M-step fits both networks to that.

h and eta enter P(s = 1 | x) as a product, so the likelihood alone cannot tell them apart: where EM
starts decides. Here h starts as a classifier of P against U, and eta as one half everywhere.
"""

from typing import ClassVar

import torch
from jaxtyping import Float64
from pydantic import Field
from torch import Tensor, nn

from onesided.core.batch import DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock, Sweep
from onesided.losses.classification import balanced_cross_entropy, margin, mean_or_zero
from onesided.losses.labelling_bias import expected_cost, hidden_positive, log_likelihood
from onesided.methods.base import Card, GradientMethod, MethodConfig, summed, watched_scores
from onesided.methods.logged import logs
from onesided.nets.heads import classifier
from onesided.nets.standardise import Backbone
from onesided.state.row_labels import RowLabels

WARMUP_SHARE = 0.25


class LBEConfig(MethodConfig):
    """Settings of LBE."""

    warmup_epochs: int = Field(default=10, ge=0)
    """Epochs in which h learns to tell P from U, both with equal weight, before EM begins."""

    card: ClassVar[Card] = Card(
        title="LBE",
        summary="Learns the class and how likely a positive is labelled, in turn, by EM.",
        citation="Gong, Wang, Liu, Han, You, Yang, Tao, Instance-Dependent Positive and Unlabeled "
        "Learning With Labeling Bias Estimation, IEEE TPAMI 2021.",
        fidelity="Written from the paper's model: its likelihood, E-step and M-step. Both heads "
        "share one backbone, where the paper has two sets of parameters. An M-step is an epoch by "
        "the optimizer of the run (the paper: Adam). How the paper starts EM and how many steps "
        "it takes we are not certain of: here h starts as a classifier of P against U, eta as one "
        "half. The model is of P and U as one population, with their shares in the data.",
        licence="Ours, under Apache-2.0; we know of no terms of the authors' code and looked at "
        "none of it.",
        good_at="P that is biased towards some kinds of positives; an unknown prior.",
        bad_at="Short runs and few positives; data on which the start is poor, since h and eta "
        "could change places; flexible networks, which memorise who is labelled.",
        variants={},
        logs=logs(
            "called_positive mean_positive",
            own={
                "class_cost": "Cost of the true class, as the posterior has it.",
                "label_cost": "Cost of who is labelled among the likely positives.",
                "log_likelihood": "Mean log likelihood of the labels; EM raises it.",
                "posterior": "Mean probability of the pool's samples to be positive (E-step).",
                "propensity": "Mean probability of the labelled samples to be labelled.",
            },
            titles={"posterior": "Mean posterior of the pool", "log_likelihood": "Log likelihood"},
        ),
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "LBE":
        """Return an untrained LBE."""
        return LBE(self, facts, backbone)

    def for_budget(self, epochs: int) -> "LBEConfig":
        """Return settings with a start that leaves most of a short run to EM."""
        warmup = min(self.warmup_epochs, max(1, round(epochs * WARMUP_SHARE)))
        return self.model_copy(update={"warmup_epochs": warmup})


class LBE(GradientMethod):
    """Two heads on a backbone, and a posterior for each row."""

    def __init__(self, config: LBEConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.backbone = backbone
        self.classifier = classifier(backbone.width)
        self.propensity = nn.Linear(backbone.width, 1)
        nn.init.zeros_(self.propensity.weight)
        nn.init.zeros_(self.propensity.bias)
        self.posterior = RowLabels(facts.rows)

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return the logits of the class and of the labelling."""
        features = self.backbone(batch.views["classify"])
        return Outputs(
            {"logits": self.classifier(features), "label_logit": self.propensity(features)}
        )

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return the M-step's cost; in the warm-up h learns who is labelled instead."""
        z, label_z = margin(outputs["logits"]), outputs["label_logit"][:, 0]
        posterior = self.posterior.read(batch.row, batch.labelled).to(z.dtype)
        class_cost, label_cost = expected_cost(z, label_z, batch.labelled, posterior)
        if clock.epoch < self.config.warmup_epochs:
            class_cost = balanced_cross_entropy(z, batch.labelled)
        watched = {
            "log_likelihood": log_likelihood(z.detach(), label_z.detach(), batch.labelled),
            "posterior": mean_or_zero(posterior, ~batch.labelled),
            "propensity": mean_or_zero(label_z.detach().sigmoid(), batch.labelled),
            **watched_scores(z.detach().sigmoid(), ~batch.labelled),
        }
        return summed({"class_cost": class_cost, "label_cost": label_cost}, watched)

    def begin_epoch(self, clock: Clock, sweep: Sweep) -> None:
        """Compute the posterior of every row with the current networks: the E-step."""
        both, _ = sweep(self._both)
        self.posterior.fill(hidden_positive(both[:, 0], both[:, 1]).to(self.posterior.positive))

    def _both(self, images: Tensor) -> Float64[Tensor, "n 2"]:
        features = self.backbone(images)
        z = margin(self.classifier(features).double())
        return torch.stack([z, self.propensity(features)[:, 0].double()], dim=1)
