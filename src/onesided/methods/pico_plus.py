"""PiCO+: PiCO that trusts rows near their prototype more (Wang et al., TPAMI 2024), for PU data.

It was made for candidate sets that may miss the true class. The set of an unlabelled row never
does, so this part of it remains: rows close to the prototype of their class are reliable. They
update the prototypes and are contrasted with each other. The other rows get a guess as target
and neighbours instead of a class. Both groups are mixed. Symbols, beside those of `pico.py`:

| paper        | here                            | paper      | here                           |
|--------------|---------------------------------|------------|--------------------------------|
| dist_i       | `reliability.distance`          | delta      | `reliable_share`               |
| t_i          | `guess`                         | l          | share of `mix_pairs`           |
| L_mix        | `mixup`                         | L_cls      | `reliable`, `unreliable`       |
| L_con rel/knn | `contrast`                     | L_con all  | `contrast_all`                 |
| N_k(x)       | `nearest_in_pool`, `neighbours` | knn_start  | `neighbours_from`              |

During the warm-up it is PiCO; distances are recorded and not yet used. Differs: labelled
positives are always reliable. Partners of a mixture are neighbours in the shuffled batch, so that
both are in the shard of one process.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from onesided.core.batch import DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock, Sweep
from onesided.core.labels import POSITIVE
from onesided.core.rng import generator
from onesided.losses.classification import mean_or_zero, soft_cross_entropy
from onesided.losses.contrastive import nearest_in_pool, own_key, supervised_contrastive_loss
from onesided.losses.mixup import partner_offset
from onesided.losses.pseudo_labels import sharpened
from onesided.methods.base import EMBEDDING, summed
from onesided.methods.mixing import mix_pairs
from onesided.methods.pico import PiCO, PiCOConfig
from onesided.methods.shapes import Embeddings, RowIntegers, RowMask, TwoColumns
from onesided.nets.standardise import Backbone
from onesided.state.queue import TrustedKeyQueue
from onesided.state.reliability import Reliability


@dataclass(frozen=True)
class Belief:
    """Beliefs about the rows of a batch, before the batch updates anything.

    Attributes:
        label: Class by the classifier, c_i.
        vote: Class by the nearest prototype, r_i.
        guess: The same as sharpened probabilities, t_i.
        reliable: Whether the row was close to its prototype when the epoch began.
    """

    label: RowIntegers
    vote: RowIntegers
    guess: TwoColumns
    reliable: RowMask


class PiCOPlus(PiCO):
    """PiCO with one distance per row and a queue that knows which keys are reliable."""

    queue: TrustedKeyQueue

    def __init__(self, config: PiCOConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__(config, facts, backbone)
        random = generator(facts.seed, "pico-queue")
        self.queue = TrustedKeyQueue(config.queue_length, EMBEDDING, random)
        self.reliability = Reliability(facts.rows)

    def begin_epoch(self, clock: Clock, sweep: Sweep) -> None:
        """Select the reliable rows by the last epoch's distances, once there are prototypes."""
        if self._settled(clock):
            self.reliability.select(share=self.config.reliable_share)

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return the outputs of PiCO and, after the warm-up, logits of mixed query views."""
        outputs = super().forward(batch, clock)
        if not self._settled(clock):
            return outputs
        images = batch.views["query"]
        offset = partner_offset(len(images), images.device)
        mixed = mix_pairs(images, offset, self.config.mixup, clock)
        logits = self.classifier(self.backbone(mixed))
        return Outputs({**outputs.tensors, "mixed_logits": logits, "partner_offset": offset})

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return L_mix + L_cls + lambda L_con, after updating prototypes and targets."""
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
        watched = self._watched(belief.vote, target, belief.label, ~batch.labelled)
        return summed(
            terms, {**watched, "reliable_rows": mean_or_zero(sure.float(), ~batch.labelled)}
        )

    def _believe(self, logits: TwoColumns, query: Embeddings, batch: PUBatch) -> Belief:
        """Return the beliefs about these rows, and record their distances."""
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
        self, outputs: Outputs, target: TwoColumns, belief: Belief, clock: Clock
    ) -> dict[str, Tensor]:
        """Return L_mix and the cross entropies: reliable rows by target, others by guess."""
        chosen = torch.where(belief.reliable[:, None], target, belief.guess)
        mixed = mix_pairs(chosen, outputs["partner_offset"], self.config.mixup, clock)
        cost = soft_cross_entropy(outputs["logits"], chosen)
        return {
            "mixup": soft_cross_entropy(outputs["mixed_logits"], mixed).mean(),
            "reliable": self.config.reliable_weight * mean_or_zero(cost, belief.reliable),
            "unreliable": self.config.unreliable_weight * mean_or_zero(cost, ~belief.reliable),
        }

    def _contrast_terms(
        self, query: Embeddings, key: Embeddings, belief: Belief, clock: Clock
    ) -> dict[str, Tensor]:
        """Return the contrast with pairs of reliable rows, and the contrast with all pairs."""
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
