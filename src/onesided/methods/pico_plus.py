"""PiCO+: PiCO that trusts rows near their prototype more (Wang et al., TPAMI 2024), for PU data.

Written for candidate sets that may miss the true class. An unlabelled row's set misses none, so
what remains of it here: rows close to the prototype of their class are reliable, teach the
prototypes and are contrasted with each other; the others are given guesses, and neighbours
instead of a class; both are mixed. Symbols, beside those of `pico.py`:

| paper        | here                            | paper      | here                           |
|--------------|---------------------------------|------------|--------------------------------|
| dist_i       | `reliability.distance`          | delta      | `reliable_share`               |
| t_i          | `guess`                         | l          | `_mixing_share`                |
| L_mix        | `mixup`                         | L_cls      | `reliable`, `unreliable`       |
| L_con rel/knn | `contrast`                     | L_con all  | `contrast_all`                 |
| N_k(x)       | `nearest_in_pool`, `neighbours` | knn_start  | `neighbours_from`              |

During the warm-up it is PiCO, with rows measured and not yet judged. Differs: labelled
positives are always reliable; partners of a mixture are neighbours of the shuffled batch, so that
both are in one process's shard.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from onesided.core.batch import DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock, Sweep
from onesided.core.labels import POSITIVE
from onesided.core.rng import generator, numpy_generator
from onesided.losses.classification import mean_or_zero, soft_cross_entropy
from onesided.losses.contrastive import nearest_in_pool, own_key, supervised_contrastive_loss
from onesided.losses.mixup import draw_share, mix, partner, partner_offset
from onesided.losses.pseudo_labels import sharpened
from onesided.methods.pico import EMBEDDING, PiCO, PiCOConfig
from onesided.nets.standardise import Backbone
from onesided.state.queue import TrustedKeyQueue
from onesided.state.reliability import Reliability


@dataclass(frozen=True)
class Belief:
    """What is thought of each row of a batch, before the batch changed anything.

    Attributes:
        label: Class by the classifier, c_i.
        vote: Class by the nearest prototype, r_i.
        guess: The same as probabilities, made surer, t_i.
        reliable: Whether the row was close to its prototype when the epoch began.
    """

    label: Int64[Tensor, "batch"]
    vote: Int64[Tensor, "batch"]
    guess: Float[Tensor, "batch 2"]
    reliable: Bool[Tensor, "batch"]


class PiCOPlus(PiCO):
    """PiCO with one distance per row and a queue that knows whom to trust."""

    queue: TrustedKeyQueue

    def __init__(self, config: PiCOConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__(config, facts, backbone)
        random = generator(facts.seed, "pico-queue")
        self.queue = TrustedKeyQueue(config.queue_length, EMBEDDING, random)
        self.reliability = Reliability(facts.rows)

    def begin_epoch(self, clock: Clock, sweep: Sweep) -> None:
        """Judge all rows by the distances of the last epoch, once there are prototypes."""
        if self._settled(clock):
            self.reliability.select(share=self.config.reliable_share)

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return what PiCO returns and, after the warm-up, logits of mixed query views."""
        outputs = super().forward(batch, clock)
        if not self._settled(clock):
            return outputs
        images = batch.views["query"]
        offset = partner_offset(len(images), images.device)
        mixed = mix(images, partner(images, offset), self._mixing_share(clock))
        logits = self.classifier(self.backbone(mixed))
        return Outputs({**outputs.tensors, "mixed_logits": logits, "partner_offset": offset})

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return L_mix + L_cls + lambda L_con, after prototypes moved and rows voted."""
        query, key = (F.normalize(outputs[name], dim=1) for name in ("query", "key"))
        belief = self._believe(outputs["logits"].detach(), query.detach(), batch)
        if not self._settled(clock):
            return super().loss(outputs, batch, clock)

        sure = belief.reliable
        self.prototypes.follow(
            query.detach()[sure],
            belief.label[sure],
            momentum=self.config.prototype_momentum,
            normalise="batch",
        )
        momentum = self.config.target_momentum_at(clock.epoch, clock.epochs)
        self.targets.vote(batch.row, batch.labelled, belief.vote, momentum=momentum)
        target = self.targets.current(batch.row, batch.labelled)

        terms = {
            **self._classification_terms(outputs, target, belief, clock),
            **self._contrast_terms(query, key, belief, clock),
        }
        self.queue.push(key, belief.label, sure)
        unlabelled = ~batch.labelled
        return Losses(
            total=torch.stack(list(terms.values())).sum(),
            terms=terms,
            watched={
                "prototype_cosine": self.prototypes.similarity(),
                "reliable_rows": mean_or_zero(sure.float(), unlabelled),
                "positive_votes": mean_or_zero((belief.vote == POSITIVE).float(), unlabelled),
                "taught_positive": mean_or_zero(target[:, POSITIVE], unlabelled),
                "called_positive": mean_or_zero((belief.label == POSITIVE).float(), unlabelled),
            },
        )

    def _settled(self, clock: Clock) -> bool:
        return clock.epoch >= self.config.warmup_epochs

    def _believe(
        self, logits: Float[Tensor, "batch 2"], query: Float[Tensor, "batch dim"], batch: PUBatch
    ) -> Belief:
        """Return what is thought of these rows, and remember how far they are."""
        label = logits.argmax(dim=1).masked_fill(batch.labelled, POSITIVE)
        cosine = self.prototypes.cosines(query)
        self.reliability.record(batch.row, -cosine.gather(1, label[:, None])[:, 0])
        return Belief(
            label=label,
            vote=cosine.argmax(dim=1).masked_fill(batch.labelled, POSITIVE),
            guess=sharpened(cosine.softmax(dim=1), temperature=self.config.temperature),
            reliable=self.reliability.read(batch.row, batch.labelled),
        )

    def _classification_terms(
        self, outputs: Outputs, target: Float[Tensor, "batch 2"], belief: Belief, clock: Clock
    ) -> dict[str, Tensor]:
        """Return L_mix, and the cross entropies of those who are taught and those who guess."""
        taught = torch.where(belief.reliable[:, None], target, belief.guess)
        mixed = mix(taught, partner(taught, outputs["partner_offset"]), self._mixing_share(clock))
        cost = soft_cross_entropy(outputs["logits"], taught)
        return {
            "mixup": soft_cross_entropy(outputs["mixed_logits"], mixed).mean(),
            "reliable": self.config.reliable_weight * mean_or_zero(cost, belief.reliable),
            "unreliable": self.config.unreliable_weight * mean_or_zero(cost, ~belief.reliable),
        }

    def _contrast_terms(
        self,
        query: Float[Tensor, "batch dim"],
        key: Float[Tensor, "batch dim"],
        belief: Belief,
        clock: Clock,
    ) -> dict[str, Tensor]:
        """Return the contrast among trusted members of the pool, and that among all."""
        keys, labels = self.queue.read()
        others = torch.cat([key, keys])
        alike = belief.label[:, None] == torch.cat([belief.label, belief.label, labels])[None, :]
        trusted = torch.cat([belief.reliable, belief.reliable, self.queue.read_trust()])
        own = F.pad(own_key(query), (0, len(keys)))
        chosen = (alike & trusted[None, :] & belief.reliable[:, None]) | own
        weight = torch.ones_like(query[:, 0])
        if clock.epoch >= self.config.neighbours_from:
            near = nearest_in_pool(query, others, count=self.config.neighbours)
            chosen = chosen | (near & ~belief.reliable[:, None])
            weight = torch.where(
                belief.reliable, self.config.reliable_anchor, self.config.unreliable_anchor
            ).to(query)
        temperature, scale = self.config.temperature, self.config.contrast_weight
        careful = supervised_contrastive_loss(
            query, others, chosen, temperature=temperature, weight=weight
        )
        plain = supervised_contrastive_loss(query, others, alike, temperature=temperature)
        return {
            "contrast": scale * careful,
            "contrast_all": scale * self.config.unreliable_weight * plain,
        }

    def _mixing_share(self, clock: Clock) -> float:
        """Return the share of the larger part in every mixed sample of this step."""
        place = (clock.stage, clock.epoch, clock.step)
        share = draw_share(self.config.mixup, numpy_generator(clock.seed, "mixup", *place))
        return max(share, 1 - share)
