"""NcPU: noisy-pair robust representation alignment for PU learning (Zhao et al., ICLR 2026).

Follows section 3 of the paper. Symbols:

| paper         | here                          | paper      | here                               |
|---------------|-------------------------------|------------|------------------------------------|
| f(x), f_1(x)  | `probability`, `p_negative`   | s', s      | `targets.phantom`, `target`        |
| y~            | `predicted`                   | r          | `vote`                             |
| q~, k~        | `query`, `key`                | tau~, rho~ | `gate.confidence`, `.class_share`  |
| mu_c          | `prototypes.vectors`          | tau        | `gate.threshold`                   |
| Q             | `same_class`                  | w_r, w_ent | `alignment_`, `entropy_weight`     |
| L_c, L~_r     | `classification`, `alignment` | g, g'      | `backbone`, `branch.target`        |
| alpha         | `prototype_momentum`          | gamma      | `threshold_momentum`               |
| beta          | `target_momentum`             | eta        | `encoder_momentum`                 |

The paper numbers the classes 0 = positive, 1 = negative; here POSITIVE = 1, NEGATIVE = 0.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from onesided.core.batch import Augment, DataFacts, Losses, Outputs, PUBatch
from onesided.core.clock import Clock
from onesided.core.former import FIRST_RULES, MOVED, NCPU, SWITCHES, TEACHER, method_today
from onesided.losses.classification import mean_entropy, positive_unlabelled_cross_entropy
from onesided.methods.alignment import ALIGNED_VIEWS, AlignmentBranch
from onesided.methods.base import EMBEDDING, Card, GradientMethod, summed
from onesided.methods.disambiguation import (
    LOGS,
    PAPER_EPOCHS,
    DisambiguationConfig,
    gated_rows,
    move_prototypes_and_vote,
    move_targets,
    move_threshold,
    pairs_of_one_class,
    watched,
)
from onesided.nets.heads import classifier
from onesided.nets.standardise import Backbone
from onesided.state.prototypes import Prototypes
from onesided.state.pseudo_targets import PseudoTargets
from onesided.state.threshold import SelfAdaptiveThreshold

RULES = (
    "alignment",
    "disambiguation",
    "pairs",
    "pair_threshold",
    "bound",
    "self_pair",
    "prototype_class",
    "prototype_normalisation",
    "vote",
    "threshold_rows",
    "confidence_cap",
)
"""Settings that are NcPU's mathematics; the others are its pace and size."""
EARLY, EARLIEST, QUICK = 5, 0.05, 0.8
"""On frozen features: passes before votes count, at most this share of a run; and beta, with which
four votes in a row turn a target."""


