"""Teacher: a slowly averaged copy of the network decides, and votes on the pool. A method of ours.

It is made of parts of NcPU (`methods/disambiguation.py`, `methods/alignment.py`), but it is not
NcPU's mathematics: docs/differences.md lists what differs. Symbols:

| name       | meaning                                                                      |
|------------|------------------------------------------------------------------------------|
| learner    | the network that is trained, `backbone` and `classifier`                     |
| teacher    | the average of its weights over the last steps, `branch.target` and `judge`  |
| margin     | logit of positive minus logit of negative, by the network that decides       |
| kept share | share of U that was called positive when votes began (`state/kept_share.py`) |
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.config import Settings
from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.losses.classification import (
    class_weighted_cross_entropy,
    mean_entropy,
    positive_unlabelled_cross_entropy,
)
from onesided.methods.alignment import (
    ALIGNED_VIEWS,
    Alignment,
    AlignmentBranch,
    Pairs,
    as_known,
)
from onesided.methods.base import (
    EMBEDDING,
    MOST_GENTLE_EPOCHS,
    Card,
    GradientMethod,
    short_training,
    summed,
)
from onesided.methods.disambiguation import (
    LOGS,
    DisambiguationConfig,
    gated_rows,
    move_prototypes_and_vote,
    move_targets,
    move_threshold,
    pairs_of_one_class,
    watched,
)
from onesided.methods.logged import Logged
from onesided.methods.shapes import RowIntegers, RowMask, Scalar, TwoColumns
from onesided.nets.heads import classifier
from onesided.nets.momentum import TargetNetwork
from onesided.nets.standardise import Backbone
from onesided.state.kept_share import KeptShare
from onesided.state.prototypes import Prototypes
from onesided.state.pseudo_targets import PseudoTargets
from onesided.state.threshold import SelfAdaptiveThreshold

VOTES = Logged("Positive votes", "Share of the pool that was voted positive.")
VIEWS: Mapping[str, Mapping[str, Augment]] = {
    "two": {"query": Augment.STRONG, "key": Augment.WEAK},
    "three": {"classify": Augment.WEAK, **ALIGNED_VIEWS},
}


class TeacherConfig(DisambiguationConfig):
    """Settings of Teacher."""

    switches: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "plain": {},
        "features": {"alignment": "robust", "voter": "prototype"},
    }

    variant: Literal["plain", "features"] = "plain"
    """A group of switches: for a network that is trained, or for features of a pretrained one.
    Every switch can still be set alone."""
    alignment: Alignment = "self"
    """Which pairs are pulled together: none; self, a sample with itself; class, all of one
    class; robust, all of one class, close pairs with larger gradients (NcPU's NoiSNCL)."""
    alignment_weight: float = Field(default=1.0, ge=0)
    """Weight of the alignment loss; fifty times smaller than NcPU's, so that the learning rate
    can be larger."""
    pairs: Pairs = "labelled"
    """Which samples count as one class: those whose probabilities agree, f_i . f_j >=
    pair_threshold, labelled positives and known negatives sure of theirs; or without the latter,
    probabilities; or predicted, those of one predicted class (NcPU)."""
    prototype_class: Literal["predicted", "labelled"] = "labelled"
    """Which prototype a row moves: for labelled positives and known negatives always that of their
    label, for others that of the predicted class; or always the latter, predicted (NcPU)."""
    entropy_weight: float = Field(default=0.0, ge=0)
    """Weight of the entropy of the learner's probabilities; ramps up over the warm-up."""
    views: Literal["two", "three"] = "two"
    """two: the learner is trained on the strong query, and the key is weak. three: it is trained
    on a weak view, and two strong ones are aligned (NcPU); one more pass forward and back."""
    weighing: Literal["classes", "sources"] = "classes"
    """Which two groups have equal weight in the classification loss: positive and negative
    targets, or P and U (NcPU). Both are equal until targets move. Then, with P and U, the
    positives outweigh the negatives, and in short runs too many votes are positive."""
    judge: Literal["target", "online"] = "target"
    """Which network decides, in training and in the end: the teacher, an average of the weights
    over the last hundred steps; or the learner (NcPU)."""
    voter: Literal["judge", "prototype"] = "judge"
    """Which votes move the targets: those of the network that decides, with the share of positive
    votes kept as it was when votes began; or those of the nearest prototype (NcPU). Prototypes
    take longer to form."""

    budget_variant: ClassVar[str | None] = "plain"
    features_variant: ClassVar[str | None] = "features"
    uses_negatives: ClassVar[bool] = True
    card: ClassVar[Card] = Card(
        title="Teacher",
        summary="A slowly averaged copy of the network decides and votes on the pool, with the "
        "share of positives kept as it was when votes began.",
        citation="No publication: ours. Cite this library; its parts are from NcPU (Zhao et al., "
        "ICLR 2026), mean teachers (Tarvainen and Valpola, NeurIPS 2017) and distribution "
        "alignment (ReMixMatch, Berthelot et al., ICLR 2020).",
        fidelity="There is no publication to be faithful to. What it takes from NcPU, and where it "
        "differs, is in differences.md.",
        licence="Ours, under Apache-2.0 like the whole library.",
        good_at="Runs of minutes to hours, few positives, no class prior, no negatives; chosen on "
        "CIFAR-10 training images.",
        bad_at="Data on which the network has memorised the positives when votes begin: the share "
        "it then keeps is too low.",
        variants={
            "plain": "a sample is aligned with itself, and the teacher votes (default)",
            "features": "class pairs are aligned by NcPU's loss, and NcPU's prototypes vote, which "
            "help on trained features: used by the presets on a frozen backbone",
        },
        logs={**LOGS, "positive_votes": VOTES},
    )

    def build(self, facts: DataFacts, backbone: Backbone) -> "Teacher":
        """Return an untrained Teacher."""
        return Teacher(self, facts, backbone)

    def budget_training(self, batch_size: int) -> Settings:
        """Return short training, which this method was made with."""
        return short_training(batch_size)

    def short_warmup(self, epochs: int) -> float:
        """Return three epochs where views are gentle, a quarter of the run where they are not.

        With gentle views more would harm: a wide network then begins to memorise the labelled
        positives, and calls fewer and fewer others positive.
        """
        return min(0.5 * epochs, 3 if epochs <= MOST_GENTLE_EPOCHS else 0.25 * epochs)


class Teacher(GradientMethod):
    """A learner, a teacher that follows it, and pseudo targets that move by the teacher's votes."""

    def __init__(self, config: TeacherConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.backbone = backbone
        self.classifier = classifier(backbone.width)
        self.targets = PseudoTargets(facts.rows)
        self.gate = SelfAdaptiveThreshold()
        self.views = VIEWS[config.views]
        # Without alignment the branch is not trained, but prototypes still need queries.
        self.branch = AlignmentBranch(backbone, config)
        self.prototypes = Prototypes(2, EMBEDDING)
        self.judge = TargetNetwork(self.classifier) if config.judge == "target" else None
        self.kept = KeptShare() if config.voter == "judge" else None
        if self.judge is not None:
            self.inference_parts = ("judge.", "branch.target.copies.0.")

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return the learner's logits, queries, keys and, from the key's features, the judge's."""
        if self.config.views == "three":
            logits = self.classifier(self.backbone(batch.views["classify"]))
        features = self.backbone(batch.views["query"])
        if self.config.views == "two":
            logits = self.classifier(features)
        query = self.branch.queries(features)
        momentum = self.config.encoder_momentum
        if self.judge is not None:  # it must soon forget the initial weights
            momentum = _early(momentum, clock)
        key_features, key = self.branch.keys(self.backbone, batch.views["key"], momentum=momentum)
        outputs = {"logits": logits, "query": query, "key": key}
        if self.judge is not None:
            self.judge.follow(self.classifier, momentum=momentum)
            outputs["judged"] = self.judge(key_features)
        return Outputs(outputs)

    def classify(self, images: Tensor) -> Float[Tensor, "n 2"]:
        """Return the logits of the network that decides."""
        if self.judge is None:
            return super().classify(images)
        logits: Tensor = self.judge(self.embed(images))
        return logits

    def embed(self, images: Tensor) -> Float[Tensor, "n d"]:
        """Return the features of the network that decides."""
        if self.judge is None:
            return super().embed(images)
        features: Tensor = self.branch.target.copies[0](images)
        return features

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return classification, alignment and entropy, after updating gate, votes and targets."""
        config, logits, query = self.config, outputs["logits"], outputs["query"]
        judged = logits.detach() if self.judge is None else outputs["judged"]
        probability = judged.softmax(dim=1)

        vote = move_prototypes_and_vote(self.prototypes, query.detach(), probability, batch, config)
        if self.kept is not None:
            vote = self._votes(self.kept, judged, batch, clock)
        move_threshold(self.gate, probability, batch.unlabelled, config)
        gated = gated_rows(self.gate, probability, batch, config, clock)
        target = move_targets(self.targets, vote, gated, batch, config, clock)
        same_class = pairs_of_one_class(probability, batch, config, clock)

        terms = {
            "classification": self._classification(logits, target, batch.labelled),
            "alignment": self.branch.weighted_loss(query, outputs["key"], same_class),
            "entropy": config.entropy_at(clock) * mean_entropy(logits),
        }
        shown = watched(self.gate, self.prototypes, vote, gated, probability, batch.unlabelled)
        return summed(terms, shown)

    def _classification(self, logits: TwoColumns, target: TwoColumns, labelled: RowMask) -> Scalar:
        if self.config.weighing == "classes":
            return class_weighted_cross_entropy(logits, target)
        return positive_unlabelled_cross_entropy(logits, target, labelled)

    def _votes(
        self, kept: KeptShare, judged: TwoColumns, batch: PUBatch, clock: Clock
    ) -> RowIntegers:
        """Return the judge's predictions, with the share of positives from before votes began."""
        margin = judged[:, POSITIVE] - judged[:, NEGATIVE]
        if self.config.settled(clock):
            kept.keep(margin[batch.unlabelled])
        else:
            momentum = _early(self.config.threshold_momentum, clock)
            kept.remember(margin[batch.unlabelled], momentum=momentum)
        return as_known(kept.positive(margin).long(), batch)


def _early(momentum: float, clock: Clock) -> float:
    """Return the momentum, but after t steps at most (1 + t) / (10 + t).

    So an average soon forgets its initial value, as is usual for averages of weights.
    """
    done = clock.epoch * clock.steps + clock.step
    return min(momentum, (1 + done) / (10 + done))
