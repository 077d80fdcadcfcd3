"""TEDn: transform, estimate, discard, in turn (Garg, Wu, Smola, Balakrishnan, Lipton 2021).

Symbols:

| paper            | here                                | paper     | here                     |
|------------------|-------------------------------------|-----------|--------------------------|
| alpha            | `prior`, share of positives in U    | BBE       | `best_bin`               |
| CVIR             | `kept.reject_top`, then `loss`      | W         | `warmup_epochs`          |
| delta, gamma     | `delta`, `gamma` of BBE             | f(x)      | `margin`                 |

Two problems that solve each other. With the share alpha of positives in U, the alpha |U|
highest scores can be left out and the rest trained as negative (conditional value ignoring
risk, CVIR). With a classifier, held-out scores give alpha (best bin estimation, BBE). A warm
start with all of U as negative comes first.
"""

from typing import ClassVar

import torch
from jaxtyping import Float64
from pydantic import Field
from torch import Tensor

from onesided.core.batch import DataFacts, Losses, Outputs, PUBatch, Stratified
from onesided.core.clock import Clock, Sweep
from onesided.losses.classification import balanced_cross_entropy, margin, mean_or_zero
from onesided.methods.base import Card, GradientMethod, MethodConfig, Needs
from onesided.methods.logged import logs
from onesided.methods.shapes import RowMask
from onesided.nets.heads import classifier
from onesided.nets.standardise import Backbone
from onesided.priors.bbe import Ties, best_bin
from onesided.state.kept_rows import KeptRows

PUBLISHED_EPOCHS = 1100
WARMUP_SHARE = 0.25


class TEDnConfig(MethodConfig):
    """Settings of TEDn; the defaults are those of its authors."""

    warmup_epochs: int = Field(default=100, ge=0)
    """Epochs of the warm start, W, in which all of U is trained as negative."""
    delta: float = Field(default=0.1, gt=0, lt=1)
    """Probability with which the bound of BBE may fail."""
    gamma: float = Field(default=0.01, ge=0)
    """Slack of BBE's penalty."""
    ties: Ties = "exact"
    """How BBE counts equal scores: as its formula says, or as its authors' scan does."""

    needs: ClassVar[Needs] = Needs(held_out=True)
    card: ClassVar[Card] = Card(
        title="TEDn",
        summary="Estimates the prior on held-out scores and leaves U's likely positives out.",
        citation="Garg, Wu, Smola, Balakrishnan, Lipton, Mixture Proportion Estimation and PU "
        "Learning: A Modern Approach, NeurIPS 2021.",
        fidelity="As published. An epoch is a pass over U. A batch gives no gradient if all of its "
        "unlabelled part is rejected.",
        licence="Authors' code: Apache-2.0; nothing of it is here.",
        good_at="An unknown prior and classes that can be separated; it reports the prior.",
        bad_at="Few held-out positives (below a hundred, BBE is imprecise); short runs, in which "
        "the warm start cannot rank U; its learning rate of 0.1 makes repeats differ.",
        variants={"exact": "BBE by its formula (default)", "reference": "BBE by the scan"},
        logs=logs(
            "",
            own={
                "risk": "The classification loss on positives and on the kept part of the pool.",
                "prior": "Share of positives in the pool as estimated during training.",
                "kept": "Share of the pool that is trained as negative.",
                "kept_called_positive": "Share of the kept samples that are called positive.",
            },
            titles={"prior": "Estimated class prior", "kept": "Kept samples"},
        ),
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "TEDn":
        """Return an untrained TEDn."""
        return TEDn(self, facts, backbone)

    def batching(self, batch_size: int) -> Stratified:
        """Return batches of which half is P."""
        return Stratified(batch_size // 2)

    def for_budget(self, epochs: int) -> "TEDnConfig":
        """Return settings with a warm start that leaves most of a short run to CVIR.

        The published share is a tenth. A short run spends a quarter, because the classifier
        must rank U before its top can be rejected.
        """
        if epochs >= PUBLISHED_EPOCHS:
            return self
        warmup = min(self.warmup_epochs, max(1, round(epochs * WARMUP_SHARE)))
        return self.model_copy(update={"warmup_epochs": warmup})


class TEDn(GradientMethod):
    """A classifier on a backbone, a flag for each kept row, and an estimate of the prior."""

    prior: Tensor

    def __init__(self, config: TEDnConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.needs = config.needs
        self.batching = config.batching(facts.batch_size)
        self.fewest_kept = facts.batch_size - self.batching.positives
        self.backbone = backbone
        self.classifier = classifier(backbone.width)
        self.kept = KeptRows(facts.rows)
        self.register_buffer("prior", torch.zeros((), dtype=torch.float64))

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return logits of P and of kept U, in one pass; zeros for rejected rows.

        Rejected rows do not enter the network, so BatchNorm and loss use the same rows.
        """
        images, used = batch.views["classify"], self._used(batch)
        if int(used.sum()) < 2:  # BatchNorm cannot take the variance of one row
            used = torch.ones_like(used)
        seen = self.classifier(self.backbone(images[used]))
        logits = seen.new_zeros(len(used), 2)
        logits[used] = seen
        return Outputs({"logits": logits})

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return (mean over P as positive + mean over kept U as negative) / 2."""
        z, used = margin(outputs["logits"]), self._used(batch)
        kept = used & ~batch.labelled
        risk = balanced_cross_entropy(z[used], batch.labelled[used])
        # Without any negative the step would only push towards positive: no gradient instead.
        risk = risk * kept.any()
        called = (z.detach() > 0).to(z.dtype)
        watched = {
            # At 0 nothing is rejected: CVIR is then the same as the warm start.
            "prior": self.prior.clone(),
            "kept": mean_or_zero(kept.to(z.dtype), ~batch.labelled),
            "kept_called_positive": mean_or_zero(called, kept),
        }
        return Losses(risk, {"risk": risk}, watched)

    def begin_epoch(self, clock: Clock, sweep: Sweep) -> None:
        """Estimate alpha with the current weights and, after the warm start, rank U again."""
        if clock.epoch == 0:
            return  # an untrained network ranks by chance
        self._estimate(sweep)
        if clock.epoch >= self.config.warmup_epochs:
            self._reject(sweep)

    def finish(self, sweep: Sweep) -> None:
        """Estimate alpha with the trained network: the prior that the run reports."""
        self._estimate(sweep)

    def _estimate(self, sweep: Sweep) -> None:
        # Held-out rows only: the network is too sure of rows it was trained on.
        z, labelled = sweep(self._margin, of="held_out")
        found = best_bin(
            z[labelled].cpu().numpy(),
            z[~labelled].cpu().numpy(),
            delta=self.config.delta,
            gamma=self.config.gamma,
            ties=self.config.ties,
        )
        self.prior.fill_(found.ratio)

    def _reject(self, sweep: Sweep) -> None:
        # On the plain view: augmentation noise would change the ranks at the threshold.
        z, labelled = sweep(self._margin)
        self.kept.reject_top(z, labelled, share=float(self.prior), at_least=self.fewest_kept)

    def _used(self, batch: PUBatch) -> RowMask:
        return batch.labelled | self.kept.read(batch.row)

    def _margin(self, images: Tensor) -> Float64[Tensor, "n"]:
        return margin(self.classifier(self.backbone(images)).double())
