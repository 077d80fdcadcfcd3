"""vPU: a variational approach to PU learning (Chen, Liu, Wang, Zhao, Wu, NeurIPS 2020).

Symbols:

| paper           | here                       | paper      | here                              |
|-----------------|----------------------------|------------|-----------------------------------|
| Phi(x)          | exp(`log_phi`), sigmoid(z) | x~, Phi~   | `mixed`, `mixed_log_target`       |
| L_var           | `variational`              | a (gamma)  | `share`, one per batch            |
| L_reg           | `mixup`                    | Beta(s, s) | `mixup_concentration`             |
| lambda          | `mixup_weight`             | max Phi    | `largest`, as a margin            |

Phi is learnt up to a factor, so its value alone decides nothing: a sample is positive if
Phi(x) > max Phi / 2, with the maximum over the training set. `classify` shifts the logits
by one number so that this is the usual decision, a score above 0.5. The shift keeps the
order of samples. The score is an increasing function of Phi / max Phi and equal to it at
0.5; samples above the maximum of the training set need no clamp.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Float64, Int64
from pydantic import Field
from torch import Tensor

from onesided.core.batch import DataFacts, Losses, Outputs, PUBatch, Stratified
from onesided.core.clock import Clock, Sweep
from onesided.core.dist import gather, gather_batch, shard, world
from onesided.core.labels import POSITIVE
from onesided.losses.classification import margin, mean_or_zero
from onesided.losses.mixup import draw_share, mix
from onesided.losses.variational import mixed_log_target, mixup_loss, variational_loss
from onesided.methods.base import Card, GradientMethod, MethodConfig, Needs, summed
from onesided.methods.logged import logs
from onesided.methods.mixing import mixup_generator
from onesided.methods.shapes import RowMask, RowValues, Scalar
from onesided.nets.heads import classifier
from onesided.nets.standardise import Backbone
from onesided.state.best_snapshot import BestSnapshot
from onesided.state.largest_margin import LargestMargin


class VPUConfig(MethodConfig):
    """Settings of vPU; the defaults are those of its authors for CIFAR-10."""

    mixup_weight: float = Field(default=0.03, ge=0)
    """Weight of the mixup term, lambda. Its authors take 0.03 on CIFAR-10, 0.3 on STL-10 and
    Fashion-MNIST, 0.1 on tables; 0 leaves mixtures out and overfits."""
    mixup_concentration: float = Field(default=0.3, gt=0)
    """Both parameters of the Beta distribution of the shares."""
    mixup_target: Literal["learning", "fixed"] = "learning"
    """Whether gradients also flow through the target of a mixture (as its authors run it)."""
    selection: Literal["validation", "last"] = "validation"
    """Which epoch is kept: the one with the lowest L_var on held-out P and U (as published;
    costs a second copy of the weights), or the last one."""
    normaliser_quantile: float = Field(default=1.0, gt=0, le=1)
    """Quantile of Phi on the training set that counts as its maximum; 1 is the maximum. Take a
    little less if there may be outliers."""

    needs: ClassVar[Needs] = Needs(held_out=True)
    card: ClassVar[Card] = Card(
        title="vPU",
        summary="Learns the posterior up to a factor by a variational bound; needs no prior.",
        citation="Chen, Liu, Wang, Zhao, Wu, A Variational Approach for Learning from Positive "
        "and Unlabeled Data, NeurIPS 2020.",
        fidelity="The published loss, mixup and choice of epoch. The mean over U leaves P out, "
        "because P and U are disjoint here. Adam is not reset and its rate not halved in steps.",
        licence="Authors' code: MIT; nothing of it is here.",
        good_at="An unknown class prior and a short run: 1500 steps in the original.",
        bad_at="Overlapping classes, where no sample is surely positive and the maximum of Phi is "
        "too low. A single outlier sets that maximum.",
        variants={
            "validation": "the epoch with the lowest held-out L_var is kept (default)",
            "last": "the last epoch is kept",
        },
        logs=logs(
            "mixup called_positive",
            own={
                "variational": "The loss of vPU; its exponential is an upper bound of the prior.",
                "prior_bound": "The class prior lies below it; a bound far below the prior shows "
                "overfitting.",
                "largest_margin": "The largest logit so far; scores are scaled by it.",
                "validation": "The variational loss on held-out samples; the lowest epoch is kept.",
            },
            titles={
                "variational": "Variational loss",
                "prior_bound": "Upper bound of the class prior",
                "largest_margin": "Largest logit",
                "validation": "Held-out loss",
            },
        ),
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "VPU":
        """Return an untrained vPU."""
        return VPU(self, facts, backbone)

    def batching(self, batch_size: int) -> Stratified:
        """Return batches of which half is P: every unlabelled sample has a partner."""
        return Stratified(batch_size // 2)


@dataclass(frozen=True)
class Pairs:
    """Positions of mixed rows in the whole batch, and the share of the unlabelled one."""

    unlabelled: Int64[Tensor, "pairs"]
    positive: Int64[Tensor, "pairs"]
    share: float


class VPU(GradientMethod):
    """A classifier on a backbone, the margin that normalises it, and the best epoch."""

    inference_parts = ("backbone.", "classifier.", "largest.")

    def __init__(self, config: VPUConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.needs = config.needs
        self.batching = config.batching(facts.batch_size)
        self.backbone = backbone
        self.classifier = classifier(backbone.width)
        self.largest = LargestMargin()
        self.chooses_epoch = config.selection == "validation"
        self.best = BestSnapshot(backbone, self.classifier) if self.chooses_epoch else None

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return logits of the batch and, by a second pass, of its mixtures x~."""
        outputs = {"logits": self.classifier(self.backbone(batch.views["classify"]))}
        if self.config.mixup_weight:
            mixtures = self._mixtures(batch, clock)
            if len(mixtures):
                outputs["mixed"] = self.classifier(self.backbone(mixtures))
        return Outputs(outputs)

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return L_var + lambda L_reg."""
        z = margin(outputs["logits"])
        log_phi = F.logsigmoid(z)
        variational = variational_loss(log_phi[batch.labelled], log_phi[~batch.labelled])
        terms = {"variational": variational}
        if "mixed" in outputs:
            mixup = self._mixup(log_phi, outputs["mixed"], batch, clock)
            terms["mixup"] = self.config.mixup_weight * mixup
        called = (z.detach() + self.largest.shift() > 0).to(z.dtype)
        watched = {
            "prior_bound": variational.detach().exp(),
            "called_positive": mean_or_zero(called, ~batch.labelled),
            "largest_margin": self.largest.value.clone(),
        }
        if self.best is not None:
            watched["validation"] = self.best.latest.clone()
        return summed(terms, watched)

    def classify(self, images: Tensor) -> Float[Tensor, "n 2"]:
        """Return logits, shifted so that a score above 0.5 means Phi > max Phi / 2."""
        logits: Tensor = self.classifier(self.backbone(images)).clone()
        logits[:, POSITIVE] += self.largest.shift().to(logits.dtype)
        return logits

    def begin_epoch(self, clock: Clock, sweep: Sweep) -> None:
        """Keep the weights of the epoch before if they are the best, and normalise them."""
        if clock.epoch > 0:
            self._offer(sweep)
            self._normalise(sweep)

    def finish(self, sweep: Sweep) -> None:
        """Evaluate the last epoch too, restore the best one, and normalise it."""
        self._offer(sweep)
        if self.best is not None:
            self.best.restore(self.backbone, self.classifier)
        self._normalise(sweep)

    def _offer(self, sweep: Sweep) -> None:
        if self.best is None:
            return
        z, labelled = sweep(self._margin, of="held_out")
        log_phi = F.logsigmoid(z)
        loss = variational_loss(log_phi[labelled], log_phi[~labelled])
        self.best.offer(self.backbone, self.classifier, loss=loss)

    def _normalise(self, sweep: Sweep) -> None:
        # On plain views: one lucky crop among thousands would set the maximum.
        z, _ = sweep(self._margin)
        self.largest.measure(z, quantile=self.config.normaliser_quantile)

    def _margin(self, images: Tensor) -> Float64[Tensor, "n"]:
        return margin(self.classifier(self.backbone(images)).double())

    def _pairs(self, labelled: RowMask, clock: Clock) -> Pairs:
        """Draw partners and share; they follow from clock and labels, so `loss` draws the same."""
        random = mixup_generator(clock)
        share = draw_share(self.config.mixup_concentration, random)
        positive, unlabelled = labelled.nonzero()[:, 0], (~labelled).nonzero()[:, 0]
        partners = torch.from_numpy(random.permutation(len(positive))).to(labelled.device)
        count = min(len(positive), len(unlabelled))
        return Pairs(unlabelled[:count], positive[partners[:count]], share)

    def _mixtures(self, batch: PUBatch, clock: Clock) -> Float[Tensor, "mine *sample"]:
        """Return this process's part of the mixtures; none if P or U is missing.

        A partner may be in another process's shard, so the images are gathered first (about
        12 MB per step on CIFAR). Otherwise two processes would mix other pairs than one.
        """
        pairs = self._pairs(gather_batch(batch).labelled, clock)
        images = gather(batch.views["classify"])
        count = len(pairs.unlabelled)
        if count == 0:
            return images[:0]
        # Every process gets the same number, at least two for BatchNorm; `loss` drops the
        # repeated ones.
        each = max(2, -(-count // world()))
        mine = torch.arange(each * world(), device=images.device)[shard(each * world())] % count
        return mix(images[pairs.unlabelled[mine]], images[pairs.positive[mine]], pairs.share)

    def _mixup(self, log_phi: RowValues, logits: Tensor, batch: PUBatch, clock: Clock) -> Scalar:
        """Return L_reg of the whole batch."""
        pairs = self._pairs(batch.labelled, clock)
        unlabelled = log_phi[pairs.unlabelled]
        if self.config.mixup_target == "fixed":
            unlabelled = unlabelled.detach()
        mixed = F.logsigmoid(margin(logits))[: len(unlabelled)]
        return mixup_loss(mixed, mixed_log_target(unlabelled, pairs.share))
