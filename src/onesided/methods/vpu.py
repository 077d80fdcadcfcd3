"""vPU: a variational approach to PU learning (Chen, Liu, Wang, Zhao, Wu, NeurIPS 2020).

Symbols:

| paper           | here                       | paper      | here                              |
|-----------------|----------------------------|------------|-----------------------------------|
| Phi(x)          | exp(`log_phi`), sigmoid(z) | x~, Phi~   | `mixed`, `mixed_log_target`       |
| L_var           | `variational`              | a (gamma)  | `share`, one per batch            |
| L_reg           | `mixup`                    | Beta(s, s) | `mixup_concentration`             |
| lambda          | `mixup_weight`             | max Phi    | `largest`, as a margin            |

Phi is learnt up to a factor, so Phi itself decides nothing: a sample is positive if
Phi(x) > max Phi / 2, the maximum taken over the training set. `classify` shifts the logits
by one number so that this is the usual decision, a score above one half. The shift leaves
the order of samples as it is; the score is an increasing function of Phi / max Phi, equal
to it at one half, and needs no cut for samples above the training set's maximum.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Float64, Int64
from pydantic import Field
from torch import Tensor

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch, Stratified
from onesided.core.clock import Clock, Sweep
from onesided.core.dist import gather, gather_batch, shard, world
from onesided.core.labels import POSITIVE
from onesided.core.rng import numpy_generator
from onesided.losses.classification import margin, mean_or_zero
from onesided.losses.mixup import draw_share, mix
from onesided.losses.variational import mixed_log_target, mixup_loss, variational_loss
from onesided.methods.base import Card, GradientMethod, MethodConfig, Needs
from onesided.methods.logged import CALLED_POSITIVE, MIXUP, Logged
from onesided.nets.heads import classifier
from onesided.nets.standardise import Backbone
from onesided.state.best_snapshot import BestSnapshot
from onesided.state.largest_margin import LargestMargin


class VPUConfig(MethodConfig):
    """Settings of vPU; the defaults are those of its authors for CIFAR-10."""

    mixup_weight: float = Field(default=0.03, ge=0)
    """Weight of the mixup term, lambda. Its authors take 0.03 on CIFAR-10, 0.3 on STL-10 and
    Fashion-MNIST, 0.1 on tables; 0 leaves mixtures out and over-fits."""
    mixup_concentration: float = Field(default=0.3, gt=0)
    """Both parameters of the Beta distribution that shares are drawn from."""
    mixup_target: Literal["learning", "fixed"] = "learning"
    """Whether gradients flow through the target of a mixture too (as its authors run it)."""
    selection: Literal["validation", "last"] = "validation"
    """Which epoch is kept: the one with the lowest L_var on held-out P and U (as published;
    costs a second copy of the weights), or the last one."""
    normaliser_quantile: float = Field(default=1.0, gt=0, le=1)
    """Quantile of Phi on the training set that counts as its maximum; 1 is the maximum. A
    little less where single outliers are feared."""

    needs: ClassVar[Needs] = Needs(held_out=True)
    card: ClassVar[Card] = Card(
        title="vPU",
        summary="Learns the posterior up to a factor by a variational bound; needs no prior.",
        citation="Chen, Liu, Wang, Zhao, Wu, A Variational Approach for Learning from Positive "
        "and Unlabeled Data, NeurIPS 2020.",
        fidelity="The published loss, mixup and choice of epoch; the mean over U is over U alone, "
        "as P and U are disjoint here. Adam is neither reset nor its rate halved in steps.",
        licence="Authors' code: MIT; nothing of it is here.",
        good_at="An unknown class prior and a short run: 1500 steps in the original.",
        bad_at="Overlapping classes, where no sample is surely positive and the maximum of Phi "
        "normalises too much; a single outlier sets that maximum.",
        variants={
            "validation": "the epoch with the lowest held-out L_var is kept (default)",
            "last": "the last epoch is kept",
        },
        logs={
            "variational": Logged(
                "Variational loss",
                "What vPU minimises; its exponential is an upper bound of the class prior.",
            ),
            "mixup": MIXUP,
            "prior_bound": Logged(
                "Upper bound of the class prior",
                "The class prior lies below it; far below the prior means over-fitting.",
            ),
            "called_positive": CALLED_POSITIVE,
            "largest_margin": Logged(
                "Largest logit",
                "The largest logit seen so far; scores are scaled by it.",
            ),
            "validation": Logged(
                "Held-out loss",
                "The variational loss on held-out samples; the epoch with the lowest is kept.",
            ),
        },
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "VPU":
        """Return an untrained vPU."""
        return VPU(self, facts, backbone)

    def batching(self, batch_size: int) -> Stratified:
        """Return batches with as many of P as of U: every unlabelled sample has a partner."""
        return Stratified(batch_size // 2)


@dataclass(frozen=True)
class Pairs:
    """Who is mixed with whom, as places in the whole batch, and in which proportion."""

    unlabelled: Int64[Tensor, "pairs"]
    positive: Int64[Tensor, "pairs"]
    share: float


class VPU(GradientMethod):
    """A classifier on a backbone, the margin that normalises it, and its best epoch."""

    def __init__(self, config: VPUConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.needs = config.needs
        self.views = {"classify": Augment.WEAK}
        self.batching = config.batching(facts.batch_size)
        self.backbone = backbone
        self.classifier = classifier(backbone.width)
        self.largest = LargestMargin()
        self.best = BestSnapshot(backbone, self.classifier) if self._selects else None

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
            terms["mixup"] = self.config.mixup_weight * self._mixup(
                log_phi, outputs["mixed"], batch.labelled, clock
            )
        called = (z.detach() + self.largest.shift() > 0).to(z.dtype)
        watched = {
            # The prior lies below it; far below the prior it tells of over-fitting.
            "prior_bound": variational.detach().exp(),
            "called_positive": mean_or_zero(called, ~batch.labelled),
            "largest_margin": self.largest.value.clone(),
        }
        if self.best is not None:
            watched["validation"] = self.best.latest.clone()
        return Losses(torch.stack(list(terms.values())).sum(), terms, watched)

    def classify(self, images: Tensor) -> Float[Tensor, "n 2"]:
        """Return logits, shifted so that a score above one half means Phi > max Phi / 2."""
        logits: Tensor = self.classifier(self.backbone(images)).clone()
        logits[:, POSITIVE] += self.largest.shift().to(logits.dtype)
        return logits

    def inference_state(self) -> dict[str, Tensor]:
        """Return the networks and the margin that normalises them."""
        return {**super().inference_state(), "largest.value": self.largest.value}

    def begin_epoch(self, clock: Clock, sweep: Sweep) -> None:
        """Look at what the epoch before has learnt: keep it if it is best, and normalise it."""
        if clock.epoch > 0:
            self._offer(sweep)
            self._normalise(sweep)

    def finish(self, sweep: Sweep) -> None:
        """Judge the last epoch too, go back to the best one, and normalise that."""
        self._offer(sweep)
        if self.best is not None:
            self.best.restore(self.backbone, self.classifier)
        self._normalise(sweep)

    @property
    def _selects(self) -> bool:
        return self.config.selection == "validation"

    def _offer(self, sweep: Sweep) -> None:
        if self.best is None:
            return
        z, labelled = sweep(self._margin, of="held_out")
        log_phi = F.logsigmoid(z)
        loss = variational_loss(log_phi[labelled], log_phi[~labelled])
        self.best.offer(self.backbone, self.classifier, loss=loss)

    def _normalise(self, sweep: Sweep) -> None:
        # On plain views: a lucky crop among thousands would set the maximum.
        z, _ = sweep(self._margin)
        self.largest.measure(z, quantile=self.config.normaliser_quantile)

    def _margin(self, images: Tensor) -> Float64[Tensor, "n"]:
        return margin(self.classifier(self.backbone(images)).double())

    def _pairs(self, labelled: Bool[Tensor, "batch"], clock: Clock) -> Pairs:
        """Draw partners and share; a function of clock and labels, so `loss` finds them again."""
        place = (clock.stage, clock.epoch, clock.step)
        random = numpy_generator(clock.seed, "mixup", *place)
        share = draw_share(self.config.mixup_concentration, random)
        positive, unlabelled = labelled.nonzero()[:, 0], (~labelled).nonzero()[:, 0]
        partners = torch.from_numpy(random.permutation(len(positive))).to(labelled.device)
        count = min(len(positive), len(unlabelled))
        return Pairs(unlabelled[:count], positive[partners[:count]], share)

    def _mixtures(self, batch: PUBatch, clock: Clock) -> Float[Tensor, "mine *sample"]:
        """Return this process's part of the mixtures; none if P or U is missing.

        A partner may be in another process's shard, so the images are gathered first, some
        12 MB per step on CIFAR; without it two processes would mix otherwise than one.
        """
        pairs = self._pairs(gather_batch(batch).labelled, clock)
        images = gather(batch.views["classify"])
        count = len(pairs.unlabelled)
        if count == 0:
            return images[:0]
        # Equally many for every process, and two at least, whose spread BatchNorm can take;
        # `loss` drops what is repeated here.
        each = max(2, -(-count // world()))
        mine = torch.arange(each * world(), device=images.device)[shard(each * world())] % count
        return mix(images[pairs.unlabelled[mine]], images[pairs.positive[mine]], pairs.share)

    def _mixup(
        self,
        log_phi: Float[Tensor, "batch"],
        logits: Float[Tensor, "mixtures 2"],
        labelled: Bool[Tensor, "batch"],
        clock: Clock,
    ) -> Float[Tensor, ""]:
        """Return L_reg of the whole batch."""
        pairs = self._pairs(labelled, clock)
        unlabelled = log_phi[pairs.unlabelled]
        if self.config.mixup_target == "fixed":
            unlabelled = unlabelled.detach()
        mixed = F.logsigmoid(margin(logits))[: len(unlabelled)]
        return mixup_loss(mixed, mixed_log_target(unlabelled, pairs.share))