class NcPUConfig(DisambiguationConfig):
    """Settings of NcPU; the defaults are the paper's."""

    switches: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {},
        "released": {
            "pairs": "probabilities",
            "bound": "coordinate",
            "self_pair": "plain",
            "prototype_class": "labelled",
            "prototype_normalisation": "batch",
            "vote": "before",
            "threshold_rows": "unlabelled",
            "confidence_cap": 0.8,
        },
    }

    variant: Literal["paper", "released"] = "paper"
    """A group of switches: the published mathematics, or what the authors' code does. Every
    switch can still be set alone."""

    uses_negatives: ClassVar[bool] = True
    card: ClassVar[Card] = Card(
        title="NcPU",
        summary="Finds the positives by representations that withstand wrong labels.",
        citation="Zhao et al., Noisy-Pair Robust Representation Alignment for Positive-Unlabeled "
        "Learning, ICLR 2026.",
        fidelity="Written from the paper. The authors' code differs in eight switches; all "
        "are here.",
        licence="Authors' code: CC BY-NC-SA 4.0, academic use only; nothing of it is here.",
        good_at="Images, few positives, no class prior, no negatives; first in the paper's table, "
        "after 1300 epochs.",
        bad_at="Runs of minutes: votes begin before representations have formed. Teacher is made "
        "for these.",
        variants={
            "paper": "the published mathematics (default)",
            "released": "the eight switches as the authors' code sets them",
        },
        logs=LOGS,
    )

    @model_validator(mode="before")
    @classmethod
    def _know_what_is_a_method_of_its_own_now(cls, settings: Any) -> Any:  # noqa: ANN401 - pydantic's
        """Leave out the paper's values of switches that earlier files name; refuse others."""
        if not isinstance(settings, Mapping):
            return settings
        if (variant := str(settings.get("variant"))) in MOVED:
            raise ValueError(
                f"the variant '{variant}' is now a method of its own. Give method.name = "
                f"'{TEACHER}' and method.variant = '{MOVED[variant]}'"
            )
        for key, papers in SWITCHES.items():
            if settings.get(key, papers) != papers:
                raise ValueError(
                    f"{key} = '{settings[key]}' is not NcPU. It is a setting of the method "
                    f"'{TEACHER}': give method.name = '{TEACHER}', or leave {key} out"
                )
        if cls.model_fields.keys() - settings.keys() == FIRST_RULES.keys():
            # A file with every setting but these was written before they were settings.
            settings = {**settings, **FIRST_RULES}
        return method_today(NCPU, settings)[1]

    def build(self, facts: DataFacts, backbone: Backbone) -> "NcPU":
        """Return an untrained NcPU."""
        return NcPU(self, facts, backbone)

    def for_features(self, epochs: int) -> Self:
        """Return a pace at which votes count before a head has learned U by heart.

        Frozen features have formed, so nothing needs a long warm-up; and what is learned by heart
        the gate holds at negative for good (table `ncpu/pace` of `onesided bench`).
        """
        short = self.for_budget(epochs)
        if short == self:
            return self
        pace = {
            "warmup_epochs": min(short.warmup_epochs, EARLY, max(1, round(EARLIEST * epochs))),
            "target_momentum": min(short.target_momentum, QUICK),
        }
        return short.model_copy(update=pace)

    def notice(self, epochs: int) -> str | None:
        """Tell that a short run changes the pace and nothing else."""
        if epochs >= PAPER_EPOCHS:
            return None
        whose = {"paper": "as published", "released": "those of the authors' code"}
        own = type(self).from_settings({"variant": self.variant})
        changed = [rule for rule in RULES if getattr(self, rule) != getattr(own, rule)]
        but = ", ".join(f"{rule} = {getattr(self, rule)}" for rule in changed)
        return (
            f"NcPU's rules are {whose[self.variant]}{f', but for {but}' if but else ''}. What a "
            f"short run changes ({epochs} of {PAPER_EPOCHS} epochs) is its pace: warm-up, momenta, "
            "learning rate and batches; network and views may be smaller too. Votes then begin "
            "before representations have formed; Teacher is made for short runs."
        )


class NcPU(GradientMethod):
    """Two networks, one table of pseudo targets, two prototypes, one threshold."""

    views: Mapping[str, Augment] = {"classify": Augment.WEAK, **ALIGNED_VIEWS}

    def __init__(self, config: NcPUConfig, facts: DataFacts, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.backbone = backbone
        self.classifier = classifier(backbone.width)
        self.targets = PseudoTargets(facts.rows)
        self.gate = SelfAdaptiveThreshold()
        # Without alignment the branch is not trained, but prototypes still need queries.
        self.branch = AlignmentBranch(backbone, config)
        self.prototypes = Prototypes(2, EMBEDDING)

    def forward(self, batch: PUBatch, clock: Clock) -> Outputs:
        """Return f's logits, q~ and k~."""
        logits = self.classifier(self.backbone(batch.views["classify"]))
        query, key = self.branch(self.backbone, batch)
        return Outputs({"logits": logits, "query": query, "key": key})

    def loss(self, outputs: Outputs, batch: PUBatch, clock: Clock) -> Losses:
        """Return Eq. 14 with the entropy term, after updating prototypes, gate and targets."""
        config, logits, query = self.config, outputs["logits"], outputs["query"]
        probability = logits.detach().softmax(dim=1)

        vote = move_prototypes_and_vote(self.prototypes, query.detach(), probability, batch, config)
        move_threshold(self.gate, probability, batch.unlabelled, config)
        gated = gated_rows(self.gate, probability, batch, config, clock)
        target = move_targets(self.targets, vote, gated, batch, config, clock)
        same_class = pairs_of_one_class(probability, batch, config, clock)

        terms = {
            "classification": positive_unlabelled_cross_entropy(logits, target, batch.labelled),
            "alignment": self.branch.weighted_loss(query, outputs["key"], same_class),
            "entropy": config.entropy_at(clock) * mean_entropy(logits),
        }
        shown = watched(self.gate, self.prototypes, vote, gated, probability, batch.unlabelled)
        return summed(terms, shown)
